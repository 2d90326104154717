"""Health and error groups on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from bench.crowd import fill
from dynsched.bootstrap import init_store, open_base
from dynsched.cli.main import main
from dynsched.cli.runtime import Runtime
from dynsched.testing import SettableClock, memory_store
from tests.contract.dynamo_backends import REGION, dummy_credentials, fresh_prefix, ministack_url
from tests.integration.program import Program


@pytest.fixture(name="program")
def _program(tmp_path: Path) -> Program:
    """Return the program with a store."""
    return Program(tmp_path)


@pytest.fixture(name="on_dynamodb")
def _on_dynamodb(tmp_path: Path) -> Iterator[Program]:
    """Return the program with a store on DynamoDB."""
    with dummy_credentials():
        program = Program(tmp_path, made=False)
        program.url = f"dynamodb://{fresh_prefix()}?region={REGION}&endpoint_url={ministack_url()}"
        program("init")
        yield program


def test_a_store_where_nobody_works_is_bad_and_says_so(program: Program) -> None:
    """The exit code is for monitors, the first line for people."""
    program("job", "add", "j", "--every", "1h", "--handler", "echo")
    first = program("health", code=1).out.splitlines()[0]
    assert first.split(maxsplit=2)[:2] == ["bad", "stuck"]
    assert "No dispatcher gives a sign of life" in first


def test_a_store_that_works_is_no_failure(program: Program) -> None:
    """After a tick, a sweep and a run nothing is bad."""
    program("job", "add", "j", "--now", "--handler", "echo")
    program("dispatcher", "--once")
    program.run_all()
    program("reaper", "--once")
    document = program.json("health")
    assert (document["worst"], document["delay"]["samples"]) == ("warn", 1)  # the worker has gone
    assert {one["topic"] for one in document["verdicts"]} == {"late", "stuck", "broken", "hurt"}
    assert document["minutes"][-1]["at"].endswith(":00.000Z")
    assert len(document["minutes"]) == 60


def test_groups_are_listed_with_what_they_hit(program: Program) -> None:
    """Errors that differ in numbers are one; a filter leaves what fits."""
    for name, payload in (("a", '"no disk 7"'), ("b", '"no disk 8"'), ("c", '"no net"')):
        options = ("--handler", "boom", "--payload", payload, "--max-attempts", "1")
        program("job", "add", name, "--now", *options)
    program.run_all()
    first, second = program.json("groups")
    assert (first["count"]["count"], second["count"]["count"]) == (2, 1)
    assert first["tenants"] == {"default": 2}
    answer = program("groups")
    assert answer.out.splitlines()[1].startswith(f"{first['signature']}  2 ")
    assert answer.err == "matched 2, examined 3\n"
    (only,) = program.json("groups", "err:net")
    assert only["signature"] == second["signature"]


def test_an_empty_dead_letter_queue_has_no_groups(program: Program) -> None:
    """Said in words, not with an empty table."""
    assert program("groups").out == "no dead runs\n"


def test_a_wrong_filter_of_groups_is_refused(program: Program) -> None:
    """Groups are of dead runs only."""
    assert "state" in program("groups", "state:done", code=2).err


class Hands:
    """A clock whose second wait is cut short by the person at the keyboard."""

    def __init__(self) -> None:
        self.clock = SettableClock()
        self.waits: list[float] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.clock, name)

    def wait(self, seconds: float) -> None:
        """Let time pass, or interrupt."""
        self.waits.append(seconds)
        if len(self.waits) == 2:
            raise KeyboardInterrupt
        self.clock.wait(seconds)


def test_a_watched_health_is_shown_again_until_somebody_stops_it() -> None:
    """Ctrl-C ends it as it ends every command."""
    hands = Hands()
    base = open_base(environment={}, engine=memory_store(), clock=hands, rng=Random(1))  # type: ignore[arg-type]
    init_store(base)
    command = ["health", "--watch", "7s"]
    result = CliRunner().invoke(main, command, obj=Runtime(base=base, environment={}))
    assert (result.exit_code, hands.waits) == (130, [7.0, 7.0])
    assert result.stdout.count("looked 0s ago") == 2


def test_watching_too_often_is_refused(program: Program) -> None:
    """A look costs money on DynamoDB."""
    assert "--watch" in program.error("health", "--watch", "10ms")


def test_health_and_groups_are_the_same_on_dynamodb(on_dynamodb: Program) -> None:
    """Counts, steps over the index and the shared snapshot are made of the same requests."""
    fill(on_dynamodb.url, dead=60, groups=5, jobs=4, attempts=False)
    on_dynamodb("dispatcher", "--once")
    document = on_dynamodb.json("health")
    groups = on_dynamodb.json("groups")
    assert document["dead"] == {"count": 60, "at_least": False}
    assert len(groups) == 5
    assert sum(group["count"]["count"] for group in groups) == 60
    told = [(one["signature"], one["count"]) for one in document["top_groups"]]
    assert told == [(one["signature"], one["count"]) for one in groups]
    # Within five seconds a second reader is given the same look.
    assert on_dynamodb.json("health")["at"] == document["at"]
