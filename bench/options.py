"""What every benchmark is given."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """How to measure.

    Attributes:
        folder: where stores are made; emptied by the caller.
        quick: smaller and fewer rounds, for a first look.
    """

    folder: Path
    quick: bool = False


def say(text: str) -> None:
    """Tell on standard error what is going on, with the time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
