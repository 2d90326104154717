"""The list of tenants: what each may run at once, what of it runs, waits and died."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from dynsched.domain.access import Action
from dynsched.domain.filters import TENANTS
from dynsched.errors import InvalidInput
from dynsched.services.search import Found
from dynsched.services.tenant_views import TenantShare
from dynsched_console.ask import AskLine
from dynsched_console.charts import bar
from dynsched_console.clipboard import Copy
from dynsched_console.dialogs import Change, command_line
from dynsched_console.screens.listing import ListScreen
from dynsched_console.sheet import Link
from dynsched_console.table import Column
from dynsched_console.text import Line, Piece, line
from dynsched_console.themes import Tone

BAR = 10
UNCOUNTED = "few"  # beyond the busiest, which alone are counted


def _count(value: object) -> Piece:
    if value is None:
        return Piece(UNCOUNTED, Tone.MUTED)
    words = f"{value:,}" if isinstance(value, int) else str(value)
    return Piece(words, Tone.MUTED if words == "0" else Tone.PLAIN)


def _cap(one: TenantShare) -> Piece:
    if one.cap is None:
        return Piece("–", Tone.MUTED)
    return Piece(
        f"{one.cap} full" if one.full else f"{one.cap}", Tone.WARN if one.full else Tone.PLAIN
    )


def _share(one: TenantShare) -> Piece:
    """Return which part of all that runs is the tenant's, as a figure and a bar."""
    drawn = bar(one.share, 1.0, BAR).rstrip()
    return Piece(f"{one.share:>4.0%} {drawn}", Tone.BUSY if one.share else Tone.MUTED)


def _dead(one: TenantShare) -> Piece:
    return Piece(f"{one.dead:,}", Tone.BAD) if one.dead else _count(one.dead)


COLUMNS: tuple[Column[TenantShare], ...] = (
    Column(name="tenant", letter="t", title="TENANT", columns=14, stretch=True,
           cell=lambda one: Piece(one.tenant)),
    Column(name="waiting", letter="n", title="WAITING", columns=8, right=True,
           cell=lambda one: _count(one.waiting),
           sort=lambda one: None if one.waiting is None else one.waiting.count),
    Column(name="running", letter="r", title="RUNNING", columns=7, right=True,
           cell=lambda one: _count(one.running), sort=lambda one: one.running),
    Column(name="cap", letter="c", title="CAP", columns=8, right=True, cell=_cap,
           sort=lambda one: one.cap),
    Column(name="dead", letter="d", title="DIED 1H", columns=7, right=True, rank=1, cell=_dead,
           sort=lambda one: one.dead),
    Column(name="share", letter="s", title="SHARE", columns=BAR + 6, rank=2,
           cell=_share, sort=lambda one: one.share),
)  # fmt: skip


def read_cap(text: str) -> int | None:
    """Return the cap that a text means; None for `none`.

    Raises:
        InvalidInput: it is neither a number nor none.

    >>> read_cap("5"), read_cap("none")
    (5, None)
    """
    if text.lower() == "none":
        return None
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput("cap", f"{text[:20]!r} is no number", "give 1 to 1000, or none")
    return int(text)


class TenantsScreen(ListScreen[TenantShare]):
    """Tenants by a filter, those that have most waiting first."""

    name_of_place = "tenants"
    columns = COLUMNS
    problems = "is:full,hurt"
    vocabulary = TENANTS
    CHANGES: ClassVar = {"set_cap": Action.TENANT_SET}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("C", "set_cap", "set cap", id="tenants.cap"),
    ]

    def on_mount(self) -> None:
        """Begin with those that wait most."""
        self.table.sorting = ("waiting", True)
        super().on_mount()

    def fetch(self, text: str, cursor: str | None, limit: int) -> Found[TenantShare]:
        """Read one page of tenants."""
        return self.source.find_tenants(text, limit=limit, cursor=cursor)

    def key(self, item: TenantShare) -> str:
        """Return the tenant's name."""
        return item.tenant

    def open_item(self, item: TenantShare) -> None:
        """Open the tenant's runs."""
        self.desk.visit(Link(place="runs", filter=f"tenant:{item.tenant}"))

    def empty(self) -> str:
        """Return what to say where there is no tenant."""
        if self.filter == self.problems:
            return "no tenant is at its cap, and nothing of theirs died in the last hour"
        return "no tenant fits this filter (/ changes it)" if self.filter else "no tenant has a job"

    def detail(self, item: TenantShare) -> list[Line]:
        """Return the tenant in a few lines."""
        cap = "none" if item.cap is None else f"{item.cap} runs at once"
        counted = "" if item.busy else "  not among the busiest, which alone are counted exactly"
        return [
            line(Piece(item.tenant, Tone.STRONG), Piece(counted, Tone.MUTED)),
            line(Piece("cap      ", Tone.MUTED), cap),
            line(
                Piece("running  ", Tone.MUTED), _count(item.running), f" of {item.total:,} of all"
            ),
            line(Piece("waiting  ", Tone.MUTED), _count(item.waiting)),
            line(Piece("died     ", Tone.MUTED), _dead(item), " in the last hour"),
        ]

    def copies_of(self, item: TenantShare) -> list[Copy]:
        """Return what can be copied of a tenant."""
        return [
            Copy("name", item.tenant),
            Copy("command", command_line("run", "list", f"tenant:{item.tenant}")),
        ]

    @work
    async def action_set_cap(self) -> None:
        """Ask for a cap, then for a yes, and set it."""
        one = self.table.current
        if one is None:
            return
        now = "none" if one.cap is None else str(one.cap)
        text = await self.app.push_screen_wait(
            AskLine(
                f"How many runs of tenant {one.tenant} at once? A number, or none (now {now})",
                value=now,
                check=read_cap,
            )
        )
        if text is None:
            return
        most = read_cap(text)
        after = "no cap" if most is None else f"at most {most} runs at once"
        change = Change(
            verb="Set cap",
            sentence=f"Cap tenant {one.tenant}: {after}, instead of {now}? Workers follow in 5 s.",
            count=1,
            command=("tenant", "set", one.tenant, "--max-running", text.lower()),
        )
        yes = await self.confirm(change)
        if yes is not None:
            await self.change(
                lambda: self.source.set_cap(one.tenant, most, reason=yes.reason),
                f"tenant {one.tenant}: {after}",
            )
