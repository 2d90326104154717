"""Slots: every piece of work runs, at most so many at once, on as few threads as it takes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from dynsched.services.slots import ThreadSlots, Work

WITHIN_S = 20.0


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Give an event that held work waits for; it is set at the end, whatever happens."""
    event = threading.Event()
    yield event
    event.set()


class Held:
    """Pieces of work that note their thread and wait at a gate."""

    def __init__(self, gate: threading.Event) -> None:
        self._gate = gate
        self._changed = threading.Condition()
        self.threads: list[int] = []

    def work(self) -> None:
        """Note the thread, then wait."""
        with self._changed:
            self.threads.append(threading.get_ident())
            self._changed.notify_all()
        self._gate.wait(WITHIN_S)

    def reached(self, count: int, within_s: float = WITHIN_S) -> bool:
        """Return whether so many pieces have begun, waiting for them."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.threads) >= count, within_s)


def start_all(slots: ThreadSlots, work: Work, count: int) -> None:
    """Start the same piece of work several times."""
    for _ in range(count):
        slots.start(work)


def test_work_that_waits_lets_the_rest_begin_up_to_the_count(gate: threading.Event) -> None:
    """Each held piece calls the next thread; a fifth one waits for a free slot of four."""
    slots, held = ThreadSlots(4), Held(gate)
    start_all(slots, held.work, 5)
    assert held.reached(4)
    assert not held.reached(5, within_s=0.1)
    gate.set()
    assert held.reached(5)
    assert len(set(held.threads)) == 4


def test_work_begins_while_other_work_goes_on(gate: threading.Event) -> None:
    """What comes later finds a thread too, although nobody has finished."""
    slots, held = ThreadSlots(8), Held(gate)
    for count in range(1, 9):
        slots.start(held.work)
        assert held.reached(count), count


def test_a_given_up_slot_is_made_up_for(gate: threading.Event) -> None:
    """A handler that does not return keeps its thread; the work behind it gets another."""
    slots, held = ThreadSlots(1), Held(gate)
    start_all(slots, held.work, 2)
    assert held.reached(1)
    slots.replace_one()
    assert held.reached(2)


def test_ten_thousand_short_pieces_all_run_once() -> None:
    """No piece is lost between the thread that puts it and those that take it."""
    slots, lock, seen = ThreadSlots(8), threading.Lock(), list[int]()
    done = threading.Event()

    def note(number: int) -> None:
        with lock:
            seen.append(number)
            if len(seen) == 10_000:
                done.set()

    for number in range(10_000):
        slots.start(lambda number=number: note(number))  # type: ignore[misc]
    assert done.wait(WITHIN_S)
    assert sorted(seen) == list(range(10_000))


def test_work_that_raises_does_not_take_its_thread_along(gate: threading.Event) -> None:
    """Three pieces that raise an exit run on the thread that the fourth finds alive."""
    slots, held, seen = ThreadSlots(1), Held(gate), list[int]()

    def die() -> None:
        seen.append(threading.get_ident())
        sys.exit(1)

    start_all(slots, die, 3)
    slots.start(held.work)
    assert held.reached(1)
    assert set(seen) == set(held.threads)
    assert len(seen) == 3


def test_work_outlasts_a_system_without_threads(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A thread that cannot be started costs a log line; the next start runs both pieces."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    slots, held = ThreadSlots(2), Held(gate)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        slots.start(held.work)
    assert "can't start new thread" in caplog.text
    slots.start(held.work)
    assert held.reached(2)


def test_closing_ends_the_idle_threads(gate: threading.Event) -> None:
    """A worker that has drained leaves no thread behind."""
    slots, held = ThreadSlots(3), Held(gate)
    start_all(slots, held.work, 3)
    assert held.reached(3)
    threads = [one for one in threading.enumerate() if one.ident in held.threads]
    gate.set()
    slots.close()
    for thread in threads:
        thread.join(WITHIN_S)
    assert not any(thread.is_alive() for thread in threads)
