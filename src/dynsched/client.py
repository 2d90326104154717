"""The client: enqueue work from Python in one line.

import dynsched
dynsched.connect().enqueue("send_mail", {"to": "a@example.org"})
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from dynsched.bootstrap import Base, build_operations, open_base
from dynsched.domain.job import CatchUp, Job, Overlap, Policies, Priority
from dynsched.domain.payload import Json
from dynsched.domain.recurrence import Schedule
from dynsched.domain.run import Run
from dynsched.domain.target import HandlerTarget
from dynsched.errors import AlreadyExists, Conflict, Forbidden, InvalidInput, NotFound
from dynsched.services.callbacks import Answer
from dynsched.services.function_work import Work, answer_of, read_event
from dynsched.services.operations import Operations
from dynsched.services.specs import (
    CronSpec,
    EverySpec,
    JobSpec,
    ScheduleSpec,
    default_policies,
)
from dynsched.targets.app import App, JobDefaults

log = logging.getLogger("dynsched")

KNOWN_MAX = 10_000

Made = TypeVar("Made")


class Client:
    """Enqueues runs of jobs by their names; jobs of registered handlers are made when needed.

    Args:
        base: an open store.
        app: whose handlers may be enqueued without a job having been made before.
    """

    def __init__(self, base: Base, app: App | None = None) -> None:
        self._app = app
        self.operations: Operations = build_operations(base)
        self._known: dict[tuple[str, str], str] = {}

    def enqueue(
        self,
        name: str,
        payload: Json = None,
        *,
        tenant: str = "default",
        at: datetime | None = None,
        delay: timedelta | None = None,
        priority: str | None = None,
        key: str | None = None,
    ) -> Run:
        """Make a run of a job; it is durable when this returns.

        Args:
            name: the job's name, or the name of a handler of the app.
            payload: JSON values, at most 256 KB as text.
            tenant: whose job it is.
            at: when it may start, an aware datetime.
            delay: or how long from now.
            priority: high, default or bulk.
            key: equal keys of one job are one run.

        Raises:
            InvalidInput: there is no such job or handler, or a value is wrong.
            Conflict: the key was used with another payload.
        """
        chosen = None if priority is None else parse_priority(priority)

        def enqueue(job_id: str) -> Run:
            return self.operations.enqueue(
                job_id, payload, at=at, delay=delay, priority=chosen, key=key
            )

        return self._with_job(tenant, name, enqueue)

    def enqueue_many(
        self, name: str, payloads: Sequence[Json], *, tenant: str = "default"
    ) -> list[Run]:
        """Make a run for each payload, at bulk priority, in commits of many."""

        def enqueue(job_id: str) -> list[Run]:
            return self.operations.enqueue_many(job_id, payloads)

        return self._with_job(tenant, name, enqueue)

    def complete_run(self, run_id: str, token: str, output: Json = None) -> Run:
        """Report that the work of a run is done that waits for its callback.

        Args:
            run_id: the run, `run_id` of the envelope's `dynsched`.
            token: `token` of the same.
            output: JSON values that are kept with the run, at most 4 KB.

        Raises:
            Forbidden: the token is not of the run's present attempt.
            Conflict: the run was answered or called off, or its wait is over.
        """
        return self.operations.answer_run(run_id, token, Answer.done(output))

    def fail_run(
        self,
        run_id: str,
        token: str,
        error_type: str,
        message: str = "",
        *,
        trace: str = "",
        permanent: bool = False,
        retry_after: timedelta | None = None,
    ) -> Run:
        """Report that the work of a run has failed that waits for its callback.

        Args:
            run_id: the run, `run_id` of the envelope's `dynsched`.
            token: `token` of the same.
            error_type: a name such as an exception's.
            message: one line.
            trace: where; its end is kept.
            permanent: no try can succeed: the run is dead.
            retry_after: the shortest time until the next try.

        Raises:
            Forbidden: the token is not of the run's present attempt.
            Conflict: the run was answered or called off, or its wait is over.
            InvalidInput: a value is wrong.
        """
        answer = Answer.failed(
            error_type, message, trace=trace, permanent=permanent, retry_after=retry_after
        )
        return self.operations.answer_run(run_id, token, answer)

    @contextmanager
    def callback(self, event: Mapping[str, Any]) -> Iterator[Work]:
        """Answer for the function that was given the event, by how the block ends.

        The block sets `output` of what it is given. An exception is reported as the attempt's
        failure and goes no further, as Lambda would invoke the function again; `Permanent` buries
        the run. An answer that comes too late is only logged, for the same reason.

        Args:
            event: as the function got it from a job whose invocation is `callback`.

        Raises:
            InvalidInput: it is no such event.
            StoreError: the answer could not be written.
        """
        work = read_event(event)
        try:
            yield work
            answer = Answer.done(work.output)
        except Exception as error:  # noqa: BLE001  # whatever the function raises is its failure
            answer = answer_of(error)
        try:
            self.operations.answer_run(work.run_id, work.token, answer)
        except (Conflict, Forbidden) as refusal:
            log.warning("run %s: the answer is not taken: %s", work.run_id, refusal)

    def declare(self) -> list[Job]:
        """Make the jobs whose handlers declare a schedule, unless they exist; return the new ones.

        A job that exists stays as it is: people may have edited it since. If its schedule is not
        the declared one, that is said in the log.
        """
        handlers = self._app.handlers if self._app is not None else {}
        made = []
        for name, registration in handlers.items():
            defaults = registration.defaults
            if "cron" not in defaults and "every" not in defaults:
                continue
            tenant = defaults.get("tenant", "default")
            job_id = self.operations.find_id(tenant, name)
            if job_id is None:
                made.append(self._declare(name, tenant, defaults))
            else:
                self._compare(self.operations.find(job_id, tenant), defaults)
        return made

    def _compare(self, job: Job, defaults: JobDefaults) -> None:
        """Say when a job's schedule is not the one that its handler declares."""
        spec = spec_of(job.name, job.tenant, defaults)
        declared = self.operations.check(spec).schedule
        if declared is None or job.schedule is None:
            return
        if _shape(declared) != _shape(job.schedule):
            log.warning(
                "job %s of tenant %s runs %s, its handler declares %s: `dynsched job edit` it",
                job.name,
                job.tenant,
                job.schedule.describe(),
                declared.describe(),
            )

    def _with_job(self, tenant: str, name: str, act: Callable[[str], Made]) -> Made:
        """Act on a job; one that was deleted since it was last seen is looked up, or made, anew."""
        known = (tenant, name) in self._known
        try:
            return act(self._job_id(tenant, name))
        except NotFound:
            if not known:
                raise
            del self._known[tenant, name]
            return act(self._job_id(tenant, name))

    def _job_id(self, tenant: str, name: str) -> str:
        job_id = self._known.get((tenant, name)) or self.operations.find_id(tenant, name)
        if job_id is None:
            if self._app is None or name not in self._app.handlers:
                raise InvalidInput(
                    "job", f"tenant {tenant!r} has no job {name!r}", "make it with `job add`"
                )
            job_id = self._declare(name, tenant, self._app.get(name).defaults).job_id
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[tenant, name] = job_id
        return job_id

    def _declare(self, name: str, tenant: str, defaults: JobDefaults) -> Job:
        try:
            return self.operations.create(
                spec_of(name, tenant, defaults), reason="declared by its handler"
            )
        except AlreadyExists:
            return self.operations.find(name, tenant)  # another process was first


def _shape(schedule: Schedule) -> dict[str, object]:
    """Return what a declaration says of a schedule: not what it counts from, or hashes `H` from."""
    made_with_the_job = ("anchor", "start", "key")
    body = schedule.to_body()
    return {name: value for name, value in body.items() if name not in made_with_the_job}


def spec_of(name: str, tenant: str, defaults: JobDefaults) -> JobSpec:
    """Return the job that a handler's declaration means.

    Raises:
        InvalidInput: a default is wrong.
    """
    schedule: ScheduleSpec | None = None
    if "cron" in defaults and "every" in defaults:
        raise InvalidInput("every", f"handler {name!r} has cron and every", "give one of them")
    if "cron" in defaults:
        schedule = CronSpec(expr=defaults["cron"], tz=defaults.get("tz", "UTC"))
    elif "every" in defaults:
        schedule = EverySpec(every=defaults["every"])
    return JobSpec(
        name=name,
        target=HandlerTarget(name),
        schedule=schedule,
        tenant=tenant,
        queue=defaults.get("queue", "main"),
        priority=parse_priority(defaults.get("priority", "default")),
        policies=policies_of(default_policies(schedule), defaults),
        tags=defaults.get("tags", {}),
    )


def policies_of(policies: Policies, defaults: JobDefaults) -> Policies:
    """Return policies with what a handler's declaration says about them.

    Raises:
        InvalidInput: a default is wrong.
    """
    if "retry" in defaults:
        policies = replace(policies, retry=defaults["retry"])
    if "max_attempts" in defaults:
        retry = replace(policies.retry, max_attempts=defaults["max_attempts"])
        policies = replace(policies, retry=retry)
    if "timeout" in defaults:
        policies = replace(policies, timeout=defaults["timeout"])
    if "start_deadline" in defaults:
        policies = replace(policies, start_deadline=defaults["start_deadline"])
    if "overlap" in defaults:
        policies = replace(policies, overlap=parse_overlap(defaults["overlap"]))
    if "catch_up" in defaults:
        policies = replace(policies, catch_up=parse_catch_up(defaults["catch_up"]))
    return policies


def parse_priority(text: str) -> Priority:
    """Return the priority of that name."""
    try:
        return Priority(text)
    except ValueError:
        raise InvalidInput("priority", f"{text!r} is unknown", "high, default or bulk") from None


def parse_overlap(text: str) -> Overlap:
    """Return the overlap policy of that name."""
    try:
        return Overlap(text)
    except ValueError:
        known = ", ".join(item.value for item in Overlap)
        raise InvalidInput("overlap", f"{text!r} is unknown", known) from None


def parse_catch_up(text: str) -> CatchUp:
    """Return the catch-up policy of that name."""
    try:
        return CatchUp(text)
    except ValueError:
        known = ", ".join(item.value for item in CatchUp)
        raise InvalidInput("catch_up", f"{text!r} is unknown", known) from None


def connect(store: str | None = None, app: App | None = None) -> Client:
    """Open a store for enqueueing.

    Args:
        store: its URL; None takes `DYNSCHED_STORE`, else a file in the working directory.
        app: whose handlers may be enqueued without a job having been made before.

    Raises:
        InvalidInput: the URL is wrong.
    """
    return Client(open_base(store), app)
