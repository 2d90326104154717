"""Search: pages of runs that are bounded, honest and complete."""

from __future__ import annotations

import pytest

from dynsched.services import search_sources
from tests.unit.test_views import House


@pytest.fixture
def house() -> House:
    """Return an empty house."""
    return House()


def test_a_lane_of_more_tenants_than_a_page_merges_says_so(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left out in silence; the tenant leads there."""
    for name in ("GROUPS_MAX", "FIRST_CHUNK"):
        monkeypatch.setattr(search_sources, name, 20)
    for number in range(100):
        house.enqueue(house.job("j", tenant=f"t{number:03}"))
    found = house.views.find_runs("state:ready", limit=5)
    assert "lie by tenant first" in found.notes[0]
    assert len(house.listed("state:ready tenant:t000,t099")) == 2
