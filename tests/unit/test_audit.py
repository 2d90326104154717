"""The audit: where entries lie, how they are found, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from dynsched.bootstrap import build_views, init_store, open_base
from dynsched.domain.access import Action, Role
from dynsched.domain.audit import KEPT, AuditEntry, AuditOutcome, check_target
from dynsched.domain.filters import AUDIT, parse
from dynsched.domain.instants import EPOCH, to_text
from dynsched.errors import FilterError, InvalidInput
from dynsched.services.documents import audit_document
from dynsched.services.views import AuditQuery, Views
from dynsched.storage.engine import Engine, Table
from dynsched.storage.metering import MeteringEngine
from dynsched.storage.sqlite import SqliteEngine
from dynsched.testing import SettableClock, memory_store
from tests.contract.dynamo_backends import on_moto

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RUN = "run:j1@2026-01-02T03:04:05.000Z-c"


def entry_of(number: int = 1, **fields: Any) -> AuditEntry:
    """Return an entry that was begun."""
    entry = AuditEntry(
        entry_id=f"e{number:03}",
        at=NOW - timedelta(minutes=number),
        actor="ann",
        role=Role.OPERATOR,
        via="cli",
        action=Action.RUN_CANCEL,
        target=RUN,
        tenant="acme",
        reason="wrong order",
    )
    return replace(entry, **fields)


class Archive:
    """An audit on a store of its own."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.clock = SettableClock(NOW)
        base = open_base(environment={}, engine=engine, clock=self.clock, rng=Random(3))
        init_store(base)
        self.audit = base.store.audit
        self.views: Views = build_views(base)

    def write(self, *entries: AuditEntry) -> None:
        """Begin entries."""
        for entry in entries:
            assert self.audit.begin(entry)

    def ids(self, filter: str = "", **query: Any) -> list[str]:
        """Return the ids of the entries that a query finds."""
        found = self.views.audit(AuditQuery(filter=filter, **query))
        return [entry.entry_id for entry in found.items]


@pytest.fixture
def archive() -> Archive:
    """Return an empty audit in memory."""
    return Archive(memory_store())


@pytest.fixture(params=["sqlite-file", "moto"])
def anywhere(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Archive]:
    """Return an empty audit on a kind of store."""
    if request.param == "moto":
        with on_moto() as engine:
            yield Archive(engine)
        return
    file = tmp_path_factory.mktemp("audit") / "store.db"
    with closing(SqliteEngine(str(file))) as engine:
        yield Archive(engine)


def test_an_entry_comes_back_as_it_was_written_from_both_its_places(anywhere: Archive) -> None:
    """By its day and by its target, begun and completed, on every engine."""
    begun = entry_of(details={"job": "nightly"})
    anywhere.write(begun)
    assert list(anywhere.audit.of_day(begun.at.date(), most=9)) == [begun]
    done = replace(begun, outcome=AuditOutcome.DONE, note="ready -> cancelled")
    anywhere.audit.complete(begun, done)
    assert list(anywhere.audit.of_day(begun.at.date(), most=9)) == [done]
    assert list(anywhere.audit.of_target(RUN, most=9)) == [done]
    assert anywhere.views.audit_of(RUN) == [done]


def test_pages_follow_each_other_on_every_engine(anywhere: Archive) -> None:
    """Across the border of a month, without a double and without a gap."""
    anywhere.write(*(entry_of(number, at=NOW - timedelta(days=number)) for number in range(1, 8)))
    found, cursor = [], None
    for _ in range(4):
        page = anywhere.views.audit(AuditQuery(limit=2, cursor=cursor))
        found += [entry.entry_id for entry in page.items]
        cursor = page.cursor
    assert found == [f"e{number:03}" for number in range(1, 8)]
    assert cursor is None


def test_an_entry_whose_target_is_known_only_in_the_end_lies_under_both(archive: Archive) -> None:
    """A new job is found by its tenant, where its creation began, and by its id."""
    begun = entry_of(target="tenant:acme", action=Action.JOB_CREATE)
    archive.write(begun)
    done = replace(begun, target="job:j1", outcome=AuditOutcome.DONE)
    archive.audit.complete(begun, done)
    assert archive.views.audit_of("job:j1") == archive.views.audit_of("tenant:acme") == [done]
    assert archive.ids() == ["e001"]


def test_an_id_that_is_taken_is_not_written_over(archive: Archive) -> None:
    """Nobody can rewrite what another did."""
    archive.write(entry_of())
    assert not archive.audit.begin(entry_of(actor="eve"))
    assert [entry.actor for entry in archive.views.audit_of(RUN)] == ["ann"]


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("", ["e001", "e002", "e003"]),
        ("actor:ann", ["e001", "e003"]),
        ("-actor:ann", ["e002"]),
        ("action:job.pause outcome:done", ["e002"]),
        (f"target:{RUN}", ["e001", "e003"]),
        (f"target:{RUN} -actor:ann", []),
        ("target:store,job:j1", ["e002"]),
        ("tenant:globex", ["e002"]),
        ("via:web", ["e002"]),
        ("at:<-150s", ["e003"]),
        ('"wrong order"', ["e001", "e003"]),
    ],
)
def test_entries_are_found_by_every_term_of_the_vocabulary(
    archive: Archive, filter: str, found: list[str]
) -> None:
    """And bare words are looked for in actor, target, reason and note."""
    other = entry_of(
        2,
        actor="bob",
        via="web",
        action=Action.JOB_PAUSE,
        target="job:j1",
        tenant="globex",
        reason="",
        outcome=AuditOutcome.DONE,
    )
    archive.write(entry_of(1), other, entry_of(3))
    assert archive.ids(filter) == found


def test_every_term_of_the_vocabulary_can_be_asked(archive: Archive) -> None:
    """A qualifier without a fact behind it would fail at the first entry."""
    archive.write(entry_of())
    for qualifier in AUDIT.qualifiers:
        value = next(iter(qualifier.choices), ">now" if qualifier.name == "at" else "x")
        assert archive.views.audit(AuditQuery(filter=f"-{qualifier.name}:{value}")).examined == 1


def test_a_target_is_led_to_and_the_rest_is_tested(archive: Archive) -> None:
    """The status line says which, and how many entries were looked at."""
    archive.write(entry_of(1), entry_of(2, target="store"))
    found = archive.views.audit(AuditQuery(filter=parse(f"actor:ann target:{RUN}", AUDIT)))
    assert (found.indexed, found.tested) == (("target",), ("actor",))
    assert found.words() == "matched 1, examined 1"


def test_entries_before_since_are_left_out(archive: Archive) -> None:
    """That bounds what is read."""
    archive.write(entry_of(1), entry_of(2), entry_of(3))
    assert archive.ids(since=NOW - timedelta(minutes=2)) == ["e001", "e002"]


def test_a_page_ends_when_it_has_examined_what_it_may(archive: Archive) -> None:
    """However few fit; its cursor goes on behind the last one that was looked at."""
    archive.write(*(entry_of(number) for number in range(1, 6)), entry_of(6, actor="bob"))
    page = archive.views.audit(AuditQuery(filter="actor:bob", examine=4))
    assert (page.matched, page.examined) == (0, 4)
    assert archive.ids("actor:bob", cursor=page.cursor) == ["e006"]


def test_a_cursor_of_another_filter_is_refused(archive: Archive) -> None:
    """It would skip what the other filter would have shown."""
    archive.write(entry_of(1), entry_of(2))
    page = archive.views.audit(AuditQuery(filter="actor:ann", limit=1))
    with pytest.raises(InvalidInput, match="another filter"):
        archive.views.audit(AuditQuery(filter="actor:bob", cursor=page.cursor))


def test_an_unknown_term_is_an_error_with_its_column(archive: Archive) -> None:
    """Never an empty list."""
    with pytest.raises(FilterError) as caught:
        archive.views.audit(AuditQuery(filter="actor:ann colour:red"))
    assert caught.value.column == len("actor:ann ")


@pytest.mark.parametrize("target", ["run:x", "job:", "nothing:at", "", "tenant:a b"])
def test_a_target_of_no_known_form_is_refused(archive: Archive, target: str) -> None:
    """It would be an empty list otherwise."""
    with pytest.raises(InvalidInput):
        archive.views.audit_of(target)


def test_an_entry_is_kept_for_its_time_and_costs_four_units() -> None:
    """Two rows when it begins and two when it is completed."""
    meter = MeteringEngine(memory_store())
    archive = Archive(meter)
    meter.reset()
    begun = entry_of()
    archive.write(begun)
    archive.audit.complete(begun, replace(begun, outcome=AuditOutcome.DONE))
    assert sum(label["write"] for label in meter.report().values()) == 4
    rows = [row for row in archive.engine.scan(Table.CONTROL, 99).rows if "audit#" in row.key.pk]
    assert {row.expires_at_s for row in rows} == {(begun.at + KEPT - EPOCH) // timedelta(seconds=1)}


def test_a_document_holds_every_field_of_an_entry() -> None:
    """Programs read what people read."""
    entry = entry_of(details={"job": "n"})
    document = audit_document(entry)
    assert set(document) == set(AuditEntry.__dataclass_fields__)
    assert (document["at"], document["details"]) == (to_text(entry.at), {"job": "n"})


def test_targets_have_five_forms() -> None:
    """A page about one thing asks by its form."""
    forms = [RUN, "job:j1", "batch:b1", "tenant:acme", "store"]
    assert [check_target(form) for form in forms] == forms
