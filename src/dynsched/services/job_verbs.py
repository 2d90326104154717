"""Verbs on jobs.

Edit, pause, resume and delete first serve the job up to `effective_from` (now + clock bound), with
the dispatcher's own code, and then change it under the version that this left. So no instant is
lost or doubled: what lies before belongs to the old generation, what comes after to the new one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from dynsched.domain.access import Action
from dynsched.domain.catchup import GENERATIONS_IN_ROW, SPANS_IN_ROW
from dynsched.domain.editing import count_paused, pointed_from, with_generation
from dynsched.domain.instants import MILLISECOND
from dynsched.domain.job import (
    Generation,
    Job,
    JobState,
    Priority,
)
from dynsched.domain.names import JOB_ID, check_name, new_id
from dynsched.domain.payload import Json, check_payload
from dynsched.domain.target import Target, check_target_payload, target_needs
from dynsched.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from dynsched.services.gate import Subject, changes, note
from dynsched.services.specs import (
    JobSpec,
    ScheduleSpec,
    check_policies,
    check_tags,
    default_policies,
    is_same,
    make_schedule,
)
from dynsched.services.verbs import CHANGE_TRIES, INLINE_MAX, Verbs, expiry_s, on_job
from dynsched.storage.engine import Row
from dynsched.storage.jobs import JobApplied, digest_of


@dataclass(frozen=True, slots=True)
class Changed:
    """A job after a change, and from when the change holds.

    Attributes:
        effective_from: no look begun after the acknowledgement judges instants at or after this
            by the old definition; None for a change that makes no generation.
    """

    job: Job
    effective_from: datetime | None


def _on_new_job(_: Verbs, given: Mapping[str, Any]) -> Subject:
    """Find the subject of `create`: the tenant, until the job has its id."""
    spec: JobSpec = given["spec"]
    name = check_name(spec.name, "name")
    tenant = check_name(spec.tenant, "tenant")
    return Subject(target=f"tenant:{tenant}", tenant=tenant, details={"job": name})


def _change_words(before: Job, after: Job) -> str:
    """Return what a change has changed: its state, else the names of its fields."""
    if before.state is not after.state:
        return f"{before.state.value} -> {after.state.value}"
    passive = {"version", "next_at", "skipped", "spans", "older_spans", "older_generations"}
    changed = [
        one.name
        for one in fields(Job)
        if one.name not in passive and getattr(before, one.name) != getattr(after, one.name)
    ]
    named = ["schedule" if name == "generations" else name for name in changed]
    return f"changed {', '.join(named)}" if named else "changed nothing"


Change = Callable[[Job, datetime], Job]


class JobVerbs(Verbs):
    """Create, find, pause, resume, edit and delete jobs."""

    @changes(Action.JOB_CREATE, _on_new_job)
    def create(self, spec: JobSpec, *, reason: str = "") -> Job:
        """Create a job; what is due within the look-ahead gets its rows at once.

        Raises:
            InvalidInput: a field is wrong; nothing was written.
            AlreadyExists: the tenant has a job of that name.
        """
        topology = self._store.refresh()
        now = self._clock.now()
        job, parts = self._build(spec, now)
        taken = self._store.jobs.find(job.tenant, job.name) is not None
        if not taken:
            self._store.control.note_use(job.tenant, job.queue)
        if taken or not self._store.jobs.create(job, parts):
            raise AlreadyExists(
                f"name: tenant {job.tenant!r} has a job {job.name!r} already"
                " (choose another name, or `dynsched job edit` it)"
            )
        note("created", target=f"job:{job.job_id}")
        self._server.serve_job(job, now=now, before=now + topology.look_ahead)
        return self._store.jobs.get(job.job_id) or job

    def check(self, spec: JobSpec) -> Job:
        """Return the job that `create` would make, without writing anything.

        Raises:
            InvalidInput: a field is wrong.
        """
        return self._build(spec, self._clock.now())[0]

    def _build(self, spec: JobSpec, now: datetime) -> tuple[Job, list[Row]]:
        text = self._checked(spec)
        job_id = new_id(self._rng)
        schedule = make_schedule(spec.schedule, job_id, now)
        policies = check_policies(spec.policies or default_policies(spec.schedule))
        target_text = json.dumps(spec.target.to_body(), separators=(",", ":"))
        parts: list[Row] = []
        large_target = len(target_text) > INLINE_MAX
        large_payload = text is not None and len(text) > INLINE_MAX
        if large_target:
            parts.append(self._store.jobs.part_row(job_id, target_text))
        if large_payload and text is not None:
            parts.append(self._store.jobs.part_row(job_id, text))
        first = None if schedule is None else schedule.next_after(now - MILLISECOND)
        if schedule is not None and first is None:
            raise InvalidInput("schedule", "it names no instant from now on", "check start and end")
        job = Job(
            job_id=job_id,
            tenant=spec.tenant,
            name=spec.name,
            needs=target_needs(spec.target),
            target=None if large_target else spec.target,
            queue=spec.queue,
            priority=spec.priority,
            policies=policies,
            next_at=first,
            generations=(Generation(effective_from=now, enabled=True, schedule=schedule),),
            payload=None if large_payload else text,
            payload_ref=digest_of(text) if large_payload and text is not None else None,
            target_ref=digest_of(target_text) if large_target else None,
            tags=dict(spec.tags),
            created_at=now,
            version=1,
        )
        return job, parts

    def _checked(self, spec: JobSpec) -> str | None:
        """Check names, tags, target and payload; return the payload's text."""
        check_name(spec.name, "name")
        check_name(spec.tenant, "tenant")
        check_name(spec.queue, "queue")
        check_tags(spec.tags)
        text = None if spec.payload is None else check_payload(spec.payload)
        self._refuse_masked("payload", spec.payload)
        self._refuse_masked("target", spec.target.to_body())
        check_target_payload(spec.target, spec.payload)
        return text

    def find_id(self, tenant: str, name: str) -> str | None:
        """Return the id of the job of that name, None if there is none."""
        return self._store.jobs.find(tenant, name)

    def find(self, name_or_id: str, tenant: str = "default") -> Job:
        """Return a job by its name in a tenant, or by its id.

        Raises:
            NotFound: there is none.
        """
        job_id = self._store.jobs.find(tenant, name_or_id)
        if job_id is None and JOB_ID.fullmatch(name_or_id):
            job_id = name_or_id  # anything else may be the key of a row that is no job's
        job = None if job_id is None else self._store.jobs.get(job_id)
        if job is None or job.state is JobState.DELETED:
            raise NotFound("job", name_or_id, f"`dynsched job list --tenant {tenant}` shows them")
        return job

    @changes(Action.JOB_PAUSE, on_job)
    def pause(self, job_id: str, *, reason: str, hold: bool = False) -> Changed:
        """Pause a job: no cron instant at or after the answer's `effective_from` starts.

        Earlier instants, manual runs and replays go on, unless `hold`.

        Args:
            job_id: the job.
            reason: told to whoever asks why.
            hold: earlier, manual and replayed runs wait too.
        """

        def change(job: Job, at: datetime) -> Job:
            if job.state is not JobState.ACTIVE:
                raise Conflict(f"job {job.name} is {job.state.value}; only an active one pauses")
            policies = replace(job.policies, hold=hold)
            paused = with_generation(job, at, enabled=False, schedule=job.schedule)
            return replace(paused, state=JobState.PAUSED, reason=reason[:200], policies=policies)

        return self._change_schedule(job_id, change)

    @changes(Action.JOB_RESUME, on_job)
    def resume(self, job_id: str, *, reason: str = "") -> Changed:
        """Resume a paused job; the instants in between are counted as skipped (paused)."""

        def change(job: Job, at: datetime) -> Job:
            if job.state is not JobState.PAUSED:
                raise Conflict(f"job {job.name} is {job.state.value}; only a paused one resumes")
            policies = replace(job.policies, hold=False)
            counted = count_paused(job, at)
            resumed = with_generation(counted, at, enabled=True, schedule=job.schedule)
            return pointed_from(replace(resumed, reason="", policies=policies), at)

        return self._change_schedule(job_id, change)

    @changes(Action.JOB_EDIT, on_job)
    def reschedule(self, job_id: str, spec: ScheduleSpec | None, *, reason: str = "") -> Changed:
        """Give a job another schedule from `effective_from` on; it loses and doubles nothing."""
        make_schedule(spec, job_id, self._clock.now())  # a bad one is refused before any write
        job = self.get_job(job_id)
        if job.state in (JobState.ACTIVE, JobState.PAUSED) and is_same(spec, job.schedule, job_id):
            return Changed(job, None)

        def change(job: Job, at: datetime) -> Job:
            schedule = make_schedule(spec, job_id, at)
            paused = job.state is JobState.PAUSED
            counted = count_paused(job, at) if paused else job
            edited = with_generation(counted, at, enabled=not paused, schedule=schedule)
            pointed = pointed_from(edited, at)
            if paused:
                return replace(pointed, state=JobState.PAUSED)
            return replace(pointed, reason="")

        return self._change_schedule(job_id, change)

    @changes(Action.JOB_EDIT, on_job)
    def edit(
        self,
        job_id: str,
        *,
        policies: Mapping[str, object] | None = None,
        target: Target | None = None,
        payload: Json = None,
        queue: str | None = None,
        priority: Priority | None = None,
        tags: Mapping[str, str] | None = None,
        reason: str = "",
    ) -> Changed:
        """Change what is no matter of time: no generation, in force at each run's next start.

        Args:
            job_id: the job.
            policies: fields of `Policies` to change.
            target: what it does from now on.
            payload: what it carries from now on; None leaves it.
            queue: for runs made from now on.
            priority: for runs made from now on.
            tags: all of them.
            reason: why, for the audit.

        Raises:
            InvalidInput: a field is wrong; nothing was written.
        """
        text = None
        if payload is not None:
            check_payload(payload)
            payload = self._restored(payload, lambda: self._payload_of(self.get_job(job_id)))
            text = check_payload(payload)
        if target is not None:
            self._refuse_masked("target", target.to_body())
        if queue is not None:
            check_name(queue, "queue")
        if tags is not None:
            check_tags(tags)

        def change(job: Job, _: datetime) -> Job:
            self._check_fit(job, target, payload)
            fields: dict[str, Any] = {}
            if policies:
                fields["policies"] = check_policies(replace(job.policies, **policies))  # type: ignore[arg-type]
            if queue is not None:
                fields["queue"] = queue
            if priority is not None:
                fields["priority"] = priority
            if tags is not None:
                fields["tags"] = dict(tags)
            fields |= self._new_parts(job, target, text)
            return replace(job, **fields)

        changed = self._change(job_id, change, schedule=False)
        # A friend's edit may have let a part go between the write of it and the job's.
        self._new_parts(changed.job, target, text)
        self._store.control.note_use(changed.job.tenant, changed.job.queue)
        return changed

    def _check_fit(self, job: Job, target: Target | None, payload: Json) -> None:
        """Check that the payload has what the target names, as both are after an edit."""
        if target is None and payload is None:
            return
        after = target or self.target_of(job)
        if after is not None:
            check_target_payload(after, self._payload_of(job) if payload is None else payload)

    def _payload_of(self, job: Job) -> Json:
        """Return what a job carries, read where it lies apart."""
        text = job.payload
        if text is None and job.payload_ref is not None:
            text = self._store.jobs.part(job.job_id, job.payload_ref)
        payload: Json = None if text is None else json.loads(text)
        return payload

    def _new_parts(self, job: Job, target: Target | None, text: str | None) -> dict[str, Any]:
        """Write large parts first; return the fields that name them."""
        fields: dict[str, Any] = {}
        if target is not None:
            body = json.dumps(target.to_body(), separators=(",", ":"))
            large = len(body) > INLINE_MAX
            if large:
                self._store.jobs.put_part(self._store.jobs.part_row(job.job_id, body))
            fields["needs"] = target_needs(target)
            fields["target"] = None if large else target
            fields["target_ref"] = digest_of(body) if large else None
        if text is not None:
            large = len(text) > INLINE_MAX
            if large:
                self._store.jobs.put_part(self._store.jobs.part_row(job.job_id, text))
            fields["payload"] = None if large else text
            fields["payload_ref"] = digest_of(text) if large else None
        return fields

    @changes(Action.JOB_DELETE, on_job)
    def delete(self, job_id: str, *, reason: str = "") -> Changed:
        """Delete a job: a tombstone stays until its runs are gone, its name is free at once."""
        self._store.refresh()
        for _ in range(CHANGE_TRIES):
            job, at = self._served(job_id)
            after = with_generation(job, at, enabled=False, schedule=job.schedule)
            after = replace(
                after, state=JobState.DELETED, reason="deleted", version=job.version + 1
            )
            expiry = expiry_s(at, 2 * job.policies.retention)
            outcome = self._store.jobs.delete(after, job.version, expires_at_s=expiry)
            if isinstance(outcome, JobApplied):
                note(f"{job.state.value} -> deleted")
                self._expire_parts(job, None)
                return Changed(outcome.job, at)
        raise Conflict(f"job {job_id} kept changing under the delete; try again")

    def _change_schedule(self, job_id: str, change: Change) -> Changed:
        return self._change(job_id, change, schedule=True)

    def _change(self, job_id: str, change: Change, *, schedule: bool) -> Changed:
        """Change a job under its version, again if somebody else was first."""
        topology = self._store.refresh()
        for _ in range(CHANGE_TRIES):
            job, at = (
                self._served(job_id) if schedule else (self.get_job(job_id), self._clock.now())
            )
            after = replace(change(job, at), version=job.version + 1)
            after = self._archive(after)
            outcome = self._store.jobs.replace(after, job.version, durable=True)
            if isinstance(outcome, JobApplied):
                note(_change_words(job, outcome.job))
                self._expire_parts(job, after)
                now = self._clock.now()
                self._server.serve_job(outcome.job, now=now, before=now + topology.look_ahead)
                return Changed(outcome.job, at if schedule else None)
        raise Conflict(f"job {job_id} kept changing under the edit; try again")

    def _expire_parts(self, before: Job, after: Job | None) -> None:
        """Let parts go that the job names no more; running attempts may still read them."""
        named = set() if after is None else {after.payload_ref, after.target_ref}
        expiry = expiry_s(self._clock.now(), 2 * before.policies.retention)
        for digest in {before.payload_ref, before.target_ref} - named - {None}:
            assert digest is not None
            self._store.jobs.expire_part(before.job_id, digest, expiry)

    def _served(self, job_id: str) -> tuple[Job, datetime]:
        """Serve a job up to now + clock bound; return it as that left it, and that instant."""
        for _ in range(CHANGE_TRIES):
            job = self.get_job(job_id)
            now = self._clock.now()
            at = now + self._settings.clock_bound
            at = max(at, job.generations[-1].effective_from + MILLISECOND)
            if not job.due or job.next_at is None or job.next_at >= at:
                return job, at
            self._server.serve_job(job, now=now, before=at)
        raise Conflict(f"job {job_id} kept changing while it was served; try again")

    def _archive(self, job: Job) -> Job:
        """Write apart what leaves the row, before the write that drops it."""
        generations, spans = job.generations, job.spans
        if len(generations) > GENERATIONS_IN_ROW:
            self._store.jobs.put_generations(job.job_id, generations[:-GENERATIONS_IN_ROW])
            job = replace(
                job, generations=generations[-GENERATIONS_IN_ROW:], older_generations=True
            )
        if len(spans) > SPANS_IN_ROW:
            self._store.jobs.put_spans(job.job_id, spans[:-SPANS_IN_ROW])
            job = replace(job, spans=spans[-SPANS_IN_ROW:], older_spans=True)
        return job
