"""Retries: decisions, back-off, stored policies, and signatures of errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.instants import LAST
from dynsched.domain.retry import (
    DELAY_MAX,
    Bury,
    BuryReason,
    ErrorRule,
    Failed,
    Hint,
    Jitter,
    RetryAt,
    RetryPolicy,
    RuleAction,
    backoff,
    decide,
    normalise,
    signature,
)
from dynsched.errors import InvalidInput

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
FAILED = Failed(error_type="app.errors.Oops", message="no")
PLAIN = RetryPolicy(jitter=Jitter.NONE)


def seconds(
    policy: RetryPolicy, failure: Failed = FAILED, *, spent: int = 1, limit: int | None = None
) -> float:
    """Return the seconds until the next attempt."""
    decision = decide(policy, spent=spent, failure=failure, now=NOW, rng=Random(1), limit=limit)
    assert isinstance(decision, RetryAt)
    return (decision.at - NOW).total_seconds()


def buried(policy: RetryPolicy, failure: Failed = FAILED, *, spent: int = 1) -> BuryReason:
    """Return why there is no next attempt."""
    decision = decide(policy, spent=spent, failure=failure, now=NOW, rng=Random(1))
    assert isinstance(decision, Bury)
    return decision.reason


def test_the_last_failure_allowed_buries() -> None:
    """A run is dead exactly when its failures reach the limit."""
    assert seconds(PLAIN, spent=4) == 40
    assert buried(PLAIN, spent=5) is BuryReason.SPENT


def test_a_raised_limit_of_the_run_goes_before_the_policy() -> None:
    """A replay gives a dead run new attempts without touching its job."""
    assert seconds(PLAIN, spent=5, limit=10) == 80


def test_a_permanent_error_is_buried_with_attempts_left() -> None:
    """The target knows better than the policy."""
    failure = Failed(error_type="Permanent", message="", hint=Hint.PERMANENT)
    assert buried(PLAIN, failure) is BuryReason.PERMANENT


def test_the_first_rule_that_fits_counts() -> None:
    """A narrow exemption goes before a broad ban."""
    rules = (
        ErrorRule(pattern="Timeout*", action=RuleAction.RETRY),
        ErrorRule(pattern="app.errors.*", action=RuleAction.PERMANENT),
        ErrorRule(pattern="*", action=RuleAction.DELAY, delay=timedelta(seconds=90)),
    )
    policy = RetryPolicy(jitter=Jitter.NONE, rules=rules)
    assert seconds(policy, Failed(error_type="app.errors.TimeoutLong", message="")) == 5
    assert buried(policy) is BuryReason.PERMANENT
    assert seconds(policy, Failed(error_type="OSError", message="")) == 90


def test_a_hint_to_retry_overrides_a_rule() -> None:
    """A command that exits with EX_TEMPFAIL asks for another try whatever the rules say."""
    rules = (ErrorRule(pattern="Exit*", action=RuleAction.PERMANENT),)
    failure = Failed(error_type="Exit75", message="", hint=Hint.RETRY)
    assert seconds(RetryPolicy(jitter=Jitter.NONE, rules=rules), failure) == 5


def test_a_delay_asked_for_is_never_shortened_and_bounded_by_the_attempts() -> None:
    """The receiver's Retry-After is obeyed, a little spread, but not for ever."""
    failure = Failed(
        error_type="Http429", message="", hint=Hint.AFTER, after=timedelta(seconds=100)
    )
    assert 100 < seconds(RetryPolicy(), failure) <= 110
    assert seconds(PLAIN, failure) == 100
    assert buried(PLAIN, failure, spent=5) is BuryReason.SPENT


def test_a_delay_of_nothing_does_not_skip_the_back_off() -> None:
    """`Retry-After: 0` from a server in trouble waits as long as any other failure."""
    at_once = Failed(error_type="Http503", message="", hint=Hint.AFTER, after=timedelta(0))
    assert seconds(PLAIN, at_once, spent=3) == 20
    assert seconds(RetryPolicy(), at_once) == seconds(RetryPolicy(), FAILED)


@given(st.integers(1, 10**12), st.integers(0, 2**32), st.floats(1, 100))
def test_a_delay_stays_between_nothing_and_the_cap(spent: int, seed: int, factor: float) -> None:
    """No count of failures overflows, and full jitter stays in its range."""
    policy = RetryPolicy(factor=factor)
    decision = decide(policy, spent=spent, failure=FAILED, now=NOW, rng=Random(seed), limit=10**13)
    assert isinstance(decision, RetryAt)
    assert NOW <= decision.at <= NOW + policy.cap


@given(st.integers(1, 10**6))
def test_the_back_off_never_falls(failures: int) -> None:
    """A later failure never waits less, jitter aside."""
    policy = RetryPolicy(base=timedelta(milliseconds=7), factor=1.3)
    assert backoff(policy, failures) <= backoff(policy, failures + 1) <= policy.cap


def test_full_jitter_uses_the_whole_range() -> None:
    """Failures that came together do not come back together."""
    rng = Random(7)
    at = [decide(RetryPolicy(), spent=4, failure=FAILED, now=NOW, rng=rng) for _ in range(300)]
    delays = [(one.at - NOW).total_seconds() for one in at if isinstance(one, RetryAt)]
    assert min(delays) < 2
    assert max(delays) > 38
    assert 17 < sum(delays) / 300 < 23


def test_a_base_of_nothing_retries_at_once() -> None:
    """Zero is a delay like any other, with any factor."""
    assert seconds(RetryPolicy(base=timedelta(0)), spent=4) == 0


def test_an_instant_beyond_the_last_one_is_the_last() -> None:
    """The far end of the calendar is no crash."""
    late = LAST - timedelta(seconds=1)
    failure = Failed(error_type="E", message="", hint=Hint.AFTER, after=DELAY_MAX)
    decision = decide(PLAIN, spent=1, failure=failure, now=late, rng=Random(1))
    assert decision == RetryAt(at=LAST)


POLICIES = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 1000),
    base=st.integers(0, 3_600_000).map(lambda ms: timedelta(milliseconds=ms)),
    factor=st.floats(1, 100),
    cap=st.integers(3_600_000, 10**9).map(lambda ms: timedelta(milliseconds=ms)),
    jitter=st.sampled_from(Jitter),
    rules=st.sampled_from(
        [
            (),
            (
                ErrorRule(pattern="A*", action=RuleAction.DELAY, delay=timedelta(0)),
                ErrorRule(pattern="B", action=RuleAction.PERMANENT),
            ),
        ]
    ),
)


@given(POLICIES)
def test_a_policy_survives_its_body(policy: RetryPolicy) -> None:
    """What is stored is what was declared."""
    assert RetryPolicy.from_body(policy.to_body()) == policy


def test_a_default_policy_stores_nothing() -> None:
    """Rows are charged by size."""
    assert RetryPolicy().to_body() == {}


@pytest.mark.parametrize(
    "body",
    [
        {"max_attempts": 0},
        {"max_attempts": "3"},
        {"max_attempts": 1.5},
        {"base_ms": -1},
        {"base_ms": 1e300},
        {"cap_ms": 1},
        {"factor": 0.5},
        {"factor": True},
        {"jitter": "some"},
        {"colour": 1},
        {"rules": [{"pattern": "", "action": "retry"}]},
        {"rules": [{"pattern": "A", "action": "delay"}]},
        {"rules": [{"pattern": "A", "action": "retry", "delay_ms": 5}]},
        {"rules": [{"pattern": "A", "action": "retry"}] * 21},
        {"rules": ["A"]},
        {"rules": 1},
    ],
)
def test_a_body_that_is_no_policy_is_refused(body: dict[str, object]) -> None:
    """Neither a person nor a foreign writer gets an impossible policy in."""
    with pytest.raises(InvalidInput):
        RetryPolicy.from_body(body)  # type: ignore[arg-type]  # that it is wrong is the point


PARTICULARS = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.uuids().map(str),
    st.uuids().map(lambda uuid: uuid.hex),
    st.integers(0).map(hex),
    st.text("abc 123-_", max_size=20).map(lambda text: f"'{text}'"),
    st.text("abc 123'", max_size=20).map(lambda text: f'"{text}"'),
    st.lists(st.text("ab1_.", min_size=1, max_size=5), min_size=1, max_size=4).map(
        lambda parts: "/" + "/".join(parts)
    ),
    st.integers(0, 9).map(lambda n: f"https://example.org/orders/{n}?q={n}"),
)


@given(PARTICULARS, PARTICULARS)
def test_errors_that_differ_in_particulars_have_one_signature(one: str, other: str) -> None:
    """A thousand failing rows are one group."""
    texts = [f"cannot load {particular} again" for particular in (one, other)]
    assert signature("E", texts[0]) == signature("E", texts[1])


@given(st.text(), st.text())
def test_any_text_has_a_signature(error_type: str, message: str) -> None:
    """Whatever a handler raises can be grouped."""
    found = signature(error_type, message)
    assert len(found) == 12
    assert int(found, 16) >= 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("req_8abCdEf12GhIjKl failed", "req_0QRsTuV34WxYz failed"),
        ("pod web-7d4b9c6f8-x2x9z left", "pod web-64bf8d9c7-q8h4d left"),
        ("at 2026-03-01T10:00:00Z", "at 2025-12-31T01:02:03.123+01:00"),
        ("mail to ann.b@example.org", "mail to bob+x@mail.example.com"),
        ("gave up after 1.5s", "gave up after 300ms"),
        ("j7rgf28g7m1k2@2026-03-01T12:00:00.000Z-c", "w3wm0yrk@2026-03-01T12:00:00.500Z-m0-mm"),
    ],
)
def test_ids_instants_and_amounts_of_any_form_are_particulars(one: str, other: str) -> None:
    """What stands for one row, host or moment makes no group of its own.

    Source: each failed request to a payment service was a group, as its id has an underscore.
    """
    assert signature("E", one) == signature("E", other)


def test_words_with_a_number_at_their_end_stay_words() -> None:
    """Their number is blotted out as ever, and the word tells causes apart."""
    assert normalise("sha256 of utf8 by python3") == "sha# of utf# by python#"


@given(st.lists(st.text("ghijklmnopqrstuvwxyz", min_size=1), min_size=1))
def test_plain_words_are_what_is_signed(words: list[str]) -> None:
    """Only particulars are blotted out, never what the error says."""
    assert normalise("  ".join(words)) == " ".join(words)


def test_what_went_wrong_and_the_type_tell_groups_apart() -> None:
    """Grouping must not hide a second cause."""
    texts = ["connection refused", "connection reset", "cannot connect", "don't connect"]
    kinds = {signature(kind, text) for kind in ("OSError", "Http503") for text in texts}
    assert len(kinds) == 8


def test_a_list_of_any_length_is_one_particular() -> None:
    """Three failing ids and thirty are the same error."""
    assert normalise("ids [1, 2, 3] failed") == normalise("ids [4] failed")
    assert normalise(f"run {UUID(int=5)}: x") == "run #: x"
