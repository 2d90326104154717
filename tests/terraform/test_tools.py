"""The project's own tools for Terraform see what they are there to see."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools.infra.arguments import problems, used_types
from tools.infra.bindings import PROVIDER, NotInBindings, read_bindings
from tools.infra.hcl import NotHcl, read_hcl
from tools.infra.terraform import (
    MIRROR_VARIABLE,
    ToolsMissing,
    find_mirror,
    platform_name,
)

PLUGIN = f"registry.terraform.io/hashicorp/aws/{{}}/{platform_name()}"
# As the generator writes it, with one argument, one nested block and one thing to read.
CODE = """\
class AwsThing extends cdktn.TerraformResource {
    constructor() { super({ terraformGeneratorMetadata: { providerVersion: '6.1.0', } }); }
    synthesizeHclAttributes() {
        const attrs = {
            kms_key: {
                value: cdktn.stringToHclTerraform(this._kmsKey),
                isBlock: false,
                type: "simple",
                storageClassType: "string",
            },
            tags: {
                value: cdktn.hashMapperHcl(cdktn.stringToHclTerraform)(this._tags),
                isBlock: false,
                type: "map",
                storageClassType: "stringMap",
            },
            part: {
                value: cdktn.listMapperHcl(awsThingPartPropertyToHclTerraform, true)(this._part),
                isBlock: true,
                type: "set",
                storageClassType: "AwsThing.PartPropertyList",
            },
        };
    }
}
AwsThing.tfResourceType = "aws_thing";
function awsThingPartPropertyToHclTerraform(struct) {
    const attrs = {
        size: {
            value: cdktn.numberToHclTerraform(struct.size),
            isBlock: false,
            type: "simple",
            storageClassType: "number",
        },
    };
}
"""
TYPES = """\
export interface AwsThingConfig extends cdktn.TerraformMetaArguments {
    readonly kmsKey: string;
    readonly tags?: {
        [key: string]: string;
    };
    readonly part?: AwsThing.PartProperty[] | cdktn.IResolvable;
}
export declare class AwsThing extends cdktn.TerraformResource {
    get kmsKey(): string;
    get kmsKeyInput(): string | undefined;
    get queueUrl(): string;
}
export declare namespace AwsThing {
    interface PartProperty {
        readonly size: number;
    }
}
"""
GOOD = """\
resource "aws_thing" "this" {
  for_each = toset(["a"])

  kms_key = "${var.a["{"]}"
  part {
    size = 1
  }
  dynamic "part" {
    for_each = [2]
    content {
      size = part.value
    }
  }
  lifecycle {
    prevent_destroy = true
  }
}
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Give bindings of a provider that has one resource."""
    bundle = io.BytesIO()
    with tarfile.open(fileobj=bundle, mode="w:gz") as files:
        for ending, text in (("js", CODE), ("d.ts", TYPES)):
            entry = tarfile.TarInfo(f"package/lib/things/aws-thing.{ending}")
            entry.size = len(text)
            files.addfile(entry, io.BytesIO(text.encode()))
    path = tmp_path / "bindings.whl"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("some/aws@0.jsii.tgz", bundle.getvalue())
    return path


def test_bindings_tell_names_nesting_and_what_is_required(wheel: Path) -> None:
    """The document is what `terraform providers schema -json` would print, as far as it goes."""
    version, document = read_bindings(wheel, {"aws_thing"})
    block = document["provider_schemas"][PROVIDER]["resource_schemas"]["aws_thing"]["block"]
    assert version == "6.1.0"
    assert block["attributes"] == {
        "kms_key": {"type": "string", "required": True},
        "tags": {"type": ["map", "string"], "optional": True},
        "queue_url": {"type": "string", "computed": True},
    }
    part = block["block_types"]["part"]
    assert (part["nesting_mode"], part["min_items"], "max_items" in part) == ("set", 0, False)
    assert part["block"]["attributes"] == {"size": {"type": "number", "required": True}}


def test_a_resource_that_the_provider_does_not_have_is_named(wheel: Path) -> None:
    """A misspelt type is told before anything else."""
    with pytest.raises(NotInBindings, match=r"provider 6\.1\.0 has no aws_think"):
        read_bindings(wheel, {"aws_thing", "aws_think"})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("kms_key =", "kms_kee =", "kms_kee is not known"),
        ('  kms_key = "${var.a["{"]}"\n', "", "kms_key is missing"),
        ("    size = 1\n", "", "part: size is missing"),
        ("size = part.value", "sise = part.value", "part: sise is not known"),
        ("  part {\n    size = 1\n  }", "  part = []", "part is a block, written as an argument"),
        ('"a"])\n', '"a"])\n  tags {}\n', "tags is an argument, written as a block"),
        ('"a"])\n', '"a"])\n  queue_url = "x"\n', "queue_url can only be read"),
        ("lifecycle {", "livecycle {", "livecycle is not known"),
        ('"aws_thing"', '"aws_thong"', "the provider has no such resource"),
    ],
)
def test_a_mistake_in_a_resource_is_found(
    wheel: Path, tmp_path: Path, old: str, new: str, told: str
) -> None:
    """A line names it; without the mistake there is none."""
    _, document = read_bindings(wheel, {"aws_thing"})
    (tmp_path / "main.tf").write_text(GOOD)
    assert list(problems(tmp_path, document)) == []
    (tmp_path / "main.tf").write_text(GOOD.replace(old, new, 1))
    assert any(told in found for found in problems(tmp_path, document))


def test_the_types_that_a_module_uses_are_found(tmp_path: Path) -> None:
    """Those of data sources are told from resources of the same name."""
    (tmp_path / "main.tf").write_text(GOOD + 'data "aws_thing" "that" {}\nlocals {}\n')
    assert used_types(tmp_path) == {"aws_thing", "data.aws_thing"}


@pytest.mark.parametrize("text", ["a = <<EOT\n", "= 1", "a b = 1", 'a = "${', "a {"])
def test_what_is_no_hcl_is_refused(text: str) -> None:
    """A file that cannot be read is not taken for one without mistakes."""
    with pytest.raises(NotHcl):
        read_hcl(text)


def test_a_mirror_is_found_wherever_it_lies(tmp_path: Path) -> None:
    """By its variable, or by its form in a folder of others; the newest version counts."""
    for version in ("5.99.0", "5.100.0"):
        (tmp_path / "any-name" / PLUGIN.format(version)).mkdir(parents=True)
    found = find_mirror({MIRROR_VARIABLE: str(tmp_path / "any-name")})
    assert (found.folder, found.version) == (tmp_path / "any-name", "5.100.0")


def test_a_machine_without_a_mirror_is_told_what_would_help(tmp_path: Path) -> None:
    """The proof that is left out says so; it does not fail."""
    with pytest.raises(ToolsMissing, match=rf"set {MIRROR_VARIABLE}"):
        find_mirror({MIRROR_VARIABLE: str(tmp_path)})


def test_the_mirrors_of_another_machine_are_not_taken(tmp_path: Path) -> None:
    """A provider for another platform does not run here."""
    (tmp_path / "registry.terraform.io/hashicorp/aws/5.100.0/plan9_mips").mkdir(parents=True)
    with pytest.raises(ToolsMissing):
        find_mirror({MIRROR_VARIABLE: str(tmp_path)})
