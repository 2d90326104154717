"""The scenes that snapshots are taken of; each screen has one at least."""

from __future__ import annotations

from dynsched.domain.access import Access, Role
from tests.console.party_scenes import PARTY_SCENES
from tests.console.snapshots import Scene
from tests.console.stage import HOSTILE, Stage


def busy(stage: Stage) -> None:
    """Put runs of several states and tenants onto the stage."""
    for number in range(12):
        stage.run(tenant="globex" if number % 3 == 0 else "acme")
    for address in ("bad@", "worse@", "bad@"):
        stage.run(address, tenant="initech")
    stage.wait()
    stage.wait(tenant="globex")


def hostile(stage: Stage) -> None:
    """Put a run onto the stage whose payload and error attack the terminal."""
    stage.run(HOSTILE, tenant="acme")


VIEWER = Access(actor="eve@desk", role=Role.VIEWER, read_only=True, via="tui")

SCENES = (
    Scene(
        name="overview-empty",
        sentence="A new store: nothing is wrong, nothing has happened, and no worker is there.",
    ),
    Scene(
        name="overview",
        sentence="A store with three dead runs: what is wrong comes first, and every line leads.",
        set=busy,
    ),
    Scene(
        name="overview-read-only",
        sentence="The same for a viewer: the header says READ-ONLY, keys that change are grey.",
        set=busy,
        access=VIEWER,
        themes=("dark",),
    ),
    Scene(
        name="runs",
        sentence="Runs of all states, the newest first; state is a letter and a word.",
        place="runs",
        set=busy,
    ),
    Scene(
        name="runs-none",
        sentence="No run fits: the list says what to do instead of being blank.",
        place="runs",
        filter="tenant:nobody",
        set=busy,
        themes=("dark",),
    ),
    Scene(
        name="runs-marked",
        sentence="Three rows are marked, the detail pane is open, the list is sorted by state.",
        place="runs",
        keys=("s", "s", "space", "space", "space", "i"),
        set=busy,
        themes=("dark",),
    ),
    Scene(
        name="runs-mistake",
        sentence="A mistake in the filter: a caret at its column, and what was meant.",
        place="runs",
        keys=("slash", "s", "t", "a", "t", "colon", "d", "enter"),
        set=busy,
    ),
    Scene(
        name="runs-ansi",
        sentence="The terminal's own sixteen colours, for any palette that an operator has set.",
        place="runs",
        set=busy,
        themes=("ansi",),
    ),
    Scene(
        name="runs-hostile",
        sentence="Names and errors that attack the terminal are shown as what they are.",
        place="runs",
        set=hostile,
        themes=("dark",),
    ),
    Scene(
        name="run",
        sentence="A dead run: its state, why, the times, each attempt with its error, what to do.",
        place="runs",
        filter="state:dead",
        keys=("enter",),
        set=busy,
    ),
    Scene(
        name="confirm-one",
        sentence="One run: the dialog's default is Cancel, and the command line is there to copy.",
        place="runs",
        filter="state:dead",
        keys=("r",),
        set=busy,
    ),
    Scene(
        name="confirm-some",
        sentence="Some runs: the count is in the question and a reason is asked for.",
        place="runs",
        filter="state:dead",
        keys=("asterisk", "r"),
        set=busy,
        themes=("dark",),
    ),
    Scene(
        name="copy",
        sentence="The copy menu: what it offers, each with its beginning.",
        place="runs",
        filter="state:dead",
        keys=("y",),
        set=busy,
        themes=("dark",),
    ),
    Scene(
        name="keys",
        sentence="The page of keys of a list.",
        place="runs",
        keys=("question_mark",),
        set=busy,
        themes=("dark",),
    ),
    *PARTY_SCENES,
)
