"""`dynsched next`: the same answers as the vectors, without a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.program import Program

LINES = (Path(__file__).parents[1] / "data" / "cron_vectors.jsonl").read_text().splitlines()
VECTORS: list[dict[str, Any]] = [json.loads(line) for line in LINES]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program without a store."""
    return Program(tmp_path, made=False)


def test_the_command_agrees_with_every_vector(program: Program) -> None:
    """Instants with the zone's offset, written as the vectors write them."""
    stepping = [vector for vector in VECTORS if "next" in vector]
    for vector in stepping:
        found = program.json(
            "next", vector["expr"], "--tz", vector["tz"], "--after", vector["start"],
            "--count", str(len(vector["next"])),
        )  # fmt: skip
        assert found == vector["next"], vector["id"]
    assert len(stepping) > 50


def test_the_command_accepts_what_the_vectors_call_valid(program: Program) -> None:
    """The others exit 2, naming the expression and why."""
    judged = [vector for vector in VECTORS if "valid" in vector]
    for vector in judged:
        if vector["valid"]:
            assert len(program.json("next", vector["expr"], "--count", "1")) <= 1
        else:
            assert program.error("next", "--", vector["expr"]).startswith("EXPR: ")
    assert len(judged) > 5


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("0 24 * * *",), "EXPR: hour '24' is out of range (give 0 to 23)"),
        (("H * * * *",), "EXPR: H needs the job's identity (give one with --key)"),
        (("@reboot",), "EXPR: "),
        (("* * * * *", "--tz", "Nowhere"), "--tz: 'Nowhere' is not a zone"),
        (("* * * * *", "--dst", "never"), "--dst: 'never' is no rule for clock changes"),
        (("* * * * *", "--after", "2026-01-01"), "--after: the datetime has no zone"),
        (("* * * * *", "--count", "0"), "--count: 0 is out of range (give 1 to 10000)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_bad_question_names_the_argument_and_the_reason(
    program: Program, arguments: tuple[str, ...], told: str
) -> None:
    """Exit code 2, one line."""
    assert program.error("next", *arguments).startswith(told)


def test_the_answer_lies_strictly_after_the_given_instant(program: Program) -> None:
    """An instant itself is not its own next, not even within its millisecond."""
    for after in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000900Z"):
        (found,) = program.json("next", "0 0 * * *", "--after", after, "--count", "1")
        assert found == "2026-01-02T00:00:00+00:00"


def test_seconds_keys_and_rules_are_passed_on(program: Program) -> None:
    """Six fields when declared, H from the key, and another rule where clocks change."""
    after = ("--after", "2025-03-09T06:00:00Z", "--count", "2")
    assert program.json("next", "*/20 * * * * *", "--seconds", *after) == [
        "2025-03-09T06:00:20+00:00",
        "2025-03-09T06:00:40+00:00",
    ]
    assert program.json("next", "H H * * *", "--key", "a") != program.json(
        "next", "H H * * *", "--key", "b"
    )
    skipped = ("next", "30 2 * * *", "--tz", "America/New_York", "--dst", "skip", *after)
    assert program.json(*skipped)[0] == "2025-03-10T02:30:00-04:00"


def test_a_schedule_that_ends_gives_fewer_instants(program: Program) -> None:
    """The years end in 2199; people are told that there is no more."""
    arguments = ("next", "0 0 1 1 *", "--after", "2198-06-01T00:00:00Z")
    assert program.json(*arguments) == ["2199-01-01T00:00:00+00:00"]
    assert "(no further ones)" in program(*arguments).out


def test_people_see_the_schedule_in_words_and_how_far_it_is(program: Program) -> None:
    """Each line has the instant, the day of the week and the distance."""
    first, second = program(
        "next", "30 2 * * *", "--tz", "Europe/Berlin", "--count", "1"
    ).out.split("\n", 1)
    assert first == "at 02:30 every day, Europe/Berlin"
    assert "  in " in second
