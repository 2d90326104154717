"""Filters on the command line: the same words in every list, and faults that are pointed at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.program import Program
from tests.integration.test_cli_runs import add, die


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


def jobs_of(program: Program, *arguments: str) -> list[str]:
    """Return the names of the jobs whose runs are listed."""
    return [run["job_name"] for run in program.json(*arguments)]


def test_runs_are_listed_by_a_filter_in_one_word_or_several(program: Program) -> None:
    """A shell's words are terms; quoted, a filter is one word."""
    die(program, name="a")
    die(program, "--tenant", "acme", name="b")
    add(program, "echo", name="c")
    program.run_all()
    assert jobs_of(program, "run", "list", "state:dead", "tenant:acme") == ["b"]
    assert jobs_of(program, "run", "list", 'state:dead err:"no disk" -tenant:acme') == ["a"]
    assert "\ndone" in program("run", "list", "--", "-state:dead").out
    assert jobs_of(program, "run", "list", "@dead-last-hour", "--tenant", "acme") == ["b"]
    assert jobs_of(program, "run", "list", "DISK", "--job", "a") == ["a"]
    assert jobs_of(program, "run", "list", "job:c", "--state", "dead") == []


def test_dead_runs_and_jobs_are_listed_by_a_filter(program: Program) -> None:
    """With the options beside it."""
    run_id = die(program, "--tag", "team=ops", name="a")
    die(program, "--tenant", "acme", name="b")
    assert jobs_of(program, "dlq", "list", "tag:team=ops") == ["a"]
    assert jobs_of(program, "dlq", "list", run_id) == ["a"]
    program("dlq", "discard", run_id)
    assert jobs_of(program, "dlq", "list", "err:disk") == ["b"]
    assert jobs_of(program, "dlq", "list", "err:disk", "--discarded") == ["a"]
    assert program("job", "list", "state:paused").out == "no jobs that fit\n"
    found = program.json("job", "list", "tenant:acme target:boom")
    assert [job["name"] for job in found] == ["b"]


def test_a_list_goes_on_with_its_cursor_to_the_end(program: Program) -> None:
    """The last line says how much was read; rows and documents stay clean."""
    ids = [die(program, name=name) for name in ("a", "b", "c")]
    answer = program("dlq", "list", "--limit", "2")
    status, cursor = answer.err.strip().split("; more with --cursor ")
    assert status == "matched 2, examined 2"
    rest = program("dlq", "list", "--limit", "2", "--cursor", cursor)
    assert rest.err == "matched 1, examined 1\n"
    assert sum(run_id in answer.out + rest.out for run_id in ids) == 3
    told = program.error("dlq", "list", "err:disk", "--cursor", cursor)
    assert told == "--cursor: it belongs to another filter (begin again without it)"


def test_what_is_tested_row_by_row_is_told(program: Program) -> None:
    """And a page ends when it has looked at as many rows as it may."""
    for name in ("a", "b"):
        die(program, name=name)
    answer = program("dlq", "list", "err:nothing", "--examine", "1")
    assert "matched 0, examined 1 (row by row: err); more with --cursor " in answer.err
    assert "--examine: 0 is out of range" in program.error("dlq", "list", "--examine", "0")


@pytest.mark.parametrize(
    ("arguments", "told", "shown", "at"),
    [
        (
            ("run", "list", "state:dead", "sate:x"),
            "runs have no 'sate:'",
            "state:dead sate:x",
            "sate:x",
        ),
        (
            ("dlq", "list", "state:done"),
            "'done' is no value of state (one of dead)",
            "state:done",
            "done",
        ),
        (("job", "list", "state:ded"), "'ded' is no value of state", "state:ded", "ded"),
        (("run", "list", "job:nightly"), "there is no job 'nightly'", "job:nightly", "nightly"),
    ],
)
def test_a_fault_in_a_filter_is_pointed_at(
    program: Program, arguments: tuple[str, ...], told: str, shown: str, at: str
) -> None:
    """One sentence, then the filter with a caret below; nothing on standard output."""
    answer = program(*arguments, code=2)
    error, text, caret = answer.err.splitlines()
    assert error.startswith(f"error: filter: {told}")
    assert text == f"  {shown}"
    assert text[caret.index("^") :] == at
    assert (caret.strip(), answer.out) == ("^", "")


def test_a_negated_word_may_come_first(program: Program) -> None:
    """It begins as an option does, and is none; whatever is an option stays one."""
    program("job", "add", "j", "--manual", "--handler", "echo", "--tenant", "acme")
    program("job", "run-now", "j", "--tenant", "acme")
    assert program.json("run", "list", "-tenant:acme", "state:ready") == []
    assert len(program.json("run", "list", "-tenant:default", "--limit", "5")) == 1
    assert "No such option" in program.error("run", "list", "--tenat:x")


def test_an_option_is_a_value_and_never_more_of_the_filter(program: Program) -> None:
    """What is no name is refused by the option that gave it."""
    assert "--tenant: 'a b' is not a name" in program.error("run", "list", "--tenant", "a b")
    assert program.json("dlq", "list", "--signature", 'x" state:dead') == []


def test_an_unknown_tenant_is_named_where_nothing_is_found(program: Program) -> None:
    """A slip in a tenant's name must not read as if all were well with it."""
    program("job", "add", "j", "--manual", "--handler", "echo", "--tenant", "acme")
    assert (
        "no tenant 'acm' is known (did you mean acme?)" in program("dlq", "list", "tenant:acm").err
    )
    assert "is known" not in program("dlq", "list", "tenant:acme").err


def test_what_other_lists_call_it_is_understood(program: Program) -> None:
    """`job:` and the heading DIED are what people have read before they type."""
    program("job", "add", "j", "--manual", "--handler", "echo")
    assert program.json("job", "list", "job:j")[0]["name"] == "j"
    assert program.json("dlq", "list", "died:>-1h") == []


@pytest.mark.parametrize(
    "word", ["-@late", '-"no net"', "-payload.orderId:7", "-payload.lines.0.id:7", "-State:done"]
)
def test_every_negated_term_is_a_word_of_the_filter(program: Program, word: str) -> None:
    """The minus begins a term and no option, whatever stands behind it.

    Source: `No such option '-p'` for an excluded field of a payload.
    """
    run_id = die(program, name="a")
    found = program.json("run", "list", word, "--limit", "5")
    assert [one["run_id"] for one in found] == [run_id]
