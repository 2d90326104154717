"""The module as Terraform plans it, beside what the code says of the same things."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import boto3
import pytest

from bench.ways import ALARMS
from dynsched.bootstrap import open_engine
from dynsched.lambdas.metrics import METRICS, NAMESPACE
from dynsched.storage.dynamodb import DynamoEngine
from dynsched.storage.engine import Table
from dynsched.storage.schema import load_schema
from dynsched.storage.tables import creation
from tests.contract.dynamo_backends import dummy_credentials
from tests.terraform.planned import Planned, planned_in
from tools.infra.readme import README

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "dynsched"
# What AWS counts by itself, with the dimensions under which it does; from its documentation.
OF_LAMBDA = {"FunctionName"}
OF_QUEUE = {"QueueName"}
AWS_METRICS: Mapping[tuple[str, str], tuple[set[str], ...]] = {
    ("AWS/Lambda", "ClaimedAccountConcurrency"): (set(),),
    ("AWS/Lambda", "ConcurrentExecutions"): (OF_LAMBDA, set()),
    ("AWS/Lambda", "Duration"): (OF_LAMBDA,),
    ("AWS/Lambda", "Errors"): (OF_LAMBDA,),
    ("AWS/Lambda", "Invocations"): (OF_LAMBDA,),
    ("AWS/Lambda", "Throttles"): (OF_LAMBDA,),
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): (OF_QUEUE,),
    ("AWS/SQS", "ApproximateNumberOfMessagesNotVisible"): (OF_QUEUE,),
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): (OF_QUEUE,),
    ("AWS/Scheduler", "InvocationDroppedCount"): ({"ScheduleGroup"},),
    ("AWS/Scheduler", "InvocationThrottleCount"): ({"ScheduleGroup"},),
    ("AWS/Scheduler", "TargetErrorCount"): ({"ScheduleGroup"},),
    ("AWS/Scheduler", "TargetErrorThrottledCount"): ({"ScheduleGroup"},),
    ("AWS/DynamoDB", "SystemErrors"): ({"TableName", "Operation"},),
    **{
        ("AWS/DynamoDB", name): ({"TableName"}, {"TableName", "GlobalSecondaryIndexName"})
        for name in (
            "ConsumedReadCapacityUnits",
            "ConsumedWriteCapacityUnits",
            "ReadThrottleEvents",
            "WriteThrottleEvents",
        )
    },
}


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """Give the plan of the module's defaults."""
    return planned_in(tmp_path_factory.mktemp("terraform"), "THE TERRAFORM MODULE WAS NOT PLANNED")


def alarm_metrics(planned: Planned) -> Iterator[tuple[str, str, set[str]]]:
    """Yield namespace, name and dimensions of each metric that an alarm looks at."""
    for alarm in planned.of("aws_cloudwatch_metric_alarm").values():
        if alarm["metric_name"]:
            yield alarm["namespace"], alarm["metric_name"], set(alarm["dimensions"] or {})
        for query in alarm["metric_query"]:
            for metric in query["metric"]:
                yield metric["namespace"], metric["metric_name"], set(metric["dimensions"] or {})


def dashboard_metrics(planned: Planned) -> Iterator[tuple[str, str, set[str]]]:
    """Yield namespace, name and dimensions of each line on the dashboard."""
    (dashboard,) = planned.of("aws_cloudwatch_dashboard").values()
    for widget in json.loads(dashboard["dashboard_body"])["widgets"]:
        for namespace, name, *dimensions, _ in widget["properties"]["metrics"]:
            yield namespace, name, set(dimensions[::2])


def unknown(metrics: Iterator[tuple[str, str, set[str]]]) -> list[tuple[str, str, set[str]]]:
    """Return the metrics that neither the functions nor AWS emit under these dimensions."""
    own = {
        (NAMESPACE, name): tuple(set(dimensions) for dimensions in metric.dimensions)
        for metrics_of_one in METRICS.values()
        for name, metric in metrics_of_one.items()
    }
    known = {**own, **AWS_METRICS}
    return [
        (namespace, name, dimensions)
        for namespace, name, dimensions in metrics
        if dimensions not in known.get((namespace, name), ())
    ]


def policies(planned: Planned) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each statement of each policy with the name of its holder."""
    texts = {
        f"{kind} {name}": values["policy"]
        for kind in ("aws_iam_role_policy.calls", "aws_iam_role_policy.platform")
        for name, values in planned.of(kind).items()
    }
    texts |= {"scheduler": planned.resources["aws_iam_role_policy.scheduler"]["policy"]}
    texts |= {name: text for name, text in planned.outputs.items() if name.endswith("policy_json")}
    for holder, text in texts.items():
        for statement in json.loads(text)["Statement"]:
            yield holder, statement


@pytest.mark.parametrize("table", Table)
def test_a_table_is_planned_as_init_would_make_it(planned: Planned, table: Table) -> None:
    """Keys, types, index, expiry and back-ups are those of the schema."""
    schema = load_schema().tables[table]
    name = load_schema().table_name(PREFIX, table)
    made, wanted = planned.of("aws_dynamodb_table")[table.value], creation(name, schema)
    assert made["name"] == name
    assert made["billing_mode"] == wanted["BillingMode"]
    keys = [part["AttributeName"] for part in wanted["KeySchema"]]
    assert [made["hash_key"], made["range_key"]] == keys
    assert {one["name"]: one["type"] for one in made["attribute"]} == schema.attributes
    indexes = [
        [
            index["IndexName"],
            *(part["AttributeName"] for part in index["KeySchema"]),
            index["Projection"]["ProjectionType"],
        ]
        for index in wanted.get("GlobalSecondaryIndexes", [])
    ]
    assert indexes == [
        [index["name"], index["hash_key"], index["range_key"], index["projection_type"]]
        for index in made["global_secondary_index"]
    ]
    expiry, recovery = made["ttl"][0], made["point_in_time_recovery"][0]
    assert (expiry["attribute_name"], expiry["enabled"]) == (schema.ttl_attribute, True)
    assert recovery["enabled"] is schema.point_in_time_recovery


def test_alarms_look_at_metrics_that_there_are(planned: Planned) -> None:
    """An alarm on a misspelt metric is silent for ever."""
    assert unknown(alarm_metrics(planned)) == []


def test_the_alarms_that_are_priced_are_those_that_there_are(planned: Planned) -> None:
    """An alarm is paid by the metrics that it looks at; docs/capacity.md tells the sum."""
    assert len(list(alarm_metrics(planned))) == ALARMS


def test_the_dashboard_shows_metrics_that_there_are(planned: Planned) -> None:
    """A line for a misspelt metric is empty for ever."""
    assert unknown(dashboard_metrics(planned)) == []


def test_every_figure_that_the_functions_emit_is_on_the_dashboard(planned: Planned) -> None:
    """What nobody sees need not be emitted."""
    shown = {name for namespace, name, _ in dashboard_metrics(planned) if namespace == NAMESPACE}
    assert shown == {name for metrics in METRICS.values() for name in metrics}


def test_every_alarm_leads_to_a_runbook(planned: Planned) -> None:
    """Its description ends with a link whose anchor is a heading of the page."""
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs" / "aws.md").read_text("utf-8"), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    links = {
        name: alarm["alarm_description"].rpartition(" Runbook: docs/aws.md#")[2]
        for name, alarm in planned.of("aws_cloudwatch_metric_alarm").items()
    }
    assert {name for name, anchor in links.items() if anchor not in anchors} == set()
    assert set(links.values()) == set(planned_anchors())


def planned_anchors() -> Iterator[str]:
    """Yield the anchors that the module's README lists."""
    section = README.read_text("utf-8").partition("## Alarms")[2].partition("<!--")[0]
    for alarms, anchor in re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", section, re.MULTILINE):
        own = re.findall(r"`([a-z-]+)`", alarms if anchor == "the same" else anchor)
        yield from own


def test_no_policy_allows_what_it_does_not_name(planned: Planned) -> None:
    """Neither an action nor a resource is a pattern, but for the streams of a log group."""
    for holder, statement in policies(planned):
        assert statement["Effect"] == "Allow", holder
        assert not [action for action in statement["Action"] if "*" in action], holder
        starred = [arn for arn in statement["Resource"] if "*" in arn]
        assert all(re.fullmatch(r"arn:aws:logs:[^*]+:\*", arn) for arn in starred), holder


def test_policies_name_only_actions_that_aws_has(planned: Planned) -> None:
    """An action that is misspelt grants nothing, and only AWS would say so."""
    with dummy_credentials():
        services = {name: boto3.client(name) for name in ("dynamodb", "lambda", "logs", "sqs")}
    operations = {
        (name, operation)
        for name, client in services.items()
        for operation in client.meta.service_model.operation_names
    }
    # Calling a function has another name in policies.
    operations |= {("lambda", "InvokeFunction")}
    named = {
        tuple(action.split(":"))
        for _, statement in policies(planned)
        for action in statement["Action"]
    }
    assert named - operations == set()


def test_the_functions_are_modules_of_the_package(planned: Planned) -> None:
    """Lambda imports what the handler names, which is then a function of it."""
    for function in planned.of("aws_lambda_function").values():
        module, _, name = function["handler"].rpartition(".")
        found = find_spec(module)
        assert found
        assert found.origin
        assert re.search(rf"^def {name}\(", Path(found.origin).read_text(), re.MULTILINE)


def test_the_store_url_opens_the_planned_tables(planned: Planned) -> None:
    """What the output says is what the command line takes."""
    with dummy_credentials():
        engine, _ = open_engine(planned.outputs["store_url"])
    assert isinstance(engine, DynamoEngine)
    engine.close()
    names = {table.value: load_schema().table_name(engine.prefix, table) for table in Table}
    made = planned.of("aws_dynamodb_table")
    assert {key: table["name"] for key, table in made.items()} == names


@pytest.mark.parametrize("metric", [("dynsched", "Tick", {"Store"}), ("AWS/SQS", "Age", set())])
def test_a_metric_that_nobody_emits_is_found(metric: tuple[str, str, set[str]]) -> None:
    """The checks above see one letter."""
    assert unknown(iter([metric, ("dynsched", "Ticks", {"Store"})])) == [metric]
