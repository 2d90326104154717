"""The form of the program: help with examples, `--store` everywhere, one way to fail."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dynsched.cli.command import Group
from dynsched.cli.main import main
from tests.integration.program import ROOT, Program


def commands(
    group: click.Group = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command and group with its path."""
    yield path, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = list(commands())
LEAVES = [(path, command) for path, command in ALL if not isinstance(command, click.Group)]


def ids(value: object) -> str:
    """Name a case by the words of its command."""
    return " ".join(value) if isinstance(value, tuple) else "dynsched"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


@pytest.mark.parametrize("path", [path for path, _ in ALL], ids=ids)
def test_every_command_has_help_with_examples(program: Program, path: tuple[str, ...]) -> None:
    """What it does, its options, and lines that can be copied."""
    out = program(*path, "--help").out
    assert out.startswith(f"Usage: {' '.join(('dynsched', *path))}")
    assert "--store URL" in out
    assert "\nExamples:\n  dynsched " in out


@pytest.mark.parametrize("path", [path for path, _ in LEAVES], ids=ids)
def test_examples_are_calls_that_the_program_understands(path: tuple[str, ...]) -> None:
    """Each one parses: the command exists, and so do its options."""
    command = dict(LEAVES)[path]
    for example in command.examples:  # type: ignore[attr-defined]  # every command is ours
        words = shlex.split(example.partition(" < ")[0])
        assert tuple(words[: len(path)]) == path
        known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        options = [word for word in words[len(path) :] if re.match(r"--[a-z]", word)]
        assert set(options) <= known, example


def test_the_names_that_scripts_rely_on_are_there() -> None:
    """The verbs of the documentation."""
    names = {" ".join(path) for path, _ in LEAVES}
    assert names >= {
        "next", "init", "up", "dispatcher", "worker", "reaper", "stats", "import crontab",
        "job add", "job list", "job show", "job edit", "job pause", "job resume", "job run-now",
        "job delete", "run list", "run show", "run cancel", "dlq list", "dlq show", "dlq replay",
        "dlq discard", "dlq restore", "tenant set", "tenant list",
    }  # fmt: skip


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_store_may_be_named_before_and_after_each_word(
    program: Program, tmp_path: Path, place: int
) -> None:
    """Before `job`, before `list`, and at the end."""
    other = Program(tmp_path / "other", made=False)
    other.folder.mkdir()
    other("init")
    other("job", "add", "there", "--manual", "--command", "true")
    words = ["job", "list"]
    words[place:place] = ["--store", other.url]
    assert "there" in program(*words).out
    assert "there" not in program("job", "list").out


def test_the_last_store_that_was_named_counts(program: Program) -> None:
    """The one nearest to the verb."""
    assert program("--store", "sqlite:///nowhere.db", "job", "list", "--store", program.url).out


def test_the_program_is_a_module_too() -> None:
    """`python -m dynsched` without an installed script."""
    done = subprocess.run(
        [sys.executable, "-m", "dynsched", "--version"],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    assert re.fullmatch(r"dynsched, version \d+\.\d+\.\d+\n", done.stdout)


def test_a_group_without_a_verb_shows_its_help(program: Program) -> None:
    """It is a usage error all the same."""
    answer = program("job", code=2)
    assert "Commands:" in answer.err


def test_the_reference_names_every_command_and_option() -> None:
    """docs/cli.md lags behind no verb."""
    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for path, command in LEAVES:
        section = text.partition(f"\n## {path[0]}")[2].partition("\n## ")[0]
        assert f"`{' '.join(path)}" in section, path
        options = {opt for param in command.params for opt in param.opts if opt.startswith("--")}
        common = {"--store", "--json", "--help", "--limit"}
        missing = {option for option in options - common if option not in text}
        assert missing == set(), path


GROUPS = [(path, command) for path, command in ALL if isinstance(command, Group)]


@pytest.mark.parametrize(("path", "group"), GROUPS, ids=ids)
def test_a_group_tells_every_command_once_and_in_a_whole_sentence(
    program: Program, path: tuple[str, ...], group: Group
) -> None:
    """By what people want to do; none is cut off, none is left out."""
    told = [
        name for names in (group.sections or {"": list(group.commands)}).values() for name in names
    ]
    assert sorted(told) == sorted(group.commands)
    commands_told = program(*path, "--help").out.partition("\n  -h, --help")[2]
    assert "...\n" not in commands_told
