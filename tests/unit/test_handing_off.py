"""Beginning and ending a hand-off, by people and by a deployment; and that the map keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from dynsched.bootstrap import (
    Base,
    build_operations,
    build_reaper,
    build_views,
    init_store,
    open_base,
    prepare_store,
)
from dynsched.domain.job import Priority
from dynsched.errors import Conflict, InvalidInput, NotFound, NotInitialised
from dynsched.services.handoff_verbs import QUEUES_MAX
from dynsched.storage.engine import Table
from dynsched.storage.handoff import MessageQueue
from dynsched.storage.placement import MapEntry, map_key
from dynsched.storage.sqlite import SqliteEngine
from dynsched.testing.clock import SettableClock
from dynsched.testing.faults import Call, CountingEngine, Fault, FaultyEngine
from tests.unit.desk import HIGH, MAIN, Desk

HALF_MINUTE = timedelta(seconds=30)


@pytest.fixture
def desk() -> Desk:
    """Return a store whose runs are pulled."""
    return Desk()


def queues_of(desk: Desk) -> list[tuple[str, str, str]]:
    """Return what the map of a store names."""
    found = desk.store.refresh().message_queues
    return [(one.queue, one.priority.value, one.url) for one in found]


# by people


def test_a_place_is_named_changed_and_dropped(desk: Desk) -> None:
    """One queue of messages for each queue and priority; the audit says what has changed."""
    verbs = desk.operations
    verbs.set_message_queue("main", priority=Priority.BULK, url="http://sqs/bulk")
    verbs.set_message_queue("main", priority=Priority.HIGH, url="http://sqs/high")
    verbs.set_message_queue("mail", priority=Priority.HIGH, url="http://sqs/mail")
    verbs.set_message_queue("main", priority=Priority.BULK, url="http://sqs/new")
    assert queues_of(desk) == [
        ("mail", "high", "http://sqs/mail"),
        ("main", "high", "http://sqs/high"),
        ("main", "bulk", "http://sqs/new"),
    ]
    verbs.drop_message_queues("main", priority=Priority.BULK)
    assert [one[:2] for one in queues_of(desk)] == [("mail", "high"), ("main", "high")]
    verbs.drop_message_queues("main")
    assert [one[:2] for one in queues_of(desk)] == [("mail", "high")]
    verbs.drop_message_queues()
    assert queues_of(desk) == []
    day = desk.clock.now().date()
    assert {entry.note for entry in desk.store.audit.of_day(day, most=10)} == {
        "main bulk -> http://sqs/bulk",
        "main high -> http://sqs/high",
        "mail high -> http://sqs/mail",
        "main bulk -> http://sqs/new",
        "main bulk -> pulled only",
        "main high -> pulled only",
        "mail high -> pulled only",
    }


def test_what_is_not_handed_off_cannot_be_dropped(desk: Desk) -> None:
    """A typing error is no success."""
    desk.operations.set_message_queue("main", priority=Priority.HIGH, url="http://sqs/high")
    for name, priority in (("mail", None), ("main", Priority.BULK)):
        with pytest.raises(NotFound, match=f"no hand-off '{name}"):
            desk.operations.drop_message_queues(name, priority=priority)
    with pytest.raises(InvalidInput, match="priority"):
        desk.operations.drop_message_queues(priority=Priority.BULK)
    desk.operations.drop_message_queues()
    with pytest.raises(NotFound, match="no hand-off 'of any queue'"):
        desk.operations.drop_message_queues()


def test_a_store_has_a_bounded_number_of_queues_of_messages(desk: Desk) -> None:
    """The map is one row, and each look of a reaper asks for all."""
    desk.hand_off(
        *(
            MessageQueue(queue=f"q{number}", priority=Priority.HIGH, url=f"http://sqs/{number}")
            for number in range(QUEUES_MAX)
        )
    )
    with pytest.raises(InvalidInput, match=f"more than {QUEUES_MAX}"):
        desk.operations.set_message_queue("main", priority=Priority.HIGH, url="http://sqs/high")
    desk.operations.set_message_queue("q1", priority=Priority.HIGH, url="http://sqs/high")


def test_a_process_with_an_older_map_follows_within_half_a_minute(desk: Desk) -> None:
    """Until then its runs are told of late, by the reaper."""
    other = open_base(
        engine=desk.engine, handoff=desk.messages, clock=desk.clock, rng=Random(2), environment={}
    )
    verbs, job = build_operations(other), desk.job()
    verbs.run_now(job.job_id)
    desk.operations.set_message_queue("main", priority=Priority.DEFAULT, url=MAIN.url)
    early = verbs.run_now(job.job_id)
    desk.clock.step(seconds=30)
    late = verbs.run_now(job.job_id)
    assert desk.told() == [late.run_id]
    desk.clock.step(seconds=30)
    build_reaper(desk.base).sweep()
    assert early.run_id in desk.told()


def test_people_see_how_deep_the_queues_are(desk: Desk) -> None:
    """If they ask for it; what does not answer is said beside the others."""
    desk.hand_off(MAIN)
    desk.operations.run_now(desk.job().job_id)
    views = build_views(desk.base)
    assert [one.waiting for one in views.hand_offs()] == [None]
    assert [one.waiting for one in views.hand_offs(depth=True)] == [1]
    desk.messages.down = True
    (line,) = views.hand_offs(depth=True)
    assert (line.waiting, line.problem) == (None, "the queues of messages do not answer")


# the map keeps it


def test_a_resize_and_the_sweep_that_ends_it_keep_the_hand_off(desk: Desk) -> None:
    """Whoever changes another part of the map carries this one along."""
    desk.hand_off(HIGH, MAIN)
    desk.operations.resize(lanes=3, shards=2)
    assert desk.store.refresh().message_queues == (HIGH, MAIN)
    for _ in range(3):
        desk.clock.step(hours=25)
        build_reaper(desk.base).sweep()
    assert len(desk.store.refresh().entries) == 1
    assert desk.store.topology.message_queues == (HIGH, MAIN)


def test_making_a_store_again_keeps_the_hand_off(desk: Desk) -> None:
    """`init` is safe to repeat."""
    desk.hand_off(MAIN)
    assert not init_store(desk.base, lanes=7)
    assert desk.store.refresh().message_queues == (MAIN,)


# by a deployment


class Deployment:
    """Tables that somebody has made, and what a function does when it starts cold."""

    def __init__(self) -> None:
        self.clock = SettableClock()
        self.fails: Callable[[Call], bool] = lambda _: False
        self.engine = CountingEngine(FaultyEngine(SqliteEngine(None), self._fault))

    def _fault(self, call: Call) -> Fault:
        return Fault.THROTTLE if self.fails(call) else Fault.NONE

    def base(self) -> Base:
        """Return a process's view."""
        return open_base(engine=self.engine, clock=self.clock, rng=Random(1), environment={})

    def start(self, *queues: MessageQueue, look_ahead_s: float = 180, lanes: int = 4) -> bool:
        """Start a dispatcher cold; return whether it changed anything."""
        return prepare_store(
            self.base(),
            look_ahead=timedelta(seconds=look_ahead_s),
            shards=2,
            lanes=lanes,
            message_queues=queues,
        )


def test_tables_that_are_missing_are_not_made() -> None:
    """A function may not make tables; the error says what is missing."""
    with pytest.raises(NotInitialised):
        Deployment().start(MAIN)


def test_a_cold_start_makes_the_map_and_its_cursors() -> None:
    """From the minute before: nothing that others write meanwhile lies behind a cursor."""
    place = Deployment()
    place.engine.init()
    assert place.start(MAIN, HIGH)
    topology = place.base().store.refresh()
    minute = topology.entries[0].from_minute
    assert topology.entries == (MapEntry(minute, shards=2, lanes=4, spread=1),)
    assert topology.look_ahead == timedelta(seconds=180)
    assert topology.message_queues == (HIGH, MAIN)
    cursors = place.base().store.control.cursors("due", 2)
    assert [None if one is None else one.minute for one in cursors] == [minute, minute]


def test_a_cold_start_that_has_nothing_to_change_reads_only() -> None:
    """Functions start cold again and again."""
    place = Deployment()
    place.engine.init()
    place.start(MAIN)
    place.engine.reset()
    assert not place.start(MAIN)
    assert place.engine.by_method().keys() <= {"get", "get_many"}


def test_look_ahead_and_queues_follow_the_deployment_and_counts_do_not() -> None:
    """An operator may have resized the store since."""
    place = Deployment()
    place.engine.init()
    place.start(MAIN)
    build_operations(place.base()).resize(lanes=9)
    assert place.start(HIGH, look_ahead_s=60, lanes=3)
    topology = place.base().store.refresh()
    assert topology.message_queues == (HIGH,)
    assert topology.look_ahead == timedelta(seconds=60)
    assert [entry.lanes for entry in topology.entries] == [4, 9]


def test_a_race_of_cold_starts_leaves_one_map() -> None:
    """Both may find no map; the second one finds the first one's then."""
    place = Deployment()
    place.engine.init()
    raced: list[bool] = []

    def race(call: Call) -> bool:
        if not raced and any(key == map_key() for key in call.keys) and call.writes:
            raced.append(False)
            raced[0] = place.start(MAIN, lanes=6)
        return False

    place.fails = race
    place.start(MAIN, lanes=4)
    assert raced == [True]
    assert [entry.lanes for entry in place.base().store.refresh().entries] == [6]


def test_a_map_that_keeps_changing_is_told(desk: Desk) -> None:
    """Rather than to go on for ever."""

    def change(call: Call) -> bool:
        if call.writes and call.keys[0] == map_key() and not busy:
            busy.append(True)
            topology = desk.store.refresh()
            desk.store.control.write_map(
                replace(topology, look_ahead=topology.look_ahead + HALF_MINUTE)
            )
            busy.clear()
        return False

    busy: list[bool] = []
    desk.fails = change
    with pytest.raises(Conflict, match="the map kept changing"):
        desk.operations.set_message_queue("main", priority=Priority.HIGH, url="http://sqs/high")
    with pytest.raises(Conflict, match="the map kept changing"):
        prepare_store(desk.base, look_ahead=HALF_MINUTE, shards=1, lanes=1, message_queues=[MAIN])


def test_a_deployment_s_queues_are_checked() -> None:
    """Before anything is written."""
    place = Deployment()
    place.engine.init()
    with pytest.raises(InvalidInput, match="named twice"):
        place.start(MAIN, MAIN)
    assert place.engine.scan(Table.CONTROL, 9).rows == []
