"""The module applied on ministack by the real provider, from its own example, and taken away again.

It proves that the provider's calls, in its order, are accepted by an emulator, and that what they
make runs jobs. It proves nothing about AWS itself.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.contract.dynamo_backends import REGION
from tools.infra.readme import MODULE
from tools.infra.terraform import Terraform, find_mirror, find_terraform, from_mirror

PREFIX: Final = "tried"


@dataclass(frozen=True, slots=True)
class Applied:
    """What was applied.

    Attributes:
        terraform: Terraform in the example's folder.
        endpoint: where ministack listens.
        outputs: the example's outputs.
    """

    terraform: Terraform
    endpoint: str
    outputs: dict[str, Any]

    @property
    def store_url(self) -> str:
        """Return the store's URL as the module tells it."""
        url: str = self.outputs["store_url"]
        return url

    def destroy(self) -> None:
        """Take all of it away; nothing is done where nothing is left."""
        self.terraform.run("destroy", "-auto-approve", "-input=false")

    def changes(self) -> dict[str, set[str]]:
        """Plan anew; return what it would change: the attributes, or the action on the whole."""
        self.terraform.run("plan", "-input=false", "-out=again.tfplan", "-lock=false")
        plan = json.loads(self.terraform.run("show", "-json", "again.tfplan"))
        planned = {one["address"]: one["change"] for one in plan["resource_changes"]}
        return {
            address: _attributes(change)
            if change["actions"] == ["update"]
            else {*change["actions"]}
            for address, change in planned.items()
            if change["actions"] not in (["no-op"], ["read"])
        }

    def resources(self) -> dict[str, dict[str, Any]]:
        """Return the values of all resources in the state, by their address."""
        shown = json.loads(self.terraform.run("show", "-json"))
        found: dict[str, dict[str, Any]] = {}
        modules = [shown["values"]["root_module"]] if "values" in shown else []
        while modules:
            module = modules.pop()
            modules += module.get("child_modules", [])
            found |= {one["address"]: one["values"] for one in module.get("resources", [])}
        return found


def _attributes(change: dict[str, Any]) -> set[str]:
    before, after, unknown = change["before"], change["after"], change["after_unknown"]
    return {
        name
        for name in before.keys() | after.keys() | unknown.keys()
        if unknown.get(name) or before.get(name) != after.get(name)
    }


@contextmanager
def applied_in(scratch: Path, endpoint: str, package: Path) -> Iterator[Applied]:
    """Apply a copy of the local example; destroy it at the end if that has not been done.

    Args:
        scratch: an empty folder.
        endpoint: where ministack listens.
        package: the functions' zip with the tests' handlers in it.

    Raises:
        ToolsMissing: there is no Terraform here, or no provider.
        TerraformFailed: it could not be applied.
    """
    program, mirror = find_terraform(), find_mirror()
    shutil.copytree(MODULE, scratch / "module", ignore=shutil.ignore_patterns(".terraform*"))
    root = scratch / "module" / "examples" / "local"
    variables = {
        "endpoint_url": endpoint,
        "region": REGION,
        "prefix": PREFIX,
        "package_path": str(package),
        "worker": {"app": "tried_app:app", "timeout_s": 30},
    }
    (root / "terraform.tfvars.json").write_text(json.dumps(variables))
    terraform = Terraform(
        program=program, folder=root, scratch=scratch, installation=from_mirror(mirror)
    )
    terraform.run("init", "-input=false")
    try:
        terraform.run("apply", "-auto-approve", "-input=false")
        told = json.loads(terraform.run("output", "-json"))
        outputs = {name: one["value"] for name, one in told.items()}
        yield Applied(terraform, endpoint, outputs)
    finally:
        if terraform.run("state", "list").strip():
            terraform.run("destroy", "-auto-approve", "-input=false")
