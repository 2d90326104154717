"""Make the schema-only provider a program that Terraform can start."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

SCHEMA_VARIABLE: Final = "DYNSCHED_SCHEMA"
SCRIPT: Final = Path(__file__).with_name("schema_provider.py")


def write_program(folder: Path, python: Path) -> Path:
    """Write the program into a new folder and return that.

    Args:
        folder: does not exist yet.
        python: the interpreter of the tools' environment.
    """
    folder.mkdir()
    program = folder / "terraform-provider-aws"
    program.write_text(
        f'#!/bin/sh\nexec {shlex.quote(str(python))} {shlex.quote(str(SCRIPT))} "$@"\n'
    )
    program.chmod(0o755)
    return folder
