"""The real module on ministack: applied, found unchanged, run, and destroyed.

"Applied" means: accepted by an emulator. AWS was never asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from dynsched.storage.dynamodb import DynamoEngine
from dynsched.storage.engine import Table
from dynsched.storage.schema import load_schema
from tests.aws.applied import PREFIX, Applied, applied_in
from tests.aws.conftest import ROOT
from tests.aws.emulator import emulator_url
from tests.contract.dynamo_backends import GIVEN, REGION, dummy_credentials
from tests.processes.stage import wait_until
from tools.infra.terraform import ToolsMissing

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

pytestmark = pytest.mark.timeout(420)

WAKE_S = 100.0  # a schedule's first minute, and some seconds for a busy machine
RUN_S = 100.0  # the next minute of a cron job
OF_ONE_TABLE = {
    "CreationDateTime",
    "BillingModeSummary",  # it tells since when, besides
    "IndexArn",
    "IndexSizeBytes",
    "ItemCount",
    "TableArn",
    "TableId",
    "TableSizeBytes",
}
# What ministack tells otherwise than it was told, by type of resource.
EMULATOR_FAULTS: dict[str, set[str]] = {
    "aws_cloudwatch_metric_alarm": {
        "actions_enabled",
        "alarm_description",
        "datapoints_to_alarm",
        "dimensions",
        "extended_statistic",
        "period",
        "statistic",
        "treat_missing_data",
    },
}


@dataclass(frozen=True, slots=True)
class Cli:
    """The program as a process, against the deployed store."""

    url: str

    def __call__(self, *arguments: str) -> str:
        """Run it; return what it printed."""
        path = os.pathsep.join(str(ROOT / part) for part in ("src", "console", "web"))
        with dummy_credentials():
            environment = {**os.environ, "DYNSCHED_STORE": self.url, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-m", "dynsched", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """Run it with `--json`; return the document."""
        return json.loads(self(*arguments, "--json"))

    def has(self, job: str, state: str) -> bool:
        """Say whether a job has a run in a state."""
        return state in [run["state"] for run in self.json("run", "list", "--job", job)]


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory, package: Path) -> Iterator[Applied]:
    """Give the applied example; it is destroyed with the last of these tests."""
    scratch = tmp_path_factory.mktemp("applied")
    try:
        with applied_in(scratch, emulator_url(), package) as applied:
            yield applied
    except ToolsMissing as missing:
        pytest.skip(f"NOTHING WAS APPLIED: {missing}")


@pytest.fixture
def cli(applied: Applied) -> Cli:
    """Return the program against the applied store."""
    return Cli(applied.store_url)


def test_the_deployment_runs_jobs_until_it_is_destroyed(
    applied: Applied, cli: Cli, tmp_path: Path
) -> None:
    """Woken by its schedules, it runs a cron and a delayed job, and replays what has died.

    A second plan, made meanwhile, finds nothing to change but what the emulator tells wrongly.
    """
    wait_until(lambda: wakes(applied, "dispatcher"), WAKE_S, "its schedule woke the dispatcher")
    mended = tmp_path / "mended"
    once = ("--max-attempts", "1", "--payload", json.dumps({"until": str(mended)}))
    cli("job", "add", "each-minute", "--cron", "* * * * *", "--handler", "touch")
    cli("job", "add", "delayed", "--in", "5s", "--handler", "touch")
    cli("job", "add", "failing", "--now", "--handler", "fail", *once)
    with ThreadPoolExecutor(1) as pool:
        changes = pool.submit(applied.changes)
        wake(applied, "dispatcher")
        wait_until(partial(cli.has, "failing", "dead"), RUN_S, "the failing job died")
        assert [run["job_name"] for run in cli.json("dlq", "list")] == ["failing"]
        mended.touch()
        batch = cli.json("replay", "preview", "job:failing", "--reason", "mended")["batch_id"]
        cli("replay", "confirm", batch, "--reason", "mended")
        wake(applied, "reaper")
        for job in ("failing", "delayed", "each-minute"):
            wait_until(partial(cli.has, job, "done"), RUN_S, f"{job} ran")
        assert cli.json("dlq", "list") == []
        assert unexplained(changes.result()) == {}


def test_its_tables_are_those_that_dynsched_init_makes(applied: Applied) -> None:
    """DynamoDB describes both alike, with their expiry and their back-ups."""
    with dummy_credentials():
        engine = DynamoEngine("made", region=REGION, endpoint_url=applied.endpoint)
        engine.init()
        engine.close()
        dynamodb = boto3.client("dynamodb", region_name=REGION, endpoint_url=applied.endpoint)
    for table in Table:
        made, planned = (
            described(dynamodb, load_schema().table_name(prefix, table), prefix)
            for prefix in ("made", PREFIX)
        )
        assert planned == made


def test_the_conformance_suite_passes_on_its_tables(applied: Applied) -> None:
    """They are not only described alike: the engine finds in them what it was promised."""
    with dummy_credentials():
        scheduler = boto3.client("scheduler", region_name=REGION, endpoint_url=applied.endpoint)
        for schedule in scheduler.list_schedules(GroupName=PREFIX)["Schedules"]:
            # Its function would write into the tables between the suite's own writes.
            scheduler.delete_schedule(Name=schedule["Name"], GroupName=PREFIX)
        environment = {**os.environ, GIVEN: applied.store_url}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/contract", "-k", "given", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout[-4_000:]


def test_destroying_it_leaves_nothing(applied: Applied) -> None:
    """Tables, queues, functions, roles and log groups are gone."""
    assert applied.resources()
    applied.destroy()
    assert applied.resources() == {}
    with dummy_credentials():
        left = [
            name
            for service, verb, field in (
                ("dynamodb", "list_tables", "TableNames"),
                ("sqs", "list_queues", "QueueUrls"),
                ("lambda", "list_functions", "Functions"),
                ("lambda", "list_event_source_mappings", "EventSourceMappings"),
                ("iam", "list_roles", "Roles"),
                ("logs", "describe_log_groups", "logGroups"),
                ("scheduler", "list_schedules", "Schedules"),
                ("cloudwatch", "describe_alarms", "MetricAlarms"),
            )
            for name in getattr(_client(applied, service), verb)().get(field, [])
            if f"{PREFIX}-" in str(name)
        ]
    assert left == []


def _client(applied: Applied, service: str) -> Any:
    return boto3.client(service, region_name=REGION, endpoint_url=applied.endpoint)  # type: ignore[call-overload]


def described(dynamodb: DynamoDBClient, name: str, prefix: str) -> dict[str, Any]:
    """Return what DynamoDB tells of a table, without what no two tables share."""
    found: dict[str, Any] = {
        **dynamodb.describe_table(TableName=name)["Table"],
        **dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"],
        **dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"],
    }
    found["BillingMode"] = found["BillingModeSummary"]["BillingMode"]
    told = {key: value for key, value in found.items() if key not in OF_ONE_TABLE}
    told["AttributeDefinitions"].sort(key=lambda one: str(one["AttributeName"]))
    for index in told.get("GlobalSecondaryIndexes", []):
        for key in OF_ONE_TABLE & index.keys():
            del index[key]
    window = told["PointInTimeRecoveryDescription"]
    for key in ("EarliestRestorableDateTime", "LatestRestorableDateTime"):
        window.pop(key, None)
    return json.loads(json.dumps(told, default=str).replace(f"{prefix}-", ""))  # type: ignore[no-any-return]


def wakes(applied: Applied, function: str) -> int:
    """Return how often a function was called, by its log."""
    with dummy_credentials():
        logs = boto3.client("logs", region_name=REGION, endpoint_url=applied.endpoint)
    group = f"/aws/lambda/{applied.outputs['function_names'][function]}"
    events = logs.filter_log_events(logGroupName=group, filterPattern="START")["events"]
    return sum(event["message"].startswith("START") for event in events)


def wake(applied: Applied, function: str) -> None:
    """Call a function as its schedule does, and sooner."""
    with dummy_credentials():
        lambdas = boto3.client("lambda", region_name=REGION, endpoint_url=applied.endpoint)
    answer = lambdas.invoke(FunctionName=applied.outputs["function_names"][function], Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()


def unexplained(changes: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return what a second plan would change, without the emulator's own faults."""
    kinds = {address: address.split(".")[2] for address in changes}
    left = {
        address: what - EMULATOR_FAULTS.get(kinds[address], set())
        for address, what in changes.items()
    }
    return {address: what for address, what in left.items() if what}
