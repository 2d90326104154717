"""Invariant 2: each instant that a job's schedule names is a row or a counted skip."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from dynsched.domain.instants import LAST, MILLISECOND, to_text
from dynsched.domain.job import (
    Generation,
    Job,
    JobState,
    SkipReason,
    Span,
    in_force,
    names_instant,
)
from dynsched.domain.run import RunKind, RunState
from dynsched.testing.trail import JobVersion, Trail

INSTANTS_MAX = 100_000  # of one generation that are looked at

UNNAMED = (SkipReason.EDITED.value, SkipReason.PAUSED.value)


def check_occurrences(trail: Trail) -> Iterator[str]:
    """Return the gaps of each job, miscounted spans, and runs that were skipped wrongly."""
    rows: dict[str, set[datetime]] = {}
    for changes in trail.runs.values():
        key = changes[0].run.key
        if key.kind is RunKind.CRON:
            rows.setdefault(key.job_id, set()).add(key.scheduled_for)
    for job_id, versions in trail.jobs.items():
        last = versions[-1]
        if last.job is not None:
            yield from _gaps(last.job, last, rows.get(job_id, set()))
            yield from _miscounted(last.job, last)
        for version in versions:
            for at in version.lost:
                yield f"2: job {job_id} forgets at {version.place} what began at {to_text(at)}"
    yield from _wrongly_skipped(trail)


def _gaps(job: Job, version: JobVersion, rows: set[datetime]) -> Iterator[str]:
    generations = version.generations
    for number, generation in enumerate(generations):
        if not generation.enabled or generation.schedule is None:
            continue
        later = generations[number + 1 :]
        end = later[0].effective_from if later else _served_until(job)
        for at in generation.schedule.instants(generation.effective_from, end, INSTANTS_MAX):
            if at not in rows and not any(span.covers(at) for span in version.spans):
                yield f"2: job {job.name} has neither a run nor a counted skip at {to_text(at)}"


def _served_until(job: Job) -> datetime:
    """Return up to where a job's newest generation has been served."""
    if job.next_at is not None:
        return job.next_at
    return LAST if job.state is JobState.FINISHED else job.generations[-1].effective_from


def _miscounted(job: Job, version: JobVersion) -> Iterator[str]:
    spans = version.spans
    for span in spans:
        named = _named(span, version.generations)
        if named != span.count:
            yield (
                f"2: job {job.name} counts {span.count} skips in {to_text(span.first)} to"
                f" {to_text(span.last)}, its schedule names {named}"
            )
    for before, after in pairwise(spans):
        if after.first <= before.last:
            yield f"2: job {job.name} counts {to_text(after.first)} in two spans"
    total = sum(span.count for span in spans)
    if total != job.skipped:
        yield f"2: job {job.name} says {job.skipped} skips, its spans count {total}"


def _named(span: Span, generations: tuple[Generation, ...]) -> int:
    generation = in_force(generations, span.last)
    if generation is None or generation.schedule is None:
        return 0
    return generation.schedule.count(span.first, span.last + MILLISECOND)


def _wrongly_skipped(trail: Trail) -> Iterator[str]:
    for changes in trail.runs.values():
        run = changes[-1].after
        if run is None or run.state is not RunState.SKIPPED or run.reason not in UNNAMED:
            continue
        versions = trail.jobs.get(run.job_id, [])
        if versions and names_instant(versions[-1].generations, run.scheduled_for):
            yield f"2: {run.run_id} was skipped ({run.reason}), but its job names the instant"
