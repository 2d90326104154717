"""That the mutations, which `make mutants` runs, do not rot."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.rules.mutation import Edit
from tests.rules.mutations import MUTATIONS

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent.parent / "src" / "dynsched"
EDITS = {f"{edit.path}: {edit.old}"[:80]: edit for one in MUTATIONS for edit in one.edits}


@pytest.mark.parametrize("edit", EDITS.values(), ids=list(EDITS))
def test_what_a_mutation_replaces_is_there_exactly_once(edit: Edit) -> None:
    """Else the rule would be taken out somewhere else, or nowhere, and its test prove nothing."""
    assert (SOURCES / edit.path).read_text("utf-8").count(edit.old) == 1


def test_every_test_of_a_mutation_exists() -> None:
    """A test that was renamed must not make its mutation look as if it were killed."""
    asked = {test.partition("[")[0] for one in MUTATIONS for test in one.tests}
    there = {
        node.name
        for path in HERE.glob("test_*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    assert asked - there == set()
    assert all(one.tests for one in MUTATIONS)


def test_every_rule_of_the_list_is_taken_out_or_said_to_be_missing() -> None:
    """The page of the rules names each with its tests; none is forgotten on either side."""
    page = (HERE / "README.md").read_text("utf-8")
    built, _, missing = page.partition("## Not built yet")
    row = r"^\| `(\w+)` \|"
    assert set(re.findall(row, built, re.MULTILINE)) == {one.rule for one in MUTATIONS}
    assert not set(re.findall(row, missing, re.MULTILINE)) & {one.rule for one in MUTATIONS}
