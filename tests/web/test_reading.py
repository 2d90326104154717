"""What many visitors share, and what they see of a store that fails or is slow."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from dynsched.errors import Unavailable
from dynsched.testing import SettableClock
from dynsched_web.reading import Reading
from tests.web.stage import staged

FRESH, PATIENCE = timedelta(seconds=2), timedelta(seconds=0.2)


@pytest.fixture
def clock() -> SettableClock:
    """A clock that is set."""
    return SettableClock()


@pytest.fixture
def reading(clock: SettableClock) -> Reading:
    """A reading with a short patience."""
    return Reading(clock, fresh=FRESH, patience=PATIENCE)


def test_one_question_is_asked_once_for_all_visitors(reading: Reading) -> None:
    """Fifty visitors of one list cost one read in the time that an answer is fresh."""
    asked = iter(range(50))
    answers = [reading.get("q", lambda: next(asked)).value for _ in range(50)]
    assert answers == [0] * 50


def test_an_answer_is_asked_for_again_when_it_is_old_or_something_was_changed(
    reading: Reading, clock: SettableClock
) -> None:
    """Time makes an answer old, and so does a change that somebody made here."""
    values = iter(range(10))
    assert reading.get("q", lambda: next(values)).value == 0
    clock.step(seconds=2)
    assert reading.get("q", lambda: next(values)).value == 1
    reading.forget()
    assert reading.get("q", lambda: next(values)).value == 2


def test_an_answer_that_was_asked_for_before_a_change_is_not_kept(reading: Reading) -> None:
    """A read that was under way while somebody wrote may have seen the store before."""
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        go_on.wait(10)
        return "before"

    asker = threading.Thread(target=lambda: reading.get("q", slow))
    asker.start()
    assert begun.wait(10)
    reading.forget()
    assert reading.get("q", lambda: "after").value == "after"
    go_on.set()
    asker.join(10)
    assert reading.get("q", lambda: "again").value == "after"


def test_a_store_that_fails_leaves_the_last_answer_with_its_age(
    reading: Reading, clock: SettableClock
) -> None:
    """The table stays, and says how old it is; without an answer the fault is told."""

    def fail() -> str:
        raise Unavailable("no line")

    reading.get("q", lambda: "rows")
    clock.step(seconds=30)
    answer = reading.get("q", fail)
    assert (answer.value, answer.age_s, answer.trouble) == ("rows", 30.0, "no line")
    with pytest.raises(Unavailable):
        reading.get("other", fail)


def test_a_slow_store_is_not_waited_for_without_end(reading: Reading, clock: SettableClock) -> None:
    """After some seconds the visitor sees the last answer, or that there is none."""
    go_on = threading.Event()

    def slow() -> str:
        go_on.wait(10)
        return "late"

    with pytest.raises(Unavailable, match="has not answered"):
        reading.get("q", slow)
    go_on.set()


def test_a_page_of_a_stopped_store_shows_what_it_showed_with_a_banner() -> None:
    """A failing store never empties a page, and never breaks its frame."""
    with staged() as stage:
        stage.run("bad@")
        ada = stage.visitor()
        assert "bounced" in ada.get("/dlq").text
        stage.clock.step(seconds=20)
        stage.engine.stopped = True
        page = ada.get("/dlq")
        assert page.status_code == 200
        assert "bounced" in page.text
        assert "The store does not answer" in page.text
        never_seen = ada.get("/runs?q=tenant:x")
        assert never_seen.status_code == 503
        assert "Overview" in never_seen.text
        assert ada.get("/healthz").status_code == 200
