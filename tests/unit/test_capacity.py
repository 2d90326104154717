"""Capacity: what sessions say they can run, and runs that are under way."""

from __future__ import annotations

import re

import pytest

from dynsched.cli.show import print_runs
from dynsched.domain.run import RunState
from dynsched.services.capacity import Capacity
from dynsched.services.documents import run_document
from dynsched.services.session import this_process
from dynsched.storage.control import Session
from tests.unit.builders import NOW, run_of


def session(**fields: object) -> Session:
    """Return a living session of the queue main."""
    return Session(
        session="s",
        started_at=NOW,
        expires_at=NOW,
        queues=("main",),
        **fields,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("needs", ["handler:any", "command", "command:root", "http"])
def test_a_session_that_says_nothing_of_itself_may_know_anything(needs: str) -> None:
    """Rows of an earlier version, and of workers with too many handlers, raise no alarm."""
    assert Capacity([session()]).lack("main", needs) == ""


def test_a_session_does_not_list_too_many_handlers() -> None:
    """A heartbeat writes them again each time; who lists none may know any."""
    few, many = (
        this_process("h", slots=1, queues=("main",), handlers=map(str, range(count)))
        for count in (2, 201)
    )
    assert (few.handlers, many.handlers) == (("0", "1"), None)


def test_a_run_that_is_under_way_shows_its_present_attempt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its row counts the attempt only when that has ended."""
    run = run_of(RunState.LEASED, attempt=2)
    assert run_document(run)["running_attempt"] == 3
    print_runs([run], {}, run.available_at, {})
    (_, line) = capsys.readouterr().out.splitlines()
    assert re.search(r"^leased .* running.* 3 ", line)
