"""Retries: what a failed attempt leads to, decided as a value, and what makes errors alike.

The policy is the job's, the failure comes from the target, and the decision is only a value: the
worker turns it into a transition.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256
from random import Random

from dynsched.domain.body import Body, Reader
from dynsched.domain.instants import LAST, MILLISECOND
from dynsched.domain.payload import Json
from dynsched.errors import InvalidInput

ATTEMPTS_MAX = 1000
"""The most attempts a policy may allow."""
DELAY_MAX = timedelta(days=366)
"""The longest delay that a policy or a handler may ask for."""
RULES_MAX = 20
"""The most per-error rules in a policy."""
PATTERN_LENGTH_MAX = 200

_ZERO = timedelta(0)
_SPREAD = 0.1
_SIGNED_LENGTH_MAX = 2000
_PARTICULARS = tuple(
    re.compile(pattern)
    for pattern in (
        r"""(?<!\w)'[^'\n]*'(?!\w)|"[^"\n]*"|`[^`\n]*`""",  # quoted; not the one in don't
        r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",  # UUID
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s'\"<>]+",  # address
        r"(?<![\w/.~])(?:\.{0,2}/|~/|[A-Za-z]:\\)[^\s'\"<>|:;,()\[\]]+",  # path
        r"\b[a-z0-9]{8,20}@\d{4}-\d\d-\d\dT[\d:.]+Z-[\w-]+",  # run
        r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+",  # mail address
        r"(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[-+]\d\d:?\d\d)?)?",
        r"(?<!\w)[-+]?\d+(?:[.,]\d+)*(?:[nuµm]?s|sec|min|[mhd]|[KMGT]?i?B)\b",  # amount with unit
        r"(?<!\w)[-+]?\d+(?:[.,:_]\d+)*(?:[eE][-+]?\d+)?(?!\w)",  # number
        r"\b0[xX][0-9a-fA-F]+\b",  # hexadecimal
        r"\b(?=[a-fA-F]*\d)[0-9a-fA-F]{8,}\b",  # bare hexadecimal id
        r"(?<![A-Za-z0-9])(?=[A-Za-z]*\d)[A-Za-z0-9]{16,}(?![A-Za-z0-9])",  # token
        r"(?<![A-Za-z0-9])(?=[A-Za-z]*\d+[A-Za-z])[A-Za-z0-9]{5,}(?![A-Za-z0-9])",  # short one
        r"\d+",  # digits inside words
    )
)
_SEVERAL = re.compile(r"#(?:[,;\s]*#)+")


class Hint(StrEnum):
    """What the failed target itself knows about trying again."""

    DEFAULT = "default"
    """Nothing: the policy and its rules decide."""
    RETRY = "retry"
    """Another try is worth while, whatever the rules say."""
    PERMANENT = "permanent"
    """No try can succeed."""
    AFTER = "after"
    """Try again, not before the delay that `Failed.after` gives and not before the back-off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An attempt that failed.

    Attributes:
        error_type: the exception's name, or a name such as `Http503` or `Exit1`.
        message: one line.
        trace_tail: the end of the traceback or of the error output, at most 4 KB.
        hint: what the target knows about trying again.
        after: the delay, with `Hint.AFTER` only.
        output: what else is known as JSON: status, exit code, tails.
    """

    error_type: str
    message: str
    trace_tail: str = ""
    hint: Hint = Hint.DEFAULT
    after: timedelta | None = None
    output: Json = None


class Jitter(StrEnum):
    """How chance changes a back-off delay."""

    FULL = "full"
    """Anything between nothing and the whole delay, so that failures together do not return so."""
    NONE = "none"
    """The whole delay each time."""


class RuleAction(StrEnum):
    """What a per-error rule does."""

    RETRY = "retry"
    """Back off as usual; exempts an error from a broader rule after this one."""
    PERMANENT = "permanent"
    """Bury at once."""
    DELAY = "delay"
    """Try again after the rule's own delay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRule:
    """What to do with errors whose type fits a pattern.

    Attributes:
        pattern: shell pattern for the error's name, with or without its module: `Timeout*`.
        action: what to do.
        delay: the delay of `RuleAction.DELAY`, else None.
    """

    pattern: str
    action: RuleAction
    delay: timedelta | None = None

    def __post_init__(self) -> None:
        if not 0 < len(self.pattern) <= PATTERN_LENGTH_MAX:
            raise InvalidInput(
                "retry.rules", f"a pattern has 1 to {PATTERN_LENGTH_MAX} characters", "shorten it"
            )
        if (self.delay is not None) != (self.action is RuleAction.DELAY):
            raise InvalidInput(
                "retry.rules", f"{self.pattern!r}: a delay goes with the action delay, only", ""
            )
        if self.delay is not None:
            _check_delay("retry.rules", self.delay)

    def fits(self, error_type: str) -> bool:
        """Tell whether the rule is about errors of that type."""
        names = (error_type, error_type.rpartition(".")[2])
        return any(fnmatchcase(name, self.pattern) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how soon a failed run is tried again.

    Attributes:
        max_attempts: reported failures after which the run is dead, 1 to `ATTEMPTS_MAX`.
        base: the delay after the first failure.
        factor: what the delay is multiplied by after each further failure, 1 to 100.
        cap: the longest delay of the back-off.
        jitter: how chance changes a delay.
        rules: per-error rules; the first that fits counts.

    Raises:
        InvalidInput: a field is out of its range.
    """

    max_attempts: int = 5
    base: timedelta = timedelta(seconds=5)
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)
    jitter: Jitter = Jitter.FULL
    rules: tuple[ErrorRule, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.max_attempts <= ATTEMPTS_MAX:
            raise InvalidInput(
                "max_attempts", f"{self.max_attempts} is out of range", f"give 1 to {ATTEMPTS_MAX}"
            )
        if not 1 <= self.factor <= 100:
            raise InvalidInput("retry.factor", f"{self.factor} is out of range", "give 1 to 100")
        if len(self.rules) > RULES_MAX:
            raise InvalidInput(
                "retry.rules", f"{len(self.rules)} are too many", f"give at most {RULES_MAX}"
            )
        _check_delay("retry.base", self.base)
        _check_delay("retry.cap", self.cap)
        if self.cap < self.base:
            raise InvalidInput("retry.cap", "it is shorter than the base delay", "raise it")

    def rule_for(self, error_type: str) -> ErrorRule | None:
        """Return the first rule that fits the error type, if any."""
        return next((rule for rule in self.rules if rule.fits(error_type)), None)

    def to_body(self) -> Body:
        """Return the fields that differ from the defaults as JSON; delays in milliseconds.

        >>> RetryPolicy(max_attempts=3, cap=timedelta(minutes=1)).to_body()
        {'max_attempts': 3, 'cap_ms': 60000}
        """
        plain = RetryPolicy()
        body: dict[str, Json] = {}
        if self.max_attempts != plain.max_attempts:
            body["max_attempts"] = self.max_attempts
        if self.base != plain.base:
            body["base_ms"] = self.base // MILLISECOND
        if self.factor != plain.factor:
            body["factor"] = self.factor
        if self.cap != plain.cap:
            body["cap_ms"] = self.cap // MILLISECOND
        if self.jitter is not plain.jitter:
            body["jitter"] = self.jitter.value
        if self.rules:
            body["rules"] = [_rule_to_body(rule) for rule in self.rules]
        return body

    @classmethod
    def from_body(cls, body: Body) -> RetryPolicy:
        """Return the policy that `to_body` wrote.

        Raises:
            InvalidInput: a field is unknown, of the wrong type or out of its range.
        """
        plain = cls()
        read = Reader("retry", body)
        policy = cls(
            max_attempts=read.integer("max_attempts", plain.max_attempts),
            base=read.duration("base_ms", plain.base) or _ZERO,
            factor=read.number("factor", plain.factor),
            cap=read.duration("cap_ms", plain.cap) or _ZERO,
            jitter=read.word("jitter", Jitter, plain.jitter),
            rules=tuple(_rule_from_body(rule) for rule in read.bodies("rules")),
        )
        read.done()
        return policy


class BuryReason(StrEnum):
    """Why a failed run is not tried again."""

    PERMANENT = "permanent error"
    SPENT = "attempts spent"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAt:
    """The decision to try again, not before an instant."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Bury:
    """The decision to try no more."""

    reason: BuryReason


def decide(
    policy: RetryPolicy,
    *,
    spent: int,
    failure: Failed,
    now: datetime,
    rng: Random,
    limit: int | None = None,
) -> RetryAt | Bury:
    """Decide what a failure leads to.

    Args:
        policy: the job's policy.
        spent: reported failures of the run so far, this one included; from 1.
        failure: what was reported. A delay that it asks for is a lower bound beside the jittered
            back-off: "at once" from a failing server does not switch the back-off off. A rule's
            own delay, which the policy's author chose, stands in place of the back-off.
        now: the instant from which a delay counts.
        rng: source of the jitter.
        limit: the run's own limit of failures where a replay raised it; else the policy's.

    Returns:
        When to try again, in whole milliseconds and at most `LAST`, or why not.

    >>> now = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    >>> policy = RetryPolicy(jitter=Jitter.NONE)
    >>> oops = Failed(error_type="OSError", message="disk full")
    >>> decide(policy, spent=2, failure=oops, now=now, rng=Random(1)).at.isoformat()
    '2026-01-01T00:00:10+00:00'
    >>> decide(policy, spent=5, failure=oops, now=now, rng=Random(1)).reason.value
    'attempts spent'
    """
    rule = policy.rule_for(failure.error_type) if failure.hint is Hint.DEFAULT else None
    if failure.hint is Hint.PERMANENT or (rule and rule.action is RuleAction.PERMANENT):
        return Bury(reason=BuryReason.PERMANENT)
    if spent >= (policy.max_attempts if limit is None else limit):
        return Bury(reason=BuryReason.SPENT)
    chance = None if policy.jitter is Jitter.NONE else rng
    if rule is not None and rule.delay is not None:
        return RetryAt(at=_later(now, _spread(rule.delay, chance)))
    delay = backoff(policy, spent) * (1.0 if chance is None else chance.random())
    if failure.hint is Hint.AFTER and failure.after is not None:
        delay = max(delay, _spread(failure.after, chance))
    return RetryAt(at=_later(now, delay))


def backoff(policy: RetryPolicy, failures: int) -> timedelta:
    """Return the delay after so many failures, from 1, before any jitter.

    >>> [backoff(RetryPolicy(), n).seconds for n in (1, 2, 3, 10, 10**9)]
    [5, 10, 20, 2560, 3600]
    """
    assert failures >= 1
    if policy.base == _ZERO or policy.factor == 1:
        return policy.base
    # Compared as logarithms, so that no count of attempts can overflow a float.
    growth = (failures - 1) * math.log(policy.factor)
    if growth >= math.log(policy.cap / policy.base):
        return policy.cap
    return min(policy.cap, policy.base * policy.factor ** (failures - 1))


def _spread(asked: timedelta, chance: Random | None) -> timedelta:
    """Return a delay never shorter than asked, but spread: many may have been told the same."""
    return asked if chance is None else asked + asked * (_SPREAD * chance.random())


def signature(error_type: str, message: str) -> str:
    """Return 12 hex digits that are the same for errors differing only in their particulars.

    Numbers, hexadecimal ids, UUIDs, quoted texts, addresses and paths do not count, so that one
    cause is one group however many rows it hit.

    >>> first = signature("KeyError", "no order 17 in '/tmp/a.json'")
    >>> first == signature("KeyError", "no order 23904 in '/var/b.json'")
    True
    >>> first == signature("OSError", "no order 17 in '/tmp/a.json'")
    False
    """
    text = f"{error_type}\n{normalise(message)}"
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def normalise(message: str) -> str:
    """Return an error message with `#` for each particular, or for each run of them.

    >>> normalise("row 12 of 'x.csv': expected 3 fields, got 4, 5")
    'row # of #: expected # fields, got #'
    """
    text = message[:_SIGNED_LENGTH_MAX]
    for particular in _PARTICULARS:
        text = particular.sub("#", text)
    return _SEVERAL.sub("#", " ".join(text.split()))


def _later(now: datetime, delay: timedelta) -> datetime:
    """Return `now` plus the delay, rounded up to milliseconds, at most `LAST`."""
    whole = -(-delay // MILLISECOND) * MILLISECOND
    return now + whole if whole < LAST - now else LAST


def _check_delay(field: str, delay: timedelta) -> None:
    if not _ZERO <= delay <= DELAY_MAX:
        raise InvalidInput(field, f"{delay} is out of range", "give 0 to 366 days")


def _rule_to_body(rule: ErrorRule) -> Body:
    body: dict[str, Json] = {"pattern": rule.pattern, "action": rule.action.value}
    if rule.delay is not None:
        body["delay_ms"] = rule.delay // MILLISECOND
    return body


def _rule_from_body(body: Body) -> ErrorRule:
    read = Reader("retry.rules", body)
    rule = ErrorRule(
        pattern=read.text("pattern"),
        action=read.word("action", RuleAction),
        delay=read.duration("delay_ms", None),
    )
    read.done()
    return rule
