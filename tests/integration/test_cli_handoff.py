"""`dynsched handoff`: what is handed off, as people see and change it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.program import Program

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/prod-main-"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store of its own."""
    return Program(tmp_path)


def test_a_hand_off_is_set_listed_and_ended(program: Program) -> None:
    """Each command ends with what holds now."""
    assert program("handoff", "list").out == "nothing is handed off; workers pull all runs\n"
    program("handoff", "set", "main", "high", URL + "high")
    program("handoff", "set", "main", "bulk", URL + "bulk", "--reason", "night work")
    high, bulk = program.json("handoff", "list")
    assert high == {
        "queue": "main",
        "priority": "high",
        "url": URL + "high",
        "waiting": None,
        "problem": "",
    }
    assert bulk["url"] == URL + "bulk"
    assert URL + "bulk" not in program("handoff", "off", "main", "bulk").out
    assert program.json("handoff", "off", "--all") == []


def test_the_audit_says_who_changed_the_hand_off(program: Program) -> None:
    """And why."""
    program("handoff", "set", "main", "high", URL + "high", "--reason", "moved")
    (entry,) = program.json("audit", "action:store.handoff")
    assert (entry["reason"], entry["note"]) == ("moved", f"main high -> {URL}high")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("set", "main", "high", "no-url"), "URL: 'no-url' is no URL of a queue"),
        (("set", "main", "high", URL + "high.fifo"), "FIFO"),
        (("set", "main", "urgent", URL), "urgent"),
        (("set", "a b", "high", URL), "'a b' is not a name"),
        (("off",), "name a queue, or give --all"),
        (("off", "main", "--all"), "name a queue, or give --all"),
    ],
)
def test_what_is_wrong_is_named(program: Program, words: tuple[str, ...], told: str) -> None:
    """In one sentence that says what to give instead."""
    assert told in program.error("handoff", *words)


def test_a_hand_off_that_is_not_there_cannot_be_ended(program: Program) -> None:
    """The error says where to look."""
    assert "dynsched handoff list" in program.error("handoff", "off", "main", code=3)


def test_a_depth_that_nobody_answers_is_a_question_mark(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is of use all the same."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    program("handoff", "set", "main", "high", "http://127.0.0.1:9/1/high")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:9")
    answer = program("handoff", "list", "--depth")
    assert answer.out.splitlines()[-1].endswith("?")
    assert answer.err.startswith("note: SQS did not answer for http://127.0.0.1:9/1/high: ")
