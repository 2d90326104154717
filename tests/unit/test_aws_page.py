"""The page about AWS names commands, variables, outputs, calls and alarms that exist."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import botocore.session
import click
import pytest
from botocore import xform_name
from click.testing import CliRunner

from dynsched.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "infra/terraform"
PAGES = {name: (ROOT / "docs" / name).read_text("utf-8") for name in ("aws.md", "capacity.md")}
PAGE = PAGES["aws.md"]
CODE = [
    line.partition("  #")[0].strip()
    for page in PAGES.values()
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
]
INLINE = [found for page in PAGES.values() for found in re.findall(r"`([^`\n]+)`", page)]
LINES = sorted({part.strip() for text in CODE + INLINE for part in text.split("&&")})
# Of the command line itself, not of any service's operation.
AWS_ONLY = {"--query", "--output", "--since", "--filter-pattern"}
AWS_OWN = {("logs", "tail"), ("dynamodb", "wait")}
FUNCTIONS = ("dispatcher", "reaper", "worker")
# Of `dispatcher`, `reaper` and `worker`.
PARTS = {"reserved_concurrency"}
EACH_OF = {"silent": FUNCTIONS[:2], "errors": FUNCTIONS, "throttles": FUNCTIONS}


def commands(program: str) -> list[str]:
    """Return the lines of the pages that call a program, without variables before it."""
    found = [re.sub(r"^(?:export )?[A-Z_]+=\S+ ", "", line) for line in LINES]
    return [line for line in found if line.startswith(f"{program} ")]


@pytest.mark.parametrize("line", commands("dynsched"))
def test_every_command_of_the_pages_can_be_typed_so(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At night nobody wants to learn that an option was renamed; parsed is all, and not run."""
    parsed: list[str] = []
    monkeypatch.setattr(
        click.Command, "invoke", lambda _, context: parsed.append(context.info_name)
    )
    answer = CliRunner().invoke(main, shlex.split(line)[1:])
    assert answer.exit_code == 0, answer.output
    assert len(parsed) > 1  # the program, perhaps a group, and the command


@cache
def operations(service: str) -> dict[str, set[str]]:
    """Return a service's operations as the command line calls them, with their parameters."""
    model = botocore.session.get_session().get_service_model(service)
    found = {}
    for name in model.operation_names:
        shape = model.operation_model(name).input_shape
        members = shape.members if shape is not None else {}
        found[xform_name(name, "-")] = {f"--{xform_name(one, '-')}" for one in members}
    return found


@pytest.mark.parametrize("line", commands("aws"))
def test_every_call_of_aws_names_an_operation_and_its_parameters(line: str) -> None:
    """The provider's own description of its services is the judge."""
    service, operation, *words = shlex.split(line)[1:]
    if (service, operation) not in AWS_OWN:
        known = operations(service)[operation] | AWS_ONLY
        assert {word for word in words if word.startswith("--")} <= known


def blocks(kind: str) -> set[str]:
    """Return the names of the module's variables or outputs."""
    text = (MODULE / f"{kind}s.tf").read_text("utf-8")
    return set(re.findall(rf'^{kind} "(\w+)"', text, re.MULTILINE))


def test_every_variable_and_output_that_the_page_names_is_the_modules() -> None:
    """A name that was changed sends its reader into the wrong file."""
    set_so = re.findall(r"`(\w+) = [^`]+`", PAGE)
    assert len(set_so) > 8
    assert set(set_so) <= blocks("variable") | PARTS
    outputs = set(re.findall(r"`(\w+_(?:policy_json|url|urls))`", PAGE))
    outputs |= set(re.findall(r"terraform output (?:-raw )?(\w+)", PAGE))
    assert len(outputs) > 4
    assert outputs - blocks("variable") <= blocks("output")


def runbooks() -> list[str]:
    """Return the headings of the runbooks."""
    section = PAGE.partition("\n## Runbooks\n")[2].partition("\n## ")[0]
    return re.findall(r"^### (\S+)$", section, re.MULTILINE)


def anchors() -> set[str]:
    """Return the anchors that the module's alarms link to."""
    text = (MODULE / "alarms.tf").read_text("utf-8")
    found = set(re.findall(r'runbook\s*=\s*"([^"]+)"', text))
    plain = {one for one in found if "$" not in one}
    parts = {one.removeprefix("${name}-") for one in found - plain}
    assert parts == set(EACH_OF)
    return plain | {f"{name}-{part}" for part in parts for name in EACH_OF[part]}


def test_every_alarm_has_its_runbook_and_every_runbook_its_alarm() -> None:
    """Whoever is woken follows the alarm's link, and arrives."""
    assert len(runbooks()) == len(set(runbooks()))
    assert set(runbooks()) == anchors()


@pytest.mark.parametrize("name", runbooks())
def test_every_runbook_tells_what_to_do_in_the_same_order(name: str) -> None:
    """At three in the morning a page is read by its headings."""
    text = PAGE.partition(f"\n### {name}\n")[2].partition("\n### ")[0].partition("\n## ")[0]
    said = re.findall(r"^\*\*([A-Z][a-z ]+)\.?\*\*", text, re.MULTILINE)
    assert said == ["Means", "Look first", "Likely", "Mend", "Wake somebody"]
    assert "```sh\n" in text


def test_links_within_the_page_lead_to_headings() -> None:
    """Runbooks lead to one another."""
    for name, page in PAGES.items():
        heads = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
        for other, text in PAGES.items():
            wanted = re.findall(
                r"\]\(#([^)]+)\)" if other == name else rf"\]\({name}#([^)]+)\)", text
            )
            assert set(wanted) <= slugs, (other, name)
