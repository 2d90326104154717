"""Hold every argument and block of a module against a provider's schema.

Names, nesting and presence; for types and values there is `terraform validate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tools.infra.hcl import Block, read_folder

PROVIDER: Final = "registry.terraform.io/hashicorp/aws"
PREFIX: Final = "aws_"
# What Terraform itself understands in any resource.
META_ARGUMENTS: Final = frozenset({"count", "depends_on", "for_each", "provider"})
META_BLOCKS: Final = frozenset({"lifecycle", "connection", "provisioner"})
SCHEMAS: Final = {"resource": "resource_schemas", "data": "data_source_schemas"}


def used_types(folder: Path) -> set[str]:
    """Return the types that a module uses, those of data sources with `data.` before."""
    return {
        ("data." if block.kind == "data" else "") + block.labels[0]
        for file in read_folder(folder).values()
        for block in file.blocks
        if block.kind in SCHEMAS and block.labels[0].startswith(PREFIX)
    }


def count_blocks(folder: Path) -> int:
    """Count what `problems` looks at."""
    files = read_folder(folder).values()
    return sum(block.kind in SCHEMAS for file in files for block in file.blocks)


def problems(folder: Path, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong in a module's files, as `file: type.name: what`.

    Args:
        folder: the module.
        document: in the form of `terraform providers schema -json`.
    """
    schemas = document["provider_schemas"][PROVIDER]
    for name, file in read_folder(folder).items():
        for block in file.blocks:
            if block.kind not in SCHEMAS or not block.labels[0].startswith(PREFIX):
                continue
            where = f"{name}: {'.'.join(block.labels)}"
            schema = schemas[SCHEMAS[block.kind]].get(block.labels[0])
            if schema is None:
                yield f"{where}: the provider has no such {block.kind}"
                continue
            yield from _in_block(block, schema["block"], where, top=True)


def _in_block(
    block: Block, schema: Mapping[str, Any], where: str, *, top: bool = False
) -> Iterator[str]:
    attributes, nested = schema.get("attributes", {}), schema.get("block_types", {})
    arguments = block.arguments.keys() - (META_ARGUMENTS if top else frozenset())
    inside = list(_inside(block, META_BLOCKS if top else frozenset()))
    for name in sorted(arguments):
        yield from _argument(name, attributes, nested, where)
    for name, inner in inside:
        if name not in nested:
            wrong = "an argument, written as a block" if name in attributes else "not known"
            yield f"{where}: {name} is {wrong}"
        else:
            yield from _in_block(inner, nested[name]["block"], f"{where}.{name}")
    given = {name for name, _ in inside}
    for name, attribute in attributes.items():
        if attribute.get("required") and name not in arguments:
            yield f"{where}: {name} is missing"
    for name, kind in nested.items():
        count = sum(one == name for one, _ in inside)
        if kind.get("min_items") and name not in given:
            yield f"{where}: the block {name} is missing"
        if kind.get("max_items") == 1 and count > 1:
            yield f"{where}: {count} blocks {name}, of which there can be one"


def _argument(
    name: str, attributes: Mapping[str, Any], nested: Mapping[str, Any], where: str
) -> Iterator[str]:
    if name in nested:
        yield f"{where}: {name} is a block, written as an argument"
    elif name not in attributes:
        yield f"{where}: {name} is not known"
    elif attributes[name].get("computed") and not attributes[name].get("optional"):
        yield f"{where}: {name} can only be read"


def _inside(block: Block, meta: frozenset[str]) -> Iterator[tuple[str, Block]]:
    """Yield the blocks that a provider sees, those that are made by `dynamic` too."""
    for inner in block.blocks:
        if inner.kind == "dynamic":
            yield from ((inner.labels[0], content) for content in inner.of_kind("content"))
        elif inner.kind not in meta:
            yield inner.kind, inner
