"""The whole error tree: every failure that dynsched reports has a class, a code and fields here.

Losing a race is not an error: guarded writes answer ``Applied`` or ``Stale`` (see
`dynsched.storage.engine`). `EXIT_CODES` maps classes to process exit codes.
"""

from __future__ import annotations

from typing import ClassVar

POINTER_BEFORE, POINTER_AFTER = 60, 40  # characters around a filter's fault that are shown


class DynschedError(Exception):
    """Base of all errors that dynsched raises on purpose."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500


class InvalidInput(DynschedError):
    """A value given by a person or a program is wrong; nothing was written.

    Args:
        field: which value, in the words of the caller's interface (`"cron"`, `"--tz"`).
        problem: what is wrong with it, one clause.
        mend: what to give instead, one clause; may be empty.
    """

    code = "invalid_input"
    exit_code = 2
    http_status = 422

    def __init__(self, field: str, problem: str, mend: str = "") -> None:
        self.field, self.problem, self.mend = field, problem, mend
        super().__init__(f"{field}: {problem}" + (f" ({mend})" if mend else ""))


class FilterError(InvalidInput):
    """A filter cannot be read, or names what does not exist; it says where.

    Args:
        problem: what is wrong, one clause.
        mend: what to write instead, one clause; may be empty.
        column: where in the text, from 0; its length where something is missing at the end.
        text: the whole filter.
    """

    code = "bad_filter"

    def __init__(self, problem: str, mend: str, column: int, text: str) -> None:
        self.column, self.text = column, text
        super().__init__("filter", problem, mend)

    def pointer(self) -> tuple[str, str]:
        """Return two lines to show below the message: the text near the fault, and a caret."""
        first = max(0, self.column - POINTER_BEFORE)
        near = self.text[first : self.column + POINTER_AFTER]
        shown = "".join(letter if letter.isprintable() else "?" for letter in near)
        return shown, " " * (self.column - first) + "^"


class NotFound(DynschedError):
    """The named job, run or tenant does not exist."""

    code = "not_found"
    exit_code = 3
    http_status = 404

    def __init__(self, kind: str, name: str, mend: str = "") -> None:
        self.kind, self.name, self.mend = kind, name, mend
        super().__init__(f"no {kind} {name!r}" + (f" ({mend})" if mend else ""))


class Conflict(DynschedError):
    """The request cannot be carried out in the present state; nothing was written."""

    code = "conflict"
    exit_code = 4
    http_status = 409


class AlreadyExists(Conflict):
    """A job of that name exists already in the tenant."""

    code = "already_exists"
    exit_code = 2


class IllegalTransition(Conflict):
    """The lifecycle table has no such move from the run's present state."""

    code = "illegal_transition"


class LeaseLost(Conflict):
    """The caller's lease on a run is gone; its result may not be written any more."""

    code = "lease_lost"


class DamagedRow(DynschedError):
    """A row cannot be read: it was damaged, or a newer version of the program wrote it."""

    code = "damaged_row"
    exit_code = 6


class Rejected(DynschedError):
    """Admission or a cap refused the request; it may be sent again later."""

    code = "rejected"
    exit_code = 5
    http_status = 429


class Unauthenticated(DynschedError):
    """Nobody knows who asks: no token was shown, or it is not, or no longer, good."""

    code = "unauthenticated"
    exit_code = 7
    http_status = 401


class Forbidden(DynschedError):
    """The actor may not do this: its role, its limit, its tenant or read-only mode forbids it."""

    code = "forbidden"
    exit_code = 7
    http_status = 403


class StoreError(DynschedError):
    """The store did not do what was asked."""

    code = "store_error"
    exit_code = 6
    http_status = 503


class Throttled(StoreError):
    """The store asked for fewer requests; nothing was written, the same call may be sent again."""

    code = "throttled"


class Unavailable(StoreError):
    """The store could not be reached or answered with a fault; nothing was written."""

    code = "unavailable"


class OutcomeUnknown(StoreError):
    """A write was sent and its answer was lost: it may or may not have been applied.

    It is settled by reading the row again (see `dynsched.storage.steady`), never by repeating
    the write blindly.
    """

    code = "outcome_unknown"


class NotInitialised(StoreError):
    """The store has no dynsched tables, or tables of another schema version."""

    code = "not_initialised"
    exit_code = 2


class ClockSkewed(StoreError):
    """This process's clock differs from the store's by more than the clock bound."""

    code = "clock_skewed"
