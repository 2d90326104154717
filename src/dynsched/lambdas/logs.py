"""The functions' logs: no secret that an error quotes gets into what the runtime writes."""

from __future__ import annotations

import logging
import traceback
from types import TracebackType

from dynsched.domain.masking import Masker

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


class Masked(Exception):
    """Stands for an error whose text had something to hide."""


class MaskingFilter(logging.Filter):
    """Masks what a record says, with the error that it tells of.

    Args:
        masker: its patterns.
    """

    def __init__(self, masker: Masker) -> None:
        super().__init__()
        self._masker = masker

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; none is left out, and none raises: a handler's own log call may.

        What the call gave to fill in may not fit its text, or may not be told at all.
        """
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001  # whatever the arguments' own code raises
            text = f"{record.msg!r:.200} (what it is to be filled with does not fit)"
        record.msg, record.args = self._masker.text(text), ()
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_info = self._hidden(record.exc_info)
        return True

    def _hidden(self, told: ExcInfo) -> ExcInfo:
        """Return an error without what is to be hidden in it, its causes, its notes or its parts.

        Then only its own trace is left of theirs: theirs would be told with their texts.
        """
        kind, error, trace = told
        text = "".join(traceback.TracebackException(kind, error, None).format()).strip()
        shown = self._masker.text(text)
        return told if shown == text else (kind, Masked(shown), trace)


def mask_logs(masker: Masker) -> None:
    """Mask what the process's handlers of logs write from now on."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(one, MaskingFilter) for one in handler.filters):
            handler.addFilter(MaskingFilter(masker))
