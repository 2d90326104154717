"""Targets as values: round trip through their bodies, and what is refused where it is made."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.target import (
    METHODS,
    CommandTarget,
    HandlerTarget,
    HttpTarget,
    Target,
    check_target_payload,
    target_from_body,
)
from dynsched.domain.target_aws import Invocation, LambdaTarget, SqsTarget
from dynsched.errors import InvalidInput

ARN = "arn:aws:lambda:eu-west-1:123456789012:function:report"
QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
URL = "https://example.org:8443/hook?key=secret#x"
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
WORD = st.text("abcXYZ019", min_size=1, max_size=8)

HANDLERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", fullmatch=True).map(HandlerTarget)
HTTP = st.builds(
    HttpTarget,
    st.sampled_from([URL, "http://[::1]/", "http://host"]),
    method=st.sampled_from(["POST", "PUT", "PATCH"]),
    headers=st.dictionaries(WORD.map(str.lower), WORD, max_size=3),
    body=st.none() | st.just('{"a": {payload.a}}'),
    retry_statuses=st.lists(st.integers(400, 449), max_size=3).map(tuple),
    permanent_statuses=st.lists(st.integers(450, 599), max_size=3).map(tuple),
)
COMMANDS = st.builds(
    CommandTarget,
    TEXT.filter(str.strip),
    environment=st.dictionaries(WORD, TEXT, max_size=3),
    stdin=st.none() | TEXT,
    shell=st.none() | st.just("/bin/bash"),
    user=st.none() | WORD,
    cwd=st.none() | st.just("/srv"),
)
LAMBDAS = st.one_of(
    st.builds(
        LambdaTarget,
        st.sampled_from(["report", "report:live", ARN, f"{ARN}:7"]),
        invocation=st.sampled_from([Invocation.SYNC, Invocation.ASYNC]),
        body=st.none() | st.just('{"a": {payload.a}}'),
    ),
    st.builds(LambdaTarget, st.just(ARN), invocation=st.just(Invocation.CALLBACK)),
)
QUEUES = st.builds(
    SqsTarget,
    st.sampled_from([QUEUE, f"{QUEUE}.fifo", "http://127.0.0.1:4566/000000000000/q"]),
    group=st.none() | st.just("a-b.c/7"),
    body=st.none() | st.just("id {payload.a}"),
)
TARGETS = HANDLERS | HTTP | COMMANDS | LAMBDAS | QUEUES


@given(TARGETS)
def test_a_target_survives_its_body(target: Target) -> None:
    """What is stored is what was declared."""
    assert target_from_body(target.to_body()) == target


@given(TARGETS)
def test_a_description_is_one_short_printable_line(target: Target) -> None:
    """Listings show it beside other columns."""
    line = target.describe()
    assert line.isprintable()
    assert 0 < len(line) <= 80


def test_a_description_shows_no_secret_of_the_query() -> None:
    """Keys in addresses are common, and listings are shared."""
    assert HttpTarget(URL).describe() == "POST https://example.org:8443/hook"


def test_a_description_names_whose_command_it_is() -> None:
    """A system crontab's user column matters to the reader."""
    target = CommandTarget("backup\n  --all", user="root")
    assert target.describe() == "$ backup --all (as root)"


def test_a_target_cannot_be_changed_from_outside() -> None:
    """The mapping given is copied, and the copy is read-only."""
    headers = {"a": "1"}
    target = HttpTarget(URL, headers=headers)
    headers["a"] = "2"
    assert target.headers == {"a": "1"}
    with pytest.raises(TypeError):
        target.headers["a"] = "3"  # type: ignore[index]  # that it cannot is the point


@pytest.mark.parametrize("name", ["", "1st", "a b", "a\n", "é", "x" * 129, "a/b", "-a"])
def test_a_handler_name_of_other_characters_is_refused(name: str) -> None:
    """Names are typed, logged and put into keys."""
    with pytest.raises(InvalidInput, match="not a handler name"):
        HandlerTarget(name)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://host:99999/",
        "http://host:port/",
        "http://[::1/",
        "http://a b/",
        "http://host/\r\nX: 1",
        "http://host/é",
        "http://user:pass@host/",
        "http://user@host/",
        "http://host/" + "x" * 2048,
    ],
)
def test_an_address_that_cannot_be_called_is_refused(url: str) -> None:
    """Better where the job is made than at three in the morning."""
    with pytest.raises(InvalidInput, match=r"^url: "):
        HttpTarget(url)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"X-A": "a\r\nX-B: b"}, "line breaks"),
        ({"X-A": "a\x00"}, "line breaks"),
        ({"X-A": "é"}, "non-ASCII"),
        ({"X A": "a"}, "not a header name"),
        ({"": "a"}, "not a header name"),
        ({"X-A": "1", "x-a": "2"}, "given twice"),
        ({"Idempotency-Key": "mine"}, "set by dynsched"),
        ({"X-Dynsched-Fence": "9"}, "set by dynsched"),
        ({"Content-Length": "0"}, "set by dynsched"),
        ({f"h{n}": "v" for n in range(51)}, "more than 50"),
    ],
)
def test_headers_that_could_deceive_are_refused(headers: dict[str, str], told: str) -> None:
    """No smuggling of lines, and nobody pretends another fence."""
    with pytest.raises(InvalidInput, match=r"^headers: ") as caught:
        HttpTarget(URL, headers=headers)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: HttpTarget(URL, method="BREW"), "method"),
        (lambda: HttpTarget(URL, method="GET", body="1"), "body"),
        (lambda: HttpTarget(URL, body="\ud800"), "body"),
        (lambda: HttpTarget(URL, retry_statuses=(200,)), "retry_statuses"),
        (lambda: HttpTarget(URL, permanent_statuses=(600,)), "permanent_statuses"),
        (lambda: HttpTarget(URL, retry_statuses=(404,), permanent_statuses=(404,)), "retry_"),
        (lambda: CommandTarget(""), "command"),
        (lambda: CommandTarget(" \n"), "command"),
        (lambda: CommandTarget("echo \0"), "command"),
        (lambda: CommandTarget("x" * 70_000), "command"),
        (lambda: CommandTarget("a", environment={"A=B": "1"}), "environment"),
        (lambda: CommandTarget("a", environment={"": "1"}), "environment"),
        (lambda: CommandTarget("a", environment={"A": "\0"}), "environment.A"),
        (lambda: CommandTarget("a", stdin="\ud800"), "stdin"),
        (lambda: CommandTarget("a", shell="bash"), "shell"),  # noqa: S604  # a field of ours
        (lambda: CommandTarget("a", cwd="srv"), "cwd"),
        (lambda: CommandTarget("a", user="a b"), "user"),
        (lambda: LambdaTarget(""), "function"),
        (lambda: LambdaTarget("my report"), "function"),
        (lambda: LambdaTarget("arn:aws:lambda:eu-west-1:12:function:report"), "function"),
        (lambda: LambdaTarget("arn:aws:sqs:eu-west-1:123456789012:orders"), "function"),
        (lambda: LambdaTarget("f", body="{payload.a"), "body"),
        (lambda: LambdaTarget("f", invocation=Invocation.CALLBACK, body="{payload}"), "body"),
        (lambda: SqsTarget("orders"), "queue_url"),
        (lambda: SqsTarget("https://user:pw@sqs.eu-west-1.amazonaws.com/123456789012/q"), "queue"),
        (lambda: SqsTarget("https://sqs.eu-west-1.amazonaws.com/q"), "queue_url"),
        (lambda: SqsTarget(f"{QUEUE}?a=1"), "queue_url"),
        (lambda: SqsTarget("http://host:99999/123456789012/q"), "queue_url"),
        (lambda: SqsTarget(QUEUE, group="a b"), "group"),
        (lambda: SqsTarget(QUEUE, group="x" * 129), "group"),
        (lambda: SqsTarget(QUEUE, body=""), "body"),
    ],
)
def test_a_wrong_field_is_named(make: Callable[[], Target], field: str) -> None:
    """The error begins with the field that is to be mended."""
    with pytest.raises(InvalidInput) as caught:
        make()
    assert caught.value.field.startswith(field)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_may_be_written_in_small_letters(method: str) -> None:
    """People type them so."""
    assert HttpTarget(URL, method=method.lower()).method == method


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "fax", "number": 1},
        {"kind": "handler"},
        {"kind": "handler", "name": 7},
        {"kind": "handler", "name": "a", "colour": "red"},
        {"kind": "http", "url": URL, "headers": {"a": 1}},
        {"kind": "http", "url": URL, "headers": ["a"]},
        {"kind": "http", "url": URL, "retry": ["a"]},
        {"kind": "http", "url": URL, "retry": 1},
        {"kind": "command", "command": "a", "cwd": None},
        {"kind": "lambda", "function": "f", "invocation": "later"},
        {"kind": "lambda", "name": "f"},
        {"kind": "sqs", "url": QUEUE, "delay": 7},
    ],
)
def test_a_body_that_is_no_target_is_refused(body: dict[str, object]) -> None:
    """A damaged or foreign row is told as such."""
    with pytest.raises(InvalidInput, match=r"^target\."):
        target_from_body(body)  # type: ignore[arg-type]  # that it is wrong is the point


def test_a_payload_that_lacks_what_the_template_names_is_refused() -> None:
    """The mistake shows when the job is made, not when it runs."""
    target = HttpTarget(URL, body='{"id": {payload.order.id}}')
    check_target_payload(target, {"order": {"id": None}})
    check_target_payload(HandlerTarget("a"), None)
    with pytest.raises(InvalidInput, match=r"^payload\.order\.id: "):
        check_target_payload(target, {"order": 7})


@pytest.mark.parametrize(
    ("target", "region"),
    [
        (LambdaTarget("report"), None),
        (LambdaTarget(f"{ARN}:live"), "eu-west-1"),
        (
            LambdaTarget("arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:f"),
            "us-gov-west-1",
        ),
        (SqsTarget(QUEUE), "eu-west-1"),
        (SqsTarget("https://eu-west-2.queue.amazonaws.com/123456789012/q"), "eu-west-2"),
        (SqsTarget("https://sqs-fips.us-east-1.amazonaws.com/123456789012/q"), "us-east-1"),
        (SqsTarget("https://sqs.cn-north-1.amazonaws.com.cn/123456789012/q"), "cn-north-1"),
        (
            SqsTarget("https://vpce-1a-2b.sqs.eu-west-1.vpce.amazonaws.com/123456789012/q"),
            "eu-west-1",
        ),
        (SqsTarget("http://localhost:4566/000000000000/q"), None),
    ],
)
def test_the_region_is_what_the_name_says(
    target: LambdaTarget | SqsTarget, region: str | None
) -> None:
    """A worker elsewhere asks where the function or queue is."""
    assert target.region == region
