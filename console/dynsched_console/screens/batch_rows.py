"""The lines of a replay batch: what a draft will do, and how far a running one is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dynsched.domain.batch import Batch, BatchState, needs_of
from dynsched.domain.batch_words import pace_words, standing
from dynsched.domain.time_words import stamp, when
from dynsched.services.choosing import OTHERS
from dynsched_console.charts import bar
from dynsched_console.dialogs import command_line
from dynsched_console.replaying import GROUPS_SHOWN, BatchScene, Plan
from dynsched_console.sheet import Link, SheetRow, row
from dynsched_console.text import Piece, ago, long, pad, sentence_lines, short_error, wrapped
from dynsched_console.themes import Tone

LABEL = 15  # columns of the words at the left
VALUE = 8  # columns of the figure behind them
NAMED = GROUPS_SHOWN  # jobs, tenants and groups that are counted one by one
CHART = 20
COMMAND_LINES = 4

STATES: Mapping[BatchState, tuple[str, Tone]] = {
    BatchState.DRAFT: ("d", Tone.WARN),
    BatchState.RUNNING: ("R", Tone.BUSY),
    BatchState.PAUSED: ("P", Tone.WARN),
    BatchState.FINISHED: ("F", Tone.GOOD),
    BatchState.ABORTED: ("A", Tone.BAD),
    BatchState.EXPIRED: ("e", Tone.MUTED),
}
PARTS = (("█", Tone.GOOD), ("▒", Tone.MUTED), ("x", Tone.BAD), ("·", Tone.MUTED))
"""How the parts of a progress bar are drawn: moved, skipped, failed, left."""


def batch_state_piece(state: BatchState) -> Piece:
    """Return a batch's state as a letter and a word, in its colour.

    >>> batch_state_piece(BatchState.PAUSED).text
    'P paused'
    """
    letter, tone = STATES[state]
    return Piece(f"{letter} {state.value}", tone)


def progress_pieces(batch: Batch, columns: int) -> list[Piece]:
    """Return a bar of so many columns: moved, skipped, failed and left entries."""
    counts = (batch.moved, sum(batch.skipped.values()), batch.failed, batch.left)
    found: list[Piece] = []
    done = drawn = 0
    for count, (letter, tone) in zip(counts, PARTS, strict=True):
        done += count
        end = columns if done == batch.planned else done * columns // max(batch.planned, 1)
        # What is there is seen, were it one of a million.
        end = min(max(end, drawn + 1), columns) if count else end
        found.append(Piece(letter * max(end - drawn, 0), tone))
        drawn = max(end, drawn)
    return found


def part_done(batch: Batch) -> str:
    """Return how many percent of the entries something has become of."""
    return f"{(batch.planned - batch.left) * 100 // max(batch.planned, 1)}%"


def rows_of(scene: BatchScene, columns: int) -> list[SheetRow]:
    """Return all lines about a batch, what matters now first."""
    batch = scene.detail.batch
    draft = batch.state in (BatchState.DRAFT, BatchState.EXPIRED)
    parts = (_choice, _how, _counts, _commands) if draft else (_progress, _since, _how, _counts)
    found = [*_head(scene, columns)]
    for part in (*parts, _audit):
        found += [SheetRow(), *part(scene, columns)]
    return found


def _row(
    words: str,
    value: str,
    *rest: Piece | str,
    key: str = "",
    link: Link | None = None,
    tone: Tone = Tone.PLAIN,
) -> SheetRow:
    figure = Piece(pad(value, VALUE, right=True) + "  ", tone)
    label = Piece(pad(words, LABEL), Tone.MUTED)
    return row(label, figure, *rest, key=key or words, link=link)


def _told(words: str, text: str, columns: int, tone: Tone = Tone.PLAIN) -> Iterator[SheetRow]:
    """Yield a sentence on as many lines as it needs, behind words at the left."""
    for number, one in enumerate(sentence_lines(text, max(columns - LABEL, 20))):
        head = words if number == 0 else ""
        yield row(Piece(pad(head, LABEL), Tone.MUTED), Piece(one, tone), key=f"{words}.{number}")


def _head(scene: BatchScene, columns: int) -> Iterator[SheetRow]:
    batch = scene.detail.batch
    draft = batch.state is BatchState.DRAFT
    what = "Preview of a replay" if draft else "Replay"
    yield row(
        Piece(f"{what}  ", Tone.STRONG),
        batch_state_piece(batch.state),
        Piece(f"  {batch.batch_id}", Tone.MUTED),
        key="head",
    )
    tone = Tone.WARN if batch.state is BatchState.PAUSED else Tone.PLAIN
    yield from _told("", standing(batch, scene.at), columns, tone)
    if draft:
        yield from _told("", _asks(scene), columns, Tone.BAD if scene.refusal else Tone.PLAIN)


def _asks(scene: BatchScene) -> str:
    """Return what the confirm will ask for, or why there can be none."""
    if scene.refusal:
        return f"you cannot confirm it: {scene.refusal}"
    needs = needs_of(scene.detail.batch)
    words = [*(["the typed count"] if needs.count else []), *(["a reason"] if needs.reason else [])]
    return "C confirms it" + (f" and asks for {' and '.join(words)}" if words else "")


def _planned(scene: BatchScene) -> SheetRow:
    batch, now = scene.detail.batch, scene.at
    died = ""
    if batch.oldest is not None and batch.newest is not None:
        died = f"died {ago(batch.oldest, now)} to {ago(batch.newest, now)} ago"
        if ago(batch.oldest, now) == ago(batch.newest, now):
            died = f"died {ago(batch.oldest, now)} ago"
    whose = f"of {batch.tenants:,} tenants, " if batch.tenants > 1 else ""
    link = Link(place="entries", subject=batch.batch_id)
    return _row("dead runs", f"{batch.planned:,}", f"{whose}{died}", key="planned", link=link)


def _counts(scene: BatchScene, columns: int) -> Iterator[SheetRow]:
    batch = scene.detail.batch
    if batch.state not in (BatchState.DRAFT, BatchState.EXPIRED):
        yield _planned(scene)
    errors = {one: f"{one}  {short_error(error)}" for one, error in scene.errors.items()}
    for what, names in (("job", scene.jobs), ("tenant", {}), ("group", errors)):
        yield from _counted(what, batch, names)
    del columns


def _counted(what: str, batch: Batch, names: Mapping[str, str]) -> Iterator[SheetRow]:
    counts = batch.counts.get(what, {})
    found = [(name, count) for name, count in counts.items() if name != OTHERS]
    for number, (name, count) in enumerate(found[:NAMED]):
        shown = names.get(name, name)
        drawn = bar(count, batch.planned, CHART)
        words = f"by {what}" if number == 0 else ""
        yield _row(words, f"{count:,}", Piece(f"{drawn}  ", Tone.BUSY), shown,
                   key=f"{what}.{name}")  # fmt: skip
    rest = sum(count for _, count in found[NAMED:]) + counts.get(OTHERS, 0)
    if rest:
        drawn = bar(rest, batch.planned, CHART)
        yield _row("", f"{rest:,}", Piece(f"{drawn}  others", Tone.MUTED), key=f"{what}.rest")


def _choice(scene: BatchScene, columns: int) -> Iterator[SheetRow]:
    """Yield what is left out and what will wait, and why."""
    batch, newer = scene.detail.batch, scene.detail.newer
    yield _planned(scene)
    yield from _told("chosen by", batch.filter or "everything that is dead", columns)
    if not batch.skipped_expected:
        yield _row("left out", "0", Piece("nothing that the filter found", Tone.MUTED))
    for why, count in batch.skipped_expected.items():
        yield _row("left out", f"{count:,}", why, key=f"out.{why}", tone=Tone.WARN)
    for why, count in batch.warned.items():
        yield _row("will wait", f"{count:,}", why, key=f"wait.{why}", tone=Tone.WARN)
    if newer.count:
        yield _row("not included", str(newer), "died since this preview", tone=Tone.WARN)
    for note in batch.notes:
        yield from _told("note", note, columns, Tone.MUTED)


def _how(scene: BatchScene, columns: int) -> Iterator[SheetRow]:
    batch, eta = scene.detail.batch, scene.detail.eta
    words = list(pace_words(batch))
    if batch.state is BatchState.DRAFT and eta is not None:
        words[0] += f", about {long(eta)}"
    keys = "" if batch.ended else " (e changes it)"
    yield from _told("pace", f"{words[0]}{keys}", columns)
    yield from _told("", "; ".join(words[1:]), columns)
    if batch.reason:
        yield from _told("reason", batch.reason, columns)
    if batch.parent:
        link = Link(place="batch", subject=batch.parent)
        yield row(Piece(pad("rest of", LABEL), Tone.MUTED), batch.parent, link=link, key="parent")


def _commands(scene: BatchScene, columns: int) -> Iterator[SheetRow]:
    batch = scene.detail.batch
    yield row(
        Piece("The same on the command line", Tone.STRONG), Piece("  y copies it", Tone.MUTED)
    )
    for command in commands_of(batch):
        for number, part in enumerate(wrapped(command, columns - 4, COMMAND_LINES)):
            yield row(Piece("  $ " if number == 0 else "    ", Tone.MUTED), part)


def commands_of(batch: Batch) -> list[str]:
    """Return the command lines that make and start such a batch."""
    needs = needs_of(batch)
    words = ["replay", "confirm", batch.batch_id]
    words += ["--reason", batch.reason or "WHY"] if needs.reason else []
    words += ["--count", str(batch.planned)] if needs.count else []
    first = ("replay", "rest", batch.parent) if batch.parent else Plan.of(batch).command
    return [command_line(*first), command_line(*words)]


def _progress(scene: BatchScene, columns: int) -> Iterator[SheetRow]:
    batch = scene.detail.batch
    size = max(columns - 6, 20)
    yield row(*progress_pieces(batch, size), f" {part_done(batch):>4}", key="bar")
    yield _outcome(batch, "moved", batch.moved, f"of {batch.planned:,}", Tone.GOOD)
    skipped = sum(batch.skipped.values())
    yield _outcome(batch, "skipped", skipped, "", Tone.WARN)
    for why, count in batch.skipped.items():
        yield _row("", f"{count:,}", Piece(why, Tone.MUTED), key=f"skipped.{why}", tone=Tone.MUTED)
    yield _outcome(batch, "failed", batch.failed, "", Tone.BAD)
    yield _outcome(batch, "left", batch.left, _eta(scene), Tone.PLAIN)


def _outcome(batch: Batch, name: str, count: int, words: str, tone: Tone) -> SheetRow:
    letter, _ = PARTS[("moved", "skipped", "failed", "left").index(name)]
    link = Link(place="entries", subject=f"{batch.batch_id} {name}") if count else None
    label = f"{letter} {name}"
    tone = tone if count else Tone.MUTED
    return _row(label, f"{count:,}", Piece(words, Tone.MUTED), key=name, link=link, tone=tone)


def _eta(scene: BatchScene) -> str:
    batch, eta = scene.detail.batch, scene.detail.eta
    if not batch.left:
        return ""
    if batch.ended:
        return "still dead, untouched"
    if batch.state is BatchState.PAUSED:
        return "untouched while it is paused"
    return "" if eta is None else f"about {long(eta)} more"


def _since(scene: BatchScene, columns: int) -> Iterator[SheetRow]:
    """Yield what became of the runs that were moved, once there are some."""
    detail, batch = scene.detail, scene.detail.batch
    if not batch.moved:
        yield row(Piece("Nothing is moved yet", Tone.MUTED))
        return
    which = "of those moved" if detail.sampled >= batch.moved else f"of the last {detail.sampled:,}"
    yield row(Piece("What became of them", Tone.STRONG), Piece(f"  {which}", Tone.MUTED))
    moved = Link(place="runs", filter=f"batch:{batch.batch_id}")
    dead = Link(place="dead", subject=f"batch:{batch.batch_id}")
    again = Tone.BAD if detail.dead_again else Tone.MUTED
    yield _row("ended well", f"{detail.done_again:,}", key="well", link=moved)
    yield _row("dead again", f"{detail.dead_again:,}", key="again", tone=again,
               link=dead if detail.dead_again else None)  # fmt: skip
    yield _row("not ended yet", f"{detail.open_again:,}", key="open")
    if detail.newer.count:
        yield _row("newer", str(detail.newer), Piece("died since, not included", Tone.MUTED))
    del columns


def _audit(scene: BatchScene, columns: int) -> Iterator[SheetRow]:
    batch, now = scene.detail.batch, scene.at
    yield row(Piece("What was done", Tone.STRONG))
    yield from _told("previewed", f"by {batch.actor}, {when(batch.created_at, now)}", columns)
    if batch.confirmed_at is not None:
        words = f"by {batch.confirmed_by}, {when(batch.confirmed_at, now)}"
        yield from _told("confirmed", words, columns)
    if batch.ended_at is not None:
        yield from _told("ended", when(batch.ended_at, now), columns)
    for one in scene.audit:
        words = " · ".join(filter(None, (one.note, one.reason)))
        yield row(
            f"  {stamp(one.at)}  {pad(one.actor, 16)}  {pad(one.action.value, 14)}  ",
            Piece(pad(one.outcome.value, 8), Tone.MUTED),
            f"  {words}",
        )
