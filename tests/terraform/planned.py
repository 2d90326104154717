"""What Terraform would make of the module with a mocked account: every value, no call."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools.infra.readme import MODULE
from tools.infra.terraform import (
    Terraform,
    ToolsMissing,
    find_mirror,
    find_terraform,
    from_mirror,
)

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


def planned_in(scratch: Path, unproved: str) -> Planned:
    """Plan the module with its defaults in a copy of it; skip loudly where nothing can plan it.

    Neither Terraform nor its provider is a package, so CI may lack them too.

    Args:
        scratch: a folder for the copy.
        unproved: what is not proved then.
    """
    try:
        program, mirror = find_terraform(), find_mirror()
    except ToolsMissing as missing:
        pytest.skip(f"{unproved}: {missing}")
    folder = scratch / "module"
    shutil.copytree(MODULE, folder)
    (folder / "tests" / "planned.tftest.hcl").write_text(RUN)
    terraform = Terraform(
        program=program,
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
