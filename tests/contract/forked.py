"""A forked child that ends where its work ends, whatever that raises."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def forked(work: Callable[[], object]) -> int:
    """Fork a child that does some work and ends; return its pid.

    What the work raises is the child's alone: one that let it out would go on as a second test
    runner, and report to the first one's controller.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001  # an interrupt, too, ends the child here
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)
