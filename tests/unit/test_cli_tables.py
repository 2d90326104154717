"""Tables for people: what they say when they are empty, and what a narrow terminal shows."""

from __future__ import annotations

import os
import shutil

import pytest

from dynsched.cli import tables
from dynsched.cli.tables import print_sentence, print_table

RUN = "sgme7dbbzjzzx@2026-11-29T18:15:50.628Z-m0-m8afk400ymw998jc28e"
HEADS = ("STATE", "JOB", "RUN", "WHY")
ROW = ("dead", "charge-customers", RUN, "attempts spent - " + "no disk " * 20)


def shown(
    columns: int, rows: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> list[str]:  # fmt: skip
    """Return the lines of a table on a terminal of so many columns."""
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: size)
    monkeypatch.setattr(tables, "is_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(HEADS, rows, empty="none")
    return capsys.readouterr().out.splitlines()


def test_columns_without_room_stand_below_the_others_with_their_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On 80 columns a run's id is whole on a line of its own, ready to be copied."""
    head, first, run, why = shown(80, [ROW], monkeypatch, capsys)
    assert head.split() == ["STATE", "JOB"]
    assert first.split() == ["dead", "charge-customers"]
    assert run.split() == ["run", RUN]
    assert why.split()[0] == "why"
    assert why.endswith("…")
    assert len(why) <= 80


def test_a_last_column_that_is_mostly_seen_is_cut_at_the_edge(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line for each row, where the terminal is wide enough for it."""
    lines = shown(140, [ROW], monkeypatch, capsys)
    assert len(lines) == 2
    assert max(map(len, lines)) <= 140
    assert lines[1].endswith("…")


def test_a_cell_that_is_empty_takes_no_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run without a reason has its id below it and nothing else."""
    lines = shown(80, [ROW, (*ROW[:3], "")], monkeypatch, capsys)
    assert [line.split()[0] for line in lines] == ["STATE", "dead", "run", "why", "dead", "run"]


def test_none_so_far_is_not_said_as_none(capsys: pytest.CaptureFixture[str]) -> None:
    """A page that ended before the search did proves nothing about the rest."""
    print_table(HEADS, [], empty="no runs")
    print_table(HEADS, [], empty="no runs", more=True)
    none, so_far = capsys.readouterr().out.splitlines()
    assert none == "no runs"
    assert so_far == "no runs so far: not all rows were looked at"


def test_a_sentence_is_broken_between_words_and_no_id_is_torn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal each line begins below the first; in a pipe it is one line."""
    text = f"the run {RUN} waits for a worker that serves its queue"
    print_sentence(text, head="bad   ", indent=6)
    assert capsys.readouterr().out == f"bad   {text}\n"
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((80, 24)))
    monkeypatch.setattr(tables, "is_terminal", lambda: True)
    print_sentence(text, head="bad   ", indent=6)
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("bad   the run")
    assert all(line.startswith(" " * 6) for line in others)
    assert RUN in "".join(others) + first
    assert " ".join(line[6:] for line in (first, *others)) == text
