"""Forks: a process that a handler forks ends where the handler ends."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_process() -> Iterator[None]:
    """End the process here if it is not the one that came in.

    A handler that forks and returns in the child too would leave a second worker behind, one
    without its threads but with its sockets, files and locks. The child exits at once, without
    the cleaning up that is the worker's: 0 if it returned, the code of its `SystemExit`, else 1
    with a traceback on the error output.
    """
    worker = os.getpid()
    try:
        yield
    except BaseException as error:
        if os.getpid() != worker:
            _leave(error)
        raise
    if os.getpid() != worker:
        os._exit(0)


def _leave(error: BaseException) -> None:
    """End a forked process whose part of the handler raised; never returns."""
    code = 1
    try:
        if not isinstance(error, SystemExit):
            os.write(2, "".join(traceback.format_exception(error)).encode("utf-8", "replace"))
        elif error.code is None or isinstance(error.code, int):
            code = int(error.code or 0) & 0xFF
    finally:
        os._exit(code)
