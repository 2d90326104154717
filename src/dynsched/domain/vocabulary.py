"""Vocabularies: what a filter may ask of runs, of jobs and of the audit.

A qualifier's kind says how its values are read and compared. A vocabulary is data, so that the
parser, the completion of consoles, the documentation and the search all read the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dynsched.domain.access import Action
from dynsched.domain.job import JobState, Priority
from dynsched.domain.run import RunState


class Kind(StrEnum):
    """How values of a qualifier are read and compared."""

    CHOICE = "choice"  # one of a few words
    NAME = "name"  # a tenant, a job, a queue: compared as a whole
    WORD = "word"  # an id or any other text: compared as a whole
    RUN_ID = "run id"  # the whole id of a run
    TEXT = "text"  # found anywhere inside, whatever its case
    NUMBER = "number"  # may be compared
    DURATION = "duration"  # may be compared
    TIME = "time"  # an instant, a date, or so long before or after now; may be compared
    TAG = "tag"  # key or key=value
    JSON = "json"  # a value inside a payload; numbers may be compared


COMPARED = frozenset({Kind.NUMBER, Kind.DURATION, Kind.TIME, Kind.JSON})
"""Kinds whose values may follow `>`, `>=`, `<` or `<=`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qualifier:
    """One thing that a filter may ask for.

    Attributes:
        name: what stands before the colon.
        kind: how its values are read.
        hint: what it means, a few words.
        choices: of a `CHOICE`, each with what it means (which may be empty).
        aliases: other names that are read and never printed.
        path: a path follows the name: `payload.order.id`.
    """

    name: str
    kind: Kind
    hint: str
    choices: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    path: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vocabulary:
    """All that filters of one kind of row may ask for.

    Attributes:
        name: which kind of row, plural.
        qualifiers: in the order in which people are shown them.
        bare: what a word without a qualifier is looked for in.
        named: shipped filters by the name that follows `@`, as text.
        hints: what each of them finds.
        run_ids: a bare word that is a whole run id is read as `id:`.
    """

    name: str
    qualifiers: tuple[Qualifier, ...]
    bare: str
    named: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)
    run_ids: bool = False

    def find(self, name: str) -> Qualifier | None:
        """Return the qualifier of a name or an alias, None if there is none."""
        for one in self.qualifiers:
            if name == one.name or name in one.aliases:
                return one
        return None

    @property
    def names(self) -> list[str]:
        """Return the names of all qualifiers, without aliases."""
        return [one.name for one in self.qualifiers]


def _choices(*words: str) -> Mapping[str, str]:
    return dict.fromkeys(words, "")


RUN_FLAGS: Mapping[str, str] = {
    "late": "started, or still waits, more than a minute after it was to start",
    "overdue": "ready and due for more than some seconds, and not taken",
    "retried": "tried more than once",
    "replayed": "was brought back from the dead",
    "discarded": "dead and hidden from the queue",
    "forced": "does not wait for other runs of its job",
    "asked": "was asked to stop",
    "stuck": "its worker is gone, or no living worker can run it",
}
JOB_FLAGS: Mapping[str, str] = {
    "scheduled": "has a schedule",
    "manual": "has none: runs are made by hand or by programs",
    "held": "paused, and its other runs wait too",
    "overdue": "its next occurrence is past and has no run yet",
    "skipped": "some occurrences were skipped",
}
PRIORITIES = _choices(*(one.value for one in Priority))
NAMED_RUNS: Mapping[str, str] = {
    "late": "state:ready is:late",
    "stuck": "is:stuck",
    "dead-last-hour": "state:dead dead:>-1h",
    "dead-again": "state:dead is:replayed",
    "expired": "state:leased is:stuck",
}
NAMED_HINTS: Mapping[str, str] = {
    "late": "still waiting more than a minute after they were to start",
    "stuck": "left by a worker that is gone, or that no living worker can run",
    "dead-last-hour": "dead since an hour or less",
    "dead-again": "replayed and dead again",
    "expired": "leased by a worker that is gone",
}


_ASKED_OF_RUNS = (
    Qualifier(name="job", kind=Kind.NAME, hint="of this job, by name or id"),
    Qualifier(name="tenant", kind=Kind.NAME, hint="of this tenant"),
    Qualifier(
        name="prio",
        kind=Kind.CHOICE,
        hint="of this priority",
        choices=PRIORITIES,
        aliases=("priority",),
    ),
    Qualifier(name="queue", kind=Kind.NAME, hint="in this queue"),
    Qualifier(
        name="worker",
        kind=Kind.WORD,
        hint="leased by the named worker, by session, host or ~invocation",
        aliases=("session",),
    ),
    Qualifier(
        name="kind",
        kind=Kind.CHOICE,
        hint="where it comes from",
        choices=_choices("scheduled", "manual", "backfill"),
    ),
    Qualifier(name="id", kind=Kind.RUN_ID, hint="this run"),
    Qualifier(name="err", kind=Kind.TEXT, hint="in its last error", aliases=("error",)),
    Qualifier(
        name="group",
        kind=Kind.WORD,
        hint="dead of this group of errors",
        aliases=("signature",),
    ),
    Qualifier(name="batch", kind=Kind.WORD, hint="replayed by this batch"),
    Qualifier(name="attempt", kind=Kind.NUMBER, hint="tries so far"),
    Qualifier(name="replays", kind=Kind.NUMBER, hint="how often it was replayed"),
    Qualifier(name="delay", kind=Kind.DURATION, hint="how late it started, or is by now"),
    Qualifier(name="sched", kind=Kind.TIME, hint="when it was scheduled for"),
    Qualifier(name="due", kind=Kind.TIME, hint="when it may start"),
    Qualifier(name="started", kind=Kind.TIME, hint="when its last try started"),
    Qualifier(name="ended", kind=Kind.TIME, hint="when it ended"),
    Qualifier(name="dead", kind=Kind.TIME, hint="when it died", aliases=("died",)),
    Qualifier(name="key", kind=Kind.WORD, hint="of this idempotency key"),
    Qualifier(name="tag", kind=Kind.TAG, hint="its job has this tag: key or key=value"),
    Qualifier(
        name="payload", kind=Kind.JSON, hint="this value lies there in its payload", path=True
    ),
    Qualifier(name="reason", kind=Kind.TEXT, hint="in the reason of its state"),
    Qualifier(name="is", kind=Kind.CHOICE, hint="what else holds of it", choices=RUN_FLAGS),
)


def _runs(name: str, states: Mapping[str, str]) -> Vocabulary:
    state = Qualifier(name="state", kind=Kind.CHOICE, hint="where it stands", choices=states)
    return Vocabulary(
        name=name,
        qualifiers=(state, *_ASKED_OF_RUNS),
        bare="id, job name or error",
        named=NAMED_RUNS,
        hints=NAMED_HINTS,
        run_ids=True,
    )


RUNS = _runs("runs", _choices(*(one.value for one in RunState)))
"""What a filter may ask of runs."""

GROUPS = _runs("dead runs", _choices(RunState.DEAD.value))
"""What a filter may ask of the runs in groups of errors; they are dead."""

JOBS = Vocabulary(
    name="jobs",
    qualifiers=(
        Qualifier(
            name="state",
            kind=Kind.CHOICE,
            hint="where it stands",
            choices=_choices(*(one.value for one in JobState if one is not JobState.DELETED)),
        ),
        Qualifier(name="name", kind=Kind.NAME, hint="called this", aliases=("job",)),
        Qualifier(name="tenant", kind=Kind.NAME, hint="of this tenant"),
        Qualifier(name="tag", kind=Kind.TAG, hint="with this tag: key or key=value"),
        Qualifier(name="queue", kind=Kind.NAME, hint="whose runs go to this queue"),
        Qualifier(
            name="prio",
            kind=Kind.CHOICE,
            hint="of this priority",
            choices=PRIORITIES,
            aliases=("priority",),
        ),
        Qualifier(name="target", kind=Kind.TEXT, hint="in the words of what it does"),
        Qualifier(name="id", kind=Kind.NAME, hint="of this id"),
        Qualifier(name="next", kind=Kind.TIME, hint="when its next occurrence is"),
        Qualifier(name="is", kind=Kind.CHOICE, hint="what else holds of it", choices=JOB_FLAGS),
    ),
    bare="id, name or target",
)
"""What a filter may ask of jobs."""

AUDIT = Vocabulary(
    name="audit",
    qualifiers=(
        Qualifier(name="actor", kind=Kind.WORD, hint="who did it, the whole name"),
        Qualifier(
            name="action",
            kind=Kind.CHOICE,
            hint="what was done",
            choices=_choices(*(one.value for one in Action)),
        ),
        Qualifier(name="target", kind=Kind.WORD, hint="to what: run:ID, job:ID, batch:ID, store"),
        Qualifier(name="tenant", kind=Kind.NAME, hint="whose it was"),
        Qualifier(
            name="outcome",
            kind=Kind.CHOICE,
            hint="how it went",
            choices=_choices("begun", "done", "failed", "refused"),
        ),
        Qualifier(
            name="via",
            kind=Kind.CHOICE,
            hint="through which door",
            choices=_choices("program", "cli", "tui", "web", "api", "stepper"),
        ),
        Qualifier(name="at", kind=Kind.TIME, hint="when"),
    ),
    bare="actor, target, reason or note",
)
"""What a filter may ask of the audit."""

TENANTS = Vocabulary(
    name="tenants",
    qualifiers=(
        Qualifier(name="tenant", kind=Kind.NAME, hint="called this"),
        Qualifier(name="cap", kind=Kind.NUMBER, hint="most runs at once"),
        Qualifier(
            name="is",
            kind=Kind.CHOICE,
            hint="what holds of it",
            choices={
                "busy": "among those with most waiting, running or dying",
                "capped": "has a cap",
                "full": "has as many runs running as its cap allows",
                "hurt": "has runs that died in the last hour",
                "waiting": "has runs that are due and wait",
            },
        ),
    ),
    bare="name",
)
"""What a filter may ask of tenants."""

WORKERS = Vocabulary(
    name="workers",
    qualifiers=(
        Qualifier(name="worker", kind=Kind.WORD, hint="its session", aliases=("session",)),
        Qualifier(name="host", kind=Kind.WORD, hint="on this host"),
        Qualifier(name="pid", kind=Kind.NUMBER, hint="its process"),
        Qualifier(name="queue", kind=Kind.NAME, hint="serves this queue"),
        Qualifier(name="slots", kind=Kind.NUMBER, hint="handlers that it runs at once"),
        Qualifier(name="leased", kind=Kind.NUMBER, hint="runs that it holds"),
        Qualifier(
            name="is",
            kind=Kind.CHOICE,
            hint="what holds of it",
            choices={
                "alive": "open, and its lease has not ended",
                "expired": "open, but not heard in time",
                "closed": "has gone, and still holds runs",
                "full": "holds as many runs as it has slots",
                "idle": "holds none",
            },
        ),
    ),
    bare="session, host or queue",
)
"""What a filter may ask of worker sessions."""
