"""Prove the Terraform module, as far as that goes without an AWS account.

    python -m tools.infra            all steps
    python -m tools.infra fmt schema those

Each step says which version of the provider it proves. What cannot be proved on this machine is
said at the end, loudly, and fails nothing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.infra import environment
from tools.infra.arguments import count_blocks, problems, used_types
from tools.infra.bindings import NotInBindings, read_bindings
from tools.infra.schema_provider_program import SCHEMA_VARIABLE, write_program
from tools.infra.terraform import (
    Terraform,
    TerraformFailed,
    ToolsMissing,
    find_mirror,
    find_terraform,
    from_mirror,
    from_program,
)

MODULE: Final = environment.ROOT / "infra" / "terraform"
EXAMPLES: Final = ("minimal", "complete", "local")
FOLDERS: Final = (MODULE, *(MODULE / "examples" / name for name in EXAMPLES))
SCHEMA: Final = environment.HOME / "schema.json"
TIMEOUT_S: Final = 300.0


class Wrong(Exception):
    """A step found something; the text says what."""


@dataclass(frozen=True, slots=True)
class Step:
    """A proof: its name, what it says at its beginning, and what it does."""

    name: str
    says: str
    prove: Callable[[], str]


def check_format() -> str:
    """Have `terraform fmt` look at every file."""
    program = find_terraform()
    done = subprocess.run(
        [program, "fmt", "-check", "-recursive", "-diff", "-no-color", MODULE],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    if done.returncode:
        raise Wrong(f"not as `terraform fmt` writes it:\n{done.stdout}{done.stderr}")
    return "all files as `terraform fmt` writes them"


def write_schema() -> None:
    """Write down what the bindings tell of the types that the module uses."""
    wanted = {name for folder in FOLDERS for name in used_types(folder)}
    version, document = read_bindings(environment.bindings_wheel(), wanted)
    SCHEMA.write_text(json.dumps({"provider_version": version, **document}))


def check_arguments() -> str:
    """Hold the module and its examples against the schema of version 6."""
    document = json.loads(SCHEMA.read_text())
    found = [f"{folder.name}/{text}" for folder in FOLDERS for text in problems(folder, document)]
    if found:
        raise Wrong("\n".join(found))
    count = sum(count_blocks(folder) for folder in FOLDERS)
    return f"provider {document['provider_version']} knows every argument of {count} blocks"


def check_by_schema() -> str:
    """Validate and test with a provider that has the schema of version 6 and nothing else."""
    with tempfile.TemporaryDirectory() as scratch:
        program = write_program(Path(scratch) / "provider", environment.PYTHON)
        return _validate_and_test(
            Path(scratch), from_program(program), {SCHEMA_VARIABLE: str(SCHEMA)}, initialised=True
        )


def check_by_provider() -> str:
    """Validate and test with the real provider, where there is one."""
    with tempfile.TemporaryDirectory() as scratch:
        mirror = find_mirror()
        told = _validate_and_test(Path(scratch), from_mirror(mirror), {}, initialised=False)
        return f"provider {mirror.version}: {told}"


def _validate_and_test(
    scratch: Path, installation: str, variables: dict[str, str], *, initialised: bool
) -> str:
    copy = scratch / "infra" / "terraform"
    shutil.copytree(MODULE, copy)
    zipped = scratch / "build" / "dynsched-lambda.zip"  # the module asks whether it is there
    zipped.parent.mkdir()
    zipped.touch()
    folders = [copy, *(copy / "examples" / name for name in EXAMPLES)]
    for folder in folders:
        inside = scratch / f"of-{folder.name}"
        inside.mkdir()
        terraform = Terraform(
            program=find_terraform(),
            folder=folder,
            scratch=inside,
            installation=installation,
            environment=variables,
        )
        # A provider that stands in for another has no version to note; modules are linked anyway.
        verb = ("get",) if initialised else ("init", "-backend=false", "-input=false")
        terraform.run(*verb)
        terraform.run("validate")
        if folder is copy:
            tested = terraform.run("test").strip().splitlines()[-1]
    return f"{len(folders)} modules valid; tests: {tested}"


def check_policies() -> str:
    """Have checkov look for what is not secure."""
    command = [
        str(environment.PYTHON.parent / "checkov"),
        *("--directory", str(MODULE), "--config-file", str(MODULE / ".checkov.yaml")),
        *("--skip-download", "--compact", "--quiet"),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        cwd=environment.HOME,
    )
    if done.returncode or "Passed checks: 0" in done.stdout:
        raise Wrong(f"checkov:\n{done.stdout}{done.stderr}")
    return next(line for line in done.stdout.splitlines() if line.startswith("Passed checks"))


STEPS: Final = (
    Step("fmt", "the files' form", check_format),
    Step("arguments", "names and nesting, by the bindings of version 6", check_arguments),
    Step("schema", "validate and test, by the schema of version 6", check_by_schema),
    Step("provider", "validate and test, by the real provider", check_by_provider),
    Step("checkov", "security rules", check_policies),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step: `told` of what it proved, found or lacked."""

    step: Step
    told: str
    found: bool = False
    skipped: bool = False


def carry_out(step: Step) -> Outcome:
    """Carry out a step."""
    try:
        return Outcome(step, step.prove())
    except ToolsMissing as missing:
        return Outcome(step, str(missing), skipped=True)
    except (Wrong, TerraformFailed, subprocess.TimeoutExpired) as wrong:
        return Outcome(step, str(wrong), found=True)


def report(outcomes: Sequence[Outcome]) -> None:
    """Print what was found, what was left out, and what was never claimed."""
    for outcome in outcomes:
        if outcome.skipped:
            print(f"SKIPPED infra {outcome.step.name} ({outcome.step.says}): {outcome.told}")
        if outcome.found:
            print(f"infra {outcome.step.name} FAILED: {outcome.told}", file=sys.stderr)
    print("Nothing here was applied to AWS.")


def main(arguments: Sequence[str]) -> int:
    """Carry the steps out, two at a time; the exit code says whether one found something."""
    known = [step.name for step in STEPS]
    unknown = [name for name in arguments if name not in known]
    if unknown:
        print(f"no step {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    try:
        environment.set_up()
        write_schema()
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, NotInBindings) as failure:
        print(f"infra could not begin: {failure}", file=sys.stderr)
        return 1
    steps = [step for step in STEPS if not arguments or step.name in arguments]
    outcomes = []
    with ThreadPoolExecutor(2) as pool:
        for outcome in pool.map(carry_out, steps):
            outcomes.append(outcome)
            if not outcome.found and not outcome.skipped:
                print(f"infra {outcome.step.name}: {outcome.step.says}: {outcome.told}", flush=True)
    report(outcomes)
    return int(any(outcome.found for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
