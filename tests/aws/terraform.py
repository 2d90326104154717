"""Terraform on ministack: the real provider applies the module, and takes it away again.

It proves that the provider's calls, in its order, are accepted by an emulator, and that what they
make runs jobs. It proves nothing about AWS itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.contract.dynamo_backends import REGION

TIMEOUT_S: Final = 300.0
LOG_TAIL: Final = 4_000


class TerraformFailed(Exception):
    """Terraform ended with an error; what it said is the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terraform:
    """One root module with its state.

    Attributes:
        folder: where the root module and the state lie.
        endpoint: where ministack listens.
        mirror: a folder of unpacked providers.
    """

    folder: Path
    endpoint: str
    mirror: Path

    def init(self) -> None:
        """Link the providers."""
        self.run("init", "-input=false")

    def apply(self) -> None:
        """Make all."""
        self.run("apply", "-auto-approve", "-input=false")

    def destroy(self) -> None:
        """Remove all."""
        self.run("destroy", "-auto-approve", "-input=false")

    def changes(self) -> dict[str, set[str]]:
        """Plan anew; return what it would change: the attributes, or the action on the whole."""
        self.run("plan", "-input=false", "-out=again.tfplan", "-lock=false")
        plan = json.loads(self.run("show", "-json", "again.tfplan"))
        planned = {one["address"]: one["change"] for one in plan["resource_changes"]}
        return {
            address: _attributes(change)
            if change["actions"] == ["update"]
            else {*change["actions"]}
            for address, change in planned.items()
            if change["actions"] not in (["no-op"], ["read"])
        }

    def outputs(self) -> dict[str, Any]:
        """Return the root's outputs."""
        return {name: one["value"] for name, one in json.loads(self.run("output", "-json")).items()}

    def resources(self) -> dict[str, dict[str, Any]]:
        """Return the values of all resources in the state, by their address."""
        shown = json.loads(self.run("show", "-json"))
        found: dict[str, dict[str, Any]] = {}
        modules = [shown["values"]["root_module"]] if "values" in shown else []
        while modules:
            module = modules.pop()
            modules += module.get("child_modules", [])
            found |= {one["address"]: one["values"] for one in module.get("resources", [])}
        return found

    def run(self, *arguments: str) -> str:
        """Run a command of Terraform; return what it printed.

        Raises:
            TerraformFailed: it failed.
        """
        done = subprocess.run(
            ["terraform", *arguments, *([] if "-json" in arguments else ["-no-color"])],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        if done.returncode:
            raise TerraformFailed(
                f"{arguments}: {done.stdout[-LOG_TAIL:]}{done.stderr[-LOG_TAIL:]}"
            )
        return done.stdout

    def _environment(self) -> dict[str, str]:
        config = self.folder / "cli.tfrc"
        config.write_text(
            "provider_installation {\n"
            f'  filesystem_mirror {{\n    path = "{self.mirror}"\n  }}\n'
            "}\n"
        )
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "TF_"))}
        return kept | {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",  # pragma: allowlist secret
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "CHECKPOINT_DISABLE": "1",
            "TF_CLI_CONFIG_FILE": str(config),
            "TF_IN_AUTOMATION": "1",
        }


def _attributes(change: dict[str, Any]) -> set[str]:
    before, after, unknown = change["before"], change["after"], change["after_unknown"]
    return {
        name
        for name in before.keys() | after.keys() | unknown.keys()
        if unknown.get(name) or before.get(name) != after.get(name)
    }


def terraform_is_here() -> bool:
    """Say whether there is a terraform to run."""
    return shutil.which("terraform") is not None
