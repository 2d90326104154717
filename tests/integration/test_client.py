"""The client: enqueueing from Python, and the jobs that handlers declare."""

from __future__ import annotations

import logging
from datetime import timedelta
from random import Random

import pytest

from dynsched.bootstrap import Base, init_store, open_base
from dynsched.client import Client
from dynsched.errors import Conflict, InvalidInput
from dynsched.targets.app import App
from dynsched.testing import SettableClock


@pytest.fixture
def base() -> Base:
    """An empty store in memory."""
    base = open_base("sqlite://", clock=SettableClock(), rng=Random(1), environment={})
    init_store(base)
    return base


def an_app() -> App:
    """An app with a handler that is only enqueued, and one with a schedule."""
    app = App()
    app.job("mail", max_attempts=7, tenant="acme")(lambda: None)
    app.job("report", every=timedelta(hours=1))(lambda: None)
    return app


def test_a_handler_is_enqueued_without_a_job_made_before(base: Base) -> None:
    """The first enqueue makes the job as its handler declares it; the second finds it."""
    client = Client(base, an_app())
    first = client.enqueue("mail", {"to": "a@example.org"}, tenant="acme")
    second = client.enqueue("mail", tenant="acme")
    assert (first.job_id, first.limit) == (second.job_id, 7)


def test_a_job_that_was_deleted_is_made_again(base: Base) -> None:
    """A client that lives for months remembers ids; the name decides all the same."""
    client = Client(base, an_app())
    first = client.enqueue("mail", tenant="acme")
    client.operations.delete(first.job_id)
    again = client.enqueue("mail", tenant="acme")
    client.operations.delete(again.job_id)
    assert (
        len({first.job_id, again.job_id, client.enqueue_many("mail", [1], tenant="acme")[0].job_id})
        == 3
    )


def test_equal_keys_are_one_run_and_another_payload_is_refused(base: Base) -> None:
    """Whoever is unsure whether the first enqueue was made may repeat it."""
    client = Client(base, an_app())
    first = client.enqueue("mail", {"n": 1}, tenant="acme", key="order-7")
    again = client.enqueue("mail", {"n": 1}, tenant="acme", key="order-7")
    assert first.run_id == again.run_id
    with pytest.raises(Conflict, match="another payload"):
        client.enqueue("mail", {"n": 2}, tenant="acme", key="order-7")


def test_a_name_that_is_neither_job_nor_handler_is_refused(base: Base) -> None:
    """The error names the tenant and the job, and what to do."""
    with pytest.raises(InvalidInput, match=r"'acme' has no job 'mial' \(make it with"):
        Client(base, an_app()).enqueue("mial", tenant="acme")


def test_only_handlers_with_a_schedule_are_declared_and_only_once(base: Base) -> None:
    """What is enqueued needs no job before; what is scheduled does."""
    client = Client(base, an_app())
    assert [job.name for job in client.declare()] == ["report"]
    assert client.declare() == []


def test_a_job_with_another_schedule_than_its_handler_declares_is_named(
    base: Base, caplog: pytest.LogCaptureFixture
) -> None:
    """People may have edited it; it stays, and the log says so."""
    Client(base, an_app()).declare()
    other = App()
    other.job("report", every=timedelta(minutes=5))(lambda: None)
    with caplog.at_level(logging.WARNING):
        assert Client(base, other).declare() == []
    assert "its handler declares every 5 min" in caplog.text


def test_a_job_that_is_as_its_handler_declares_is_not_complained_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither what an interval counts from nor what H is hashed from makes another schedule."""
    clock = SettableClock()
    base = open_base("sqlite://", clock=clock, rng=Random(1), environment={})
    init_store(base)
    app = an_app()
    app.job("spread", cron="H H * * *")(lambda: None)
    Client(base, app).declare()
    clock.step(minutes=7)
    with caplog.at_level(logging.WARNING):
        assert Client(base, app).declare() == []
    assert caplog.text == ""


def test_many_payloads_become_runs_of_bulk_priority(base: Base) -> None:
    """A heap of work waits behind what is urgent."""
    runs = Client(base, an_app()).enqueue_many("mail", [1, 2, 3], tenant="acme")
    assert [run.priority.value for run in runs] == ["bulk"] * 3
