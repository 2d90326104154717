"""Every AWS call of each role beside its policy in the module: nothing missing, nothing unused.

The calls are those that go over the wire in a tour of all that a role does; which permission a call
needs is told in `tests.aws.calls`. The policies are those that Terraform plans.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dynsched.clock import SystemClock
from dynsched.storage.dynamodb import DynamoEngine
from dynsched.storage.engine import Applied, Key, PutNew, Replace, Row, Stale, Table
from dynsched.storage.steady import SteadyEngine
from tests.aws.calls import Permission, granted, needs, rereads
from tests.aws.conftest import NewDeployment
from tests.aws.deployment import Deployment
from tests.aws.tours import functions_tour, operator_tour, producer_tour, puller_tour
from tests.aws.wire import Wire
from tests.contract.dynamo_backends import REGION, free_port, fresh_prefix
from tests.terraform.planned import Planned, planned_in

pytestmark = pytest.mark.timeout(300)

PREFIX = "dynsched"
FUNCTIONS = ("dispatcher", "reaper", "worker")
PEOPLE = {"operator": "operator", "producer": "producer", "puller": "pulling_worker"}
# What AWS does under a function's role, so that no tour can see it.
PLATFORM: Mapping[str, set[str]] = {
    "dispatcher": {"logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage"},
    "reaper": {"logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage"},
    "worker": {
        *("logs:CreateLogStream", "logs:PutLogEvents"),
        *("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"),
    },
}


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """Give the plan of the module's defaults."""
    return planned_in(tmp_path_factory.mktemp("terraform"), "NO POLICY WAS COMPARED WITH ANY CALL")


@pytest.fixture
def toured(new_deployment: NewDeployment, tmp_path: Path) -> Deployment:
    """Return a deployment in which each role has done all that it does."""
    settings = {
        "DYNSCHED_RESEND_AFTER_S": "0.05",
        "DYNSCHED_LEASE_MARGIN_S": "1",
        "DYNSCHED_STEP_PERIOD_S": "0.05",
        "DYNSCHED_SWEEP_PERIOD_S": "1",
    }
    deployment = new_deployment(listens=False, settings=settings, visibility_s=1)
    functions_tour(deployment)
    operator_tour(deployment, tmp_path)
    producer_tour(deployment)
    puller_tour(deployment, tmp_path)
    return deployment


def test_each_role_may_do_what_it_does_and_nothing_else(
    toured: Deployment, wire: Wire, planned: Planned
) -> None:
    """What is not allowed would fail on AWS; what is never done is a right too many."""
    wrong = []
    for role in (*FUNCTIONS, *PEOPLE):
        used = used_by(role, wire, toured.prefix)
        used |= rereads(used)
        allowed = granted(policy_of(role, planned), PREFIX)
        wrong += [f"{role} may not {action} on {where}" for action, where in used - allowed]
        wrong += [f"{role} never does {action} on {where}" for action, where in allowed - used]
    assert not wrong, "\n".join(sorted(wrong))


def test_a_write_may_need_its_row_read_again(wire: Wire) -> None:
    """That is what `rereads` adds for each role that writes, as no tour meets every fault."""
    prefix = fresh_prefix()
    engine = DynamoEngine(prefix, region=REGION, endpoint_url=wire.door("writer"))
    engine.init()
    steady = SteadyEngine(engine, clock=SystemClock(), rng=Random(7))
    row = Row(key=Key(Table.RUNS, "a", "b"), body={}, token="t")  # noqa: S106
    wire.calls.clear()
    assert steady.write(Replace(row, seen=3)) == Stale(None)
    assert used_by("writer", wire, prefix) == {
        ("dynamodb:PutItem", "table/runs"),
        ("dynamodb:GetItem", "table/runs"),
    }
    wire.calls.clear()
    wire.breaker = f"http://127.0.0.1:{free_port()}"
    first = wire.count("writer") + 1
    wire.breaks = lambda call: (call.caller, call.number) == ("writer", first)
    assert isinstance(steady.write(PutNew(row)), Applied)
    assert used_by("writer", wire, prefix) == {
        ("dynamodb:PutItem", "table/runs"),
        ("dynamodb:BatchGetItem", "table/runs"),
    }
    steady.close()


def test_what_aws_does_under_a_role_is_a_policy_of_its_own(planned: Planned) -> None:
    """Logs, the delivery of messages, and where failed invocations go."""
    for function, actions in PLATFORM.items():
        policy = inline_policy(f'aws_iam_role_policy.platform["{function}"]', planned)
        assert {action for action, _ in granted(policy, PREFIX)} == actions


def used_by(role: str, wire: Wire, prefix: str) -> set[Permission]:
    """Return the permissions that the calls of a role needed."""
    return {one for call in wire.calls if call.caller == role for one in needs(call, prefix)}


def policy_of(role: str, planned: Planned) -> Mapping[str, Any]:
    """Return what a function's code, or whoever has a policy of the outputs, may do."""
    if role in FUNCTIONS:
        return inline_policy(f'aws_iam_role_policy.calls["{role}"]', planned)
    document: Mapping[str, Any] = json.loads(planned.outputs[f"{PEOPLE[role]}_policy_json"])
    return document


def inline_policy(address: str, planned: Planned) -> Mapping[str, Any]:
    """Return a planned inline policy."""
    document: Mapping[str, Any] = json.loads(planned.resources[address]["policy"])
    return document
