"""The scenes that snapshots are taken of; each screen has one at least."""

from __future__ import annotations

import shlex
import sys

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


def night(stage: Stage) -> None:
    """Let runs of three tenants die of three causes, some of them twice, over some hours."""
    for number in range(40):
        stage.run("bad@", tenant="initech" if number % 3 else "acme")
        stage.clock.step(minutes=7)
    for _ in range(6):
        stage.run({"order": 7}, tenant="globex")
    for number in (1, 2):
        run_id = stage.run([number], tenant="acme")
        stage.scheduler.operations.replay(run_id)
        stage.step()


def replaying(stage: Stage) -> None:
    """Start a replay of that night by somebody else, and let it go on for a while."""
    night(stage)
    operations = stage.source.operations
    draft = operations.preview_replay("tenant:initech", rate=2, reason="mail is back")
    first = stage.source.find_dead("tenant:initech", limit=100).items[-3]
    operations.confirm_replay(draft.batch_id)
    operations.discard(first.run_id, reason="not needed")
    stage.mended = True
    for _ in range(4):
        stage.step(3)
    stage.mended = False


def paused(stage: Stage) -> None:
    """Let a canary of that night die again."""
    night(stage)
    operations = stage.source.operations
    draft = operations.preview_replay("tenant:initech", canary=5, reason="a try")
    operations.confirm_replay(draft.batch_id)
    for _ in range(4):
        stage.step(2)


def over(stage: Stage) -> None:
    """Leave batches of all kinds behind, one of them under way."""
    replaying(stage)
    operations = stage.source.operations
    done = operations.preview_replay("tenant:globex", reason="stock is in")
    operations.confirm_replay(done.batch_id)
    for _ in range(3):
        stage.step(2)
    gone = operations.preview_replay("tenant:acme", rate=1, reason="wrong ones")
    operations.confirm_replay(gone.batch_id, reason="wrong ones")
    stage.step()
    operations.abort_replay(gone.batch_id, reason="not these")
    stage.clock.step(minutes=1)
    operations.preview_replay("err:bounced")


def one_order(stage: Stage) -> None:
    """Let one run die whose payload has several lines and a secret."""
    stage.run({"to": "bad@", "subject": "Your order", "lines": [7, 11], "token": "s3cret"})


EDITOR = shlex.join(
    (
        sys.executable,
        "-c",
        "import pathlib, sys; path = pathlib.Path(sys.argv[1]);"
        "path.write_text(path.read_text().replace('bad@', 'ada@example.org'))",
    )
)
"""An editor that mends the address by itself."""

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
    Scene(
        name="dlq",
        sentence="The dead by cause: how many, whom it hits, since when, and what died again.",
        place="dlq",
        set=night,
    ),
    Scene(
        name="dlq-detail",
        sentence="The whole error of a group, and whom it hits, in the detail pane.",
        place="dlq",
        keys=("i",),
        set=night,
        themes=("dark",),
    ),
    Scene(
        name="dlq-empty",
        sentence="Nothing is dead: the list says that this is good, instead of being blank.",
        place="dlq",
        themes=("dark",),
    ),
    Scene(
        name="dlq-hostile",
        sentence="An error that attacks the terminal, as the name of a group.",
        place="dlq",
        keys=("i",),
        set=hostile,
        themes=("dark",),
    ),
    Scene(
        name="dead",
        sentence="The dead runs of one group, the newest first, two of them marked.",
        place="dlq",
        keys=("enter", "space", "space"),
        set=night,
    ),
    Scene(
        name="edit-diff",
        sentence="An edited payload: what differs, before anything is asked or changed.",
        place="dlq",
        keys=("enter", "E"),
        set=one_order,
        environment={"VISUAL": EDITOR},
    ),
    Scene(
        name="edit-confirm",
        sentence="Its confirm asks for a reason even of one run, and says what the mask hides.",
        place="dlq",
        keys=("enter", "E", "enter"),
        set=one_order,
        themes=("dark",),
        environment={"VISUAL": EDITOR},
    ),
    Scene(
        name="as-new",
        sentence="A replay as a new run is louder: it says what may happen twice, and is typed.",
        place="dlq",
        keys=("enter", "N"),
        set=one_order,
        themes=("dark",),
    ),
    Scene(
        name="preview",
        sentence="What a replay will do before anything is moved, and what its confirm asks for.",
        place="dlq",
        keys=("R",),
        set=night,
    ),
    Scene(
        name="preview-pace",
        sentence="How the runs are brought back: rate, canary, breaker, priority.",
        place="dlq",
        keys=("R", "e"),
        set=night,
        themes=("dark",),
    ),
    Scene(
        name="preview-confirm",
        sentence="Many runs of several tenants: the count is typed and a reason is given.",
        place="dlq",
        keys=("R", "C"),
        set=night,
    ),
    Scene(
        name="batch-running",
        sentence="A replay under way: moved, skipped and why, left and for how long, what became.",
        place="replays",
        keys=("enter",),
        set=replaying,
    ),
    Scene(
        name="batch-paused",
        sentence="A canary died again: the replay waits, says why, and what can be done.",
        place="replays",
        keys=("enter",),
        set=paused,
    ),
    Scene(
        name="batch-abort",
        sentence="Abort asks what becomes of the runs that were moved and not tried yet.",
        place="replays",
        keys=("enter", "A"),
        set=replaying,
        themes=("dark",),
    ),
    Scene(
        name="entries",
        sentence="The entries of a replay in the order of their moving, each with its outcome.",
        place="replays",
        keys=("enter", "l"),
        set=replaying,
    ),
    Scene(
        name="replays",
        sentence="Replay batches of all states, the newest first.",
        place="replays",
        set=over,
    ),
    Scene(
        name="replays-empty",
        sentence="Nothing was replayed yet: the list says which key begins.",
        place="replays",
        themes=("dark",),
    ),
    *PARTY_SCENES,
)
