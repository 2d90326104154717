"""`python -m dynsched_console`: the console without the program `dynsched`, for trying it out."""

from __future__ import annotations

import argparse
import getpass
import os
import socket
import sys
from collections.abc import Sequence
from datetime import timedelta

from dynsched.bootstrap import DEFAULT_STORE, STORE_VARIABLE, open_base
from dynsched.domain.access import Access, Role
from dynsched.errors import DynschedError
from dynsched_console.app import REFRESH, main


def run_from(arguments: Sequence[str]) -> int:
    """Run the console from a command line of its own; return an exit code."""
    parser = argparse.ArgumentParser(prog="dynsched tui")
    parser.add_argument("--store", default=os.environ.get(STORE_VARIABLE, DEFAULT_STORE))
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--refresh", type=float, default=REFRESH.total_seconds())
    parser.add_argument("--screen", default="overview")
    parser.add_argument("--filter", default="")
    parser.add_argument("--theme", default="")
    parser.add_argument("--role", type=Role, default=Role.ADMIN)
    given = parser.parse_args(arguments)
    actor = f"{getpass.getuser()}@{socket.gethostname()[:40]}"
    access = Access(actor=actor, role=given.role, read_only=given.read_only, via="tui")
    try:
        return main(
            open_base(given.store),
            access,
            url=given.store,
            refresh=timedelta(seconds=given.refresh) if given.refresh > 0 else None,
            screen=given.screen,
            filter=given.filter,
            theme=given.theme,
        )
    except DynschedError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(run_from(sys.argv[1:]))
