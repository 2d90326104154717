"""Logs of the long-running commands: one readable line for each record, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import timedelta
from types import TracebackType

from dynsched.cli.visible import visible
from dynsched.domain.instants import EPOCH, to_text
from dynsched.domain.masking import PLAIN, Masker

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

LEVELS = ("debug", "info", "warning", "error")
ROOT = "dynsched"
LIBRARIES = ("boto3", "botocore", "urllib3", "asyncio")
EXTRA = ("job_id", "job_name", "run_id", "attempt", "tenant")
RUN_LINES_MAX = 50  # lines about single runs in one second; the others are counted
RUN_LOGGER = "dynsched.worker.runs"


class MaskingFormatter(logging.Formatter):
    """What both forms share: no secret that an error quotes gets into a log.

    Args:
        masker: its patterns.
    """

    def __init__(self, masker: Masker = PLAIN) -> None:
        super().__init__()
        self._masker = masker

    def message(self, record: logging.LogRecord) -> str:
        """Return a record's message, masked."""
        return self._masker.text(record.getMessage())

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802  # logging's name
        """Return a traceback, masked."""
        return self._masker.text(super().formatException(ei))


class LineFormatter(MaskingFormatter):
    """`HH:MM:SS level component message`, in UTC; tracebacks follow on lines of their own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = EPOCH + timedelta(seconds=record.created)
        level = record.levelname.lower()
        component = _component(record.name)
        line = f"{at:%H:%M:%S} {level:<7} {component:<10} {visible(self.message(record))}"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n    {visible(each)}" for each in trace.splitlines())
        return line


class JsonFormatter(MaskingFormatter):
    """One JSON object for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object on one line."""
        at = EPOCH + timedelta(seconds=record.created)
        document: dict[str, object] = {
            "at": to_text(at),
            "level": record.levelname.lower(),
            "component": _component(record.name),
            "message": self.message(record),
        }
        document |= {name: getattr(record, name) for name in EXTRA if hasattr(record, name)}
        if record.exc_info:
            document["trace"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)


class RunLines(logging.Filter):
    """Lets only so many lines about single runs through in one second, and counts the others."""

    def __init__(self) -> None:
        super().__init__()
        self._second = 0
        self._count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the record; the first of a second tells what was left out."""
        if record.levelno > logging.INFO:
            return True
        second = int(record.created)
        if second != self._second:
            left_out = self._count - RUN_LINES_MAX
            self._second, self._count = second, 0
            if left_out > 0:
                record.msg = f"{record.getMessage()} (and {left_out:,} more before it)"
                record.args = ()
        self._count += 1
        return self._count <= RUN_LINES_MAX


def _component(name: str) -> str:
    """Return the part of the program that a logger belongs to.

    >>> _component("dynsched.dispatcher"), _component("dynsched.worker.runs"), _component("x.y")
    ('dispatcher', 'worker', 'x.y')
    """
    head, _, rest = name.partition(".")
    return rest.partition(".")[0] or head if head == ROOT else name


class StderrHandler(logging.Handler):
    """Writes to whatever standard error is at the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a reader that has left is no reason to stop working."""
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            pass
        except Exception:  # noqa: BLE001  # a record that cannot be formatted must not end a loop
            self.handleError(record)


def configure_logging(level: str, *, as_json: bool = False, masker: Masker = PLAIN) -> None:
    """Write records of a level and above to standard error, those of libraries from warning on."""
    handler = StderrHandler()
    handler.setFormatter(JsonFormatter(masker) if as_json else LineFormatter(masker))
    root = logging.getLogger()
    for old in root.handlers[:]:
        if isinstance(old, StderrHandler):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    runs = logging.getLogger(RUN_LOGGER)
    for former in runs.filters[:]:
        runs.removeFilter(former)
    runs.addFilter(RunLines())
