"""What the handlers do around the services: time, the map, batches, messages, figures and logs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynsched.bootstrap import build_dispatcher, open_base
from dynsched.domain import lifecycle
from dynsched.domain.job import Overlap
from dynsched.domain.masking import Masker
from dynsched.domain.run import RunState
from dynsched.domain.target import HandlerTarget
from dynsched.errors import InvalidInput, NotInitialised
from dynsched.lambdas.dispatcher import (
    LANES,
    LOOK_AHEAD,
    QUEUES,
    SHARDS,
    Deployment,
    DispatcherFunction,
)
from dynsched.lambdas.logs import MaskingFilter
from dynsched.lambdas.metrics import METRICS, NAMESPACE, Emf
from dynsched.lambdas.process import Process, process_of
from dynsched.lambdas.reaper import ReaperFunction
from dynsched.lambdas.worker import ALLOW_COMMANDS, WorkerFunction, commands_allowed
from dynsched.services.slots import InlineSlots
from dynsched.services.specs import CronSpec, JobSpec
from dynsched.storage.sqlite import SqliteEngine
from dynsched.testing.messages import Kept
from tests.functions.stage import QUEUE, ScriptedClock, Stage

Written = Callable[[], list[dict[str, Any]]]


class Told:
    """The context of an invocation, whose time passes on the stage's clock.

    Args:
        lasts: its time limit.
    """

    aws_request_id = "1f2e"

    def __init__(self, clock: ScriptedClock, lasts: timedelta = timedelta(minutes=1)) -> None:
        self._clock, self._ends_at = clock, clock.now() + lasts

    def get_remaining_time_in_millis(self) -> int:
        """Return how much of the time limit is left."""
        return int((self._ends_at - self._clock.now()) / timedelta(milliseconds=1))


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Written:
    """Return what reads the figures that were written so far."""

    def read() -> list[dict[str, Any]]:
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return read


def process(stage: Stage, function: str) -> Process:
    """Return a process of a function over the stage's store."""
    base = stage.base()
    return Process(base, Emf(function, "shop", base.clock), f"shop-{function}")


def worker(stage: Stage) -> WorkerFunction:
    """Return a process of the worker's function, whose handlers return at once."""
    return WorkerFunction(
        process(stage, "worker"), stage.app(), allow_commands=False, slots=InlineSlots()
    )


def event_of(messages: list[Kept], arn: str = "arn:aws:sqs:eu-west-1:1:main") -> dict[str, Any]:
    """Return the event in which SQS hands messages out."""
    return {
        "Records": [
            {
                "messageId": one.message_id,
                "receiptHandle": one.receipt,
                "body": one.body,
                "attributes": {"SentTimestamp": str(int(one.sent_at.timestamp() * 1000))},
                "eventSourceARN": arn,
            }
            for one in messages
        ]
    }


# the dispatcher


def test_the_dispatcher_lets_the_map_follow_the_deployment(stage: Stage) -> None:
    """Every process that sends finds the queues there; counts are an operator's."""
    other = replace(QUEUE, url="http://sqs/other")
    told = Deployment(look_ahead=timedelta(seconds=200), shards=7, lanes=7, message_queues=(other,))
    DispatcherFunction(process(stage, "dispatcher"), told)({}, Told(stage.clock))
    topology = stage.store.refresh()
    assert topology.look_ahead == timedelta(seconds=200)
    assert topology.message_queues == (other,)
    assert (topology.shards, topology.lanes) == (1, 2)


def test_the_dispatcher_ticks_while_it_is_behind(stage: Stage, written: Written) -> None:
    """After an outage one invocation makes up for more than one tick would."""
    stage.operations.create(
        JobSpec(name="cron", target=HandlerTarget("ok"), schedule=CronSpec(expr="* * * * *"))
    )
    stage.clock.step(days=2)
    function = DispatcherFunction(process(stage, "dispatcher"), Deployment())
    done = function({}, Told(stage.clock))
    assert done["Ticks"] > 1
    assert not done["Behind"]
    (figures,) = written()
    assert figures["Ticks"] == done["Ticks"]
    assert figures["Store"] == "shop"


def test_the_dispatcher_ends_in_time_although_it_is_behind(stage: Stage) -> None:
    """The next schedule goes on where this one has ended."""
    stage.clock.step(days=30)
    function = DispatcherFunction(process(stage, "dispatcher"), Deployment())
    done = function({}, Told(stage.clock, timedelta(0)))
    assert (done["Ticks"], done["Behind"]) == (1, True)


def test_processes_of_a_dispatcher_share_their_shards(stage: Stage) -> None:
    """AWS ended the process that owned them; the next one does not wait for it."""
    function = DispatcherFunction(process(stage, "dispatcher"), Deployment())
    function({}, Told(stage.clock))
    other = build_dispatcher(stage.base(), name="shop-dispatcher")
    assert other.tick().shards == 1
    assert build_dispatcher(stage.base(), name="stranger").tick().shards == 0


def test_what_a_deployment_says_is_checked() -> None:
    """The variable that is wrong is named."""
    assert Deployment.told_by({}).look_ahead == timedelta(seconds=180)
    with pytest.raises(InvalidInput, match="DYNSCHED_SHARDS"):
        Deployment.told_by({"DYNSCHED_SHARDS": "many"})
    with pytest.raises(InvalidInput, match=QUEUES):
        Deployment.told_by({QUEUES: "main"})


@pytest.mark.parametrize("name", [LOOK_AHEAD, SHARDS, LANES])
@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "1001", "9" * 20, "9" * 5_000])
def test_a_number_that_a_deployment_cannot_have_is_refused_by_name(name: str, text: str) -> None:
    """A million shards would be read in each tick; and no length of digits is a traceback."""
    with pytest.raises(InvalidInput, match=f"^{name}: .*give a whole number"):
        Deployment.told_by({name: text})


def test_commands_are_allowed_by_a_plain_yes_only() -> None:
    """What means yes to a person must not be taken for a no: its runs would wait for a day."""
    assert commands_allowed({ALLOW_COMMANDS: "1"})
    assert not any(map(commands_allowed, ({}, {ALLOW_COMMANDS: ""}, {ALLOW_COMMANDS: "0"})))
    for text in ("true", "yes", "on", " 1"):
        with pytest.raises(InvalidInput, match=f"{ALLOW_COMMANDS}.*give 1 or 0"):
            commands_allowed({ALLOW_COMMANDS: text})


def test_a_store_url_that_is_none_is_told_and_no_traceback() -> None:
    """A bracket makes Python's own reader raise."""
    with pytest.raises(InvalidInput, match=r"dynamodb://PREFIX"):
        process_of("worker", {"DYNSCHED_STORE": "dynamodb://[prod"})


def test_a_function_without_a_store_says_which_variable_is_missing() -> None:
    """The mend is the form of its value."""
    with pytest.raises(InvalidInput, match=r"DYNSCHED_STORE.*dynamodb://PREFIX"):
        process_of("worker", {})


# the reaper


def test_the_reaper_tells_how_the_store_is(stage: Stage, written: Written) -> None:
    """Alarms go by these: what waits, for how long, and what has died."""
    stage.run()
    stage.clock.step(seconds=30)
    done = ReaperFunction(process(stage, "reaper"))({}, Told(stage.clock))
    assert done["OldestDue"] == 30
    documents = written()
    ready = {one["Priority"]: one["ReadyRuns"] for one in documents if "ReadyRuns" in one}
    assert ready == {"high": 0, "default": 1, "bulk": 0}
    assert {name for one in documents for name in one} >= set(METRICS["reaper"])


def test_the_reaper_sweeps_again_while_there_are_leases_to_return(
    stage: Stage, written: Written
) -> None:
    """It is woken once a minute: what died together is not to wait for the next minutes."""
    runs = stage.operations.enqueue_many(stage.job().job_id, [None] * 350)
    now = stage.clock.now()
    end = now + timedelta(seconds=20)
    stage.store.runs.apply_many(
        [lifecycle.claim(run, session="~i", now=now, lease_ends_at=end) for run in runs]
    )
    stage.clock.step(minutes=5)
    base = stage.base(tick_jobs=100)
    function = ReaperFunction(Process(base, Emf("reaper", "shop", base.clock), "shop-reaper"))
    done = function({}, Told(stage.clock))
    assert done["RunsReturned"] == 350
    assert written()[0]["Sweeps"] == done["Sweeps"] > 1


def test_the_reaper_moves_replay_batches(stage: Stage) -> None:
    """A batch that an operator has begun is stepped each second until it is done."""
    run = stage.run("fail", retry=stage.retry(max_attempts=1))
    stage.visit()
    assert stage.now(run).state is RunState.DEAD
    draft = stage.operations.preview_replay("", rate=None)
    stage.operations.confirm_replay(draft.batch_id, reason="it is mended")
    done = ReaperFunction(process(stage, "reaper"))({}, Told(stage.clock))
    assert done["EntriesMoved"] == 1
    assert stage.now(run).state is RunState.READY


def test_the_reaper_ends_in_time_although_a_batch_is_running(stage: Stage) -> None:
    """One that moves a run each five seconds takes longer than an invocation."""
    job = stage.job(handler="fail", retry=stage.retry(max_attempts=1))
    for _ in range(30):
        stage.enqueue(job)
    while stage.receive_and_work():
        pass
    draft = stage.operations.preview_replay("", rate=0.2)
    stage.operations.confirm_replay(draft.batch_id, reason="it is mended")
    told = Told(stage.clock)
    done = ReaperFunction(process(stage, "reaper"))({}, told)
    assert 5 <= done["EntriesMoved"] < 30
    assert told.get_remaining_time_in_millis() > 5_000


# the worker


def test_the_worker_postpones_what_comes_too_soon(stage: Stage) -> None:
    """In the queue that the map names, by the receipt of this visit."""
    job = stage.job(overlap=Overlap.QUEUE_ONE)
    stage.enqueue(job)
    first = stage.receive()
    kept: list[Kept] = []

    def meanwhile() -> None:
        stage.meanwhile = lambda: None
        stage.enqueue(job)
        (second,) = stage.receive()
        answer = worker(stage)(event_of([second]), Told(stage.clock))
        assert answer == {"batchItemFailures": [{"itemIdentifier": second.message_id}]}
        kept.extend(stage.messages.messages())

    stage.meanwhile = meanwhile
    assert worker(stage)(event_of(first), Told(stage.clock)) == {"batchItemFailures": []}
    assert kept[1].visible_at == stage.clock.now() + timedelta(seconds=1)


def test_a_transport_that_fails_keeps_the_message_all_the_same(stage: Stage) -> None:
    """It comes back when its queue says so, which is later and no loss."""
    stage.run("nobody")
    received = stage.receive()
    stage.messages.down = True
    function = worker(stage)
    answer = function(event_of(received), Told(stage.clock))
    assert len(answer["batchItemFailures"]) == 1


def test_the_worker_counts_starts_ends_and_delays(stage: Stage, written: Written) -> None:
    """One line of counts for an invocation, one of delays for each priority."""
    stage.run()
    stage.clock.step(seconds=1.5)
    function = worker(stage)
    function(event_of(stage.receive()), Told(stage.clock))
    counts, delays = written()
    assert {name: counts[name] for name in METRICS["worker"] if name in counts} == {
        "RunsStarted": 1,
        "RunsDone": 1,
        "MessagesDropped": 1,
    }
    assert (delays["StartDelay"], delays["Priority"]) == ([1500.0], "default")
    function(event_of([]), Told(stage.clock))
    assert written() == []


def test_a_queue_is_told_from_its_namesakes_elsewhere(stage: Stage) -> None:
    """In the wrong region the postponing is refused, and the message comes after half an hour."""
    urls = [f"https://sqs.{region}.amazonaws.com/1/shop" for region in ("eu-west-1", "us-east-1")]
    queues = [
        replace(QUEUE, queue=name, url=url)
        for name, url in zip(("main", "mail"), urls, strict=True)
    ]
    assert stage.store.control.write_map(
        replace(stage.store.topology, message_queues=tuple(queues))
    )
    base = stage.base()
    base.store.refresh()
    function = WorkerFunction(
        Process(base, Emf("worker", "shop", base.clock), "w"), None, allow_commands=False
    )
    assert function.url_of("arn:aws:sqs:us-east-1:1:shop") == urls[1]
    assert function.url_of("arn:aws:sqs:us-east-1:2:shop") == urls[1].replace("/1/", "/2/")


def test_the_url_of_a_queue_that_the_map_does_not_name_is_awss_own(stage: Stage) -> None:
    """An event may come from a queue that was just taken out of the map."""
    function = worker(stage)
    assert function.url_of("arn:aws:sqs:eu-west-1:123456789012:old") == (
        "https://sqs.eu-west-1.amazonaws.com/123456789012/old"
    )
    assert function.url_of("arn:aws-cn:sqs:cn-north-1:123456789012:old") == (
        "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/old"
    )


# figures and logs


def test_every_figure_has_its_unit_and_dimensions() -> None:
    """The document is one that CloudWatch takes: each metric is a member with that name."""
    clock = ScriptedClock()
    emf = Emf("worker", "shop", clock)
    (line,) = emf.lines({"StartDelay": [1.0, 2.0]}, "high")
    document = json.loads(line)
    told = document["_aws"]
    assert told["Timestamp"] == int(clock.now().timestamp() * 1000)
    (directive,) = told["CloudWatchMetrics"]
    assert directive["Namespace"] == NAMESPACE
    assert directive["Dimensions"] == [["Store"], ["Store", "Priority"]]
    assert directive["Metrics"] == [{"Name": "StartDelay", "Unit": "Milliseconds"}]
    assert (document["StartDelay"], document["Store"], document["Priority"]) == (
        [1.0, 2.0],
        "shop",
        "high",
    )


def test_more_values_than_a_line_may_hold_are_written_on_more_lines() -> None:
    """CloudWatch takes a hundred of one metric, and drops the rest."""
    emf = Emf("worker", "shop", ScriptedClock())
    lines = list(emf.lines({"StartDelay": [float(n) for n in range(250)]}, "high"))
    assert [len(json.loads(line)["StartDelay"]) for line in lines] == [100, 100, 50]


def test_a_secret_in_an_error_does_not_get_into_the_log() -> None:
    """The message is masked, and so is the error that it tells of."""
    told = MaskingFilter(Masker(()))
    error = ValueError("password=hunter2")
    record = logging.LogRecord(
        "x", logging.ERROR, "x.py", 1, "it failed: %s", (error,), (ValueError, error, None)
    )
    assert told.filter(record)
    assert "hunter2" not in record.getMessage()
    assert record.exc_info is not None
    assert "hunter2" not in str(record.exc_info[1])


@pytest.mark.parametrize("place", ["cause", "note", "group"])
def test_no_secret_in_what_hangs_on_an_error_gets_into_the_logs(place: str) -> None:
    """A trace tells causes, notes and parts of a group as well as the error itself."""
    secret = ValueError("password=" + "hunter2")
    error: BaseException = RuntimeError("it failed")
    if place == "cause":
        error.__cause__ = secret
    elif place == "note":
        error.add_note(str(secret))
    else:
        error = ExceptionGroup("it failed", [secret])
    info = (type(error), error, None)
    record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "told", (), info)
    assert MaskingFilter(Masker(())).filter(record)
    shown = logging.Formatter().format(record)
    assert "=hunter2" not in shown
    assert "it failed" in shown


def test_a_careless_line_of_a_handlers_log_fails_nothing() -> None:
    """Logging never raises by itself, so no filter may: the run would fail for its log line."""
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "%d rows", ("some",), None)
    assert MaskingFilter(Masker(())).filter(record)
    assert record.getMessage().startswith("'%d rows'")


def test_a_store_that_nobody_has_prepared_is_told() -> None:
    """The reaper waits for the dispatcher's first tick, which makes the map."""
    base = open_base(engine=SqliteEngine(None), environment={})
    base.store.engine.init()
    function = ReaperFunction(Process(base, Emf("reaper", "shop", base.clock), "shop-reaper"))
    with pytest.raises(NotInitialised, match="dynsched init"):
        function({}, Told(ScriptedClock()))
