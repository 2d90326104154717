"""Replay batches for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import click

from dynsched.cli.tables import distance, print_fields, print_table, span, when
from dynsched.cli.visible import visible
from dynsched.domain.batch import Batch, BatchState
from dynsched.domain.batch_words import pace_words
from dynsched.services.batch_views import BatchDetail, BatchEntry
from dynsched.services.choosing import OTHERS

NAMED = 5  # jobs, tenants and groups that one line names
BAR = 24  # columns of the progress bar
UNATTENDED = "nobody moves it: `dynsched up` or `dynsched reaper` does"


def print_batches(batches: Sequence[Batch], now: datetime) -> None:
    """Write a table of batches."""
    rows = [
        (
            batch.batch_id,
            batch.state.value,
            distance(batch.created_at, now),
            batch.confirmed_by or batch.actor,
            f"{batch.planned:,}",
            f"{batch.moved:,}",
            f"{sum(batch.skipped.values()):,}",
            f"{batch.failed:,}",
            f"{batch.left:,}",
            batch.filter,
            batch.reason,
        )
        for batch in batches
    ]
    counts = ("PLANNED", "MOVED", "SKIPPED", "FAILED", "LEFT")
    heads = ("BATCH", "STATE", "MADE", "BY", *counts, "FILTER", "REASON")
    print_table(heads, rows, empty="no replay batches (`dynsched replay preview` makes one)")


def print_batch(detail: BatchDetail, names: Mapping[str, str], now: datetime) -> None:
    """Write all that is known of a batch.

    Args:
        detail: the batch.
        names: of jobs, by id.
        now: the present instant.
    """
    batch = detail.batch
    print_fields(
        (
            ("batch", batch.batch_id),
            ("state", batch.state.value),
            ("why", batch.why),
            ("filter", batch.filter),
            ("reason", batch.reason),
            ("rest of", batch.parent),
            ("dead runs", _extent(batch, now)),
            ("jobs", _largest(batch.counts.get("job", {}), names)),
            ("tenants", _largest(batch.counts.get("tenant", {}), {})),
            ("groups", _largest(batch.counts.get("group", {}), {})),
            ("pace", _pace(detail)),
            ("previewed", f"by {batch.actor}, {when(batch.created_at, now)}"),
            ("confirmed", _confirmed(batch, now)),
            ("expires", when(batch.expires_at, now) if batch.state is BatchState.DRAFT else ""),
            ("ended", when(batch.ended_at, now)),
            ("progress", "" if batch.confirmed_at is None else progress(detail)),
            ("skipped", _counts(batch.skipped)),
            ("moved runs", _again(detail)),
        )
    )
    for count, why in _sorted(batch.skipped_expected):
        click.echo(f"left out: {count:,} {visible(why)}")
    for count, why in _sorted(batch.warned if batch.state is BatchState.DRAFT else {}):
        click.echo(f"warning: {count:,} will wait: {visible(why)}", err=True)
    if detail.unattended:
        click.echo(f"warning: {UNATTENDED}", err=True)
    if detail.newer.count:
        click.echo(f"not included: {detail.newer} that died after the preview")
    for note in batch.notes:
        click.echo(f"note: {visible(note)}", err=True)


def _extent(batch: Batch, now: datetime) -> str:
    """Return how many entries there are, and when they died."""
    oldest, newest = batch.oldest, batch.newest
    if oldest is None or newest is None:
        return f"{batch.planned:,}"
    ages = distance(oldest, now)
    if distance(newest, now) != ages:
        ages += f" to {distance(newest, now)}"
    return f"{batch.planned:,}, died {ages}"


def _largest(counts: Mapping[str, int], names: Mapping[str, str]) -> str:
    """Return the largest counts by name, and how many others there are."""
    found = [(name, count) for name, count in counts.items() if name != OTHERS]
    words = [f"{names.get(name, name)} {count:,}" for name, count in found[:NAMED]]
    rest = sum(count for _, count in found[NAMED:]) + counts.get(OTHERS, 0)
    return ", ".join([*words, f"others {rest:,}"] if rest else words)


def _pace(detail: BatchDetail) -> str:
    """Return how a batch is moved, in words; of a draft also how long that takes."""
    rate, *rest = pace_words(detail.batch)
    if detail.batch.state is BatchState.DRAFT and detail.eta is not None:
        rate += f" (about {span(detail.eta)})"
    return ", ".join([rate, *rest])


def _confirmed(batch: Batch, now: datetime) -> str:
    if batch.confirmed_at is None:
        return ""
    return f"by {batch.confirmed_by}, {when(batch.confirmed_at, now)}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {why}" for count, why in _sorted(counts))


def _sorted(counts: Mapping[str, int]) -> Iterable[tuple[int, str]]:
    return sorted(((count, why) for why, count in counts.items()), reverse=True)


def _again(detail: BatchDetail) -> str:
    """Return what became of the runs that were moved."""
    if not detail.sampled:
        return ""
    which = "" if detail.sampled == detail.batch.moved else f"of the last {detail.sampled:,}: "
    return (
        f"{which}{detail.done_again:,} ended well, {detail.dead_again:,} dead again,"
        f" {detail.open_again:,} not ended yet"
    )


def progress(detail: BatchDetail, *, bar: bool = False) -> str:
    """Return how far a batch is, on one line.

    Args:
        detail: the batch.
        bar: with a bar, for a terminal.
    """
    batch = detail.batch
    done = batch.planned - batch.left
    words = [f"{batch.moved:,} of {batch.planned:,} moved"]
    skipped = sum(batch.skipped.values())
    for count, what in ((skipped, "skipped"), (batch.failed, "failed")):
        if count:
            words.append(f"{count:,} {what}")
    if batch.left:
        words.append(f"{batch.left:,} left")
    if detail.eta is not None and batch.state is BatchState.RUNNING and batch.left:
        words.append(f"about {span(detail.eta)}")
    if not bar:
        return ", ".join(words)
    full = BAR * done // max(batch.planned, 1)
    return f"{batch.state.value} [{'#' * full}{'.' * (BAR - full)}] {', '.join(words)}"


def print_entries(entries: Sequence[BatchEntry], names: Mapping[str, str], now: datetime) -> None:
    """Write a table of a batch's entries."""
    rows = [
        (
            entry.outcome.value,
            entry.run_id,
            "gone" if entry.run is None else entry.run.state.value,
            "" if entry.run is None else names.get(entry.run.job_id, entry.run.job_id),
            distance(entry.died_at, now),
            entry.why or ("" if entry.run is None else entry.run.error),
        )
        for entry in entries
    ]
    print_table(
        ("OUTCOME", "RUN", "STATE NOW", "JOB", "HAD DIED", "WHY"), rows, empty="no such entries"
    )
