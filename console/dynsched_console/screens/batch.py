"""One replay batch: its preview, and once it is confirmed its progress; all keys to steer it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from dynsched.domain.access import Action
from dynsched.domain.batch import Batch, BatchState, PauseCause
from dynsched_console.choices import ChoiceDialog, PlanDialog
from dynsched_console.clipboard import Copy
from dynsched_console.dialogs import Change, command_line
from dynsched_console.replaying import BatchScene, Plan
from dynsched_console.screens.base import SubjectScreen
from dynsched_console.screens.batch_rows import commands_of, rows_of
from dynsched_console.sheet import Link, SheetRow
from dynsched_console.text import Piece, line
from dynsched_console.themes import Tone

STEERED = (BatchState.RUNNING, BatchState.PAUSED)
ENDED = (BatchState.FINISHED, BatchState.ABORTED)
WHEN: dict[str, tuple[BatchState, ...]] = {
    "confirm_batch": (BatchState.DRAFT,),
    "pause_batch": STEERED,
    "abort_batch": (*STEERED, *ENDED),
    "pace": (BatchState.DRAFT, *STEERED),
    "rest": ENDED,
}
"""In which states each key does something; it is not there in others."""
LEAVE = "what was moved runs, what is left stays dead"
PULL_BACK = "and pull back: what was moved and not tried yet is dead again"


class BatchScreen(SubjectScreen):
    """One batch; its subject is the batch's id."""

    name_of_place = "batch"
    CHANGES: ClassVar = {
        "confirm_batch": Action.BATCH_CONFIRM,
        "pause_batch": Action.BATCH_PAUSE,
        "abort_batch": Action.BATCH_ABORT,
        "pace": Action.BATCH_PACE,
        "rest": Action.BATCH_PREVIEW,
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("C", "confirm_batch", "confirm", id="batch.confirm"),
        Binding("P", "pause_batch", "pause/resume", id="batch.pause"),
        Binding("A", "abort_batch", "abort", id="batch.abort"),
        Binding("e", "pace", "pace", id="batch.pace"),
        Binding("R", "rest", "replay the rest", id="batch.rest"),
        Binding("l", "entries", "entries", id="batch.entries"),
    ]

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.answer: BatchScene | None = None

    def reader(self) -> Callable[[], BatchScene]:
        """Return a call that reads the batch with what became of what it moved."""
        batch_id, source = self.subject, self.source
        return lambda: source.batch(batch_id)

    def answered(self, answer: BatchScene) -> None:
        """Show the batch, unless another one took its place meanwhile."""
        if answer.detail.batch.batch_id != self.subject:
            self.call_later(self.refresh_now)
            return
        super().answered(answer)
        self.refresh_bindings()

    def rows(self, answer: BatchScene) -> list[SheetRow]:
        """Return what the batch will do, or how far it is."""
        return rows_of(answer, max(self.size.width - 3, 40))

    @property
    def shown(self) -> Batch | None:
        """Return the batch as it was read last."""
        return None if self.answer is None else self.answer.detail.batch

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for a key that does nothing in the batch's state: it is not shown."""
        batch = self.shown
        if action in WHEN and (batch is None or batch.state not in WHEN[action]):
            return False
        return super().check_action(action, parameters)

    def copies(self) -> list[Copy]:
        """Return what can be copied of the batch."""
        batch = self.shown
        if batch is None:
            return []
        shown = Copy("command", command_line("replay", "status", batch.batch_id))
        same = [Copy(name, one) for name, one in zip(("preview", "confirm"), commands_of(batch),
                                                     strict=True)]  # fmt: skip
        return [Copy("id", batch.batch_id), shown, *same, Copy("filter", batch.filter)]

    def action_entries(self) -> None:
        """Show the entries."""
        self.desk.visit(Link(place="entries", subject=self.subject))

    # what changes it

    @work
    async def action_confirm_batch(self) -> None:
        """Start the draft, after a yes that grows with what it reaches."""
        scene = self.answer
        if scene is None:
            return
        batch = scene.detail.batch
        whose = f" of {batch.tenants:,} tenants" if batch.tenants > 1 else f" of {batch.tenant}"
        many = "1 dead run" if batch.planned == 1 else f"{batch.planned:,} dead runs"
        change = Change(
            verb="Replay",
            sentence=f"Replay {many}{whose}? Same keys, earlier attempts kept.",
            count=batch.planned,
            tenants=batch.tenants,
            command=("replay", "confirm", batch.batch_id, "--count", str(batch.planned)),
            lines=[line(Piece(one, Tone.MUTED)) for one in _expected(batch)],
        )
        yes = await self.confirm(change)
        if yes is not None:
            await self.change(
                lambda: self.source.confirm_batch(
                    batch.batch_id, reason=yes.reason, count=yes.count
                )
            )

    @work
    async def action_pause_batch(self) -> None:
        """Stop moving, or go on, after a yes."""
        batch = self.shown
        if batch is None:
            return
        if batch.state is BatchState.PAUSED:
            tripped = batch.cause is PauseCause.BREAKER
            seen = " The breaker paused it: say why it may go on." if tripped else ""
            change = Change(
                verb="Resume",
                sentence=f"Go on moving the {batch.left:,} runs that are left?{seen}",
                count=1,
                command=("replay", "resume", batch.batch_id),
                reasoned=tripped,
            )
            verb = self.source.resume_batch
        else:
            change = Change(
                verb="Pause",
                sentence=f"Pause? {batch.left:,} runs stay dead until it goes on.",
                count=1,
                command=("replay", "pause", batch.batch_id),
            )
            verb = self.source.pause_batch
        yes = await self.confirm(change)
        if yes is not None:
            await self.change(lambda: verb(batch.batch_id, reason=yes.reason))

    @work
    async def action_abort_batch(self) -> None:
        """End the batch, after the choice what becomes of what was moved, and a yes."""
        batch = self.shown
        if batch is None:
            return
        ways = [f"abort: {LEAVE}", f"abort {PULL_BACK}"]
        if batch.ended:
            ways = [PULL_BACK.removeprefix("and ")]
        chosen = await self.app.push_screen_wait(
            ChoiceDialog(f"{batch.moved:,} were moved, {batch.left:,} are left", ways)
        )
        if chosen is None:
            return
        pull_back = chosen == len(ways) - 1
        change = Change(
            verb="Pull back" if pull_back else "Abort",
            sentence=f"Abort this replay? {batch.left:,} runs stay dead, untouched."
            + (" What was moved and not tried yet is made dead again." if pull_back else ""),
            count=1,
            command=("replay", "abort", batch.batch_id, *(["--pull-back"] if pull_back else [])),
            destructive=True,
        )
        yes = await self.confirm(change)
        if yes is not None:
            await self.change(
                lambda: self.source.abort_batch(
                    batch.batch_id, reason=yes.reason, pull_back=pull_back
                )
            )

    @work
    async def action_pace(self) -> None:
        """Change how it is paced: all of it on a draft, which is previewed anew; later the rate."""
        batch = self.shown
        if batch is None:
            return
        # The rest of a batch cannot be previewed by its filter: it would choose other runs.
        only_rate = batch.state is not BatchState.DRAFT or bool(batch.parent)
        before = Plan.of(batch)
        plan = await self.app.push_screen_wait(
            PlanDialog(before, max(batch.left, 1), only_rate=only_rate)
        )
        if plan is None or plan == before:
            return
        if only_rate:
            await self.change(lambda: self.source.pace_batch(batch.batch_id, plan.rate))
            return
        draft = await self.change(lambda: self.source.preview(plan))
        if draft is not None:
            self.subject = draft.batch_id
            self.refresh_now()

    @work
    async def action_rest(self) -> None:
        """Preview what was not moved as a new batch."""
        draft = await self.change(lambda: self.source.rest_of_batch(self.subject))
        if draft is not None:
            self.desk.visit(Link(place="batch", subject=draft.batch_id))


def _expected(batch: Batch) -> list[str]:
    """Return what the question tells besides, short lines."""
    out = sum(batch.skipped_expected.values())
    waits = sum(batch.warned.values())
    found = [f"{out:,} more were found and are left out" if out else "",
             f"{waits:,} of them will wait" if waits else "",
             f"first {batch.canary} of them, as a canary" if batch.canary else ""]  # fmt: skip
    return [one for one in found if one]
