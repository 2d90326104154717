"""The real module on ministack: applied, found unchanged, run, and destroyed.

"Applied" means: accepted by an emulator. AWS was never asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tests.aws.conftest import ROOT
from tests.contract.dynamo_backends import dummy_credentials

pytestmark = pytest.mark.timeout(480)

WAKE_S = 100.0
# What ministack answers wrongly, by resource type: attributes that a second plan would set again.
EMULATOR_FAULTS: dict[str, set[str]] = {
    "aws_cloudwatch_metric_alarm": {
        "alarm_actions",
        "datapoints_to_alarm",
        "dimensions",
        "extended_statistic",
        "metric_query",
        "ok_actions",
        "statistic",
        "threshold",
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

    def states(self, job: str) -> list[str]:
        """Return the states of a job's runs, newest first."""
        return [run["state"] for run in self.json("run", "list", "--job", job)]
