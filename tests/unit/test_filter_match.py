"""Matching: what holds of a row, kind by kind, and the delay that runs are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from dynsched.domain.delay import scheduling_delay
from dynsched.domain.filter_match import FIRST, Range, matches, window
from dynsched.domain.filter_values import LAST
from dynsched.domain.filters import AUDIT, RUNS, parse
from dynsched.domain.run import RunState
from tests.unit.builders import NOW, run_of

HOUR = timedelta(hours=1)
HALF = NOW - HOUR / 2


def fits(text: str, **facts: Any) -> bool:
    """Return whether a run with these facts fits."""
    return matches(parse(text, RUNS), facts.get, NOW)


PAYLOAD: Mapping[str, Any] = {
    "order": {
        "id": 7,
        "sum": 2.5,
        "paid": True,
        "note": None,
        "lines": [{"sku": "a"}, {"sku": "b"}],
    },
    "tags": ["x", 10],
    "n": "7",
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("payload.order.id:7", True),
        ("payload.order.id:07", True),
        ("payload.order.id:8,7", True),
        ("payload.order.id:7.0", True),
        ("payload.order.id:>6.5", True),
        ("payload.order.id:<7", False),
        ("payload.order.sum:2.5", True),
        ("payload.order.paid:true", True),
        ("payload.order.paid:1", False),
        ("payload.order.note:null", True),
        ("payload.order.gone:null", False),
        ("-payload.order.gone:null", True),
        ("payload.order:7", False),
        ("payload.n:7", True),
        ("payload.n:>6", False),
        ("payload.tags:x", True),
        ("payload.tags:10", True),
        ("payload.tags.1:10", True),
        ("payload.tags.0:10", False),
        ("payload.order.lines.sku:b", True),
        ("payload.order.lines.0.sku:b", False),
        ("payload.order.lines.9999999999.sku:b", False),
        (f"payload.order.id:{'9' * 5_000}", False),
        ("payload.order.id:nan", False),
    ],
)
def test_a_payload_is_asked_by_its_paths(text: str, wanted: bool) -> None:
    """Numbers as numbers, each element of a list, nothing that is not there."""
    assert fits(text, payload=PAYLOAD) is wanted


def test_a_payload_that_is_gone_fits_nothing() -> None:
    """Nor does one that is no object."""
    assert not fits("payload.a:1", payload=())
    assert not fits("payload.a:1", payload=None)
    assert not fits("payload.a:1", payload="1")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tag:team", True),
        ("tag:team=ops", True),
        ("tag:team=dev", False),
        ("tag:none,team=ops", True),
        ("-tag:none", True),
        ("err:DISK", True),
        ('err:"o d"', True),
        ("-err:disk", False),
        ("attempt:3", True),
        ("attempt:>3,<1", False),
        ("attempt:>=3 attempt:<=3", True),
        ("delay:>59s", True),
        ("delay:>1m", False),
        ("delay:>=1m", True),
        ("is:late,stuck", True),
        ("is:late is:stuck", False),
        ("dead:>-1h", False),
        ("-dead:>-1h", True),
    ],
)
def test_each_kind_is_compared_in_its_way(text: str, wanted: bool) -> None:
    """What a row has not fits nothing, and so every exclusion."""
    facts = {
        "tag": {"team": "ops"},
        "err": "OSError: no disk",
        "attempt": 3,
        "delay": timedelta(minutes=1),
        "is": ["late"],
    }
    assert fits(text, **facts) is wanted


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("ended:2026-02-28", "2026-02-28T00:00", "2026-03-01T00:00"),
        ("ended:>2026-02-28", "2026-03-01T00:00", None),
        ("ended:>=2026-02-28", "2026-02-28T00:00", None),
        ("ended:<2026-02-28", None, "2026-02-28T00:00"),
        ("ended:<=2026-02-28", None, "2026-03-01T00:00"),
        ("ended:2026-02-28T10:00Z", "2026-02-28T10:00", "2026-02-28T10:01"),
        ("ended:>=-1h ended:<now", "2026-03-01T11:00", "2026-03-01T12:00"),
        ("-ended:<-2h", "2026-03-01T10:00", None),
        ("-ended:>=-2h", None, "2026-03-01T10:00"),
        ("-ended:2026-02-28", None, None),
        ("ended:2026-02-20,2026-02-22", "2026-02-20T00:00", "2026-02-23T00:00"),
        ("ended:>=9999-12-31", "9999-12-31T00:00", None),
        ("state:dead", None, None),
    ],
)
def test_times_lead_to_a_window(text: str, low: str | None, high: str | None) -> None:
    """A text names all instants it begins; several values lie in one window around them."""
    found = window(parse(text, RUNS), "ended", NOW)
    assert found == Range(
        FIRST if low is None else datetime.fromisoformat(f"{low}:00Z"),
        LAST if high is None else datetime.fromisoformat(f"{high}:00Z"),
    )
    assert found.empty is False


def test_a_window_never_leaves_the_calendar() -> None:
    """Ten years before the year one is the year one."""
    early = FIRST + HOUR
    assert window(parse("ended:>=-520w", RUNS), "ended", early) == Range()
    assert window(parse("ended:<+520w", RUNS), "ended", LAST - HOUR) == Range()


def test_what_contradicts_itself_leaves_no_instant() -> None:
    """Nothing need be read then."""
    assert window(parse("ended:>-1h ended:<-2h", RUNS), "ended", NOW).empty


def test_other_rows_are_matched_by_their_own_facts() -> None:
    """The audit's, for one."""
    facts: dict[str, Any] = {
        "actor": "ann@host",
        "action": "run.replay",
        "at": NOW,
        "": ("ann@host", "run:1"),
    }
    for text, wanted in (
        ("actor:ann@host at:>-1m", True),
        ('"RUN:"', True),
        ("action:job.run", False),
    ):
        assert matches(parse(text, AUDIT), facts.get, NOW) is wanted


@pytest.mark.parametrize(
    ("fields", "minutes"),
    [
        ({"state": RunState.READY, "attempt": 0, "fence": 0}, 60),
        ({"state": RunState.READY, "attempt": 0, "fence": 0, "available_at": NOW - HOUR / 2}, 30),
        ({"state": RunState.READY, "attempt": 0, "fence": 2, "available_at": NOW - HOUR / 2}, 60),
        ({"state": RunState.READY, "attempt": 0, "fence": 0, "available_at": NOW + HOUR}, None),
        ({"state": RunState.READY, "attempt": 1, "fence": 1}, None),
        ({"state": RunState.LEASED, "attempt": 0, "fence": 1, "leased_at": NOW - HOUR / 6}, 50),
        (
            {"state": RunState.DONE, "attempt": 1, "fence": 1, "first_started_at": NOW - HOUR / 2},
            30,
        ),
        (
            {
                "state": RunState.FAILED,
                "attempt": 1,
                "fence": 1,
                "first_started_at": NOW - HOUR / 2,
                "available_at": NOW + HOUR,
            },
            30,
        ),
        ({"state": RunState.SKIPPED, "attempt": 0, "fence": 1}, None),
    ],
)
def test_the_delay_of_a_run_counts_from_when_it_was_due(
    fields: dict[str, Any], minutes: int | None
) -> None:
    """Up to its first start, or till now; what was meant to wait is not late."""
    fields = {"at": NOW - HOUR, "available_at": NOW - HOUR, **fields}
    wanted = None if minutes is None else timedelta(minutes=minutes)
    assert scheduling_delay(run_of(**fields), NOW) == wanted
