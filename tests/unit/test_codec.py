"""The codec: what is written is what is read, and rows stay small."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.instants import EPOCH, MILLISECOND
from dynsched.domain.job import (
    CatchUp,
    Generation,
    Job,
    JobState,
    Overlap,
    Policies,
    Priority,
    SkipReason,
    Span,
)
from dynsched.domain.recurrence import Cron, Interval, Once
from dynsched.domain.retry import ErrorRule, Jitter, RetryPolicy, RuleAction
from dynsched.domain.run import Run, RunKey, RunKind, RunState
from dynsched.domain.target import CommandTarget, HandlerTarget, HttpTarget, Target
from dynsched.storage.codec import (
    decode_generation,
    decode_job,
    decode_policies,
    decode_run,
    decode_span,
    encode_generation,
    encode_job,
    encode_policies,
    encode_run,
    encode_span,
)
from dynsched.storage.engine import Body, Key, Row, Table
from tests.unit.builders import NOW, job_of, run_of

ROW_BYTES_MAX = 1024  # what one write unit pays for
KEYS_BYTES = 160  # keys, index keys, version, token and expiry beside the body

instants = st.integers(0, 4_000_000_000_000).map(lambda ms: EPOCH + ms * MILLISECOND)
lengths = st.integers(0, 10**9).map(lambda ms: ms * MILLISECOND)
texts = st.text(max_size=20)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
counts = st.integers(0, 10**6)

keys = st.one_of(
    st.builds(RunKey, names, instants, st.just(RunKind.CRON)),
    st.builds(
        RunKey,
        names,
        instants,
        st.sampled_from([RunKind.MANUAL, RunKind.BACKFILL]),
        st.just("0-abc"),
    ),
)
runs = st.builds(
    Run,
    key=keys,
    tenant=names,
    queue=st.one_of(st.just("main"), names),
    priority=st.sampled_from(Priority),
    share=names,
    state=st.sampled_from(RunState),
    reason=texts,
    available_at=instants,
    generation=st.none() | instants,
    needs=names,
    fence=counts,
    attempt=counts,
    spent=counts,
    limit=counts,
    retention=lengths,
    losses=counts,
    reported=st.booleans(),
    replays=counts,
    waits=counts,
    session=st.none() | names,
    lease_ends_at=st.none() | instants,
    cancel_requested=st.booleans(),
    waiter=st.none() | names,
    payload=st.none() | st.just('{"a":1}'),
    payload_ref=st.none() | names,
    error=texts,
    signature=texts,
    hidden=st.booleans(),
    forced=st.booleans(),
    created_at=instants,
    first_started_at=st.none() | instants,
    started_at=st.none() | instants,
    ended_at=st.none() | instants,
    expires_at_s=st.none() | counts,
    version=st.integers(1, 10**6),
)
schedules = st.one_of(
    st.none(),
    st.builds(Once, at=instants),
    st.builds(
        Interval, every=st.integers(1, 10**6).map(lambda s: timedelta(seconds=s)), anchor=instants
    ),
    st.sampled_from(["* * * * *", "@daily", "*/5 9-17 * * mon-fri", "H H * * *"]).map(
        lambda text: Cron.parse(text, zone="Europe/Riga", key="j")
    ),
)
generations = st.builds(
    Generation, effective_from=instants, enabled=st.booleans(), schedule=schedules
)
spans = st.builds(
    Span, first=instants, last=instants, count=counts, reason=st.sampled_from(SkipReason)
)
retries = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 1000),
    base=st.integers(0, 3_600).map(lambda s: timedelta(seconds=s)),
    jitter=st.sampled_from(Jitter),
    rules=st.lists(
        st.builds(
            ErrorRule,
            pattern=st.sampled_from(["OSError", "Timeout*"]),
            action=st.sampled_from([RuleAction.RETRY, RuleAction.PERMANENT]),
        ),
        max_size=3,
    ).map(tuple),
)
policies = st.builds(
    Policies,
    catch_up=st.sampled_from(CatchUp),
    catch_up_max=counts,
    catch_up_window=lengths,
    overlap=st.sampled_from(Overlap),
    start_deadline=st.none() | lengths,
    flex=lengths,
    timeout=st.none() | lengths,
    soft_timeout=st.none() | lengths,
    retention=lengths,
    share_by_job=st.booleans(),
    hold=st.booleans(),
    retry=retries,
)
targets: st.SearchStrategy[Target] = st.one_of(
    st.builds(HandlerTarget, st.just("reports.daily")),
    st.builds(CommandTarget, st.just("date")),
    st.builds(HttpTarget, url=st.just("https://example.org/hook")),
)


def stored(key: Key, body: Body, *, expires_at_s: int | None = None, version: int = 1) -> Row:
    """Return a row as an engine gives it back: through JSON."""
    return Row(key, json.loads(json.dumps(body)), None, expires_at_s, "token", version)


def bytes_of(body: Body) -> int:
    """Return about how large a row with this body is."""
    return len(json.dumps(body, separators=(",", ":"))) + KEYS_BYTES


@given(runs)
def test_a_run_is_read_as_it_was_written(run: Run) -> None:
    """Every field, in every combination."""
    key = Key(Table.RUNS, run.key.partition, run.key.sort)
    row = stored(key, encode_run(run), expires_at_s=run.expires_at_s, version=run.version)
    assert decode_run(row) == run


@given(st.builds(job_of, schedules, policies=st.just({})), policies, st.data())
def test_a_job_is_read_as_it_was_written(job: Job, chosen: Policies, data: st.DataObject) -> None:
    """Every field, with a target of each kind."""
    target = data.draw(targets)
    whole = replace(
        job,
        target=target,
        queue=data.draw(names),
        priority=data.draw(st.sampled_from(Priority)),
        policies=chosen,
        state=data.draw(st.sampled_from(JobState)),
        reason=data.draw(texts),
        next_at=data.draw(st.none() | instants),
        generations=tuple(data.draw(st.lists(generations, min_size=1, max_size=3))),
        older_generations=data.draw(st.booleans()),
        spans=tuple(data.draw(st.lists(spans, max_size=2))),
        older_spans=data.draw(st.booleans()),
        skipped=data.draw(counts),
        payload=data.draw(st.none() | st.just("[1]")),
        tags=data.draw(st.dictionaries(names, texts, max_size=3)),
    )
    row = stored(Key(Table.JOBS, whole.job_id, "job"), encode_job(whole), version=whole.version)
    assert decode_job(row) == whole


@given(generations)
def test_a_generation_kept_apart_is_read_as_it_was_written(generation: Generation) -> None:
    """Also one without a schedule."""
    assert decode_generation(json.loads(json.dumps(encode_generation(generation)))) == generation


@given(spans)
def test_a_span_kept_apart_is_read_as_it_was_written(span: Span) -> None:
    """Also a long one."""
    assert decode_span(json.loads(json.dumps(encode_span(span)))) == span


@given(policies)
def test_policies_are_read_as_they_were_written(chosen: Policies) -> None:
    """Whatever differs from the defaults."""
    assert decode_policies(json.loads(json.dumps(encode_policies(chosen)))) == chosen


def test_default_policies_take_no_room() -> None:
    """A write is charged by its size, and most jobs choose nothing."""
    assert encode_policies(Policies()) == {}
    assert decode_policies({}) == Policies()


def test_a_large_target_lies_apart_and_is_not_repeated() -> None:
    """The row names it by its hash only."""
    body = encode_job(job_of(target=None, target_ref="abc"))
    assert "tg" not in body
    assert body["tr"] == "abc"


RETRYING = RetryPolicy(max_attempts=8, base=timedelta(seconds=30), cap=timedelta(minutes=10))
SCHEDULE = Cron.parse("*/15 9-17 * * mon-fri", zone="Europe/Berlin")


def busy_job() -> Job:
    """Return a job with much said about it: edits, outages, policies, tags and a payload."""
    generation = Generation(effective_from=NOW, enabled=True, schedule=SCHEDULE)
    span = Span(first=NOW, last=NOW, count=57_600, reason=SkipReason.CATCH_UP)
    return job_of(
        job_id="0123456789abc",
        name="nightly-report-of-all-regions",
        tenant="a-tenant-with-a-name",
        generations=(generation,) * 3,
        older_generations=True,
        spans=(span, span),
        older_spans=True,
        skipped=115_200,
        payload=json.dumps({"region": "eu-west-1", "formats": ["pdf", "csv"]}),
        tags={"team": "reporting", "owner": "ada"},
        policies={"catch_up": CatchUp.ALL, "retry": RETRYING, "timeout": timedelta(minutes=20)},
    )


def failed_run() -> Run:
    """Return a run that has been through a lot."""
    key = RunKey("0123456789abc", NOW, RunKind.MANUAL, "0-0123456789abc")
    return run_of(
        RunState.DEAD,
        key=key,
        tenant="a-tenant-with-a-name",
        share="a-tenant-with-a-name+0123456789abc",
        needs="handler:reports.build_all_of_them",
        reason="attempts spent",
        error="requests.exceptions.ConnectionError: " + "x" * 120,
        signature="0123456789ab",
        payload=json.dumps({"region": "eu-west-1", "formats": ["pdf", "csv"]}),
        started_at=NOW,
        first_started_at=NOW,
        waits=3,
        replays=1,
    )


@pytest.mark.parametrize(
    "body",
    [encode_job(job_of()), encode_job(busy_job()), encode_run(run_of()), encode_run(failed_run())],
    ids=["plain job", "busy job", "plain run", "failed run"],
)
def test_typical_rows_cost_one_unit(body: Body) -> None:
    """The price of every transition rests on it."""
    assert bytes_of(body) < ROW_BYTES_MAX


def test_instants_are_kept_to_the_millisecond() -> None:
    """A run's key and its row must name the same instant."""
    at = NOW + 7 * MILLISECOND
    run = run_of(at=at)
    key = Key(Table.RUNS, run.key.partition, run.key.sort)
    assert decode_run(stored(key, encode_run(run))).scheduled_for == at
