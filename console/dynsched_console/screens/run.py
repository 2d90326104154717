"""One run: where it stands and why, its attempts with their errors, its payload, what was done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import ClassVar

from textual.binding import Binding, BindingType

from dynsched.domain.instants import from_ms
from dynsched.domain.lease_words import holder_words
from dynsched.domain.run import Run, RunState
from dynsched.domain.time_words import number, stamp, when
from dynsched.services.documents import run_detail_document
from dynsched.storage.runs import Attempt
from dynsched_console.charts import bar
from dynsched_console.clipboard import Copy
from dynsched_console.screens.base import SubjectScreen
from dynsched_console.screens.replay_actions import LoudReplays
from dynsched_console.screens.run_actions import RunActions, run_copies
from dynsched_console.sheet import Link, SheetRow, row
from dynsched_console.source import RunScene
from dynsched_console.text import Piece, long, pad, sentence_lines, state_piece, wrapped
from dynsched_console.themes import Tone

LABEL = 15
PAYLOAD_LINES = 40
ERROR_LINES = 12
TRACE_LINES = 60
OUTCOMES = {
    "done": ("D", Tone.GOOD),
    "failed": ("F", Tone.WARN),
    "lost": ("L", Tone.BAD),
    "late": ("l", Tone.WARN),
    "handed back": ("H", Tone.MUTED),
    "cancelled": ("C", Tone.MUTED),
}


class RunScreen(LoudReplays, RunActions, SubjectScreen):
    """One run; its subject is the run's id."""

    name_of_place = "run"
    CHANGES: ClassVar = {**RunActions.CHANGES, **LoudReplays.CHANGES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "traces", "log of the attempts", id="run.traces"),
    ]

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.answer: RunScene | None = None
        self.traces = False

    def reader(self) -> Callable[[], RunScene]:
        """Return a call that reads the run with its attempts."""
        run_id, source = self.subject, self.source
        return lambda: source.run(run_id)

    def rows(self, answer: RunScene) -> list[SheetRow]:
        """Return the whole story, the present state first."""
        columns = max(self.size.width - 3, 40)
        found: list[SheetRow] = []
        for part in (_head, _times, _why, self._attempts, self._payload, _audit):
            found += [*part(answer, columns), SheetRow()]
        return found[:-1]

    def _attempts(self, scene: RunScene, columns: int) -> Iterator[SheetRow]:
        attempts = scene.detail.attempts
        yield row(Piece("Attempts", Tone.STRONG))
        if not attempts:
            yield row(Piece("  none has ended yet", Tone.MUTED))
            return
        head = f"  {'TRY':>3}  {'OUTCOME':<13}  {'STARTED':<20}  {'TOOK':>7}  {'FENCE':>5}  WORKER"
        yield row(Piece(head, Tone.MUTED))
        for one in attempts:
            yield _attempt_row(one)
            yield from _error_rows(one, columns)
            if self.traces:
                yield from _trace_rows(one, columns)

    def _payload(self, scene: RunScene, columns: int) -> Iterator[SheetRow]:
        yield row(Piece("Payload", Tone.STRONG), Piece("  secrets are masked", Tone.MUTED))
        payload = scene.detail.payload
        if payload is None:
            yield row(Piece("  that of its job", Tone.MUTED))
            return
        for one in wrapped(laid_out(payload), columns - 2, PAYLOAD_LINES):
            yield row("  ", one)

    def action_traces(self) -> None:
        """Show the ends of the attempts' logs, or hide them."""
        self.traces = not self.traces
        if self.answer is not None:
            self.answered(self.answer)

    def acted_on(self) -> list[Run]:
        """Return the run."""
        return [] if self.answer is None else [self.answer.detail.run]

    def copies(self) -> list[Copy]:
        """Return what can be copied, the whole of the last error too."""
        if self.answer is None:
            return []
        detail = self.answer.detail
        found = [one for one in run_copies(detail.run) if one.name not in ("error", "JSON")]
        tries = (one for one in reversed(detail.attempts) if not one.by_people)
        last = next((one for one in tries if one.message), None)
        error = "" if last is None else f"{last.error_type}: {last.message}\n{last.detail}"
        document = json.dumps(run_detail_document(detail), indent=2)
        hints = [Copy("mend", hint) for hint in self.answer.why.hints]
        return [
            *found,
            *hints,
            Copy("error", error or detail.run.error),
            Copy("JSON", document),
        ]


def _label(words: str) -> Piece:
    return Piece(pad(words, LABEL), Tone.MUTED)


def _head(scene: RunScene, columns: int) -> Iterator[SheetRow]:
    run, job = scene.detail.run, scene.detail.job
    name = run.job_id if job is None else job.name
    yield row(state_piece(run.state), "  ", Piece(name, Tone.STRONG),
              Piece(f"  tenant {run.tenant}", Tone.MUTED))  # fmt: skip
    yield row(_label("run"), run.run_id)
    for place, part in enumerate(sentence_lines(scene.why.headline, columns - LABEL)):
        yield row(_label("why" if place == 0 else ""), part)
    if run.signature:
        link = Link(place="dead", subject=f"group:{run.signature}")
        yield row(_label("group"), run.signature, Piece("  others like it", Tone.MUTED), link=link)
    if job is not None:
        link = Link(place="job", subject=job.job_id)
        yield row(_label("job"), job.name, Piece("  when it runs, its last runs", Tone.MUTED),
                  link=link)  # fmt: skip
    yield from _progress(scene)


def _progress(scene: RunScene) -> Iterator[SheetRow]:
    note = scene.detail.progress
    if note is None:
        return
    words = f"{note.done:g}" + ("" if note.total is None else f" of {note.total:g}")
    drawn = bar(note.done, note.total, 20) if note.total else ""
    yield row(_label("progress"), f"{words}  ", Piece(drawn, Tone.BUSY), f"  {note.note}")


def _times(scene: RunScene, columns: int) -> Iterator[SheetRow]:
    del columns
    run, now = scene.detail.run, scene.at
    running = run.state is RunState.LEASED
    expiry = None if run.expires_at_s is None else from_ms(run.expires_at_s * 1000)
    times: tuple[tuple[str, datetime | None], ...] = (
        ("scheduled for", run.scheduled_for),
        ("may start", None if run.terminal or running else run.available_at),
        ("first started", run.first_started_at),
        ("running since", run.leased_at if running else None),
        ("ended", run.ended_at),
        ("kept until", expiry),
    )
    for words, at in times:
        if at is not None:
            yield row(_label(words), when(at, now))
    yield row(
        _label("attempts"),
        f"{run.attempt + running}",
        Piece(f"  {run.spent} of {run.limit} failures spent", Tone.MUTED),
        Piece(f" · {run.losses} lost leases in a row" if run.losses else "", Tone.WARN),
        Piece(f" · replayed {number(run.replays, 'time')}" if run.replays else "", Tone.MUTED),
    )
    yield row(
        _label("runs on"),
        f"queue {run.queue}, priority {run.priority.value}, needs {run.needs}",
        Piece(f" · {_holder(run)}" if run.session else "", Tone.MUTED),
    )
    yield row(_label("key"), run.idempotency_key)


def _holder(run: Run) -> str:
    return holder_words(run) if run.fixed_lease else f"worker {run.session}"


def _why(scene: RunScene, columns: int) -> Iterator[SheetRow]:
    yield row(Piece("Why", Tone.STRONG))
    if not scene.why.sentences:
        yield row(Piece("  that is all there is to say", Tone.MUTED))
    for one in scene.why.sentences:
        for part in sentence_lines(one, columns - 2):
            yield row("  ", part)
    for hint in scene.why.hints:
        for place, part in enumerate(wrapped(hint, columns - 4, 3)):
            yield row(Piece("  $ " if place == 0 else "    ", Tone.MUTED), part)


def _audit(scene: RunScene, columns: int) -> Iterator[SheetRow]:
    yield row(Piece("What people did", Tone.STRONG))
    if not scene.audit:
        yield row(Piece("  nothing", Tone.MUTED))
    for one in scene.audit:
        words = " · ".join(filter(None, (one.note, one.reason)))
        yield row(
            f"  {stamp(one.at)}  {pad(one.actor, 20)}  {pad(one.action.value, 18)}  ",
            Piece(pad(one.outcome.value, 8), Tone.MUTED),
            f"  {words}",
        )
    del columns


def _attempt_row(one: Attempt) -> SheetRow:
    if one.by_people:
        batch = f" in batch {one.batch}" if one.batch else ""
        return row(
            Piece(f"  {'':>3}  {pad(f'R {one.outcome}', 13)}  ", Tone.MUTED),
            f"{pad(stamp(one.ended_at), 20)}  by {one.by}{batch}",
        )
    letter, tone = OUTCOMES.get(one.outcome, ("?", Tone.PLAIN))
    took = None if one.started_at is None else one.ended_at - one.started_at
    started = "–" if one.started_at is None else stamp(one.started_at)
    return row(
        f"  {one.number:>3}  ",
        Piece(pad(f"{letter} {one.outcome}", 13), tone),
        f"  {started:<20}  {long(took):>7}  {one.fence:>5}  ",
        Piece(one.session, Tone.MUTED),
    )


def _error_rows(one: Attempt, columns: int) -> Iterator[SheetRow]:
    error = ": ".join(filter(None, (one.error_type, one.message)))
    for part in wrapped(error, columns - 7, ERROR_LINES):
        yield row("       ", part)


def _trace_rows(one: Attempt, columns: int) -> Iterator[SheetRow]:
    text = one.detail + ("\n" + one.output if one.output else "")
    for part in wrapped(text, columns - 9, TRACE_LINES):
        yield row("       │ ", Piece(part, Tone.MUTED))


def laid_out(payload: str) -> str:
    """Return JSON text on lines of its own, big numbers and the order of keys as they are."""
    try:
        value = json.loads(payload, parse_float=_Exact, parse_int=int)
    except (ValueError, RecursionError):
        return payload
    return json.dumps(value, indent=2, ensure_ascii=False)


class _Exact(float):
    """A number that prints as it was written."""

    def __new__(cls, text: str) -> _Exact:
        """Keep the text."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str

    def __repr__(self) -> str:
        return self.text
