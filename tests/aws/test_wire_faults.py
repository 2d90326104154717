"""Faults of the wire at each AWS call of each function: nothing is lost, nothing is doubled.

microburst stands before ministack and breaks one call of one invocation; the next ones find what
it left. Each function is given all that it has to do, so that it makes all of its calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from dynsched.domain import lifecycle
from dynsched.domain.job import Overlap
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.run import FIXED_SESSION, TERMINAL, Run, RunState
from dynsched.services.specs import AfterSpec
from dynsched.storage.runs import RunApplied
from tests.aws.calls import Call
from tests.aws.conftest import NewDeployment
from tests.aws.deployment import Deployment, FunctionFailed
from tests.aws.emulator import breaker_url
from tests.aws.wire import Wire
from tests.integration.test_dynamodb_wire_faults import WARM_UP, ask

# Whoever sends before whoever receives, so that few turns bring a round to rest.
FUNCTIONS = ("dispatcher", "reaper", "worker")
TURNS_MAX = 40
Rules = Callable[[list[dict[str, Any]]], Any]

LOST = {"response": {"abort_bytes": 0}}
WRITES = ("PutItem", "DeleteItem", "TransactWriteItems")


def everything(_: Call) -> bool:
    """Break any call."""
    return True


def writes(call: Call) -> bool:
    """Break only what may be in conflict: DynamoDB's writes."""
    return call.operation in WRITES


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the wire does to a call.

    Attributes:
        rules: those of microburst, the first that fits counts.
        fits: says which calls it can happen to.
    """

    rules: list[dict[str, Any]]
    fits: Callable[[Call], bool] = everything


EFFECTS = {
    "throttled": Effect(
        rules=[
            {"service": "dynamodb", "error": {"code": "ProvisionedThroughputExceededException"}},
            {"service": "sqs", "error": {"code": "RequestThrottled"}},
        ]
    ),
    "500": Effect(
        rules=[
            {"service": "dynamodb", "error": {"code": "InternalServerError"}},
            {"service": "sqs", "error": {"code": "InternalError"}, "status": 500},
        ]
    ),
    "in conflict": Effect(
        rules=[
            {
                "service": "dynamodb",
                "operation": "TransactWriteItems",
                "error": {
                    "code": "TransactionCanceledException",
                    "fields": {"CancellationReasons": [{"Code": "TransactionConflict"}]},
                },
            },
            {"service": "dynamodb", "error": {"code": "TransactionConflictException"}},
        ],
        fits=writes,
    ),
    "applied, its answer lost": Effect(
        rules=[{"service": service, **LOST} for service in ("dynamodb", "sqs")]
    ),
}


@dataclass(slots=True)
class Rounds:
    """Rounds of work for a deployment's functions, in each of which one call is broken.

    Attributes:
        broken: the calls that were.
        dying: names of jobs, by id, whose run dies and was not replayed yet.
    """

    deployment: Deployment
    wire: Wire
    broken: list[Call] = field(default_factory=list)
    dying: dict[str, str] = field(default_factory=dict)

    def give_work(self) -> None:
        """Give each function something to do, of each kind that there is."""
        deployment = self.deployment
        operations, now = deployment.operations, deployment.base.clock.now()
        deployment.add("touch", every=AfterSpec(delay=timedelta(0)))
        operations.enqueue(deployment.add("touch", overlap=Overlap.SKIP).job_id)
        # One whose invocation is gone: its lease has ended, and its message finds it leased.
        gone = operations.enqueue(deployment.add("touch").job_id)
        taken = lifecycle.claim(gone, session=f"{FIXED_SESSION}gone", now=now, lease_ends_at=now)
        assert isinstance(deployment.base.store.runs.apply(taken), RunApplied)
        # One whose message was lost.
        self.wire.bend = lambda url, entries: []
        operations.enqueue(deployment.add("touch").job_id)
        self.wire.bend = None
        # One that dies, and a batch with one that has died in an earlier round.
        job = deployment.add("fail", retry=RetryPolicy(max_attempts=1))
        operations.enqueue(job.job_id, {"until": "/nowhere"})
        self.dying[job.job_id] = job.name
        dead = {run.job_id for run in deployment.runs() if run.state is RunState.DEAD}
        if found := dead & self.dying.keys():
            draft = operations.preview_replay(f"job:{self.dying.pop(found.pop())}", breaker=1.0)
            operations.confirm_replay(draft.batch_id, reason="tried")

    def play(self, number: int, effect: Effect) -> bool:
        """Break one call of the next turn of each function; say whether one made as many.

        Only calls count to which the effect can happen.
        """
        self.give_work()
        made: Counter[str] = Counter()

        def breaks(call: Call) -> bool:
            made[call.caller] += call.caller in FUNCTIONS and effect.fits(call)
            if made[call.caller] != number or not effect.fits(call):
                return False
            self.broken.append(call)
            return True

        self.wire.breaks = breaks
        for one in FUNCTIONS:
            self._turn(one)
        self.wire.breaks = None
        return max(made.values()) >= number

    def rest(self) -> None:
        """Let the functions work until all runs have ended; an hour passes if that is not enough.

        Raises:
            AssertionError: a run has not ended.
        """
        for ahead in (timedelta(0), timedelta(hours=1)):
            if ahead:  # for the ends of leases, and messages that are hidden
                self.deployment.ahead(ahead)
            for _ in range(TURNS_MAX):
                if not self._left():
                    return
                for one in FUNCTIONS:
                    self._turn(one)
        raise AssertionError(f"not at rest: {self._left()}")

    def _left(self) -> list[Run]:
        return [run for run in self.deployment.runs() if run.state not in TERMINAL]

    def _turn(self, function: str) -> None:
        with suppress(FunctionFailed):
            if function == "worker":
                self.deployment.deliver()
            else:
                self.deployment.invoke(function)


@pytest.fixture
def rounds(new_deployment: NewDeployment, wire: Wire) -> Rounds:
    """Return rounds of a deployment whose functions are warm and whose periods are short."""
    settings = {
        "DYNSCHED_RESEND_AFTER_S": "0.05",
        "DYNSCHED_LEASE_MARGIN_S": "1",
        "DYNSCHED_STEP_PERIOD_S": "0.05",
    }
    rounds = Rounds(new_deployment(listens=False, settings=settings, visibility_s=1), wire)
    for function in FUNCTIONS:
        rounds.deployment.invoke(function, {"Records": []})
    return rounds


@pytest.fixture
def rules(wire: Wire) -> Iterator[Rules]:
    """Give what sets microburst's rules, until the test is over."""
    wire.breaker = breaker_url(wire.back)
    # Its first call loads the service model, which takes seconds.
    ask(wire.breaker, "POST", "/", {}, WARM_UP)
    yield lambda rules: ask(wire.breaker, "POST", "/_microburst/rules", rules)
    ask(wire.breaker, "POST", "/_microburst/rules", [])


@pytest.mark.parametrize("name", EFFECTS)
def test_whichever_call_of_a_function_breaks_nothing_is_lost_or_doubled(
    rounds: Rounds, rules: Rules, wire: Wire, name: str
) -> None:
    """Every call of every function is broken once; each handler is called once for each try."""
    effect = EFFECTS[name]
    rules(effect.rules)
    number = 1
    while rounds.play(number, effect):
        number += 1
    rounds.rest()
    fired = ask(wire.breaker, "GET", "/_microburst/rules", None)
    assert sum(rule["fired_count"] for rule in fired) == len(rounds.broken) > 0
    assert rounds.deployment.broken_invariants() == ""
    doubled = [run for run in rounds.deployment.runs() if rounds.deployment.starts(run) > 1]
    assert {run.state for run in doubled} <= {RunState.DEAD}, "only what was replayed"
