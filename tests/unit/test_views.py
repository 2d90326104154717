"""Views: what people see of jobs, runs and the store, bounded and complete or saying so."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from dynsched.bootstrap import build_operations, build_views, build_worker, init_store, open_base
from dynsched.domain.health import Level
from dynsched.domain.job import Job
from dynsched.domain.retry import Jitter, RetryPolicy
from dynsched.domain.run import Run, RunState
from dynsched.domain.target import CommandTarget, HandlerTarget
from dynsched.errors import InvalidInput, NotFound
from dynsched.services.documents import job_document, run_document, seconds, stats_document
from dynsched.services.levels import COUNT_MAX
from dynsched.services.slots import InlineSlots
from dynsched.services.specs import AfterSpec, EverySpec, JobSpec, default_policies
from dynsched.storage.engine import Replace
from dynsched.storage.placement import job_key
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext
from dynsched.testing import SettableClock, memory_store

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def fail(ctx: AnyContext) -> None:
    """Fail with the payload as the message."""
    raise ValueError(str(ctx.payload))


class House:
    """A store in memory with its verbs, views and a worker in the calling thread."""

    def __init__(self, **counts: Any) -> None:
        self.clock = SettableClock(START)
        self.base = open_base(
            environment={}, engine=memory_store(), clock=self.clock, rng=Random(7)
        )
        init_store(self.base, **counts)
        self.store = self.base.store
        self.operations = build_operations(self.base)
        self.views = build_views(self.base)
        self.app = App()
        self.app.job("ok")(lambda: None)
        self.app.job("fail")(fail)
        self._parts = build_worker(self.base, self.app, slots=InlineSlots())

    def job(self, name: str, handler: str = "ok", **fields: Any) -> Job:
        """Make a job by hand, or with a schedule."""
        delay = fields.pop("retry", None)
        spec = JobSpec(name=name, target=HandlerTarget(handler), **fields)
        if delay is not None:
            retry = RetryPolicy(base=delay, cap=delay, jitter=Jitter.NONE)
            spec = replace(spec, policies=replace(default_policies(spec.schedule), retry=retry))
        return self.operations.create(spec)

    def enqueue(self, job: Job, payload: Any = None) -> Run:
        """Make a run of a job."""
        return self.operations.enqueue(job.job_id, payload)

    def work(self) -> None:
        """Let the worker run what is due now; it opens another session after a long time."""
        if self._parts.keeper.session is None:
            self._parts.keeper.close()
        self._parts.worker.look_again()
        self._parts.worker.poll()
        self._parts.worker.poll()

    def kill(self, job: Job, payload: str = "broken") -> Run:
        """Make a dead run of a job whose handler fails once and for all."""
        run = self.enqueue(job, payload)
        self.work()
        dead = self.operations.get_run(run.run_id)
        assert dead.state is RunState.DEAD
        return dead

    def damage(self, job: Job) -> None:
        """Make a job's row unreadable."""
        row = self.store.engine.get(job_key(job.job_id))
        assert row is not None
        body = {**row.body, "g": "nonsense"}
        self.store.engine.write(Replace(replace(row, body=body), row.version))

    def listed(self, text: str = "", **more: Any) -> list[str]:
        """Return the ids of the runs that a filter finds."""
        return [run.run_id for run in self.views.find_runs(text, **more).items]


@pytest.fixture
def house() -> House:
    """Return an empty house."""
    return House()


def doomed(house: House, name: str = "doomed", tenant: str = "default") -> Job:
    """Make a job whose first failure is its last."""
    policies = replace(default_policies(None), retry=RetryPolicy(max_attempts=1))
    return house.job(name, "fail", tenant=tenant, policies=policies)


# jobs


def test_jobs_of_all_tenants_are_listed_by_tenant_and_name(house: House) -> None:
    """Tenants are known from the jobs themselves."""
    for tenant, name in (("b", "x"), ("a", "z"), ("a", "y")):
        house.job(name, tenant=tenant)
    found = house.views.find_jobs()
    assert [(job.tenant, job.name) for job in found.items] == [("a", "y"), ("a", "z"), ("b", "x")]
    assert (found.cursor, found.notes) == (None, ())


def test_jobs_are_filtered_by_every_tag_and_by_state(house: House) -> None:
    """All tags must fit; deleted jobs are never listed."""
    house.job("a", tags={"team": "ops", "tier": "1"})
    house.job("b", tags={"team": "ops"})
    paused = house.job("c", schedule=EverySpec(every=timedelta(minutes=1)))
    house.operations.pause(paused.job_id, reason="later")
    house.operations.delete(house.job("d").job_id)

    def names(text: str = "") -> list[str]:
        return [job.name for job in house.views.find_jobs(text).items]

    assert names() == ["a", "b", "c"]
    assert names("tag:team=ops tag:tier=1") == ["a"]
    assert names("state:paused") == ["c"]
    assert names("tenant:nobody") == []


def test_a_list_of_jobs_ends_at_its_limit_and_says_that_there_are_more(house: House) -> None:
    """The limit counts what is shown, not what is looked at."""
    for number in range(150):
        house.job(f"j{number:03}", tags={"odd": str(number % 2)})
    found = house.views.find_jobs("tag:odd=1", limit=60)
    assert [job.name for job in found.items[:2]] == ["j001", "j003"]
    assert (len(found.items), found.matched, found.examined) == (60, 60, 120)
    rest = house.views.find_jobs("tag:odd=1", limit=60, cursor=found.cursor)
    assert [job.name for job in rest.items] == [f"j{n:03}" for n in range(121, 150, 2)]
    assert rest.cursor is None


def test_a_damaged_job_is_named_and_hides_no_other(house: House) -> None:
    """One broken row, one note."""
    broken = house.job("a")
    house.job("b")
    house.damage(broken)
    found = house.views.find_jobs()
    assert [job.name for job in found.items] == ["b"]
    (note,) = found.notes
    assert note.startswith(f"job {broken.job_id} is damaged and cannot be shown")
    assert house.views.stats().jobs == {"active": 1, "damaged": 1}


def test_a_job_is_shown_with_parts_that_lie_apart(house: House) -> None:
    """A large payload is read from its own row."""
    job = house.job("a", payload="x" * 1_000, schedule=EverySpec(every=timedelta(hours=1)))
    detail = house.views.show_job(job)
    assert job.payload is None
    assert detail.payload == '"' + "x" * 1_000 + '"'
    assert detail.target == HandlerTarget("ok")
    assert detail.coming[0] == START + timedelta(hours=1)


# runs


def put_ready(house: House) -> str:
    """Leave a run that waits for a worker."""
    return house.enqueue(house.job("ready", queue="other")).run_id


def put_failed(house: House) -> str:
    """Leave a run that waits for its next attempt."""
    run = house.enqueue(house.job("failed", "fail", retry=timedelta(minutes=10)))
    house.work()
    return run.run_id


def put_done(house: House) -> str:
    """Leave a run that has succeeded."""
    run = house.enqueue(house.job("done"))
    house.work()
    return run.run_id


def put_dead(house: House) -> str:
    """Leave a run that has failed for good."""
    return house.kill(doomed(house)).run_id


def put_cancelled(house: House) -> str:
    """Leave a run that was called off."""
    run = house.enqueue(house.job("cancelled"))
    return house.operations.cancel(run.run_id).run_id


class NoSlots:
    """Slots in which nothing ever runs."""

    def start(self, work: object) -> None:
        """Lose the work."""

    def replace_one(self) -> None:
        """Do nothing."""


PUTS = {
    RunState.READY: put_ready,
    RunState.FAILED: put_failed,
    RunState.DONE: put_done,
    RunState.DEAD: put_dead,
    RunState.CANCELLED: put_cancelled,
}


@pytest.mark.parametrize("state", PUTS)
def test_runs_of_each_state_are_found_and_no_others(house: House, state: RunState) -> None:
    """Alone and among all, without any job being named."""
    made = {each: put(house) for each, put in PUTS.items()}
    assert house.listed(f"state:{state.value}") == [made[state]]
    assert set(house.listed()) == set(made.values())


def test_leased_runs_are_found_by_their_sessions(house: House) -> None:
    """Also those of a worker that is gone, until the reaper comes."""
    run = house.enqueue(house.job("held", "ok"))
    build_worker(house.base, house.app, slots=NoSlots()).worker.poll()
    assert house.listed("state:leased") == [run.run_id]
    assert house.views.stats().runs["leased"] == Level(1)


@pytest.mark.parametrize("query", [{"text": "tenant:acme"}, {"limit": 1}], ids=str)
def test_runs_are_narrowed_by_tenant_and_by_limit(house: House, query: dict[str, Any]) -> None:
    """Other tenants' rows do not fill the limit."""
    for _ in range(3):
        house.enqueue(house.job(f"j{house.clock.now():%H%M%S}", tenant="aaa"))
        house.clock.step(seconds=1)
    last = house.enqueue(house.job("last", tenant="acme"))
    assert house.listed(**query) == [last.run_id]


def test_ended_runs_go_back_an_hour_unless_told_otherwise(house: House) -> None:
    """Newest first; an instant reaches further, and leaves out what ended before."""
    old = put_done(house)
    house.clock.step(hours=5)
    job = house.operations.find("done")
    new = house.enqueue(job)
    house.work()
    assert house.listed() == [new.run_id]
    assert "only those since" in house.views.find_runs().notes[0]
    assert house.listed("ended:>2026-03-01T11:59Z") == [new.run_id, old]
    assert house.views.find_runs("ended:>2026-03-01T11:59Z").notes == ()
    assert house.listed("-ended:<2026-03-01T13:00Z") == [new.run_id]


def test_the_newest_ended_runs_are_found_in_every_shard() -> None:
    """A full shard does not hide what ended later in another."""
    house = House(shards=3)
    job = house.job("j")
    ids = []
    for _ in range(12):
        ids.append(house.enqueue(job).run_id)
        house.work()
        house.clock.step(seconds=1)
    found = house.views.find_runs(limit=4)
    assert [run.run_id for run in found.items] == ids[:-5:-1]
    assert house.listed(cursor=found.cursor) == ids[-5::-1]


def test_ended_runs_are_found_without_their_index_as_far_as_a_scan_goes() -> None:
    """A store that saves the unit says what its list rests on."""
    house = House(keep_ended=False)
    done = put_done(house)
    found = house.views.find_runs("state:done")
    assert [run.run_id for run in found.items] == [done]
    assert "keeps no index of ended runs" in found.notes[1]


def test_a_retry_far_ahead_is_found_in_a_small_store(house: House) -> None:
    """It lies beyond the minutes that a list reads; the scan behind them finds it."""
    run = house.enqueue(house.job("patient", "fail", retry=timedelta(days=30)))
    house.work()
    assert house.listed() == [run.run_id]
    assert house.views.find_runs("state:failed").notes == ()


def test_a_list_that_may_lack_far_retries_says_so(house: House) -> None:
    """In a store with more rows than the scan reads."""
    job = house.job("many")
    house.operations.enqueue_many(job.job_id, [None] * 1_100)
    found = house.views.find_runs(limit=10_000)
    assert len(found.items) == 1_100
    assert "may be left out" in found.notes[1]


def test_the_newest_ready_runs_are_found_in_lanes_that_lie_by_tenant(house: House) -> None:
    """The lanes are merged over their tenants, so a cut list is the newest of all."""
    house.operations.enqueue_many(house.job("many", tenant="aaa").job_id, [None] * 1_200)
    house.clock.step(seconds=1)
    house.operations.enqueue_many(house.job("few", tenant="zzz").job_id, [None] * 5)
    house.clock.step(seconds=1)
    newest = house.operations.enqueue_many(house.job("new", tenant="bbb").job_id, [None] * 45)
    found = house.views.find_runs("state:ready", limit=50)
    assert {run.run_id for run in found.items[:45]} == {run.run_id for run in newest}
    assert {run.tenant for run in found.items[45:]} == {"zzz"}
    assert (found.examined, found.notes) == (50, ())


def test_a_jobs_history_is_complete_and_filtered_by_state(house: House) -> None:
    """Straight from its own rows, however long ago they ended."""
    job = doomed(house)
    dead = house.kill(job)
    house.clock.step(hours=30)
    ready = house.enqueue(job)
    assert house.listed("job:doomed") == [ready.run_id, dead.run_id]
    assert house.listed(f"job:{job.job_id} state:dead") == [dead.run_id]
    assert house.listed(f"job:{job.job_id} state:dead,done") == [dead.run_id]
    assert house.listed("job:doomed -ended:<-1h") == [ready.run_id]


def test_the_dead_are_listed_by_group_and_discarded_ones_apart(house: House) -> None:
    """Newest first, all of them, however long ago they died."""
    job = doomed(house)
    first, second = house.kill(job, "no disk 1"), house.kill(job, "no disk 2")
    house.clock.step(hours=40)
    other = house.kill(doomed(house, "other", "acme"), "no net")
    house.operations.discard(second.run_id)

    assert house.listed("state:dead") == [other.run_id, first.run_id]
    assert house.listed(f"group:{first.signature}") == [first.run_id]
    assert house.listed("state:dead tenant:acme") == [other.run_id]
    assert house.listed(f"state:dead job:{job.job_id}") == [first.run_id]
    assert house.listed("is:discarded") == [second.run_id]
    assert house.listed("state:dead is:discarded,retried") == [second.run_id]
    assert house.views.find_runs("job:doomed").notes == (
        "1 discarded run was left out (is:discarded shows it)",
    )


def test_a_run_is_shown_with_its_attempts_and_payload(house: House) -> None:
    """Wherever its payload lies."""
    run = house.kill(doomed(house), "x" * 1_000)
    detail = house.views.show_run(run.run_id)
    assert [attempt.error_type for attempt in detail.attempts] == ["ValueError"]
    assert detail.payload == '"' + "x" * 1_000 + '"'
    assert detail.job is not None
    with pytest.raises(NotFound):
        house.views.show_run(run.run_id.replace("-m0", "-m1"))


@pytest.mark.parametrize("limit", [0, -1, 10_001])
def test_every_list_has_a_bound(house: House, limit: int) -> None:
    """No view reads without end because somebody asked for it."""
    with pytest.raises(InvalidInput, match="limit"):
        house.views.find_runs(limit=limit)
    with pytest.raises(InvalidInput, match="limit"):
        house.views.find_jobs(limit=limit)
    with pytest.raises(InvalidInput, match="examine"):
        house.views.find_runs(examine=min(limit, 0))
    with pytest.raises(InvalidInput, match="examine"):
        house.views.find_jobs(examine=100_001)


# the store


def test_statistics_count_by_index_and_find_the_oldest_due_run(house: House) -> None:
    """The tenant that sorts last may have waited longest."""
    first = house.enqueue(house.job("a", queue="q", tenant="zzz"))
    house.clock.step(minutes=7)
    house.enqueue(house.job("b", queue="q", tenant="aaa"))
    house.job("c", queue="q", schedule=AfterSpec(delay=timedelta(seconds=20)))
    stats = house.views.stats()
    (queue,) = (queue for queue in stats.queues if queue.queue == "q")
    assert (queue.ready, queue.oldest_due_at) == (Level(3), first.available_at)
    assert (stats.tenants, stats.sessions["alive"]) == (3, 0)
    assert stats.jobs == {"active": 2, "finished": 1}


def test_sessions_are_told_apart_by_their_leases(house: House) -> None:
    """Alive, expired (nobody has closed it yet), closed."""
    put_done(house)
    assert house.views.stats().sessions == {"alive": 1, "expired": 0, "closed": 0}
    house.clock.step(minutes=1)
    assert house.views.stats().sessions == {"alive": 0, "expired": 1, "closed": 0}


def test_cursors_that_stand_still_are_seen_to_lag(house: House) -> None:
    """Nobody ticks: the lag grows with the clock."""
    before = house.views.stats().cursor_lags["due"]
    house.clock.step(hours=2)
    after = house.views.stats().cursor_lags["due"]
    assert before is not None
    assert after is not None
    assert after - before == timedelta(hours=2)


def test_a_full_level_is_counted_to_its_bound(house: House) -> None:
    """It shows as 10,000+."""
    house.operations.enqueue_many(house.job("many").job_id, [None] * (COUNT_MAX + 5))
    level = house.views.stats().runs["ready"]
    assert (level, str(level)) == (Level(COUNT_MAX, True), "10,000+")


# documents


def test_documents_hold_plain_values_with_instants_in_utc(house: House) -> None:
    """snake_case names; whole seconds are integers."""
    run = house.kill(doomed(house))
    document = run_document(run, job_name="doomed")
    assert document["scheduled_for"] == "2026-03-01T12:00:00.000Z"
    assert (document["state"], document["attempt"], document["fence"]) == ("dead", 1, 1)
    job = house.job("hourly", schedule=EverySpec(every=timedelta(hours=1)))
    described = job_document(job, START)
    assert described["next_at"] == "2026-03-01T13:00:00.000Z"
    policies = described["policies"]
    assert isinstance(policies, dict)
    assert (policies["timeout_s"], policies["start_deadline_s"]) == (3600, None)
    assert stats_document(house.views.stats())["at"] == "2026-03-01T12:00:00.000Z"
    assert seconds(timedelta(seconds=1.5)) == 1.5


def test_a_paused_job_has_no_next_instant(house: House) -> None:
    """Whatever its schedule names."""
    job = house.job("a", schedule=EverySpec(every=timedelta(hours=1)))
    paused = house.operations.pause(job.job_id, reason="x").job
    assert job_document(paused, START)["next_at"] is None


# what nobody can run


def overdue(house: House, **fields: Any) -> str:
    """Return why a run that is due for a minute waits, as lists say it."""
    handler = fields.pop("handler", "nosuch")
    run = house.enqueue(house.job("j", handler, **fields))
    house.work()
    house.clock.step(seconds=6)
    return house.views.lacks([house.operations.get_run(run.run_id)]).get(run.run_id, "")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "no living worker of queue main has handler nosuch"),
        ({"queue": "reports", "handler": "ok"}, "no living worker serves queue reports"),
        ({"handler": "ok"}, ""),
    ],
)
def test_a_run_that_nobody_can_execute_says_why(
    house: House, fields: dict[str, Any], why: str
) -> None:
    """By what the living sessions say of themselves."""
    assert overdue(house, **fields) == why


def test_commands_that_no_worker_allows_are_named_in_the_stats(house: House) -> None:
    """With the number of the oldest runs that wait for it, once they are due for some seconds."""
    house.work()
    job = house.operations.create(JobSpec(name="c", target=CommandTarget("true")))
    house.enqueue(job)
    assert stats_document(house.views.stats())["queues"][0]["lacks"] == []  # type: ignore[index,call-overload]
    house.clock.step(seconds=6)
    (queue,) = house.views.stats().queues
    why = "no living worker of queue main allows commands (start one with --allow-commands)"
    assert dict(queue.lacks) == {why: 1}


def test_a_deleted_job_is_found_by_its_id_where_history_is_asked_for(house: House) -> None:
    """Elsewhere it is said to be deleted."""
    job = house.job("j")
    house.operations.delete(job.job_id)
    assert house.views.find_job(job.job_id, deleted=True).name == "j"
    with pytest.raises(NotFound, match="j was deleted"):
        house.views.find_job(job.job_id)


@pytest.mark.parametrize(
    ("name", "told"),
    [("theirs", "tenant acme has one: --tenant acme"), ("nigthly", "did you mean nightly?")],
)
def test_a_name_that_is_missed_is_found_elsewhere_or_suggested(
    house: House, name: str, told: str
) -> None:
    """The wrong tenant and the wrong letter are the common mistakes."""
    house.job("theirs", tenant="acme")
    house.job("nightly")
    with pytest.raises(NotFound, match=re.escape(told)):
        house.views.find_job(name)
