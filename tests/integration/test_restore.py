"""A restore from back-ups that are of different moments, as docs/aws.md says to make it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from dynsched.domain.run import RunState
from dynsched.settings import Settings
from dynsched.storage.engine import Engine, PutNew, Row, Table
from dynsched.targets.app import App
from dynsched.targets.context import AnyContext
from dynsched.testing import ManualScheduler, SettableClock, memory_store

BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SWEEP_AT_ONCE = Settings(sweep_period=timedelta(seconds=1))


@dataclass(slots=True)
class Work:
    """What handlers did: how often under which key, and under which fence last."""

    done: Counter[str] = field(default_factory=Counter)
    fences: dict[str, int] = field(default_factory=dict)

    def app(self) -> App:
        """Return an app with a minutely handler and one that is enqueued."""
        app = App()
        app.job("each", cron="* * * * *", catch_up="all", overlap="allow")(self._note)
        app.job("single")(self._note)
        return app

    def _note(self, ctx: AnyContext) -> None:
        self.done[ctx.idempotency_key] += 1
        self.fences[ctx.run_id] = ctx.fence


def copy_of(engine: Engine, *tables: Table) -> list[Row]:
    """Return all rows of some tables as they are now."""
    rows: list[Row] = []
    for table in tables:
        cursor: str | None = None
        while True:
            page = engine.scan(table, 500, cursor)
            rows += page.rows
            cursor = page.cursor
            if cursor is None:
                break
    return rows


def restored(rows: Sequence[Row], work: Work, at: datetime) -> ManualScheduler:
    """Return a scheduler over a new store with these rows, some time later."""
    engine = memory_store()
    engine.init()
    engine.write_many([PutNew(row) for row in rows])
    return ManualScheduler(
        work.app(), clock=SettableClock(at), engine=engine, settings=SWEEP_AT_ONCE
    )


def missing(scheduler: ManualScheduler, until: datetime) -> list[datetime]:
    """Return the minutes since the beginning for which there is no run."""
    made = {run.scheduled_for for run in scheduler.runs("each")}
    count = (until - BEGIN) // MINUTE
    return [
        at for at in (BEGIN + number * MINUTE for number in range(1, count + 1)) if at not in made
    ]


def test_a_restore_with_jobs_a_minute_older_than_runs_loses_nothing() -> None:
    """What was under way runs again under its key, and every instant has its run."""
    before, after = Work(), Work()
    with ManualScheduler(before.app(), clock=SettableClock(BEGIN)) as old:
        old.declare()
        old.enqueue("single")
        old.advance(minutes=10)
        older = copy_of(old.store.engine, Table.JOBS, Table.CONTROL)
        old.advance(seconds=60)
        enqueued = old.enqueue("single")
        under_way = old.lose_worker()
        assert enqueued.run_id in {run.run_id for run in under_way}
        rows = older + copy_of(old.store.engine, Table.RUNS)
        moment = old.clock.now()
    with restored(rows, after, moment + timedelta(minutes=30)) as new:
        new.sweep()
        new.sweep()
        states = [run.state for run in new.runs("single")]
        assert states == [RunState.READY, RunState.DONE]
        new.advance(minutes=2)
        assert missing(new, moment + timedelta(minutes=30)) == []
        runs = [*new.runs("each"), *new.runs("single")]
        assert {run.state for run in runs} == {RunState.DONE}
        assert after.fences[enqueued.run_id] == 2
    assert set(after.done.values()) == {1}
    assert not set(before.done) & set(after.done)


def test_runs_that_are_older_than_their_jobs_would_leave_instants_out() -> None:
    """Why it is that way round: the pointer would lie behind rows that are gone."""
    work = Work()
    with ManualScheduler(work.app(), clock=SettableClock(BEGIN)) as old:
        old.declare()
        old.advance(minutes=10)
        older = copy_of(old.store.engine, Table.RUNS)
        old.advance(seconds=90)
        rows = older + copy_of(old.store.engine, Table.JOBS, Table.CONTROL)
        moment = old.clock.now()
    with restored(rows, Work(), moment + MINUTE) as new:
        new.advance(minutes=2)
        assert missing(new, moment)
