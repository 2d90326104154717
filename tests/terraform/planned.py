"""What Terraform would make of the module with a mocked account: every value, no call."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.infra.readme import MODULE
from tools.infra.terraform import Mirror, Terraform, find_terraform, from_mirror

RUN = """\
mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  package = { path = "schema.json" }
}

run "planned" {
  command = plan
}
"""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan.

    Attributes:
        resources: by address; what is known only after it was made is missing.
        outputs: by name, those that are known.
    """

    resources: Mapping[str, Mapping[str, Any]]
    outputs: Mapping[str, Any]

    def of(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """Return the resources of one type, by their key."""
        return {
            address.rpartition("[")[2].strip('"]'): values
            for address, values in self.resources.items()
            if address.startswith(f"{kind}.")
        }


def plan_of(mirror: Mirror, scratch: Path) -> Planned:
    """Plan the module with its defaults in a copy of it."""
    folder = scratch / "module"
    shutil.copytree(MODULE, folder)
    (folder / "tests" / "planned.tftest.hcl").write_text(RUN)
    terraform = Terraform(
        program=find_terraform(),
        folder=folder,
        scratch=scratch,
        installation=from_mirror(mirror),
    )
    terraform.run("init", "-backend=false", "-input=false")
    said = terraform.run("test", "-json", "-verbose", "-filter=tests/planned.tftest.hcl")
    told = [json.loads(line) for line in said.splitlines()]
    (plan,) = [line["test_plan"] for line in told if line["type"] == "test_plan"]
    return Planned(
        {one["address"]: one["change"]["after"] for one in plan["resource_changes"]},
        {name: change.get("after") for name, change in plan["output_changes"].items()},
    )
