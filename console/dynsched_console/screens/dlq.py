"""The dead-letter queue: first its error groups, then the dead runs of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from dynsched.domain.access import Action
from dynsched.domain.filters import GROUPS, parse, term_text
from dynsched.domain.health import ErrorGroup
from dynsched.domain.run import Run, RunState
from dynsched.domain.time_words import number, stamp, when
from dynsched.services.search import Found
from dynsched_console.charts import sparkline
from dynsched_console.clipboard import Copy
from dynsched_console.dialogs import command_line
from dynsched_console.replaying import Plan
from dynsched_console.screens.listing import ListScreen, mapped
from dynsched_console.screens.replay_actions import LoudReplays, Previews
from dynsched_console.screens.run_actions import RunActions, run_change, run_copies
from dynsched_console.screens.runs import RunRow
from dynsched_console.sheet import Link
from dynsched_console.table import Column
from dynsched_console.text import Line, Piece, ago, line, sentence_lines, short_error
from dynsched_console.themes import Tone

NAMED = 4  # tenants and jobs that the detail pane names
ERROR_LINES = 4
DISCARDED = "is:discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """An error group with what its row says besides.

    Attributes:
        group: the group.
        names: of its jobs, by id.
        at: when it was read.
    """

    group: ErrorGroup
    names: Mapping[str, str]
    at: datetime


def _named(counts: Mapping[str, int], names: Mapping[str, str]) -> str:
    """Return the first name, and how many others there are."""
    words = list(dict.fromkeys(names.get(one, one) for one in counts))
    return "".join(words[:1]) + (f" +{len(words) - 1}" if len(words) > 1 else "")


def _listed(counts: Mapping[str, int], names: Mapping[str, str]) -> str:
    words = [f"{names.get(one, one)} {count:,}" for one, count in list(counts.items())[:NAMED]]
    more = len(counts) - NAMED
    return ", ".join([*words, f"{more:,} more"] if more > 0 else words)


GROUP_COLUMNS: tuple[Column[GroupRow], ...] = (
    Column(name="count", letter="c", title="RUNS", columns=7, right=True,
           cell=lambda row: Piece(str(row.group.count)),
           sort=lambda row: row.group.count.count),
    Column(name="error", letter="e", title="ERROR", columns=34, stretch=True,
           cell=lambda row: Piece(short_error(row.group.error) or "(no error was told)")),
    Column(name="tenants", letter="t", title="TENANTS", columns=12, rank=2,
           cell=lambda row: Piece(_named(row.group.tenants, {}), Tone.MUTED),
           sort=lambda row: len(row.group.tenants)),
    Column(name="jobs", letter="j", title="JOBS", columns=14, rank=5,
           cell=lambda row: Piece(_named(row.group.jobs, row.names), Tone.MUTED),
           sort=lambda row: len(row.group.jobs)),
    Column(name="first", letter="f", title="FIRST", columns=7, right=True, rank=3,
           cell=lambda row: Piece(ago(row.group.first_seen, row.at), Tone.MUTED),
           sort=lambda row: row.group.first_seen),
    Column(name="last", letter="l", title="LAST", columns=7, right=True, rank=1,
           cell=lambda row: Piece(ago(row.group.last_seen, row.at)),
           sort=lambda row: row.group.last_seen),
    Column(name="hours", letter="h", title="DIED PER HOUR, 24H", columns=24, rank=4,
           cell=lambda row: Piece(sparkline(row.group.per_hour, 24), Tone.BUSY),
           sort=lambda row: row.group.per_hour[::-1]),
    Column(name="again", letter="a", title="AGAIN", columns=5, right=True, rank=1,
           cell=lambda row: _again(row.group),
           sort=lambda row: row.group.again),
    Column(name="group", letter="g", title="GROUP", columns=16, rank=6,
           cell=lambda row: Piece(row.group.signature, Tone.MUTED)),
)  # fmt: skip


def _again(group: ErrorGroup) -> Piece:
    return Piece(f"{group.again:,}", Tone.WARN) if group.again else Piece("–", Tone.MUTED)


class GroupsScreen(Previews, ListScreen[GroupRow]):
    """Error groups of the dead-letter queue, those with most runs first."""

    name_of_place = "dlq"
    columns = GROUP_COLUMNS
    vocabulary = GROUPS
    problems = "@dead-last-hour"
    CHANGES: ClassVar = {
        "preview_chosen": Action.BATCH_PREVIEW,
        "preview_all": Action.BATCH_PREVIEW,
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "preview_chosen", "replay group", id="dlq.replay"),
        Binding("R", "preview_all", "replay all that match", id="dlq.replay-all"),
    ]

    def fetch(self, text: str, cursor: str | None, limit: int) -> Found[GroupRow]:
        """Read one page of groups with the names of their jobs."""
        found = self.source.groups(text, limit=limit, cursor=cursor)
        names = self.source.job_names([job for group in found.items for job in group.jobs])
        now = self.source.now()
        return mapped(found, tuple(GroupRow(group=one, names=names, at=now) for one in found.items))

    def key(self, item: GroupRow) -> str:
        """Return the group's name."""
        return item.group.signature

    def _filter_of(self, *rows: GroupRow) -> str:
        """Return the filter of the dead runs of some groups that fit the list's filter."""
        return f"{term_text('group', *(row.group.signature for row in rows))} {self.filter}".strip()

    def open_item(self, item: GroupRow) -> None:
        """Show the group's runs, as far as they fit the filter."""
        self.desk.visit(Link(place="dead", subject=self._filter_of(item)))

    def empty(self) -> str:
        """Return what to say where there is no group."""
        if not self.filter:
            return "nothing is dead: no run has failed for good, or all were replayed or discarded"
        return "no dead run fits this filter (/ changes it)"

    def detail(self, item: GroupRow) -> list[Line]:
        """Return the whole error and whom it hit."""
        group = item.group
        seen = f"{when(group.first_seen, item.at)} to {when(group.last_seen, item.at)}"
        columns = max(self.size.width - 6, 20)
        rows = [line(one) for one in sentence_lines(group.error, columns, ERROR_LINES)]
        for name, words in (
            ("group    ", group.signature),
            ("died     ", seen),
            ("tenants  ", _listed(group.tenants, {})),
            ("jobs     ", _listed(group.jobs, item.names)),
            ("again    ", f"{group.again:,} died again after a replay"),
            ("newest   ", group.newest),
        ):
            rows.append(line(Piece(name, Tone.MUTED), words))
        if group.sampled < group.count.count:
            rows.append(
                line(Piece(f"of the newest {group.sampled:,} of {group.count}", Tone.MUTED))
            )
        return rows

    def copies_of(self, item: GroupRow) -> list[Copy]:
        """Return what can be copied of a group."""
        text = self._filter_of(item)
        return [
            Copy("group", item.group.signature),
            Copy("error", item.group.error),
            Copy("filter", text),
            Copy("command", command_line("dlq", "list", text)),
            Copy("preview", command_line(*Plan(filter=text).command)),
        ]

    @work
    async def action_preview_chosen(self) -> None:
        """Preview the replay of the marked groups, or of the one under the cursor."""
        rows = self.chosen_items()
        if rows:
            await self.preview(Plan(filter=self._filter_of(*rows)))

    @work
    async def action_preview_all(self) -> None:
        """Preview the replay of all dead runs that fit the filter."""
        await self.preview(Plan(filter=self.filter))


def _died(row: RunRow) -> Piece:
    run = row.run
    return Piece("" if run.ended_at is None else ago(run.ended_at, row.at))


def _replayed(row: RunRow) -> Piece:
    count = row.run.replays
    return Piece(f"{count}×", Tone.WARN) if count else Piece("–", Tone.MUTED)


DEAD_COLUMNS: tuple[Column[RunRow], ...] = (
    Column(name="died", letter="d", title="DIED", columns=7, right=True, cell=_died,
           sort=lambda row: row.run.ended_at),
    Column(name="job", letter="j", title="JOB", columns=16, cell=lambda row: Piece(row.job)),
    Column(name="tenant", letter="t", title="TENANT", columns=10, rank=1,
           cell=lambda row: Piece(row.run.tenant, Tone.MUTED)),
    Column(name="scheduled", letter="c", title="SCHEDULED FOR", columns=20, rank=3,
           cell=lambda row: Piece(stamp(row.run.scheduled_for), Tone.MUTED),
           sort=lambda row: row.run.scheduled_for),
    Column(name="attempt", letter="a", title="TRY", columns=3, right=True, rank=2,
           cell=lambda row: Piece(str(row.run.attempt)), sort=lambda row: row.run.attempt),
    Column(name="replays", letter="r", title="REPLAYED", columns=8, right=True, rank=2,
           cell=_replayed, sort=lambda row: row.run.replays),
    Column(name="error", letter="e", title="ERROR", columns=30, stretch=True,
           cell=lambda row: Piece(short_error(row.run.error))),
    Column(name="batch", letter="b", title="BATCH", columns=14, wide=True, rank=6,
           cell=lambda row: Piece(row.run.batch, Tone.MUTED)),
    Column(name="group", letter="g", title="GROUP", columns=16, wide=True, rank=6,
           cell=lambda row: Piece(row.run.signature, Tone.MUTED)),
    Column(name="id", letter="i", title="RUN", columns=46, wide=True, rank=7,
           cell=lambda row: Piece(row.run.run_id, Tone.MUTED)),
)  # fmt: skip


class DeadScreen(Previews, LoudReplays, RunActions, ListScreen[RunRow]):
    """Dead runs, the newest death first.

    Args:
        subject: the filter to begin with.
    """

    name_of_place = "dead"
    columns = DEAD_COLUMNS
    vocabulary = GROUPS
    problems = "@dead-again"
    CHANGES: ClassVar = {
        **RunActions.CHANGES,
        **LoudReplays.CHANGES,
        "replay": Action.BATCH_PREVIEW,
        "preview_all": Action.BATCH_PREVIEW,
        "restore": Action.RUN_RESTORE,
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "preview_all", "replay all that match", id="dlq.replay-all"),
        Binding("D", "discard", "discard", id="runs.discard"),
        Binding("h", "discarded", "show discarded", show=False, id="dead.discarded"),
        Binding("U", "restore", "restore", show=False, id="dead.restore"),
    ]

    def __init__(self, subject: str) -> None:
        super().__init__()
        self.subject = subject
        self.filter = subject

    def fetch(self, text: str, cursor: str | None, limit: int) -> Found[RunRow]:
        """Read one page of dead runs with the names of their jobs."""
        found = self.source.find_dead(text, limit=limit, cursor=cursor)
        names = self.source.job_names([run.job_id for run in found.items])
        now = self.source.now()
        rows = tuple(
            RunRow(run=run, job=names.get(run.job_id, run.job_id), at=now) for run in found.items
        )
        return mapped(found, rows)

    def key(self, item: RunRow) -> str:
        """Return the run's id."""
        return item.run.run_id

    def open_item(self, item: RunRow) -> None:
        """Open the run."""
        self.desk.visit(Link(place="run", subject=item.run.run_id))

    def empty(self) -> str:
        """Return what to say where there is no dead run."""
        if self._shows_discarded:
            return "nothing is discarded (h goes back)"
        return "nothing of this is dead any more (Esc goes back, / changes the filter)"

    def detail(self, item: RunRow) -> list[Line]:
        """Return the run with the whole of its error."""
        run = item.run
        columns = max(self.size.width - 6, 20)
        rows = [line(one) for one in sentence_lines(run.error, columns, ERROR_LINES)]
        for name, words in (
            ("run       ", run.run_id),
            ("died      ", "" if run.ended_at is None else when(run.ended_at, item.at)),
            ("tries     ", f"{run.attempt}, replayed {number(run.replays, 'time')}"),
            ("batch     ", run.batch or "–"),
        ):
            rows.append(line(Piece(name, Tone.MUTED), words))
        return rows

    def copies_of(self, item: RunRow) -> list[Copy]:
        """Return what can be copied of a run."""
        return [*run_copies(item.run), Copy("filter", self.filter)]

    def acted_on(self) -> list[Run]:
        """Return the marked runs, or the one under the cursor."""
        return [row.run for row in self.chosen_items()]

    @property
    def _shows_discarded(self) -> bool:
        return DISCARDED in self.filter.split()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for the key that cancels: what is dead has ended."""
        return False if action == "cancel_run" else super().check_action(action, parameters)

    @work
    async def action_replay(self) -> None:
        """Preview the replay of the marked runs, or of the one under the cursor."""
        await self.preview_runs([run for run in self.acted_on() if not run.hidden])

    @work
    async def action_preview_all(self) -> None:
        """Preview the replay of all dead runs that fit the filter."""
        await self.preview(Plan(filter=self.filter))

    def action_discarded(self) -> None:
        """Show those that were discarded instead, or go back."""
        words = parse(self.filter, GROUPS).text
        if self._shows_discarded:
            text = " ".join(word for word in words.split() if word != DISCARDED)
        else:
            text = f"{words} {DISCARDED}".strip()
        self.apply_filter(text)

    @work
    async def action_restore(self) -> None:
        """Show discarded runs again, after a yes."""
        runs = [run for run in self.acted_on() if run.state is RunState.DEAD and run.hidden]
        if not runs:
            self.notify("only discarded runs can be restored (h shows them)", markup=False)
            return
        change = run_change(
            runs,
            verb="Restore",
            words="Restore {}? They are in the dead-letter queue again.",
            command=("dlq", "restore"),
        )
        await self.change_each(runs, change, "restored", self._restore_one)

    def _restore_one(self, run: Run, reason: str) -> Run:
        return self.source.restore(run.run_id, reason=reason)
