"""Right answers, collected from several cron engines and a model of cronie."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dynsched.domain.recurrence import Cron
from dynsched.errors import InvalidInput

LINES = (Path(__file__).parents[1] / "data" / "cron_vectors.jsonl").read_text().splitlines()
VECTORS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
STEPPING = [vector for vector in VECTORS if "next" in vector]
VALIDITY = [vector for vector in VECTORS if "valid" in vector]


def test_every_vector_is_used() -> None:
    """No line of the file is of a kind that no test looks at."""
    assert len(STEPPING) + len(VALIDITY) == len(VECTORS) == 86


@pytest.mark.parametrize("vector", STEPPING, ids=lambda vector: vector["id"])
def test_the_next_instants_are_those_of_the_vector(vector: dict[str, Any]) -> None:
    """Stepping on from the start gives the expected instants, and back again the same."""
    cron = Cron.parse(vector["expr"], zone=vector["tz"])
    expected = [datetime.fromisoformat(text) for text in vector["next"]]
    at, found = datetime.fromisoformat(vector["start"]), []
    for _ in expected:
        at = cron.next_after(at) or at
        found.append(at)
    assert found == expected
    assert all(cron.last_before(after) == before for before, after in pairwise(expected))
    assert cron.count(expected[0], expected[-1]) == len(expected) - 1


@pytest.mark.parametrize("vector", VALIDITY, ids=lambda vector: vector["id"])
def test_an_expression_is_accepted_if_the_vector_says_so(vector: dict[str, Any]) -> None:
    """Valid expressions build a schedule; the others are refused as input, not with a crash."""
    if vector["valid"]:
        assert Cron.parse(vector["expr"]).expr == vector["expr"]
    else:
        with pytest.raises(InvalidInput) as refused:
            Cron.parse(vector["expr"])
        assert refused.value.field == "cron"
