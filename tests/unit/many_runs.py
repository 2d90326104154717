"""A store with a few hundred runs in every state and place, and what filters should find in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random

from dynsched.bootstrap import build_operations, build_views, init_store, open_base
from dynsched.domain.job import Job, Priority
from dynsched.domain.retry import signature
from dynsched.domain.run import TERMINAL, Run, RunKey, RunKind, RunState
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import JobSpec
from dynsched.storage.control import Session
from dynsched.storage.engine import Engine
from dynsched.testing import SettableClock

START = datetime(2026, 3, 1, 12, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
ERRORS = tuple(
    f"{kind}: {text}"
    for kind, text in (
        ("OSError", "no disk"),
        ("OSError", "no net"),
        ("ValueError", "bad nightly order"),
        ("KeyError", "absent"),
        ("TimeoutError", "Too Slow"),
    )
)
SESSIONS = {"alive": HOUR, "lapsed": -HOUR, "shut": HOUR}
FUNCTIONS = {"~lives": timedelta(minutes=9), "~gone": timedelta(seconds=-30)}
GONE = ("lapsed", "shut", "~gone")


def session_of(name: str, left: timedelta) -> Session:
    """Return a worker session; `shut` is closed."""
    return Session(
        session=name,
        started_at=START - HOUR,
        expires_at=START + left,
        host=f"host-{name}",
        open=name != "shut",
        closed_at=START if name == "shut" else None,
        queues=("main",),
        slots=4,
    )


class ManyRuns:
    """A store whose runs are known.

    Args:
        engine: where they lie.
        seed: which runs.
        count: how many.
    """

    def __init__(self, engine: Engine, seed: int, count: int) -> None:
        self._rng = Random(seed)
        self.clock = SettableClock(START)
        base = open_base(environment={}, engine=engine, clock=self.clock, rng=Random(seed))
        init_store(base, shards=2, lanes=2, spread=2)
        self.store = base.store
        self.views = build_views(base)
        operations = build_operations(base)
        self.jobs = [
            operations.create(
                JobSpec(
                    name=name,
                    tenant=tenant,
                    target=HandlerTarget("ok"),
                    tags={"team": team},
                    payload={"order": {"id": number}, "tags": ["x", name]},
                )
            )
            for number, (tenant, name, team) in enumerate(
                (
                    ("acme", "nightly", "ops"),
                    ("acme", "report", "dev"),
                    ("beta", "nightly", "ops"),
                    ("acme-eu", "mail", "dev"),
                )
            )
        ]
        for job in self.jobs:
            base.store.control.note_use(job.tenant, "slow")
        for name, left in SESSIONS.items():
            assert base.store.control.write_session(session_of(name, left))
        self.runs: list[Run] = []
        self.add([self._run() for _ in range(count)])

    def add(self, runs: list[Run]) -> None:
        """Store runs."""
        distinct = list({run.run_id: run for run in runs}.values())
        self.store.refresh()
        for first in range(0, len(distinct), 100):
            made = self.store.runs.create_many(distinct[first : first + 100])
            batch = zip(distinct[first : first + 100], made, strict=True)
            self.runs += [run for run, new in batch if new]

    def name(self, run: Run) -> str:
        """Return the name of a run's job."""
        return self.job(run).name

    def job(self, run: Run) -> Job:
        """Return a run's job."""
        return next(job for job in self.jobs if job.job_id == run.job_id)

    def _run(self) -> Run:
        rng, job = self._rng, self._rng.choice(self.jobs)
        state = rng.choice(list(RunState))
        at = START - timedelta(minutes=20 * rng.randrange(-6, 90))  # many share an instant
        if rng.random() < 0.5:
            key = RunKey(job.job_id, at, RunKind.CRON)
        else:
            nonce = f"{rng.randrange(2)}-{rng.randrange(36**4)}"
            key = RunKey(job.job_id, at, RunKind.MANUAL, nonce)
        share = f"{job.tenant}+{job.job_id}" if rng.random() < 0.3 else job.tenant
        own = json.dumps({"order": {"id": rng.randrange(9)}, "note": None})
        run = Run(
            key=key,
            tenant=job.tenant,
            queue=rng.choice(["main", "slow"]),
            priority=rng.choice(list(Priority)),
            share=share,
            state=state,
            available_at=at,
            needs=job.needs,
            limit=5,
            attempt=rng.randrange(4),
            replays=rng.randrange(3),
            payload=own if rng.random() < 0.3 else None,
            created_at=at,
            version=1,
        )
        return run.changed(**self._of_state(run))

    def _of_state(self, run: Run) -> dict[str, object]:
        rng = self._rng
        if run.state in TERMINAL:
            return self._ended(run)
        if run.state is RunState.LEASED:
            session = rng.choice([*SESSIONS, *FUNCTIONS])
            ends_at = None if session in SESSIONS else START + FUNCTIONS[session]
            held: dict[str, object] = {"session": session, "lease_ends_at": ends_at, "fence": 1}
            return held | {"leased_at": START - HOUR}
        minutes = (
            rng.randrange(-90, 300) if run.state is RunState.FAILED else rng.randrange(-90, 20)
        )
        changes: dict[str, object] = {"available_at": START + timedelta(minutes=minutes)}
        if run.state is RunState.FAILED:
            changes |= self._error()
        return changes

    def _ended(self, run: Run) -> dict[str, object]:
        rng = self._rng
        ago = timedelta(minutes=rng.choice([rng.randrange(60), rng.randrange(60 * 30)]))
        changes: dict[str, object] = {
            "ended_at": START - ago,
            "started_at": START - ago - timedelta(seconds=rng.randrange(90)),
            "expires_at_s": 2**31,
        }
        if run.state is RunState.DEAD:
            changes |= self._error() if rng.random() < 0.9 else {}
            changes["hidden"] = rng.random() < 0.2
        return changes

    def _error(self) -> dict[str, object]:
        error = self._rng.choice(ERRORS)
        kind, _, message = error.partition(": ")
        return {"error": error, "signature": signature(kind, message)}


Fits = Callable[[ManyRuns, Run], bool]
DISK = signature("OSError", "no disk")
NET = signature("OSError", "no net")
NEVER = "0" * 16


def recent(run: Run) -> bool:
    """Return whether a run has not ended, or ended within the last hour."""
    return run.ended_at is None or run.ended_at >= START - HOUR


def texts(many: ManyRuns, run: Run) -> str:
    """Return where bare words are looked for."""
    return "\n".join((run.run_id, many.name(run), run.error)).lower()


def order_id(many: ManyRuns, run: Run) -> int:
    """Return what lies at `order.id` in a run's payload."""
    text = run.payload or many.job(run).payload or ""
    found: int = json.loads(text)["order"]["id"]
    return found


def ended_for(run: Run, span: timedelta) -> bool:
    """Return whether a run ended, and at least so long ago."""
    return run.ended_at is not None and START - run.ended_at > span


def is_in(*states: RunState) -> Fits:
    """Return a condition on the state."""
    return lambda _, run: run.state in states


WAITING = (RunState.READY, RunState.LEASED, RunState.FAILED)
EXPECTED: Mapping[str, Fits] = {
    "": lambda _, run: recent(run),
    "state:dead": is_in(RunState.DEAD),
    "state:dead,failed": is_in(RunState.DEAD, RunState.FAILED),
    "-state:dead,done,ready": lambda _, run: (
        run.state not in (RunState.DEAD, RunState.DONE, RunState.READY) and recent(run)
    ),
    "state:ready": is_in(RunState.READY),
    "state:leased": is_in(RunState.LEASED),
    "state:failed": is_in(RunState.FAILED),
    "state:done ended:>-10h": lambda _, run: (
        run.state is RunState.DONE and not ended_for(run, 10 * HOUR)
    ),
    "ended:<-2h ended:>-25h": lambda _, run: (
        ended_for(run, 2 * HOUR) and not ended_for(run, 25 * HOUR)
    ),
    "-ended:<-5h": lambda _, run: not ended_for(run, 5 * HOUR),
    "ended:2026-02-28": lambda _, run: (
        run.ended_at is not None and run.ended_at.date().isoformat() == "2026-02-28"
    ),
    f"group:{DISK}": lambda _, run: run.state is RunState.DEAD and run.signature == DISK,
    f"group:{DISK},{NET},{NEVER} dead:>-9h": lambda _, run: (
        run.state is RunState.DEAD
        and run.signature in (DISK, NET, "")
        and not ended_for(run, 9 * HOUR)
    ),
    f"group:{DISK} state:failed": lambda _, run: (
        run.state is RunState.FAILED and run.signature == DISK
    ),
    "state:ready tenant:acme": lambda _, run: run.state is RunState.READY and run.tenant == "acme",
    "state:ready tenant:acme-eu,beta queue:slow prio:high,bulk due:<now": lambda _, run: (
        run.state is RunState.READY
        and run.tenant in ("acme-eu", "beta")
        and run.queue == "slow"
        and run.priority is not Priority.DEFAULT
        and run.available_at < START
    ),
    "state:ready,failed due:>+5m": lambda _, run: (
        run.state in (RunState.READY, RunState.FAILED)
        and run.available_at > START + timedelta(minutes=5)
    ),
    "worker:alive,host-shut": lambda _, run: run.session in ("alive", "shut"),
    "worker:~lives": lambda _, run: run.session == "~lives",
    "worker:~lives,alive": lambda _, run: run.session in ("~lives", "alive"),
    "is:stuck state:leased": lambda _, run: run.session in GONE,
    "-worker:alive state:leased": lambda _, run: run.session in (*GONE, "~lives"),
    "job:nightly": lambda many, run: many.name(run) == "nightly",
    "job:nightly tenant:beta sched:<-4h": lambda many, run: (
        many.name(run) == "nightly"
        and run.tenant == "beta"
        and run.scheduled_for < START - 4 * HOUR
    ),
    "job:nightly,mail state:dead,done": lambda many, run: (
        many.name(run) != "report" and run.state in (RunState.DEAD, RunState.DONE)
    ),
    "job:report state:dead": lambda many, run: (
        many.name(run) == "report" and run.state is RunState.DEAD
    ),
    "-job:nightly state:dead": lambda many, run: (
        many.name(run) != "nightly" and run.state is RunState.DEAD
    ),
    "tag:team=ops state:dead": lambda many, run: (
        many.job(run).tags["team"] == "ops" and run.state is RunState.DEAD
    ),
    "payload.order.id:>=3,0 state:dead,ready": lambda many, run: (
        run.state in (RunState.DEAD, RunState.READY)
        and (order_id(many, run) >= 3 or order_id(many, run) == 0)
    ),
    "-payload.note:null state:leased": lambda _, run: (
        run.state is RunState.LEASED and run.payload is None
    ),
    'NIGHTLY,"too slow" -absent ended:>-30h': lambda many, run: (
        run.ended_at is not None
        and not ended_for(run, 30 * HOUR)
        and ("nightly" in texts(many, run) or "too slow" in texts(many, run))
        and "absent" not in texts(many, run)
    ),
    "err:no,slow -err:disk state:dead,failed": lambda _, run: (
        run.state in (RunState.DEAD, RunState.FAILED)
        and ("no " in run.error or "Slow" in run.error)
        and "disk" not in run.error
    ),
    "attempt:>1 replays:<2 kind:manual state:dead": lambda _, run: (
        run.state is RunState.DEAD
        and run.attempt > 1
        and run.replays < 2
        and run.key.kind is RunKind.MANUAL
    ),
    "@dead-again": lambda _, run: run.state is RunState.DEAD and run.replays > 0,
    "-@dead-again state:dead": lambda _, run: run.state is RunState.DEAD and not run.replays,
    "@expired": lambda _, run: run.session in GONE,
    "started:>-3h state:done,dead": lambda _, run: (
        run.state in (RunState.DONE, RunState.DEAD)
        and run.started_at is not None
        and run.started_at > START - 3 * HOUR
    ),
    "state:ready state:dead": lambda _, __: False,
}
"""What each filter finds, discarded runs apart."""


def expected(many: ManyRuns, text: str) -> list[str]:
    """Return the ids that a filter should find, in their order, by looking at every run."""
    by_schedule = text.startswith("job:") and text != "job:report state:dead"
    found = [run for run in many.runs if EXPECTED[text](many, run) and not run.hidden]

    def place(run: Run) -> tuple[datetime, str]:
        return (run.scheduled_for if by_schedule else run.ended_at or run.available_at), run.run_id

    return [run.run_id for run in sorted(found, key=place, reverse=True)]


def pages(
    many: ManyRuns, text: str, *, limit: int, examine: int = 2_000, most: int = 2_000
) -> list[str]:
    """Return the ids on all pages of a filter, checking what each page says of itself."""
    ids: list[str] = []
    cursor: str | None = None
    for _ in range(most):
        found = many.views.find_runs(text, limit=limit, cursor=cursor, examine=examine)
        assert found.matched == len(found.items) <= min(limit, found.examined)
        assert found.examined <= examine
        ids += [run.run_id for run in found.items]
        assert found.cursor is None or found.cursor != cursor
        cursor = found.cursor
        if cursor is None:
            return ids
    raise AssertionError(f"{text!r} does not end")
