"""A row that was damaged, or that a newer version wrote, is told and takes nothing else with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from dynsched.errors import DamagedRow
from dynsched.services.views import Views
from dynsched.storage.engine import Applied, Body, Query, Replace, Row, Table
from dynsched.storage.placement import BATCHES, batch_key
from dynsched.storage.runs import run_table_key
from tests.replay.ward import START, Ward

AUDIT = f"audit#{START:%Y-%m}"
MINUTES = "minutes"


@pytest.fixture
def ward() -> Ward:
    """Return a store in which everything has happened twice: deaths, batches, beats."""
    ward = Ward()
    for _ in range(2):
        ward.die(1)
        ward.started()
        ward.step()
        ward.clock.step(timedelta(minutes=1))
        ward.work(broken=False)
    ward.views.health()
    return ward


def damage(ward: Ward, row: Row | None, body: Body | None = None) -> None:
    """Write over a row's body."""
    assert row is not None
    damaged = replace(row, body=body or {}, token="damage")  # noqa: S106  # no password: it names the write
    assert isinstance(ward.engine.write(Replace(damaged, row.version)), Applied)


def rows_of(ward: Ward, partition: str) -> list[Row]:
    """Return the rows of a partition of the control table."""
    return list(ward.engine.query(Query(Table.CONTROL, partition)).rows)


@pytest.mark.parametrize(
    ("partition", "look"),
    [
        (AUDIT, lambda views: len(views.audit().items)),
        (BATCHES, lambda views: len(views.batches().items)),
        (MINUTES, lambda views: sum(one.started > 0 for one in views.health(timedelta(0)).minutes)),
    ],
    ids=["audit", "batches", "minutes"],
)
def test_a_list_shows_the_others(
    ward: Ward, partition: str, look: Callable[[Views], int], caplog: pytest.LogCaptureFixture
) -> None:
    """What can be read is shown, and the log names the row that cannot be.

    Source: one entry of an action that this version does not know hid the whole audit.
    """
    rows = rows_of(ward, partition)
    damage(ward, rows[-1], {**rows[-1].body, "x": "run.teleport", "p": "?", "s": "?"})
    assert look(ward.views) == len(rows) - 1
    assert rows[-1].key.sk in caplog.text


def test_a_page_of_batches_goes_on_behind_a_damaged_one(ward: Ward) -> None:
    """A damaged row counts for no place of a page, so the list does not seem to end there."""
    newest = rows_of(ward, BATCHES)[-1]
    damage(ward, newest)
    ward.die(1)
    ward.started()
    page = ward.views.batches(limit=1)
    assert page.cursor is not None
    assert len(ward.views.batches(limit=1, cursor=page.cursor).items) == 1


def test_a_damaged_batch_keeps_no_other_from_moving(ward: Ward) -> None:
    """The stepper names it, leaves it, and moves the others."""
    ward.die(2)
    first, second = (ward.started(limit=1) for _ in range(2))
    damage(ward, ward.engine.get(batch_key(first.batch_id)))
    report = ward.stepper.step()
    assert (report.broken, report.moved) == (1, 1)
    assert ward.batch(second).moved == 1
    with pytest.raises(DamagedRow, match=first.batch_id):
        ward.views.batch(first.batch_id)


def test_a_damaged_snapshot_is_made_anew(ward: Ward) -> None:
    """The health is looked at again, and stored over what cannot be read."""
    for row in rows_of(ward, "health"):
        damage(ward, row)
    ward.clock.step(timedelta(seconds=10))
    assert ward.views.health().at == ward.clock.now()


def test_a_damaged_run_is_an_error_and_no_accident(ward: Ward) -> None:
    """Views and verbs on it say which row cannot be read."""
    (run,) = ward.die(1)
    damage(ward, ward.engine.get(run_table_key(run.key)))
    for look in (ward.views.show_run, ward.views.why_run, ward.operations.replay):
        with pytest.raises(DamagedRow, match="cannot be read"):
            look(run.run_id)


def test_a_run_shows_without_its_damaged_job(ward: Ward) -> None:
    """What is known of the run is shown all the same."""
    (run,) = ward.die(1)
    (row,) = [one for one in ward.engine.scan(Table.JOBS, 500).rows if one.key.pk == run.job_id]
    damage(ward, row)
    detail = ward.views.show_run(run.run_id)
    assert (detail.run.run_id, detail.job) == (run.run_id, None)
