"""A store full of texts that attack a terminal, in every field that a screen may show."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, replace
from datetime import timedelta

from rich.cells import cell_len

from dynsched.domain.access import Action, Role
from dynsched.domain.audit import AuditEntry, AuditOutcome
from dynsched.domain.job import Job, JobState
from dynsched.domain.lifecycle import Transition
from dynsched.domain.moves import Event
from dynsched.domain.retry import RetryPolicy
from dynsched.domain.run import Run
from dynsched.domain.target import HandlerTarget
from dynsched.domain.visible import width
from dynsched.services.specs import CronSpec, JobSpec, default_policies
from dynsched.storage.control import Session
from dynsched.storage.runs import Attempt, ProgressNote
from tests.console.stage import Player, Stage

ATTACKS = {
    "clear": "\x1b[2J\x1b[H\x1b[?1049l\x9b2J cleared",
    "title": "\x1b]0;owned\x07 title \x1b]2;owned\x1b\\",
    "clipboard": "\x1b]52;c;ZWNobyBvd25lZA==\x07 clipboard",
    "link": "\x1b]8;;https://evil.example\x1b\\click me\x1b]8;;\x1b\\",
    "turned": "\u202egnp.exe\u2066\u2069 \u200f turned",
    "nothing": "a\u200b\u200d\u2060\ufeff\u00ad\u034f\u3164 hides",
    "marks": "z" + "\u0336\u0301\u0489" * 30 + " climbs",
    "wide": "東京都" * 30 + " \uff21\uff22 wide",
    "emoji": "🚀👩\u200d💻❤\ufe0f👍🏽🇱🇻1\ufe0f\u20e3 " * 9,
    "markup": "[bold red]x[/] [@click=app.quit]quit[/] [link=https://evil.example]a[/link] \\[",
    "lines": "one\ttwo\nthree\r\nfour\x0bfive\x0csix\u2028seven\u2029eight\x85nine\x00\x7f",
    "long": "A" * 1_000_000,
    "halves": "\ud800 half \udfff",
}
"""By what they do; each is put where job names, reasons, errors, tags and hosts are shown."""
DRAWN_ROUNDS = 100
HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


@dataclass(frozen=True, slots=True)
class Besieged:
    """What lies in the store, of each attack one.

    Attributes:
        jobs: by attack.
        runs: dead runs by attack.
        batch: a replay batch.
    """

    jobs: dict[str, Job]
    runs: dict[str, Run]
    batch: str


def besiege(stage: Stage, texts: dict[str, str] | None = None) -> Besieged:
    """Put every text into every field that can hold it, below what checks the verbs make.

    Args:
        stage: where.
        texts: by name; by default the attacks.
    """
    if texts is None:
        # A store refuses half a surrogate pair, so there is none in it.
        texts = {name: text for name, text in ATTACKS.items() if name != "halves"}
    jobs = {name: _job(stage, name, text) for name, text in texts.items()}
    runs = {name: _run(stage, jobs[name], text) for name, text in texts.items()}
    for name, text in texts.items():
        _audit(stage, name, text, jobs[name])
        _worker(stage, name, text)
    draft = stage.source.operations.preview_replay("", reason="all of it")
    text = texts["clear"] + texts["turned"]
    batch = replace(draft, reason=text, why=text, actor=text, notes=(text,))
    assert stage.base.store.batches.replace(batch) is not None
    return Besieged(jobs, runs, draft.batch_id)


def _job(stage: Stage, name: str, text: str) -> Job:
    """Make a job, then write over its row what no verb would let in."""
    schedule = CronSpec(expr="30 9 * * mon-fri", tz="Europe/Riga")
    once = RetryPolicy(max_attempts=1)
    made = stage.source.operations.create(
        JobSpec(
            name=f"{name}-{'n' * 50}"[:64],
            tenant="acme",
            target=HandlerTarget("mail"),
            schedule=schedule,
            policies=replace(default_policies(schedule), retry=once),
            payload="good",
        )
    )
    paused = replace(
        made,
        name=text[:200],
        state=JobState.PAUSED,
        reason=text,
        tags={"team": text, text[:50]: "x"},
        payload=json.dumps({text[:100]: text[:100_000]}),
        version=made.version + 1,
    )
    stage.base.store.jobs.replace(paused, made.version)
    return paused


def _run(stage: Stage, job: Job, text: str) -> Run:
    """Let a run die, then write the text over what it says, with a try and a report of it."""
    store, now = stage.base.store, stage.clock.now()
    made = stage.source.operations.enqueue(job.job_id, text[:100_000].encode(
        "utf-8", "replace").decode())  # fmt: skip
    stage.scheduler.run_due()
    before = store.runs.get(made.key)
    assert before is not None
    after = before.changed(error=text, reason=text, version=before.version + 1)
    store.runs.apply(Transition(Event.BURY, before, after))
    expires = after.expires_at_s or 2_000_000_000
    store.runs.note_attempts([
        Attempt(
            run_id=made.run_id, number=9, fence=9, session=text[:300], outcome=outcome,
            started_at=now, ended_at=now, error_type=text[:300], message=text, detail=text,
            output=text, by=text[:300], batch=text[:300], order=order, expires_at_s=expires,
        )
        for order, outcome in enumerate(("failed", "replayed"))
    ])  # fmt: skip
    note = ProgressNote(run_id=made.run_id, attempt=1, done=1, total=3, note=text[:500], at=now)
    store.runs.note_progress(note, expires)
    stage.clock.step(seconds=1)
    return after


def _audit(stage: Stage, name: str, text: str, job: Job) -> None:
    stage.base.store.audit.begin(
        AuditEntry(
            entry_id=f"e{name}", at=stage.clock.now(), actor=text[:300], role=Role.ADMIN,
            via="tui", action=Action.JOB_PAUSE, target=f"job:{job.job_id}", tenant="acme",
            reason=text, outcome=AuditOutcome.FAILED, note=text, details={text[:40]: text},
        )
    )  # fmt: skip


def _worker(stage: Stage, name: str, text: str) -> None:
    now = stage.clock.now()
    stage.base.store.control.write_session(
        Session(
            session=f"s{name}", started_at=now, expires_at=now + timedelta(hours=1),
            host=text[:2_000].encode("utf-8", "replace").decode(), pid=7, slots=3,
            queues=(text[:50].encode("utf-8", "replace").decode(), "main"),
        )
    )  # fmt: skip


async def assert_harmless(player: Player, size: tuple[int, int]) -> None:
    """Check that what is drawn holds nothing that a terminal obeys, and fills it exactly."""
    columns, height = size
    for _ in range(DRAWN_ROUNDS):  # a dialog that was opened in a worker may not be laid out yet
        if len(player.strips()) == height:
            break
        await player.settle()
    strips = player.strips()
    assert len(strips) == height, f"{len(strips)} lines are drawn"
    for number, strip in enumerate(strips):
        text = strip.text
        hidden = [letter for letter in text if unicodedata.category(letter) in HIDDEN]
        assert hidden == [], f"line {number}: {text!r}"
        assert (cell_len(text), width(text)) == (columns, columns), f"line {number}: {text!r}"
        for segment in strip:
            assert segment.control is None
            assert segment.style is None or segment.style.link is None
