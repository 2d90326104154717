"""A provider that knows its schema and nothing else, so that Terraform itself checks against it.

Terraform starts it as a program; `DYNSCHED_SCHEMA` names a document as `bindings` makes it. With it
`terraform validate` and `terraform test` on a mocked provider run without any provider binary. It
plans and makes nothing.

It runs in the tools' own environment (see `tools.infra.environment`), by its path.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import tf.provider
from tf.gen import tfplugin_pb2, tfplugin_pb2_grpc
from tf.runner import run_provider

SCHEMA_VARIABLE: Final = "DYNSCHED_SCHEMA"
PROVIDER: Final = "registry.terraform.io/hashicorp/aws"
# What the examples say to the provider; its own settings are not in the bindings.
CONFIGURATION: Final = {
    "string": ("access_key", "region", "secret_key"),
    "bool": ("skip_credentials_validation", "skip_metadata_api_check", "skip_region_validation"),
}
TAGS: Final = {"tags": {"type": ["map", "string"], "optional": True}}
ENDPOINTS: Final = (
    "cloudwatch", "cloudwatchlogs", "dynamodb", "iam", "lambda", "scheduler", "sns", "sqs", "sts",
)  # fmt: skip
# The one argument that every resource has and that nobody sets.
COMPUTED_TOO: Final = "id"


def _attribute(name: str, attribute: dict[str, Any]) -> Any:
    required = attribute.get("required", False)
    return tfplugin_pb2.Schema.Attribute(
        name=name,
        type=json.dumps(attribute["type"]).encode(),
        required=required,
        optional=attribute.get("optional", False),
        computed=attribute.get("computed", False) or (name == COMPUTED_TOO and not required),
    )


def _nested(name: str, kind: dict[str, Any]) -> Any:
    mode = kind["nesting_mode"]
    # Terraform takes bounds only where there can be several.
    bounds = {} if mode == "single" else {b: kind.get(b, 0) for b in ("min_items", "max_items")}
    return tfplugin_pb2.Schema.NestedBlock(
        type_name=name,
        block=_block(kind["block"]),
        nesting=tfplugin_pb2.Schema.NestedBlock.NestingMode.Value(mode.upper()),
        **bounds,
    )


def _block(block: dict[str, Any]) -> Any:
    attributes, nested = block.get("attributes", {}), block.get("block_types", {})
    return tfplugin_pb2.Schema.Block(
        attributes=[_attribute(name, attributes[name]) for name in sorted(attributes)],
        block_types=[_nested(name, nested[name]) for name in sorted(nested)],
    )


def _configuration() -> dict[str, Any]:
    endpoints = {name: {"type": "string", "optional": True} for name in ENDPOINTS}
    return {
        "attributes": {
            name: {"type": kind, "optional": True}
            for kind, names in CONFIGURATION.items()
            for name in names
        },
        "block_types": {
            "default_tags": {"nesting_mode": "list", "block": {"attributes": TAGS}},
            "endpoints": {"nesting_mode": "set", "block": {"attributes": endpoints}},
        },
    }


def _schemas(entries: dict[str, Any]) -> dict[str, Any]:
    return {
        name: tfplugin_pb2.Schema(block=_block(entry["block"])) for name, entry in entries.items()
    }


class SchemaOnly(tfplugin_pb2_grpc.ProviderServicer):
    """Answers what Terraform asks before it would make anything."""

    def __init__(self, provider: object) -> None:
        document = json.loads(Path(os.environ[SCHEMA_VARIABLE]).read_text("utf-8"))
        self._schemas = document["provider_schemas"][PROVIDER]

    def GetProviderSchema(self, request: object, context: object) -> Any:  # noqa: N802
        """Return the schema."""
        return tfplugin_pb2.GetProviderSchema.Response(
            provider=tfplugin_pb2.Schema(block=_block(_configuration())),
            resource_schemas=_schemas(self._schemas["resource_schemas"]),
            data_source_schemas=_schemas(self._schemas["data_source_schemas"]),
        )

    def ValidateProviderConfig(self, request: object, context: object) -> Any:  # noqa: N802
        """Find nothing wrong: what is known of values Terraform has checked by the schema."""
        return tfplugin_pb2.ValidateProviderConfig.Response()

    def ValidateResourceConfig(self, request: object, context: object) -> Any:  # noqa: N802
        """Find nothing wrong."""
        return tfplugin_pb2.ValidateResourceConfig.Response()

    def ValidateDataResourceConfig(self, request: object, context: object) -> Any:  # noqa: N802
        """Find nothing wrong."""
        return tfplugin_pb2.ValidateDataResourceConfig.Response()

    def ConfigureProvider(self, request: object, context: object) -> Any:  # noqa: N802
        """Refuse: what would come next is a plan."""
        refusal = tfplugin_pb2.Diagnostic(
            severity=tfplugin_pb2.Diagnostic.ERROR,
            summary="this provider has a schema only; it plans and makes nothing",
        )
        return tfplugin_pb2.ConfigureProvider.Response(diagnostics=[refusal])

    def StopProvider(self, request: object, context: object) -> Any:  # noqa: N802
        """End."""
        return tfplugin_pb2.StopProvider.Response()


class _Named:
    def full_name(self) -> str:
        return "hashicorp/aws"


if __name__ == "__main__":
    # The package serves its own kind of provider, whose schemas know no list of blocks.
    tf.provider.ProviderServicer = SchemaOnly
    run_provider(_Named(), sys.argv)
