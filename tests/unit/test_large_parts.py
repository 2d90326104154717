"""Large payloads lie apart from their rows: they outlive whatever may still read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from dynsched.domain.instants import EPOCH
from dynsched.domain.target import HandlerTarget
from dynsched.services.specs import JobSpec
from dynsched.storage.engine import Outcome, Replace, Write
from dynsched.storage.jobs import digest_of
from dynsched.storage.placement import part_key
from dynsched.storage.sqlite import SqliteEngine
from dynsched.targets.app import App
from dynsched.testing import ManualScheduler

TEXT = '"' + "x" * 300 + '"'
LARGE = "x" * 300
YEAR_S = 366 * 86_400


@pytest.fixture
def manual() -> Iterator[ManualScheduler]:
    """An empty store with virtual time."""
    with ManualScheduler(App()) as scheduler:
        yield scheduler


def expiry(manual: ManualScheduler, job_id: str) -> int | None:
    """Return when the part of that text expires."""
    row = manual.store.engine.get(part_key(job_id, digest_of(TEXT)))
    assert row is not None
    return row.expires_at_s


def make(manual: ManualScheduler, payload: str | None = None) -> str:
    """Make a job that only runs by hand; return its id."""
    spec = JobSpec(name="a", target=HandlerTarget("h"), payload=payload)
    return manual.operations.create(spec).job_id


def test_a_run_for_a_past_instant_keeps_its_payload_from_now_on(manual: ManualScheduler) -> None:
    """It has yet to start, to be tried again and to be replayed."""
    job_id, now = make(manual), manual.clock.now()
    manual.operations.enqueue(job_id, LARGE, at=now - timedelta(days=900))
    kept_s = expiry(manual, job_id)
    assert kept_s is not None
    assert kept_s > (now - EPOCH).total_seconds() + YEAR_S


def test_a_part_that_its_job_names_again_does_not_expire(manual: ManualScheduler) -> None:
    """An edit there and back leaves it as it was."""
    job_id = make(manual, LARGE)
    manual.operations.edit(job_id, payload="small")
    assert expiry(manual, job_id) is not None
    manual.operations.edit(job_id, payload=LARGE)
    manual.store.jobs.expire_part(job_id, digest_of(TEXT), 1)
    assert expiry(manual, job_id) is None


def test_an_edit_that_drops_a_part_leaves_it_to_the_runs_that_need_it(
    manual: ManualScheduler,
) -> None:
    """A run for a coming year has the same payload as its job had."""
    job_id, at = make(manual, LARGE), manual.clock.now() + timedelta(days=900)
    manual.operations.enqueue(job_id, LARGE, at=at)
    assert expiry(manual, job_id) is None
    manual.operations.edit(job_id, payload="small")
    assert (expiry(manual, job_id) or 0) > (at - EPOCH).total_seconds() + YEAR_S


def test_an_earlier_expiry_does_not_shorten_a_later_one(manual: ManualScheduler) -> None:
    """Two edits may let one part go."""
    job_id = make(manual, LARGE)
    manual.operations.edit(job_id, payload="small")
    before = expiry(manual, job_id)
    manual.store.jobs.expire_part(job_id, digest_of(TEXT), 1)
    assert expiry(manual, job_id) == before


class FriendlyEngine(SqliteEngine):
    """An engine on which a friend acts just before a part is given its expiry."""

    friend: Callable[[], object] | None = None

    def write(self, write: Write, *, durable: bool = False) -> Outcome:
        """Make a write, after the friend's if there is one."""
        friend = self.friend
        if friend and isinstance(write, Replace) and write.row.key.sk.startswith("part#"):
            self.friend = None
            friend()
        return super().write(write, durable=durable)


def test_a_part_taken_back_during_its_expiry_is_kept() -> None:
    """A friend's edit names it again after the job was read."""
    engine = FriendlyEngine(None)
    with ManualScheduler(App(), engine=engine) as manual:
        job_id = make(manual, LARGE)
        engine.friend = lambda: manual.operations.edit(job_id, payload=LARGE)
        manual.operations.edit(job_id, payload="small")
        assert engine.friend is None
        assert expiry(manual, job_id) is None
