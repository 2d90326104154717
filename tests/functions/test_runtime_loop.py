"""The functions in the loop in which AWS runs them: what they answer, and what they write."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dynsched.bootstrap import Base, build_operations, init_store, open_base
from dynsched.domain.job import Job
from dynsched.domain.message import encode_message
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import EverySpec, JobSpec
from tests.functions.runtime_api import Runtime, running

APP = """
from dynsched import App

app = App()


@app.job("ok")
def ok(ctx):
    return {"done": ctx.run_id}
"""
QUEUE_ARN = "arn:aws:sqs:eu-west-1:000000000000:main-default"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a team's handlers in it."""
    path = tmp_path_factory.mktemp("function")
    (path / "handlers.py").write_text(APP)
    return path


@pytest.fixture(scope="module")
def base(folder: Path) -> Base:
    """Return a store with a job, as a file that processes share."""
    base = open_base(f"sqlite:///{folder}/store.db", environment={})
    init_store(base)
    return base


@pytest.fixture(scope="module")
def job(base: Base) -> Job:
    """Return a job whose handler the team has."""
    return build_operations(base).create(JobSpec(name="a", target=HandlerTarget("ok")))


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return what a function is told."""
    return {"DYNSCHED_STORE": f"sqlite:///{folder}/store.db", **more}


@pytest.fixture(scope="module")
def worker(folder: Path, base: Base) -> Iterator[Runtime]:
    """Return a worker function that runs the team's handlers."""
    assert base.store.topology.lanes
    told = environment(folder, DYNSCHED_APP="handlers:app")
    with running("dynsched.lambdas.worker.handler", told, folder=folder) as runtime:
        yield runtime


def records(*bodies: str) -> dict[str, Any]:
    """Return a batch of messages as SQS's events have it."""
    return {
        "Records": [
            {
                "messageId": f"m{number}",
                "receiptHandle": "",
                "body": body,
                "attributes": {"SentTimestamp": "1772442010000", "ApproximateReceiveCount": "1"},
                "eventSource": "aws:sqs",
                "eventSourceARN": QUEUE_ARN,
            }
            for number, body in enumerate(bodies)
        ]
    }


def stored(base: Base, run: Run) -> Run:
    """Return a run as it is stored now."""
    found = base.store.runs.get(run.key)
    assert found is not None
    return found


def test_a_batch_is_run_and_what_is_to_stay_is_named(worker: Runtime, base: Base, job: Job) -> None:
    """One run is due, one is early: SQS deletes the message of the first only."""
    operations = build_operations(base)
    due = operations.enqueue(job.job_id, None)
    early = operations.enqueue(job.job_id, None, delay=timedelta(hours=1))
    batch = records(encode_message(due.run_id), encode_message(early.run_id))
    answer = worker.invoke(batch)
    assert answer.kind == "response"
    assert answer.body == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert stored(base, due).state is RunState.DONE
    assert stored(base, early).state is RunState.READY


def test_an_event_of_another_kind_is_told_in_one_sentence(worker: Runtime) -> None:
    """As the console of AWS shows errors: type, message, trace."""
    answer = worker.invoke({"detail": "something else"})
    assert answer.kind == "error"
    assert answer.body["errorType"] == "InvalidInput"
    assert answer.body["errorMessage"].startswith("event: it is no batch of messages of SQS")
    assert answer.body["stackTrace"]


def test_the_worker_writes_figures_and_its_log_as_json(folder: Path, base: Base, job: Job) -> None:
    """Each line is an object: CloudWatch reads the figures, people query the log."""
    run = build_operations(base).enqueue(job.job_id, None)
    told = environment(folder, DYNSCHED_APP="handlers:app")
    with running("dynsched.lambdas.worker.handler", told, folder=folder) as runtime:
        runtime.invoke(records(encode_message(run.run_id)))
        documents = runtime.documents()
    figures = [one for one in documents if "_aws" in one]
    assert {"RunsStarted", "RunsDone", "MessagesDropped"} <= set().union(*figures)
    delays = [one for one in figures if "StartDelay" in one]
    assert delays[0]["Priority"] == "default"
    assert delays[0]["Store"] == "local"
    (about,) = [one for one in documents if one.get("run_id") == run.run_id]
    assert about["level"] == "INFO"
    assert about["requestId"].startswith("00000000-")


def test_a_wrong_environment_is_told_before_the_first_event(folder: Path) -> None:
    """The function cannot be used at all, so AWS is told while it starts."""
    told = {"DYNSCHED_STORE": "dynamodb"}
    with running("dynsched.lambdas.worker.handler", told, folder=folder) as runtime:
        answer = runtime.answer()
    assert answer.kind == "init/error"
    assert "is no store URL" in answer.body["errorMessage"]


def test_the_dispatcher_makes_runs_and_figures(folder: Path, base: Base) -> None:
    """The schedule's event says nothing; the store does."""
    cron = build_operations(base).create(
        JobSpec(
            name="b", target=HandlerTarget("ok"), schedule=EverySpec(every=timedelta(seconds=10))
        )
    )
    told = environment(folder)
    with running("dynsched.lambdas.dispatcher.handler", told, folder=folder) as runtime:
        answer = runtime.invoke({"source": "aws.scheduler"})
        documents = runtime.documents()
    assert answer.kind == "response", answer
    assert answer.body["Ticks"] >= 1
    assert list(base.store.runs.history(cron.job_id, most=5))
    (figures,) = [one for one in documents if "_aws" in one]
    assert {"Ticks", "RunsCreated", "DispatcherLag"} <= figures.keys()


def test_the_reaper_sweeps_and_tells_how_the_store_is(folder: Path) -> None:
    """Figures of the sweep, of the store, and of each priority."""
    told = environment(folder)
    with running("dynsched.lambdas.reaper.handler", told, folder=folder) as runtime:
        answer = runtime.invoke({})
        documents = runtime.documents()
    assert answer.kind == "response", answer
    assert answer.body["Sweeps"] == 1
    figures = [one for one in documents if "_aws" in one]
    assert {"Sweeps", "DeadRuns", "OldestDue"} <= set().union(*figures)
    assert {one["Priority"] for one in figures if "ReadyRuns" in one} == {
        "high",
        "default",
        "bulk",
    }
