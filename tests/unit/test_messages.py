"""Messages of a hand-off, the queues that they go to, and the map that names them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dynsched.bootstrap import init_store, open_base
from dynsched.domain.job import Priority
from dynsched.domain.message import decode_message, encode_message
from dynsched.errors import InvalidInput
from dynsched.storage.handoff import MessageQueue, check_message_queues, read_message_queues
from dynsched.storage.sqlite import SqliteEngine

RUN = "j1@2026-01-02T03:04:05.000Z-m0-abc"
HIGH = MessageQueue(queue="main", priority=Priority.HIGH, url="https://sqs.eu-west-1.aws/1/high")
BULK = MessageQueue(queue="main", priority=Priority.BULK, url="https://sqs.eu-west-1.aws/1/bulk")


def test_a_message_says_which_run_it_is_about_and_nothing_else() -> None:
    """The row decides, so nothing in a message can be out of date."""
    assert decode_message(encode_message(RUN)) == RUN
    assert json.loads(encode_message(RUN)) == {"run": RUN, "v": 1}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", '{"run": 1, "v": 1}', '{"run": "x", "v": 1}', "[" * 100_000]
    + [json.dumps({"run": RUN, "v": version}) for version in (0, 2, True, "1", None)]
    # What DynamoDB refuses as a key would fail its function each time that it comes again.
    + [json.dumps({"run": text, "v": 1}) for text in ("j" * 3_000 + RUN, RUN + "c" * 2_000)],
)
def test_what_is_no_message_is_refused_by_name(text: str) -> None:
    """A queue may hold what others have put there."""
    with pytest.raises(InvalidInput, match=r"^(message|run)"):
        decode_message(text)


def test_the_map_keeps_where_messages_go() -> None:
    """Every process that reads the map knows it, so no process needs a setting for it."""
    base = open_base(engine=SqliteEngine(None))
    init_store(base)
    store = base.store
    assert store.topology.message_queues == ()
    assert store.control.write_map(replace(store.topology, message_queues=(HIGH, BULK)))
    topology = store.refresh()
    assert topology.message_queues == (HIGH, BULK)
    assert topology.message_queue("main", Priority.BULK) == BULK
    assert topology.message_queue("main", Priority.DEFAULT) is None
    assert topology.message_queue("mail", Priority.BULK) is None


def test_making_a_store_keeps_the_queues_that_its_map_is_to_name() -> None:
    """Only the minute that the counts hold from is set anew there."""
    base = open_base(engine=SqliteEngine(None))
    base.store.init(replace(base.store.topology, message_queues=(HIGH,)), base.clock)
    assert base.store.refresh().message_queues == (HIGH,)


def test_queues_of_messages_are_read_from_a_deployment_s_json() -> None:
    """In an order of their own, so that the same queues are the same map."""
    items = [{"queue": q.queue, "priority": q.priority.value, "url": q.url} for q in (BULK, HIGH)]
    assert read_message_queues(json.dumps(items), "queues") == (HIGH, BULK)
    assert read_message_queues("[]", "queues") == ()


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "{}",
        "[1]",
        '[{"queue": "main"}]',
        '[{"queue": "main", "priority": "urgent", "url": "https://h/q"}]',
        '[{"queue": "main", "priority": "high", "url": 1}]',
        '[{"queue": "a#b", "priority": "high", "url": "https://h/q"}]',
        '[{"queue": "main", "priority": "high", "url": "ftp://h/q"}]',
        '[{"queue": "main", "priority": "high", "url": "https://[h/q"}]',
        '[{"queue": "main", "priority": "high", "url": "https://h/a b"}]',
        '[{"queue": "main", "priority": "high", "url": "https://h/"}]',
        '[{"queue": "main", "priority": "high", "url": "https://h/q.fifo"}]',
        '[{"queue": "main", "priority": "high", "url": "https://h:99999/q"}]',
        '[{"queue": "main", "priority": "high", "url": "https://ann:pw@h/q"}]',
    ],
)
def test_queues_that_cannot_be_are_refused_by_name(text: str) -> None:
    """A typing error in a deployment is found when it starts, not when a message is lost."""
    with pytest.raises(InvalidInput, match=r"^queues"):
        read_message_queues(text, "queues")


def test_one_place_has_one_queue_of_messages() -> None:
    """Two would each get half of what is known."""
    with pytest.raises(InvalidInput, match="main high is named twice"):
        check_message_queues([HIGH, replace(HIGH, url="https://h/other")], "queues")
