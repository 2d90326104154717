"""What goes wrong between rows, messages and functions, with real SQS and Lambda on ministack.

Whatever happens to a message, the row decides: at rest every run has ended, each was started as
often as its history explains, and nothing breaks an invariant.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from dynsched.domain.job import CatchUp
from dynsched.domain.run import Run, RunState
from dynsched.services.specs import CronSpec, EverySpec
from tests.aws.conftest import ROOT, NewDeployment
from tests.aws.deployment import Deployment, FunctionFailed
from tests.aws.wire import Entry, Wire
from tests.processes.stage import wait_until

RESENT_AFTER = timedelta(seconds=61)
EVERY_MINUTE = CronSpec(expr="* * * * *")


def assert_each_ran_once(deployment: Deployment, runs: Sequence[Run]) -> None:
    """Fail unless these runs end, are started once each, and no invariant is broken."""
    ended = deployment.await_end(*runs)
    assert [run.state for run in ended] == [RunState.DONE] * len(runs)
    assert [deployment.starts(run) for run in ended] == [1] * len(runs)
    assert deployment.broken_invariants() == ""


def test_a_row_whose_writer_was_killed_before_it_sent_is_sent_for_later(
    deployment: Deployment, wire: Wire
) -> None:
    """The row is first, the message second: between them nothing is lost, only late."""
    job = deployment.add("touch")
    wire.held.add("victim")
    environment = {**os.environ, "DYNSCHED_STORE": deployment.store_url("victim")}
    path = os.pathsep.join(str(ROOT / part) for part in ("src", "console", "web"))
    victim = subprocess.Popen(
        [sys.executable, "-m", "dynsched", "job", "run-now", job.name, "--reason", "tried"],
        env=environment | {"PYTHONPATH": path},
    )
    assert wire.holding.wait(30), "it never came to send"
    victim.kill()
    victim.wait()
    (run,) = deployment.runs()
    assert run.state is RunState.READY
    assert deployment.waiting_messages() == 0
    deployment.ahead(RESENT_AFTER)
    deployment.invoke("reaper")
    assert_each_ran_once(deployment, [run])


def test_a_message_that_comes_twice_starts_its_run_once(deployment: Deployment, wire: Wire) -> None:
    """SQS delivers at least once; the second one finds the run leased or ended."""
    wire.bend = lambda url, entries: [*entries, *entries]
    job = deployment.add("touch")
    runs = [deployment.operations.enqueue(job.job_id) for _ in range(5)]
    assert_each_ran_once(deployment, runs)
    wait_until(lambda: deployment.waiting_messages() == 0, 20, "the second ones to be dropped")
    assert_each_ran_once(deployment, runs)


def test_a_lost_message_is_sent_again_once_its_row_is_old(
    deployment: Deployment, wire: Wire
) -> None:
    """The resend looks at rows, so it needs no trace of the message; a young row gets none."""
    wire.bend = lambda url, entries: []
    job = deployment.add("touch")
    run = deployment.operations.enqueue(job.job_id)
    wire.bend = None
    deployment.invoke("reaper")
    assert deployment.waiting_messages() == 0
    deployment.ahead(RESENT_AFTER)
    deployment.invoke("reaper")
    assert_each_ran_once(deployment, [run])


def test_messages_in_the_wrong_order_still_start_each_run_once(
    deployment: Deployment, wire: Wire
) -> None:
    """Order is no promise: a message names its run and says nothing else."""
    kept: list[tuple[str, Entry]] = []

    def keep(url: str, entries: Sequence[Entry]) -> list[Entry]:
        kept.extend((url, entry) for entry in entries)
        return []

    wire.bend = keep
    job = deployment.add("touch")
    runs = [deployment.operations.enqueue(job.job_id) for _ in range(6)]
    wire.bend = None
    assert len(kept) == len(runs)
    for url, entry in reversed(kept):
        deployment.messages.send_message(QueueUrl=url, MessageBody=entry["MessageBody"])
    assert_each_ran_once(deployment, runs)


def test_a_message_that_comes_after_the_resent_one_is_dropped(
    deployment: Deployment, wire: Wire
) -> None:
    """A message that was thought lost and was only late finds its run ended."""
    kept: list[tuple[str, Entry]] = []

    def keep(url: str, entries: Sequence[Entry]) -> list[Entry]:
        kept.extend((url, entry) for entry in entries)
        return []

    wire.bend = keep
    job = deployment.add("touch")
    run = deployment.operations.enqueue(job.job_id)
    wire.bend = None
    deployment.ahead(RESENT_AFTER)
    deployment.invoke("reaper")
    assert_each_ran_once(deployment, [run])
    ((url, late),) = kept
    deployment.messages.send_message(QueueUrl=url, MessageBody=late["MessageBody"])
    wait_until(lambda: deployment.waiting_messages() == 0, 20, "the late one to be dropped")
    assert_each_ran_once(deployment, [run])


def test_a_message_that_comes_too_early_waits_until_its_run_is_due(
    deployment: Deployment, wire: Wire
) -> None:
    """It is hidden until the row's instant, neither dropped nor obeyed."""
    wire.bend = lambda url, entries: [entry | {"DelaySeconds": 0} for entry in entries]
    job = deployment.add("touch")
    run = deployment.operations.enqueue(job.job_id, delay=timedelta(seconds=4))
    assert_each_ran_once(deployment, [run])
    (ended,) = deployment.await_end(run)
    assert ended.started_at is not None
    assert ended.started_at >= run.available_at


def test_a_dispatcher_that_is_woken_twice_in_one_second_makes_each_run_once(
    deployment: Deployment,
) -> None:
    """Two invocations at once race for each row; the loser's put is refused."""
    jobs = [deployment.add("touch", every=EverySpec(every=timedelta(seconds=20))) for _ in range(5)]
    # ministack runs one call of a function at a time, so there are two of them.
    deployment.make_function("dispatcher-2", "dispatcher")
    together = threading.Barrier(2)

    def wake(name: str) -> None:
        together.wait(10)
        deployment.invoke(name)

    for name in ("dispatcher", "dispatcher-2"):
        deployment.invoke(name)  # both are warm now, so that they really meet
    deployment.ahead(timedelta(minutes=3))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(wake, ("dispatcher", "dispatcher-2")))
    made = deployment.runs()
    assert {run.job_id for run in made} == {job.job_id for job in jobs}
    assert len({run.run_id for run in made}) == len(made)
    assert deployment.broken_invariants() == ""


def test_a_dispatcher_that_was_away_for_five_minutes_leaves_no_gap(deployment: Deployment) -> None:
    """Every instant in between has a run, or is counted as skipped where the job says so."""
    deployment.keep_delayed()
    all_of_them = deployment.add("touch", every=EVERY_MINUTE, catch_up=CatchUp.ALL)
    latest = deployment.add("touch", every=EVERY_MINUTE, catch_up=CatchUp.LATEST)
    deployment.invoke("dispatcher")
    deployment.ahead(timedelta(minutes=8))
    deployment.invoke("dispatcher")
    now = deployment.base.clock.now()
    made = deployment.runs()
    due = [run for run in made if run.job_id == all_of_them.job_id and run.scheduled_for <= now]
    assert len(due) >= 7
    assert {run.job_id for run in made} == {all_of_them.job_id, latest.job_id}
    assert_each_ran_once(deployment, [run for run in made if run.available_at <= now])


def test_a_worker_that_is_killed_at_its_time_limit_loses_its_run_to_another(
    new_deployment: NewDeployment,
) -> None:
    """The lease ends with the invocation; the reaper returns the run and sends for it."""
    deployment = new_deployment(timeout_s=8, visibility_s=2)
    job = deployment.add("frozen-once")
    run = deployment.operations.enqueue(job.job_id)
    wait_until(lambda: deployment.starts(run) == 1, 20, "its first try")
    (leased,) = deployment.runs()
    assert leased.state is RunState.LEASED
    assert leased.lease_ends_at is not None
    deployment.invoke("reaper")
    assert deployment.runs() == [leased], "nobody takes a lease that has not ended"
    deployment.ahead(timedelta(minutes=1))
    deployment.invoke("reaper")
    (ended,) = deployment.await_end(run)
    assert (ended.state, ended.attempt) == (RunState.DONE, 2)
    assert deployment.starts(run) == 2
    assert deployment.broken_invariants() == ""


def test_a_handler_that_hears_nothing_is_left_before_the_function_is_killed(
    new_deployment: NewDeployment,
) -> None:
    """The run is handed back under its fence while there is time, so no lease has to run out."""
    deployment = new_deployment(timeout_s=12, visibility_s=2)
    job = deployment.add("deaf-once")
    run = deployment.operations.enqueue(job.job_id)
    (ended,) = deployment.await_end(run)
    assert (ended.state, ended.attempt, ended.losses) == (RunState.DONE, 2, 0)
    assert deployment.broken_invariants() == ""


def test_a_function_that_fails_tells_its_caller(deployment: Deployment) -> None:
    """The stories above would not notice a worker that cannot even read its event."""
    with pytest.raises(FunctionFailed):
        deployment.invoke("worker", {"Records": [{"body": "x"}]})
