"""A store full of dead runs: for what reads the dead-letter queue, and for whoever looks at it.

`python -m bench.crowd URL` fills a store that `fill` fills for benchmarks and tests.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from bench.options import say
from bench.stores import CHUNK, HANDLER, spec
from dynsched.bootstrap import Base, build_operations, init_store, open_base
from dynsched.domain.instants import EPOCH, MILLISECOND, to_utc
from dynsched.domain.job import Job, Priority
from dynsched.domain.names import new_id
from dynsched.domain.retry import BuryReason, signature
from dynsched.domain.run import RETENTION, Run, RunKey, RunKind, RunState
from dynsched.services.endings import SUMMARY_LENGTH
from dynsched.storage.engine import PutNew, Row
from dynsched.storage.placement import name_key
from dynsched.storage.runs import Attempt

TENANTS = ("acme", "globex", "initech", "umbrella", "hooli", "stark", "wayne", "wonka")
AGE = timedelta(hours=36)  # the oldest of them died so long ago
SERVICES = ("billing", "mailer", "ledger", "search", "geocoder", "invoices", "webhooks", "exports")
ERRORS = (
    ("ConnectionRefusedError", "{service} refused the connection to 10.{a}.{b}.7:5432"),
    ("TimeoutError", "{service} did not answer within {a} s (request {id})"),
    ("KeyError", "{service}: no customer {a} in '/srv/data/{id}.json'"),
    ("HTTPError", "{service} answered 503 Service Unavailable for order {a}"),
    ("ValidationError", "{service}: field 'amount' of invoice {a} is {b}, expected at least 1"),
    ("IntegrityError", "{service}: duplicate key value {id} violates unique constraint"),
)
# What a terminal or a page must not obey, and what does not fit into a cell.
HOSTILE = (
    ("ValueError", "cannot parse \x1b[31mred\x1b[0m \x1b]0;owned\x07 title of row {a}"),
    ("RuntimeError", "<script>alert({a})</script> & <b>bold</b> [bold red]markup[/]"),
    ("UnicodeError", "\u202eflipped\u202c z\u0336a\u0336l 東京 🚀 row {a}\nsecond line"),
    ("OverflowError", "x" * 400 + " {a}"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """What a store was filled with.

    Attributes:
        jobs: in the order in which they were made.
        signatures: of the groups, the largest first.
        dead: how many runs.
    """

    jobs: tuple[Job, ...]
    signatures: tuple[str, ...]
    dead: int


def fill(
    url: str = "",
    *,
    dead: int = 50_000,
    groups: int = 40,
    jobs: int = 1_000,
    tenants: Sequence[str] = TENANTS,
    base: Base | None = None,
    now: datetime | None = None,
    attempts: bool = True,
    seed: int = 7,
) -> Crowd:
    """Fill a store with dead runs of many jobs, in groups of very different sizes.

    The same arguments make the same runs. Rows are written in bulk through the store's layers, so
    that they lie where the services look for them.

    Args:
        url: the store; made if it is not there.
        dead: how many runs.
        groups: how many different errors they died of, some of them with hostile texts.
        jobs: how many jobs they belong to.
        tenants: whose jobs these are; the first has most.
        base: use this store instead of the URL's.
        now: when the newest of them died; by default the store's clock's instant.
        attempts: write the last try of each, too.
        seed: of what is random.
    """
    opened = open_base(url, environment={}) if base is None else base
    rng = Random(seed)
    init_store(opened)
    opened.store.refresh()
    end = to_utc(now or opened.clock.now(), "now")
    made = _jobs(opened, jobs, tenants, rng, end)
    errors = list(itertools.islice(_errors(), groups))
    weights = [1 / rank for rank in range(1, groups + 1)]
    found: dict[str, int] = {}
    for start in range(0, dead, CHUNK):
        # Each group once, then by weight: the smallest have few.
        numbers = range(start, min(dead, start + CHUNK))
        kinds = [n if n < groups else rng.choices(range(groups), weights)[0] for n in numbers]
        runs = [_dead(rng.choice(made), errors[kind], rng, end) for kind in kinds]
        opened.store.runs.create_many([run for run, _ in runs])
        if attempts:
            opened.store.runs.note_attempts(attempt for _, attempt in runs)
        for run, _ in runs:
            found[run.signature] = found.get(run.signature, 0) + 1
    if base is None:
        opened.store.engine.close()
    names = sorted(found, key=lambda name: (-found[name], name))
    return Crowd(jobs=tuple(made), signatures=tuple(names), dead=dead)


def _jobs(base: Base, count: int, tenants: Sequence[str], rng: Random, now: datetime) -> list[Job]:
    """Write jobs without a schedule, each under its name; return them."""
    pattern = build_operations(base).check(spec("pattern"))
    made = []
    for number in range(count):
        # Half of what is left to each tenant: the first is the largest.
        tenant = next((one for one in tenants if rng.random() < 0.4), tenants[-1])
        service = SERVICES[number % len(SERVICES)]
        made.append(
            replace(
                pattern,
                job_id=new_id(rng),
                name=f"{service}-{number:04}",
                tenant=tenant,
                created_at=now - AGE,
                version=1,
            )
        )
    engine, store = base.store.engine, base.store
    for start in range(0, count, CHUNK):
        chunk = made[start : start + CHUNK]
        names = [
            Row(name_key(job.tenant, job.name), {"j": job.job_id}, token=store.token())
            for job in chunk
        ]
        engine.write_many([PutNew(store.jobs.row_of(job)) for job in chunk])
        engine.write_many([PutNew(name) for name in names])
    for tenant in tenants:
        store.control.note_use(tenant, pattern.queue)
    return made


def _errors() -> Iterator[tuple[str, str]]:
    """Yield ever more kinds of errors, hostile ones among the first ten."""
    for service in SERVICES[:1]:
        yield from ((kind, text.replace("{service}", service)) for kind, text in ERRORS)
    yield from HOSTILE
    for round_ in itertools.count():
        suffix = "" if not round_ else " of the " + "second " * round_ + "region"
        for service in SERVICES[0 if round_ else 1 :]:
            for kind, text in ERRORS:
                yield kind, text.replace("{service}", service + suffix)


def _dead(job: Job, error: tuple[str, str], rng: Random, now: datetime) -> tuple[Run, Attempt]:
    """Return a dead run and its last try."""
    kind, text = error
    particulars = {
        "a": rng.randrange(10_000),
        "b": rng.randrange(256),
        "id": f"{rng.getrandbits(64):016x}",
    }
    for name, value in particulars.items():
        text = text.replace("{" + name + "}", str(value))
    # More of them lately.
    ended = now - AGE * rng.random() ** 2 // MILLISECOND * MILLISECOND
    scheduled = ended - timedelta(milliseconds=rng.randrange(1_000, 600_000))
    again = rng.random() < 0.03
    run = Run(
        key=RunKey(job.job_id, scheduled, RunKind.MANUAL, f"0-{new_id(rng)}"),
        tenant=job.tenant,
        queue=job.queue,
        priority=rng.choice(list(Priority)),
        share=job.tenant,
        state=RunState.DEAD,
        reason=BuryReason.SPENT.value,
        available_at=scheduled,
        needs=f"handler:{HANDLER}",
        fence=5,
        attempt=5,
        spent=5,
        limit=5,
        reported=True,
        replays=int(again),
        error=f"{kind}: {text}"[:SUMMARY_LENGTH],
        signature=signature(kind, text),
        created_at=scheduled,
        first_started_at=scheduled,
        started_at=ended - MILLISECOND,
        ended_at=ended,
        expires_at_s=int((ended + RETENTION - EPOCH).total_seconds()),
        version=1,
    )
    return run, _last_try(run, kind, text)


def _last_try(run: Run, kind: str, text: str) -> Attempt:
    assert run.ended_at is not None
    return Attempt(
        run_id=run.run_id,
        number=run.attempt,
        fence=run.fence,
        session="crowd",
        outcome="failed",
        started_at=run.started_at,
        ended_at=run.ended_at,
        error_type=kind,
        message=text,
        detail=f"Traceback (most recent call last):\n  line 7, in run\n{kind}: {text}",
        expires_at_s=run.expires_at_s or 0,
    )


def main() -> None:
    """Fill the store that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m bench.crowd", description=__doc__)
    parser.add_argument("url", help="the store, for example sqlite:///crowd.db")
    parser.add_argument("--dead", type=int, default=50_000)
    parser.add_argument("--groups", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1_000)
    given = parser.parse_args()
    found = fill(given.url, dead=given.dead, groups=given.groups, jobs=given.jobs)
    say(f"{found.dead:,} dead runs in {len(found.signatures)} groups, {len(found.jobs):,} jobs")


if __name__ == "__main__":
    main()
