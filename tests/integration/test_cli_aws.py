"""Jobs on AWS on the command line, and runs that are ended by their callback."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from dynsched.bootstrap import open_base
from dynsched.domain import lifecycle
from dynsched.domain.run import parse_run_id
from dynsched.services.callbacks import CallbackOpener
from dynsched.services.hand import InHand
from dynsched.storage.runs import RunApplied
from dynsched.targets.stop import Stop
from dynsched.targets.ticket import Ticket
from tests.integration.program import Program

QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


def added(program: Program, *options: str) -> Any:
    """Add a job that is run by hand; return what it does."""
    return program.json("job", "add", "j", "--manual", *options)["target"]


def test_a_job_that_invokes_a_function_is_added_and_edited_in_part(program: Program) -> None:
    """What is not typed stays as it was."""
    made = added(
        program, "--lambda", "report:live", "--invocation", "async", "--body", "[{payload}]"
    )
    assert made == {
        "kind": "lambda",
        "function": "report:live",
        "invocation": "async",
        "body": "[{payload}]",
        "words": "lambda report:live (async)",
    }
    edited = program.json("job", "edit", "j", "--invocation", "sync")["target"]
    assert edited == {
        "kind": "lambda",
        "function": "report:live",
        "body": "[{payload}]",
        "words": "lambda report:live",
    }
    assert "lambda report:live" in program("job", "list").out


def test_a_job_that_sends_a_message_is_added_and_edited_in_part(program: Program) -> None:
    """A FIFO queue needs no group; another one may have one."""
    made = added(program, "--sqs", QUEUE, "--group", "orders")
    assert made == {"kind": "sqs", "url": QUEUE, "group": "orders", "words": "sqs orders"}
    edited = program.json("job", "edit", "j", "--body", "order {run_id}")["target"]
    assert (edited["group"], edited["body"]) == ("orders", "order {run_id}")
    assert program.json("job", "show", "j")["target"] == edited


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--lambda", "a b"), "--lambda: 'a b' is neither a Lambda function's name nor its ARN"),
        (("--sqs", "orders"), "--sqs: 'orders' is not http or https"),
        (("--sqs", QUEUE, "--invocation", "sync"), "--invocation: it goes with --lambda"),
        (("--http", "https://x.org", "--group", "g"), "--group: it goes with --sqs"),
        (("--handler", "h", "--body", "x"), "--body: it goes with --http or --lambda or --sqs"),
        (("--lambda", "f", "--sqs", QUEUE), "--lambda and --sqs exclude each other"),
        (("--lambda", "f", "--invocation", "callback", "--body", "1"), "its token in the envelope"),
    ],
)
def test_what_does_not_go_together_is_told(
    program: Program, options: tuple[str, ...], told: str
) -> None:
    """In one sentence that names the option."""
    assert told in program.error("job", "add", "j", "--manual", *options)


def awaiting(program: Program) -> tuple[str, str]:
    """Return a run that waits for its callback, and its token."""
    added(program, "--lambda", "report", "--invocation", "callback")
    run_id = program.json("job", "run-now", "j")["run_id"]
    base = open_base(program.url, environment={}, rng=Random(1))
    base.store.refresh()
    run = base.store.runs.get(parse_run_id(run_id))
    assert run is not None
    outcome = base.store.runs.apply(lifecycle.claim(run, session="s1", now=base.clock.now()))
    assert isinstance(outcome, RunApplied)
    job = base.store.jobs.get(run.job_id)
    item = InHand(outcome.run, "s1", Stop(), job=job, started_at=base.clock.now())
    ticket = CallbackOpener(base.store, clock=base.clock, rng=base.rng).open(item)
    assert isinstance(ticket, Ticket)
    return run_id, ticket.token


def test_a_run_is_completed_by_its_token(program: Program) -> None:
    """And not a second time."""
    run_id, token = awaiting(program)
    assert "waits for its callback until" in program("why", run_id).out
    assert "does not belong" in program.error("run", "complete", run_id, "--token", "wrong", code=7)
    done = program("run", "complete", run_id, "--token", token, "--output", '{"rows": 3}')
    assert done.out == f"{run_id} is done\n"
    assert "been answered" in program.error("run", "fail", run_id, "--token", token, code=4)
    assert program.json("run", "show", run_id)["attempts"][0]["output"] == {"rows": 3}


def test_a_run_is_failed_by_hand_and_the_audit_says_why(program: Program) -> None:
    """For work that will not answer any more."""
    run_id, _ = awaiting(program)
    failed = program.json(
        "run",
        "fail",
        run_id,
        "--error-type",
        "Gone",
        "--permanent",
        "--reason",
        "it has ended",
    )
    assert (failed["state"], failed["error"]) == ("dead", "Gone: ")
    entry = program.json("audit")[0]
    assert (entry["action"], entry["reason"]) == ("run.end", "it has ended")
