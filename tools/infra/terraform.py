"""Find Terraform and a mirror of its AWS provider on this machine, and run the one with the other.

The provider is no package that could be pinned, so nothing here fetches it: it is used where it is
found, and whoever calls says loudly what is left out where it is not.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MIRROR_VARIABLE: Final = "DYNSCHED_TF_MIRROR"
PROVIDER: Final = "registry.terraform.io/hashicorp/aws"
# Where Terraform itself looks for providers, if no configuration says otherwise.
IMPLIED_MIRRORS: Final = (
    "~/.terraform.d/plugins",
    "~/.local/share/terraform/plugins",
    "/usr/local/share/terraform/plugins",
    "/usr/share/terraform/plugins",
)
# Where images with tools put what belongs to no package.
OTHER_MIRRORS: Final = ("/opt",)
MACHINES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
TIMEOUT_S: Final = 600.0
SAID_MAX: Final = 6_000  # characters of a failed command's words


class ToolsMissing(Exception):
    """Terraform or its provider is not on this machine; the text says which and what would help."""


class TerraformFailed(Exception):
    """Terraform ended with an error; what it said is the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """A folder of unpacked providers.

    Attributes:
        folder: holds the registry's name, the provider's, its versions.
        version: the newest version of the AWS provider for this platform.
    """

    folder: Path
    version: str


def platform_name() -> str:
    """Return this platform as Terraform calls it, such as linux_arm64."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}_{MACHINES.get(machine, machine)}"


def find_terraform() -> Path:
    """Return the program.

    Raises:
        ToolsMissing: it is not on the path.
    """
    found = shutil.which("terraform")
    if found is None:
        raise ToolsMissing("no terraform on the PATH; install Terraform 1.9 or newer")
    return Path(found)


def find_mirror(
    environment: Mapping[str, str] = os.environ, others: Sequence[str] = OTHER_MIRRORS
) -> Mirror:
    """Return the first mirror with the AWS provider for this platform.

    Args:
        environment: `DYNSCHED_TF_MIRROR` names a folder, which is then the only one looked at.
        others: folders that may hold a mirror under any name.

    Raises:
        ToolsMissing: there is none.
    """
    named = environment.get(MIRROR_VARIABLE)
    folders = [Path(named)] if named else list(_folders(others))
    for folder in folders:
        versions = sorted(
            (_number(path.parent.name), path.parent.name)
            for path in (folder / PROVIDER).glob(f"*/{platform_name()}")
        )
        if versions:
            return Mirror(folder=folder.resolve(), version=versions[-1][1])
    where = named or "the folders where Terraform looks"
    raise ToolsMissing(
        f"no AWS provider for {platform_name()} in {where}; set {MIRROR_VARIABLE} to a folder made"
        " by `terraform providers mirror`, unpacked"
    )


def _folders(others: Sequence[str]) -> Iterator[Path]:
    yield from (Path(text).expanduser() for text in IMPLIED_MIRRORS)
    for other in others:
        yield from sorted(path.parents[2] for path in Path(other).glob(f"*/{PROVIDER}"))


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


@dataclass(frozen=True, slots=True, kw_only=True)
class Terraform:
    """Terraform in one folder, with a configuration of its own and none of the user's.

    Attributes:
        program: what is run.
        folder: the root module; state and lock file come to lie there.
        scratch: where its configuration and its links to providers lie.
        installation: what its configuration says about where providers are.
        environment: variables besides this process's own, which lend none of AWS or Terraform.
    """

    program: Path
    folder: Path
    scratch: Path
    installation: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, timeout_s: float = TIMEOUT_S) -> str:
        """Run a command; return what it printed.

        Raises:
            TerraformFailed: it failed, or was not done in time.
        """
        try:
            done = subprocess.run(
                [str(self.program), *arguments],
                cwd=self.folder,
                env=self._variables(),
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired:
            raise TerraformFailed(f"terraform {arguments[0]}: not done in {timeout_s} s") from None
        if done.returncode:
            said = f"{done.stdout}{done.stderr}"[-SAID_MAX:]
            raise TerraformFailed(f"terraform {' '.join(arguments)}:\n{said}")
        return done.stdout

    def _variables(self) -> dict[str, str]:
        config = self.scratch / "cli.tfrc"
        config.write_text(
            f"disable_checkpoint = true\nprovider_installation {{\n{self.installation}}}\n"
        )
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "TF_"))}
        mine = {
            "CHECKPOINT_DISABLE": "1",
            "TF_CLI_CONFIG_FILE": str(config),
            "TF_DATA_DIR": str(self.scratch / "data"),
            "TF_IN_AUTOMATION": "1",
            "TF_CLI_ARGS": "-no-color",
        }
        return {**kept, **mine, **self.environment}


def from_mirror(mirror: Mirror) -> str:
    """Return the lines that have Terraform take every provider from a mirror."""
    return f'  filesystem_mirror {{\n    path = "{mirror.folder}"\n  }}\n'


def from_registry() -> str:
    """Return the lines that have Terraform fetch every provider from where it is published."""
    return "  direct {}\n"


def from_program(folder: Path) -> str:
    """Return the lines that have Terraform run the AWS provider in a folder, whatever it is."""
    return f'  dev_overrides {{\n    "hashicorp/aws" = "{folder}"\n  }}\n  direct {{}}\n'
