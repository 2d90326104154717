"""Health: what a triage is told, staged once for each thing that can be wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynsched.bootstrap import build_views
from dynsched.domain.health import Grade, Health, Topic
from dynsched.domain.job import Job, Priority
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.target import HandlerTarget
from dynsched.services.health import limits_of
from dynsched.services.health_documents import health_document
from dynsched.services.health_look import RECENT, Look
from dynsched.services.specs import CronSpec, JobSpec, default_policies
from dynsched.services.views import Views
from dynsched.settings import Settings
from dynsched.storage.engine import Replace
from dynsched.storage.placement import job_key
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext
from dynsched.testing import ManualScheduler, SettableClock

NO_MATTER = timedelta(0)


def an_app() -> App:
    """Return handlers that succeed, and that fail with their payload."""
    app = App()

    @app.job("ok")
    def ok() -> None:
        """Succeed."""

    @app.job("fail")
    def fail(ctx: AnyContext) -> None:
        """Fail."""
        raise ValueError(str(ctx.payload))

    return app


class Stage:
    """A scheduler in virtual time, and its views."""

    def __init__(self, **settings: Any) -> None:
        self.clock = SettableClock()
        self.scheduler = ManualScheduler(an_app(), clock=self.clock, settings=Settings(**settings))
        self.operations, self.store = self.scheduler.operations, self.scheduler.store
        self.views: Views = build_views(self.scheduler._base)

    def job(self, name: str, handler: str = "ok", **fields: Any) -> Job:
        """Make a job; with `tries` it has so many."""
        tries = fields.pop("tries", None)
        spec = JobSpec(name=name, target=HandlerTarget(handler), **fields)
        if tries is not None:
            retry = RetryPolicy(
                max_attempts=tries, base=timedelta(seconds=1), factor=1, jitter=Jitter.NONE
            )
            spec = replace(spec, policies=replace(default_policies(spec.schedule), retry=retry))
        return self.operations.create(spec)

    def enqueue(self, job: Job, count: int = 1, payload: Any = "no disk") -> None:
        """Make runs of a job."""
        self.operations.enqueue_many(job.job_id, [payload] * count, priority=job.priority)

    def pass_by(self, length: timedelta, *, tick: bool = True, sweep: bool = True) -> None:
        """Let time pass; the worker always works, the others if they are not stuck."""
        for _ in range(length // timedelta(seconds=10)):
            self.clock.step(seconds=10)
            if tick:
                self.scheduler.tick()
            if sweep:
                self.scheduler.sweep()
            self.scheduler.run_due()

    def health(self) -> Health:
        """Look."""
        return self.views.health(NO_MATTER)

    def told(self, topic: Topic) -> list[tuple[Grade, str]]:
        """Return the findings of a topic."""
        return [(one.level, one.sentence) for one in self.health().verdicts if one.topic is topic]


@pytest.fixture(name="stage")
def _stage() -> Stage:
    """Return a scheduler that runs one job each minute, and has done so for some minutes."""
    stage = Stage()
    stage.job("minutely", schedule=CronSpec(expr="* * * * *"))
    stage.scheduler.run_due()
    stage.pass_by(timedelta(minutes=4))
    return stage


def test_a_store_that_is_well_says_so_in_one_sentence_a_topic(stage: Stage) -> None:
    """What is right is told too, with the figures that show it."""
    health = stage.health()
    assert health.worst is Grade.OK
    assert [(one.topic, one.sentence) for one in health.verdicts] == [
        (
            Topic.LATE,
            "Runs start on time: p95 start delay is 0s over the last 5 min (5 runs started).",
        ),
        (
            Topic.STUCK,
            "Dispatcher, reaper and 1 worker give signs of life; no run lies under a lost worker.",
        ),
        (Topic.BROKEN, "No run died in the last hour; the dead-letter queue holds 0."),
        (Topic.HURT, "No tenant waits at its cap, and none stands out."),
    ]


def test_late_starts_are_told_by_their_delay(stage: Stage) -> None:
    """The worker was away for 42 seconds; percentiles are told within 27 %, the longest exactly."""
    stage.enqueue(stage.job("late"), 90)
    stage.clock.step(seconds=42)
    stage.scheduler.run_due()
    ((grade, sentence),) = stage.told(Topic.LATE)
    assert grade is Grade.BAD
    assert sentence.startswith("Runs start late: p95 start delay is 37s over the last 5 min")
    assert sentence.endswith("started, the latest 42s late).")


def test_a_queue_that_nobody_serves_is_named(stage: Stage) -> None:
    """The oldest due run tells since when, and why nobody takes it."""
    stage.enqueue(stage.job("report", queue="reports"))
    stage.pass_by(timedelta(minutes=3))
    assert stage.told(Topic.LATE) == [
        (
            Grade.WARN,
            "The oldest due run has waited 3m in queue reports: no living worker serves queue"
            " reports.",
        )
    ]
    stage.pass_by(timedelta(minutes=3))
    assert stage.told(Topic.LATE)[0][0] is Grade.BAD


def test_taken_slots_are_named_as_the_cause() -> None:
    """More workers would help, and nothing else."""
    stage = Stage(slots=1, health_wait_warn=timedelta(seconds=5))
    stage.enqueue(stage.job("busy"), 2)
    stage.scheduler.tick()
    stage.scheduler.sweep()
    stage.scheduler.lose_worker()
    stage.clock.step(seconds=10)
    assert stage.told(Topic.LATE) == [
        (
            Grade.WARN,
            "The oldest due run has waited 10s in queue main: all 1 slots of the living workers"
            " are taken.",
        )
    ]


def test_bulk_work_that_waits_is_no_alarm() -> None:
    """It was declared to let others pass; a warning is all that it is worth."""
    stage = Stage(slots=1)
    job = stage.job("bulk", priority=Priority.BULK)
    stage.enqueue(job, 500)
    stage.clock.step(minutes=20)
    stage.scheduler.tick()
    stage.scheduler.sweep()
    stage.scheduler.lose_worker()
    ((grade, sentence),) = [one for one in stage.told(Topic.LATE) if "oldest" in one[1]]
    assert grade is Grade.WARN
    assert sentence.startswith("The oldest due run has waited 20m in queue main")


def test_a_dispatcher_that_went_silent_is_told_with_its_silence(stage: Stage) -> None:
    """Its last sign of life is all that is left of it."""
    stage.job("due")
    stage.pass_by(timedelta(minutes=4), tick=False)
    sentence = "The last dispatcher was heard 4m 20s ago: due jobs are not made into runs."
    assert stage.told(Topic.STUCK) == [(Grade.BAD, sentence)]


def test_a_store_without_a_dispatcher_says_so() -> None:
    """A worker alone makes no occurrences."""
    stage = Stage()
    stage.job("due")
    stage.pass_by(timedelta(minutes=1), tick=False)
    sentence = "No dispatcher gives a sign of life: due jobs are not made into runs."
    assert stage.told(Topic.STUCK) == [(Grade.BAD, sentence)]


def test_a_silent_dispatcher_is_no_alarm_while_no_job_needs_it() -> None:
    """A new store, or one whose jobs are all paused, waits for nobody at night.

    Source: a monitor rang for a store that had just been made.
    """
    stage = Stage()
    sentence = "No dispatcher gives a sign of life, and no job is active that needs one."
    assert (Grade.WARN, sentence) in stage.told(Topic.STUCK)
    job = stage.job("paused")
    stage.scheduler.operations.pause(job.job_id, reason="not yet")
    stage.pass_by(timedelta(minutes=2), tick=False)
    assert stage.told(Topic.STUCK) == [(Grade.WARN, sentence)]


def test_a_silent_reaper_is_bad_once_runs_wait_for_it(stage: Stage) -> None:
    """Before, it is a warning: nothing is held up yet."""
    stage.pass_by(timedelta(minutes=3), sweep=False)
    sentence = "The last reaper was heard 3m 20s ago: the runs of lost workers stay with them."
    assert stage.told(Topic.STUCK) == [(Grade.WARN, sentence)]
    stage.enqueue(stage.job("lost"), 3)
    stage.scheduler.lose_worker()
    stage.pass_by(timedelta(minutes=1), sweep=False)
    told = stage.told(Topic.STUCK)
    assert [grade for grade, _ in told] == [Grade.BAD, Grade.BAD]
    assert told[1][1] == (
        "3 runs lie under workers that are gone; the reaper should have returned them."
    )
    assert stage.health().expired_leases == 3


def test_a_backlog_of_the_dispatcher_is_told_as_its_lag() -> None:
    """After an outage it lives, but works off past minutes."""
    stage = Stage(tick_minutes=1)
    stage.scheduler.tick()
    stage.clock.step(minutes=12)
    stage.scheduler._dispatcher.tick()
    while stage.scheduler.sweep().behind:
        pass
    stage.scheduler.run_due()
    told = stage.told(Topic.STUCK)
    assert told == [
        (Grade.WARN, "The dispatcher is 12m behind: past minutes are not worked off yet.")
    ]


def test_a_backlog_of_the_reaper_is_told_as_its_lag() -> None:
    """After an outage it lives, but has yet to look into minutes in which leases ended."""
    stage = Stage(tick_minutes=1)
    stage.clock.step(minutes=12)
    stage.scheduler.tick()
    stage.scheduler.sweep()
    stage.scheduler.run_due()
    ((grade, sentence),) = stage.told(Topic.STUCK)
    assert grade is Grade.WARN
    assert sentence.startswith("The reaper is 12m behind with the leases of functions: ")


def test_runs_without_any_worker_are_told(stage: Stage) -> None:
    """All workers have gone, and work is left."""
    stage.enqueue(stage.job("left"), 2)
    stage.clock.step(seconds=40)
    stage.scheduler.tick()
    stage.scheduler.sweep()
    assert (Grade.BAD, "No worker is alive, and 2 runs wait.") in stage.told(Topic.STUCK)


def test_deaths_are_told_with_the_group_most_belong_to() -> None:
    """How many, of what, and how large the queue is by now."""
    stage = Stage(health_dead_warn=5, health_dead_bad=20)
    doomed = stage.job("doomed", "fail", tries=1)
    stage.enqueue(doomed, 8, "no disk 7")
    stage.enqueue(doomed, 2, "no net")
    stage.pass_by(timedelta(seconds=20))
    group = stage.views.groups().items[0]
    assert stage.told(Topic.BROKEN)[0] == (
        Grade.WARN,
        f"10 runs died in the last hour, mostly of group {group.signature}"
        " (ValueError: no disk 7); the dead-letter queue holds 10.",
    )
    stage.enqueue(doomed, 15, "no net")
    stage.pass_by(timedelta(seconds=20))
    assert stage.told(Topic.BROKEN)[0][0] is Grade.BAD


def test_deaths_of_yesterday_are_no_finding(stage: Stage) -> None:
    """The dead-letter queue still holds them, but it does not grow."""
    stage.enqueue(stage.job("doomed", "fail", tries=1), 30)
    stage.pass_by(timedelta(minutes=1))
    assert stage.health().worst is Grade.WARN
    stage.clock.step(hours=2)
    stage.pass_by(timedelta(seconds=10))
    assert stage.told(Topic.BROKEN) == [
        (Grade.OK, "No run died in the last hour; the dead-letter queue holds 30.")
    ]


def test_a_target_that_fails_half_of_the_tries_is_told_before_anything_died(stage: Stage) -> None:
    """Retries hide it from the dead-letter queue for a while."""
    stage.enqueue(stage.job("flaky", "fail", tries=50), 3)
    stage.pass_by(timedelta(minutes=2))
    ((grade, sentence),) = stage.told(Topic.BROKEN)
    assert (grade, sentence.endswith(" failed.")) == (Grade.WARN, True)
    assert sentence.startswith("Of ")


def test_a_parked_job_is_told(stage: Stage) -> None:
    """It is out of the schedule until somebody mends it."""
    broken = stage.job("broken", schedule=CronSpec(expr="* * * * *"))
    row = stage.store.engine.get(job_key(broken.job_id))
    assert row is not None
    body = {**row.body, "g": "nonsense"}
    stage.store.engine.write(Replace(replace(row, body=body), row.version))
    damaged = "The row of 1 job cannot be read: nothing of that is run."
    assert stage.told(Topic.BROKEN) == [(Grade.BAD, damaged)]
    assert stage.health().worst is Grade.BAD


def test_a_tenant_at_its_cap_with_more_to_do_is_told(stage: Stage) -> None:
    """The cap does what it was set for; who set it should know."""
    stage.operations.set_tenant("acme", max_running=2)
    stage.enqueue(stage.job("capped", tenant="acme"), 5)
    stage.scheduler.lose_worker()
    assert stage.told(Topic.HURT) == [
        (Grade.WARN, "Tenant acme runs 2 of the 2 that it may, and 3 runs wait.")
    ]


def test_a_tenant_that_holds_most_of_what_waits_is_told(stage: Stage) -> None:
    """Others take their turns before it, but the backlog is its own."""
    stage.enqueue(stage.job("much", tenant="acme"), 1_000)
    stage.enqueue(stage.job("little", tenant="globex"), 10)
    assert stage.told(Topic.HURT) == [(Grade.WARN, "Tenant acme has 99% of all that waits.")]


def test_a_tenant_whose_runs_die_more_than_others_is_told(stage: Stage) -> None:
    """One tenant's data may be what is broken."""
    stage.enqueue(stage.job("doomed", "fail", tenant="acme", tries=1), 11)
    stage.enqueue(stage.job("doomed", "fail", tenant="globex", tries=1), 1)
    stage.pass_by(timedelta(seconds=20))
    assert stage.told(Topic.HURT) == [
        (Grade.WARN, "11 of the 12 runs that died in the last hour are tenant acme's.")
    ]


def test_what_looks_like_a_secret_is_told_nowhere(stage: Stage) -> None:
    """Neither in a sentence nor in a group."""
    stage.enqueue(stage.job("doomed", "fail", tries=1), 30, "password=hunter2 was refused")
    stage.pass_by(timedelta(seconds=20))
    assert "hunter2" not in str(health_document(stage.health()))
    assert "hunter2" not in str(stage.views.groups().items)
    assert "***" in stage.health().top_groups[0].error


# figures


def test_the_figures_are_those_of_the_store(stage: Stage) -> None:
    """Depth by priority, queue and tenant; leases by worker and tenant."""
    stage.enqueue(stage.job("high", priority=Priority.HIGH, tenant="acme"), 7)
    stage.enqueue(stage.job("bulk", priority=Priority.BULK, queue="night", tenant="globex"), 5)
    stage.scheduler.lose_worker()
    stage.enqueue(stage.job("more", tenant="acme"), 2)
    health = stage.health()
    assert {name: level.count for name, level in health.depth.items()} == {
        "high": 0,
        "default": 2,
        "bulk": 5,
    }
    assert {name: level.count for name, level in health.queues.items()} == {"main": 2, "night": 5}
    assert health.leased.count == 7
    assert sorted(worker.leased for worker in health.workers) == [0, 7]
    lines = {line.tenant: line for line in health.top_tenants}
    assert (lines["acme"].waiting.count, lines["acme"].running) == (2, 7)
    assert lines["globex"].waiting.count == 5
    assert lines["default"].started == 5


def test_what_is_due_later_does_not_wait(stage: Stage) -> None:
    """A run for tomorrow lies in its lane, but nobody is held up by it."""
    job = stage.job("later", tenant="acme")
    for days in (0, 1, 1):
        stage.operations.enqueue(job.job_id, delay=timedelta(days=days))
    health = stage.health()
    (line,) = [line for line in health.top_tenants if line.tenant == "acme"]
    assert (line.waiting.count, health.queues["main"].count, health.ready.count) == (1, 1, 3)
    assert health.oldest_due["main"].since == stage.clock.now()


def test_replicas_are_told_with_what_they_did(stage: Stage) -> None:
    """Each sign of life says what was done since the one before."""
    (dispatcher,) = stage.health().dispatchers
    (reaper,) = stage.health().reapers
    assert "runs made" in dispatcher.note
    assert dispatcher.lag is not None
    assert reaper.lag is None
    stage.scheduler._dispatcher.end()
    stage.scheduler._reaper.end()
    health = stage.health()
    assert (health.dispatchers, health.reapers) == ((), ())


def test_the_last_hour_is_the_same_however_often_one_looks() -> None:
    """A look takes over the minutes of the one before; nothing is lost or counted twice."""
    stage = Stage()
    stage.job("minutely", schedule=CronSpec(expr="* * * * *"))
    doomed = stage.job("doomed", "fail", tries=2)
    for minute in range(80):
        stage.enqueue(doomed, minute % 4)
        stage.clock.step(minutes=1)
        stage.scheduler.tick()
        stage.scheduler.run_due()
        if minute % 3 == 0:
            looked = stage.health()
    look = Look(stage.store, clock=stage.clock, settings=Settings())
    assert stage.health().minutes[:-RECENT] != looked.minutes[:-RECENT]
    assert stage.health().minutes == look.health(None, limits_of(Settings())).minutes
    assert len(looked.minutes) == 60
    assert sum(point.dead for point in looked.minutes) == looked.dead_per_hour > 50
