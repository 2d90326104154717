"""Whatever becomes of messages, a ready run is in its lane, and functions alone find it in time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynsched.bootstrap import build_dispatcher, build_operations, build_reaper, build_worker
from dynsched.domain.job import Job, Overlap
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import Run, RunState
from dynsched.services.slots import InlineSlots
from dynsched.testing.faults import Call, Crash, Fault
from tests.functions.stage import QUEUE, Stage

QUICK = RetryPolicy(base=timedelta(seconds=5), max_attempts=3, jitter=Jitter.NONE)
STEP_S = 20
"""Seconds between two looks of dispatcher and reaper, in the end."""


def step(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return steps of one kind: a method of a party, with arguments."""
    return st.tuples(st.just(name), st.tuples(*arguments))


JOBS = st.integers(0, 3)
steps = st.one_of(
    step("enqueue", JOBS, st.sampled_from([0, 0, 0, 20, 1_000])),
    step("enqueue_and_die", JOBS, st.sampled_from([0, 20, 1_000])),
    step("mistreat_messages", st.sampled_from([0, 0.5, 1]), st.integers(0, 100)),
    step("set_outage", st.booleans()),
    step("visit", st.integers(1, 5)),
    step("die_in_a_visit", st.integers(1, 8)),
    step("pull", st.integers(1, 3)),
    step("tick_and_sweep"),
    step("let_pass", st.sampled_from([1, 15, 61, 200])),
)


class Party:
    """Functions, workers that pull, and people, on one stage."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.stage.operations.set_tenant("capped", max_running=1)
        job = self.stage.job
        self.jobs: list[Job] = [
            job("plain"),
            job("fails", handler="fail", retry=QUICK),
            job("one", overlap=Overlap.QUEUE_ONE),
            job("capped", tenant="capped"),
        ]
        self.dispatcher = build_dispatcher(self.stage.base())
        self.reaper = build_reaper(self.stage.base())

    def enqueue(self, job: int, delay_s: float) -> None:
        """Let a person make a run."""
        self.stage.enqueue(self.jobs[job], delay=timedelta(seconds=delay_s))

    def mistreat_messages(self, share: float, late_s: float) -> None:
        """Lose and double a share of what is sent from now on, and deliver it late."""
        messages = self.stage.messages
        messages.loss = messages.doubling = share
        messages.late_s = late_s

    def set_outage(self, down: bool) -> None:  # by a script
        """Let the transport answer nobody, or everybody again."""
        self.stage.messages.down = down

    def let_pass(self, seconds: float) -> None:
        """Let time pass."""
        self.stage.clock.step(seconds=seconds)

    def pull(self, polls: int) -> None:
        """Let a worker that pulls come, and leave for ever."""
        worker = build_worker(self.stage.base(), self.stage.app(), slots=InlineSlots()).worker
        for _ in range(polls):
            worker.poll()

    def enqueue_and_die(self, number: int, delay_s: float) -> None:
        """Let a process die right behind the row that it makes."""
        job = self.jobs[number]

        def plan(call: Call) -> Fault:
            makes = call.method == "write_many" and call.keys[0].pk.startswith(job.job_id)
            return Fault.CRASH_AFTER if makes else Fault.NONE

        dying = build_operations(self.stage.base(plan))
        try:
            dying.enqueue(job.job_id, None, delay=timedelta(seconds=delay_s))
        except Crash:
            return
        raise AssertionError("it did not die")

    def die_in_a_visit(self, calls: int) -> None:
        """Let a function die behind some call to the store."""
        received = self.stage.messages.receive(most=1)
        if received:
            dying = self.stage.base({calls: Fault.CRASH_AFTER})
            try:
                self.stage.work(self.stage.worker(base=dying), received)
            except Crash:
                return

    def visit(self, most: int) -> None:
        """Let functions come for some messages, but only if the transport answers."""
        if not self.stage.messages.down:
            for _ in range(most):
                self.stage.receive_and_work()

    def tick_and_sweep(self) -> None:
        """Let a dispatcher tick and a reaper sweep."""
        self.dispatcher.tick()
        self.reaper.sweep()

    def runs(self) -> list[Run]:
        """Return all runs, as they are stored now."""
        return [
            run for job in self.jobs for run in self.stage.store.runs.history(job.job_id, most=100)
        ]

    def lost_from_their_lanes(self) -> set[str]:
        """Return the ready runs that no worker would find by pulling."""
        ready = {run.run_id for run in self.runs() if run.state is RunState.READY}
        for lane in range(self.stage.store.topology.lanes):
            found = self.stage.store.runs.ready(QUEUE.queue, QUEUE.priority, lane)
            ready -= {run.run_id for run in found}
        return ready

    def end_faults(self) -> float:
        """Let functions alone do the rest; return after how many seconds all has ended."""
        messages = self.stage.messages
        messages.down, messages.loss, messages.doubling, messages.late_s = False, 0, 0, 0
        passed = 0
        while not all(run.terminal for run in self.runs()):
            while self.stage.receive_and_work():
                pass
            self.stage.clock.step(seconds=STEP_S)
            passed += STEP_S
            self.tick_and_sweep()
            assert passed < 10_000, [run for run in self.runs() if not run.terminal]
        return passed


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(script=st.lists(steps, min_size=4, max_size=14))
def test_functions_find_every_run_whatever_became_of_its_messages(
    script: list[tuple[str, tuple[Any, ...]]],
) -> None:
    """Sends are lost, doubled, late; processes die behind their rows; others pull in between.

    A run is found within twice the age that it has when the faults end, as the ages at which it is
    told of double; and what one visit leaves over (a cap, another run of its job) the next takes.
    """
    party = Party()
    began = party.stage.clock.now()
    for name, arguments in script:
        getattr(party, name)(*arguments)
        assert party.lost_from_their_lanes() == set(), name
    age_s = (party.stage.clock.now() - began).total_seconds()
    assert party.end_faults() <= 2 * age_s + 1_000 + 600
