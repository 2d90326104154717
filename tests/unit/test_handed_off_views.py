"""What people are told of runs that only functions take: these have no sessions to look at."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dynsched.bootstrap import build_views
from dynsched.domain.explanation import Cause
from dynsched.domain.health import Grade
from dynsched.domain.job import Overlap, Priority
from dynsched.services.documents import stats_document
from tests.rules.small_world import World
from tests.unit.asking_why import said, why


@pytest.fixture
def world() -> World:
    """Return a world whose main queue is handed off by messages."""
    return World(handed_off=True)


def test_a_run_that_no_function_has_taken_waits_for_one_and_not_for_a_worker(world: World) -> None:
    """To start a worker is no mend where functions are to take it."""
    (run,) = world.enqueue(world.job())
    assert why(world, run).cause is Cause.JUST_DUE
    world.clock.step(minutes=2)
    found = why(world, run)
    assert found.cause is Cause.HANDED_OFF
    assert "for 2m; it is handed off to functions by a message" in found.headline
    assert "dynsched handoff list --depth" in found.hints
    assert "dynsched worker" not in said(found)
    assert "A function whose app has no handler " in said(found)


def test_what_stands_in_a_function_s_way_is_told_first(world: World) -> None:
    """A cap and another run of its job hold for functions as well."""
    job = world.job(overlap=Overlap.QUEUE_ONE)
    world.enqueue(job)
    worker = world.worker()
    worker.poll()
    worker.die()
    world.clock.step(seconds=20)
    (run,) = world.enqueue(job)
    world.clock.step(seconds=20)
    assert why(world, run).cause is Cause.OVERLAP


def test_a_queue_that_is_not_handed_off_lacks_its_worker(world: World) -> None:
    """Another queue's hand-off is of no use to it."""
    (run,) = world.enqueue(world.job(queue="mail"))
    world.clock.step(minutes=2)
    assert why(world, run).cause is Cause.NO_WORKER


def test_a_priority_that_is_not_handed_off_lacks_its_worker(world: World) -> None:
    """Each priority has a queue of messages of its own, or none."""
    (run,) = world.enqueue(world.job(priority=Priority.HIGH))
    world.operations.drop_message_queues("main", priority=Priority.HIGH)
    world.clock.step(minutes=2)
    assert why(world, run).cause is Cause.NO_WORKER


def test_health_misses_no_worker_where_functions_run_everything(world: World) -> None:
    """Nobody pulls; a run waits in a queue that functions serve."""
    world.enqueue(world.job())
    world.clock.step(seconds=10)
    views = build_views(world.people.base)
    health = views.health()
    sentences = [one.sentence for one in health.verdicts if one.level is not Grade.OK]
    assert not any("No worker is alive" in one for one in sentences)
    assert health.oldest_due["main"].lack == ""
    world.operations.drop_message_queues()
    world.clock.step(minutes=1)
    later = build_views(world.people.base).health()
    assert any("No worker is alive" in one.sentence for one in later.verdicts)


def test_stats_say_who_serves_a_queue(world: World) -> None:
    """Functions, workers that pull, or both."""
    world.enqueue(world.job())
    queues = stats_document(build_views(world.people.base).stats())["queues"]
    assert [(one["queue"], one["sessions"], one["handed_off"]) for one in queues] == [  # type: ignore[union-attr, index, call-overload]
        ("main", 0, True)
    ]


def test_a_preview_warns_of_no_worker_where_functions_take_the_runs(world: World) -> None:
    """Nor do the lists, nor a job that is added."""
    views = build_views(world.people.base)
    assert views.capacity().lack("main", "handler:ok") == ""
    assert views.capacity().lack("mail", "handler:ok") == "no living worker serves queue mail"
    (run,) = world.enqueue(world.job())
    world.clock.step(timedelta(minutes=1))
    assert views.lacks([world.run(run)]) == {}
