"""Masked rows: jobs, runs and attempts as people are shown them.

What leaves here has the same types as before, so that documents, tables and pages need not know.
Nothing that was read this way may be written back.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TypeVar, overload

from dynsched.domain.audit import AuditEntry
from dynsched.domain.batch import Batch
from dynsched.domain.job import Job
from dynsched.domain.masking import Masker
from dynsched.domain.run import Run
from dynsched.domain.target import CommandTarget, HttpTarget, Target
from dynsched.domain.target_aws import LambdaTarget, SqsTarget
from dynsched.storage.runs import Attempt, ProgressNote

T = TypeVar("T", HttpTarget, CommandTarget, LambdaTarget, SqsTarget)


def masked_target(masker: Masker, target: Target) -> Target:
    """Return a target without the secrets of its address, headers, variables and texts."""
    if isinstance(target, HttpTarget):
        return _with(
            target,
            url=masker.text(target.url),
            headers=masker.headers(target.headers),
            body=None if target.body is None else masker.text(target.body),
        )
    if isinstance(target, CommandTarget):
        return _with(
            target,
            command=masker.text(target.command),
            environment=masker.headers(target.environment),
            stdin=None if target.stdin is None else masker.json_text(target.stdin),
        )
    # Names and addresses on AWS hold no secret; what is sent may.
    if isinstance(target, LambdaTarget):
        return _with(target, body=None if target.body is None else masker.text(target.body))
    if isinstance(target, SqsTarget):
        return _with(target, body=None if target.body is None else masker.text(target.body))
    return target


def _with(target: T, **fields: object) -> T:
    """Return a copy with other texts, unchecked: a masked body may be no JSON any more."""
    shown = copy.copy(target)
    for name, value in fields.items():
        object.__setattr__(shown, name, value)
    return shown


def masked_job(masker: Masker, job: Job) -> Job:
    """Return a job without the secrets of its target, its payload and what people said."""
    return replace(
        job,
        reason=masker.text(job.reason),
        target=None if job.target is None else masked_target(masker, job.target),
        payload=None if job.payload is None else masker.json_text(job.payload),
    )


def masked_run(masker: Masker, run: Run) -> Run:
    """Return a run without the secrets of its payload, error and reason."""
    return run.changed(
        payload=None if run.payload is None else masker.json_text(run.payload),
        error=masker.text(run.error),
        reason=masker.text(run.reason),
    )


def masked_attempt(masker: Masker, attempt: Attempt) -> Attempt:
    """Return a try without the secrets of its error and output."""
    return replace(
        attempt,
        message=masker.text(attempt.message),
        detail=masker.json_text(attempt.detail),
        output=masker.json_text(attempt.output),
    )


def masked_progress(masker: Masker, progress: ProgressNote) -> ProgressNote:
    """Return what a handler reported without the secrets of its line."""
    return replace(progress, note=masker.text(progress.note))


def masked_batch(masker: Masker, batch: Batch) -> Batch:
    """Return a batch without the secrets of its filter and of what people said about it."""
    return replace(
        batch,
        filter=masker.text(batch.filter),
        reason=masker.text(batch.reason),
        why=masker.text(batch.why),
    )


def masked_entry(masker: Masker, entry: AuditEntry) -> AuditEntry:
    """Return an audit entry without the secrets of what people and errors said."""
    return replace(
        entry,
        reason=masker.text(entry.reason),
        note=masker.text(entry.note),
        details={name: masker.text(text) for name, text in entry.details.items()},
    )


class Masked:
    """What views mask with.

    Args:
        masker: its patterns.
    """

    def __init__(self, masker: Masker) -> None:
        self.masker = masker

    @overload
    def masked(self, row: Run) -> Run: ...

    @overload
    def masked(self, row: Job) -> Job: ...

    def masked(self, row: Run | Job) -> Run | Job:
        """Return a row, such as a verb's answer, as people may be shown it."""
        if isinstance(row, Run):
            return masked_run(self.masker, row)
        return masked_job(self.masker, row)
