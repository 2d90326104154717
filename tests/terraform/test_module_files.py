"""The Terraform module, as far as its files tell: no program is needed for these."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tools.infra.hcl import Block, read_folder, read_hcl
from tools.infra.readme import MODULE, README, renewed, undescribed

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path for path in (MODULE / "examples").iterdir() if path.is_dir())


def blocks_of(kind: str) -> list[Block]:
    """Return the module's blocks of one kind."""
    return [block for file in read_folder(MODULE).values() for block in file.of_kind(kind)]


def test_the_module_has_the_schema_of_the_package_byte_for_byte() -> None:
    """The module is taken by its folder, so it has a copy; no table differs by who made it."""
    package = ROOT / "src" / "dynsched" / "storage" / "schema.json"
    assert (MODULE / "schema.json").read_bytes() == package.read_bytes()


def test_the_readme_lists_the_inputs_and_outputs_there_are() -> None:
    """`make docs` was not forgotten."""
    text = README.read_text("utf-8")
    assert text == renewed(text, MODULE)


def test_every_variable_and_output_says_what_it_is() -> None:
    """Type, description, and whether null is a value."""
    assert list(undescribed(MODULE)) == []


def test_a_variable_may_be_null_only_where_null_means_none() -> None:
    """Elsewhere a caller who passes null on gets the default."""
    nullable = {
        block.labels[0] for block in blocks_of("variable") if block.arguments["nullable"] != "false"
    }
    defaults = {block.labels[0]: block.arguments.get("default") for block in blocks_of("variable")}
    assert {name for name, default in defaults.items() if default == "null"} == nullable


def test_every_validation_refuses_something_in_the_tests() -> None:
    """Each variable fails in as many runs as it has validations."""
    written = Counter(
        block.labels[0] for block in blocks_of("variable") for _ in block.of_kind("validation")
    )
    tested: Counter[str] = Counter()
    for run in read_hcl((MODULE / "tests" / "validations.tftest.hcl").read_text()).of_kind("run"):
        tested.update(re.findall(r"var\.(\w+)", run.arguments["expect_failures"]))
    assert tested == written


def test_every_variable_is_set_in_some_test() -> None:
    """A variable that no test sets may as well do nothing."""
    texts = "".join(path.read_text() for path in (MODULE / "tests").glob("*.tftest.hcl"))
    unset = [
        block.labels[0]
        for block in blocks_of("variable")
        if not re.search(rf"^\s+{block.labels[0]}\s+=", texts, re.MULTILINE)
    ]
    assert unset == []


def test_every_rule_of_checkov_that_is_left_out_has_a_reason() -> None:
    """Above each skipped rule stands why."""
    lines = (MODULE / ".checkov.yaml").read_text().splitlines()
    skipped = [place for place, line in enumerate(lines) if line.strip().startswith("- CKV")]
    assert skipped
    assert [lines[place] for place in skipped if "#" not in lines[place - 1]] == []


def test_the_module_configures_no_provider() -> None:
    """That belongs to the root module; one inside could never be taken away again."""
    assert blocks_of("provider") == []
    for folder in EXAMPLES:
        assert [file for file in read_folder(folder).values() if list(file.of_kind("provider"))]


def test_module_and_examples_ask_for_the_same_versions() -> None:
    """One range, which the proofs name."""
    asked = {
        (block.arguments["required_version"], needs.arguments["aws"].replace(" ", ""))
        for folder in (MODULE, *EXAMPLES)
        for file in read_folder(folder).values()
        for block in file.of_kind("terraform")
        for needs in block.of_kind("required_providers")
    }
    assert len(asked) == 1
    assert '">=5.100,<7.0"' in next(iter(asked))[1]
