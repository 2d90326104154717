"""Routes of jobs: define them, look at them, change, pause and run them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

from dynsched.domain.filters import JOBS
from dynsched.domain.job import Job, JobState, Priority
from dynsched.domain.recurrence import Cron
from dynsched.domain.zone_changes import zone_clock
from dynsched.services.documents import (
    Document,
    explanation_document,
    instant,
    job_detail_document,
    job_document,
    run_document,
)
from dynsched.services.job_views import coming
from dynsched.services.operations import Changed
from dynsched.services.specs import make_schedule
from dynsched_web.api import answers, bodies
from dynsched_web.api.route import (
    EXAMINED,
    FILTER,
    PAGING,
    TENANT,
    WHY,
    Call,
    Routes,
    page_document,
)
from dynsched_web.api.schema import ANYTHING, INSTANT, TRUTH, fields, whole, word
from dynsched_web.api.scope import own_job, scoped

ROUTES = Routes("jobs")
OF_TENANT = {"tenant": TENANT}
TIMES_MAX = 200
KEY = {
    "Idempotency-Key": {
        "type": "string",
        "maxLength": 512,
        "description": "Equal keys of one job are one run; another payload under it is refused.",
    }
}


@ROUTES.route("GET", "/jobs", answer=answers.JOBS, query={"filter": FILTER, **PAGING, **EXAMINED})
def list_jobs(call: Call) -> Document:
    """List jobs by tenant and name."""
    given = scoped(call, call.query.get("filter", ""), JOBS)
    found = call.views.find_jobs(given, **call.examined_page)
    return page_document(found, [job_document(job, call.now) for job in found.items])


@ROUTES.route("POST", "/jobs", answer=answers.JOB, status=201, body=bodies.NEW_JOB)
def create_job(call: Call) -> Document:
    """Create a job.

    A name is there once in a tenant, so a request that is sent again is answered 409 and makes no
    second job. What is due within the look-ahead gets its runs at once.
    """
    spec = bodies.new_job(call.body, call.access.tenant or "default")
    return _job(call, call.operations.create(spec, reason=call.reason))


def _job(call: Call, job: Job) -> Document:
    return job_document(call.views.masked(job), call.now)


@ROUTES.route("GET", "/jobs/{job}", answer=answers.JOB_DETAIL, query=OF_TENANT)
def get_job(call: Call) -> Document:
    """Show a job with its payload, next instants and newest runs; secrets are masked."""
    detail = call.views.show_job(own_job(call))
    return job_detail_document(detail, call.now, call.views.lacks(detail.runs))


@ROUTES.route(
    "PATCH", "/jobs/{job}", answer=answers.CHANGED_JOB, query=OF_TENANT, body=bodies.EDITED_JOB
)
def edit_job(call: Call) -> Document:
    """Change a job; what is not named stays as it is.

    A schedule, a target and the tags are replaced as a whole; of the policies those are changed
    that are named. A `schedule` of null lets the job run by hand only, a `payload` of null leaves
    it as it was. A changed schedule holds from `effective_from` on, and no occurrence is lost or
    doubled. A secret that is given back masked stays as it was.
    """
    bodies.some_change(call.body)
    job = own_job(call)
    schedule = bodies.schedule_of(call.body.get("schedule"))
    if "schedule" in call.body:
        make_schedule(schedule, job.job_id, call.now)  # all is checked before anything is written
    plain = _plain_changes(call, job)
    changed = Changed(job, None)
    if any(value is not None for value in plain.values()):
        changed = call.operations.edit(job.job_id, **plain, reason=call.reason)
    if "schedule" in call.body:
        changed = call.operations.reschedule(job.job_id, schedule, reason=call.reason)
    return _changed(call, changed)


def _plain_changes(call: Call, job: Job) -> dict[str, Any]:
    body = call.body
    return {
        "policies": bodies.policy_changes(body.get("policies", {}), job.policies) or None,
        "target": bodies.target_of(body["target"]) if "target" in body else None,
        "payload": body.get("payload"),
        "queue": body.get("queue"),
        "priority": Priority(body["priority"]) if "priority" in body else None,
        "tags": body.get("tags"),
    }


def _changed(call: Call, changed: Changed) -> Document:
    return {**_job(call, changed.job), "effective_from": instant(changed.effective_from)}


@ROUTES.route(
    "DELETE", "/jobs/{job}", answer=answers.CHANGED_JOB, query={**OF_TENANT, "reason": WHY}
)
def delete_job(call: Call) -> Document:
    """Delete a job: its name is free at once, its runs stay until they expire."""
    return _changed(call, call.operations.delete(own_job(call).job_id, reason=call.reason))


@ROUTES.route(
    "POST",
    "/jobs/{job}/pause",
    answer=answers.CHANGED_JOB,
    query=OF_TENANT,
    body=fields("Pause", {"reason": WHY}, {"hold": TRUTH}),
)
def pause_job(call: Call) -> Document:
    """Pause a job: no instant from `effective_from` on starts.

    With `hold` earlier, manual and replayed runs wait too.
    """
    hold = call.body.get("hold", False)
    job = own_job(call)
    return _changed(call, call.operations.pause(job.job_id, reason=call.reason, hold=hold))


@ROUTES.route(
    "POST", "/jobs/{job}/resume", answer=answers.CHANGED_JOB, query=OF_TENANT, body=bodies.REASON
)
def resume_job(call: Call) -> Document:
    """Resume a paused job; what was missed is counted as skipped."""
    return _changed(call, call.operations.resume(own_job(call).job_id, reason=call.reason))


@ROUTES.route(
    "POST",
    "/jobs/{job}/run",
    answer=answers.RUN,
    status=201,
    query=OF_TENANT,
    body=fields("RunNow", {}, {"payload": ANYTHING, "force": TRUTH, "reason": WHY}),
)
def run_job(call: Call) -> Document:
    """Make a manual run now, as people do; each request makes one.

    Programs that may send a request twice use `POST /jobs/{job}/runs` with a key.
    """
    job = own_job(call)
    run = call.operations.run_now(
        job.job_id,
        payload=call.body.get("payload"),
        force=call.body.get("force", False),
        reason=call.reason,
    )
    return run_document(call.views.masked(run), job_name=job.name)


@ROUTES.route(
    "POST",
    "/jobs/{job}/runs",
    answer=answers.RUN,
    status=201,
    query=OF_TENANT,
    headers=KEY,
    body=fields(
        "Enqueue",
        {},
        {
            "payload": ANYTHING,
            "at": INSTANT,
            "delay_s": bodies.SECONDS,
            "priority": word(Priority),
            "force": TRUTH,
        },
    ),
)
def enqueue_run(call: Call) -> Document:
    """Enqueue a run with a payload of its own; it is durable when this is answered.

    With the header `Idempotency-Key` a request may be sent again as often as need be: equal keys
    of one job are answered with the one run, until the job's retention is over.
    """
    job = own_job(call)
    body = call.body
    run = call.operations.enqueue(
        job.job_id,
        body.get("payload"),
        at=bodies.instant_of(body, "at"),
        delay=bodies.duration_of(body, "delay_s"),
        priority=Priority(body["priority"]) if "priority" in body else None,
        key=call.headers.get("Idempotency-Key"),
        force=body.get("force", False),
    )
    return run_document(call.views.masked(run), job_name=job.name)


@ROUTES.route(
    "GET",
    "/jobs/{job}/next",
    answer=answers.TIMES,
    query={
        **OF_TENANT,
        "count": whole(1, TIMES_MAX, 10) | {"description": "How many, at most."},
        "after": {**INSTANT, "description": "Strictly after this instant; default now."},
    },
)
def next_times(call: Call) -> Document:
    """Show a job's next instants, in UTC and in its zone."""
    job = own_job(call)
    after = bodies.instant_of(call.query, "after") or call.now
    zone: tzinfo = UTC
    if isinstance(job.schedule, Cron):
        zone = zone_clock(job.schedule.zone).info
    found = coming(job, after, call.query["count"])
    active = job.state is JobState.ACTIVE
    return {
        "items": [{"at": instant(at), "local": _local(at, zone)} for at in found],
        "matched": len(found),
        "examined": len(found),
        "cursor": None,
        "notes": [] if active else [f"the job is {job.state.value}"],
    }


def _local(at: datetime, zone: tzinfo) -> str:
    return at.astimezone(zone).isoformat()


@ROUTES.route(
    "GET",
    "/jobs/{job}/why",
    answer=answers.EXPLANATION,
    query={**OF_TENANT, "at": {**INSTANT, "description": "The instant; default the next one."}},
)
def why_instant(call: Call) -> Document:
    """Explain what became of an instant of a job, or what is to become of it."""
    job = own_job(call)
    at = bodies.instant_of(call.query, "at")
    if at is None:
        at = next(iter(coming(job, call.now, 1)), call.now)
    return explanation_document(call.views.why_instant(job.job_id, at, job.tenant))
