"""Every AWS call of each role beside its policy in the module: nothing missing, nothing unused.

The calls are those that go over the wire in a tour of all that a role does; which permission a call
needs is told in `tests.aws.calls`. The policies are those that Terraform plans.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.aws.calls import Permission, granted, needs
from tests.aws.conftest import NewDeployment
from tests.aws.deployment import Deployment
from tests.aws.tours import functions_tour, operator_tour, producer_tour, puller_tour
from tests.aws.wire import Wire
from tests.terraform.planned import Planned, plan_of
from tools.infra.terraform import ToolsMissing, find_mirror, find_terraform

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
    try:
        find_terraform()
        mirror = find_mirror()
    except ToolsMissing as missing:
        pytest.skip(f"NO POLICY WAS COMPARED WITH ANY CALL: {missing}")
    return plan_of(mirror, tmp_path_factory.mktemp("terraform"))


@pytest.fixture
def toured(new_deployment: NewDeployment, tmp_path: Path) -> Deployment:
    """Return a deployment in which each role has done all that it does."""
    settings = {
        "DYNSCHED_RESEND_AFTER_S": "0.05",
        "DYNSCHED_LEASE_MARGIN_S": "1",
        "DYNSCHED_STEP_PERIOD_S": "0.05",
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
    wrong = {}
    for role in (*FUNCTIONS, *PEOPLE):
        used = used_by(role, wire, toured.prefix)
        allowed = granted(policy_of(role, planned), PREFIX)
        if used != allowed:
            wrong[role] = {"missing": sorted(used - allowed), "unused": sorted(allowed - used)}
    assert wrong == {}


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
