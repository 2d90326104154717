"""Filters: one line that says which rows to show, read strictly and printed as it is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsched.domain.completion import complete
from dynsched.domain.filters import (
    AUDIT,
    GROUPS,
    JOBS,
    NAMED,
    RUNS,
    TENANTS,
    WORD,
    WORKERS,
    Content,
    Filter,
    FilterError,
    Offset,
    Op,
    Span,
    Term,
    Value,
    Vocabulary,
    parse,
    term_text,
)
from dynsched.domain.vocabulary import COMPARED, Kind, Qualifier

RUN_ID = "j1@2026-01-02T03:04:05.000Z-m0-abc"
NAMES = "[A-Za-z0-9][A-Za-z0-9._-]{0,9}"
VOCABULARIES = (RUNS, JOBS, AUDIT, GROUPS, TENANTS, WORKERS)

WRONG = [
    ("-", 0, "nothing follows the minus sign (for example -state:done)"),
    ("state:dead - x", 11, "nothing follows the minus sign (for example -state:done)"),
    (
        "sate:dead",
        0,
        "runs have no 'sate:' (did you mean state:?; quotes look for the text itself)",
    ),
    (
        "state:dead -tennant:a",
        12,
        "runs have no 'tennant:' (did you mean tenant:?; quotes look for the text itself)",
    ),
    (
        "priorty:high",
        0,
        "runs have no 'priorty:' (did you mean prio:?; quotes look for the text itself)",
    ),
    ("state:ded", 6, "'ded' is no value of state (did you mean dead?)"),
    (
        "state:dead,zzz",
        11,
        "'zzz' is no value of state (one of ready, leased, failed, done, dead, cancelled, skipped)",
    ),
    ("state:", 6, "state: has no value (write state:ready without a blank)"),
    ("state: dead", 6, "state: has no value (write state:ready without a blank)"),
    ("job:", 4, "job: has no value (write job:VALUE without a blank)"),
    ("state:dead,", 11, "a value is missing at the comma (for example a,b without a blank)"),
    ("state:,dead", 6, "state: has no value (write state:ready without a blank)"),
    (",a", 0, "a value is missing at the comma (for example a,b without a blank)"),
    ("a,,b", 2, "a value is missing at the comma (for example a,b without a blank)"),
    ("attempt:>", 9, "attempt:> has no value (write attempt:>VALUE without a blank)"),
    (
        "attempt:many",
        8,
        "'many' is no number (for example attempt:3, attempt:>3 or attempt:<=3)",
    ),
    ("attempt:-1", 8, "'-1' is no number (for example attempt:3, attempt:>3 or attempt:<=3)"),
    ("attempt:>=1.5", 8, "'1.5' is no number (for example attempt:3, attempt:>3 or attempt:<=3)"),
    ("delay:>soon", 6, "'soon' is no duration (for example delay:>30s)"),
    ("delay:>-5m", 6, "'-5m' is negative (for example delay:>30s)"),
    ("delay:90s", 6, "delay needs a comparison (for example delay:>90s)"),
    (
        "sched:1h",
        6,
        "'1h' does not say whether past or to come (-1h is so long ago, +1h is to come)",
    ),
    ("sched:-1h", 6, "'-1h' is a moment, so it needs a comparison (for example sched:>-1h)"),
    ("ended:now", 6, "'now' is a moment, so it needs a comparison (for example ended:>now)"),
    ("due:>-1y", 4, "'-1y' is no time (- needs 30s, 5m, 2h, 1d or 1h30m)"),
    (
        "dead:<yesterday",
        5,
        "'yesterday' is no time (an instant such as 2026-11-29T10:00Z, a date, or -1h for an hour"
        " ago)",
    ),
    (
        "dead:<2026-11-29T10:00",
        5,
        "'2026-11-29T10:00' has no zone (2026-11-29T10:00Z is in UTC)",
    ),
    (
        "sched:2026-02-30",
        6,
        "'2026-02-30' is no time of the calendar (an instant such as 2026-11-29T10:00Z, a date, or"
        " -1h for an hour ago)",
    ),
    ('err:"no disk', 4, 'the quotes are not closed (end the value with ")'),
    ('err:no"disk"', 6, "a quote stands inside a word (put the whole value in quotes)"),
    ('"no disk"x', 9, "a blank or a comma must follow the quotes (add a blank)"),
    ('""', 0, "the quotes are empty (write what to look for)"),
    ('err:""', 4, "the value of err is empty (write what to look for)"),
    ("err:>5", 4, "err cannot be compared by > (quotes look for the text itself)"),
    (">=5", 0, "a word cannot be compared by >= (quotes look for the text itself)"),
    ("state.x:dead", 0, "state takes no path (write state:)"),
    (
        "payload:7",
        0,
        "'payload:' does not say where in the payload (for example payload.order.id:7)",
    ),
    (
        "payload.a..b:7",
        0,
        "'payload.a..b:' does not say where in the payload (for example payload.order.id:7)",
    ),
    ("payload.n:>many", 10, "'many' is no number (only numbers can be compared)"),
    (
        "tenant:#1",
        7,
        "'#1' is not a name of a tenant (1 to 64 of A-Z a-z 0-9 . _ - that start with a letter or"
        " digit)",
    ),
    ("tag:=ops", 4, "'=ops' is no tag (for example tag:team or tag:team=ops)"),
    (
        "id:abc",
        3,
        "'abc' is not a whole run id (without `id:` a part of it is looked for)",
    ),
    ("@lat", 0, "there is no filter '@lat' (did you mean @late?)"),
    (
        "-@none",
        1,
        "there is no filter '@none' (@late, @stuck, @dead-last-hour, @dead-again, @expired)",
    ),
    (
        "is:asleep",
        3,
        "'asleep' is no value of is (one of late, overdue, retried, replayed,"
        " discarded, forced, asked, stuck)",
    ),
    (
        "http://example.org",
        0,
        "runs have no 'http:' (known are state, job, tenant, prio, queue, worker, kind, id, err,"
        " group, batch, attempt, replays, delay, sched, due, started, ended, dead, key, tag,"
        " payload, reason, is; quotes look for the text itself)",
    ),
    (" ".join(["x"] * 51), 100, "it has more than 50 terms (ask for less)"),
    ("x" * 40_001, 40_000, "it is longer than 40,000 characters (ask for less)"),
]


@pytest.mark.parametrize(("text", "column", "told"), WRONG, ids=lambda value: str(value)[:20])
def test_a_filter_that_cannot_be_read_says_what_is_wrong_and_where(
    text: str, column: int, told: str
) -> None:
    """One sentence with a mend, and the column of what was meant."""
    with pytest.raises(FilterError) as caught:
        parse(text, RUNS)
    assert str(caught.value) == f"filter: {told}"
    assert (caught.value.column, caught.value.text) == (column, text)


def test_a_fault_is_pointed_at_below_the_filter() -> None:
    """Of a long filter the part around the fault; nothing in it can move the cursor."""
    with pytest.raises(FilterError) as caught:
        parse("-state:done tenant:\x1b#", RUNS)
    assert caught.value.pointer() == ("-state:done tenant:?#", " " * 19 + "^")
    with pytest.raises(FilterError) as caught:
        parse("err:" + "x" * 500 + " sate:dead or", RUNS)
    assert caught.value.pointer() == ("x" * 59 + " sate:dead or", " " * 60 + "^")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("  State:DEAD,done   -TENANT:acme ", "state:dead,done -tenant:acme"),
        ('err:"no disk","say \\"a\\\\b\\""', 'err:"no disk","say \\"a\\\\b\\""'),
        ('err:"timeout"', "err:timeout"),
        ('"a:b" "-x" "@y" "<z"', '"a:b" "-x" "@y" "<z"'),
        ("j1@2026 12:30 a/b", 'j1@2026 "12:30" a/b'),
        (RUN_ID, f"id:{RUN_ID}"),
        (f"-{RUN_ID},{RUN_ID}", f"-id:{RUN_ID},{RUN_ID}"),
        ("priority:high session:s error:x signature:0f", "prio:high worker:s err:x group:0f"),
        ("attempt:>03 delay:>=90s", "attempt:>3 delay:>=1m30s"),
        ("sched:>-60m due:<+1d2h ended:<=now", "sched:>-1h due:<+1d2h ended:<=now"),
        (
            "sched:2026-11-29 due:>2026-11-29T11:00+01:00 dead:<2026-11-29T10:00:30.5Z",
            "sched:2026-11-29 due:>2026-11-29T10:00Z dead:<2026-11-29T10:00:30.500Z",
        ),
        ('dead:<"2026-11-29 10:00:07z"', "dead:<2026-11-29T10:00:07Z"),
        ("Payload.Order.id:>=7,-1.5 payload.a:true", "payload.Order.id:>=7,-1.5 payload.a:true"),
        ("@LATE -@dead-again", "@late -@dead-again"),
        ("tag:team,tier=1", "tag:team,tier=1"),
    ],
)
def test_a_filter_is_printed_in_one_way(text: str, canonical: str) -> None:
    """The text that is shown, shared and kept."""
    found = parse(text, RUNS)
    assert found.text == canonical
    assert parse(canonical, RUNS) == found
    assert parse(canonical, RUNS).digest == found.digest


def texts() -> st.SearchStrategy[str]:
    """Return texts with all that the grammar cares about."""
    return st.text(st.one_of(st.sampled_from('ab:,"\\->=<@. \t\n\u2028é#'), st.characters()))


def contents(qualifier: Qualifier, op: Op) -> st.SearchStrategy[Content]:
    """Return what a qualifier may be compared with."""
    spans = st.timedeltas(timedelta(0), timedelta(days=3000)).map(
        lambda span: timedelta(milliseconds=span // timedelta(milliseconds=1))
    )
    instants = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(  # noqa: DTZ001
        lambda at: at.replace(tzinfo=UTC, microsecond=0, second=0)
    )
    times: st.SearchStrategy[Content] = st.one_of(
        st.builds(Span, instants, st.just(timedelta(minutes=1))),
        st.builds(
            lambda at, s: Span(at.replace(second=s), timedelta(seconds=1)),
            instants,
            st.integers(0, 59),
        ),
        st.builds(
            lambda at, ms: Span(at.replace(microsecond=1000 * ms), timedelta(milliseconds=1)),
            instants,
            st.integers(0, 999),
        ),
        instants.map(lambda at: Span(at.replace(hour=0, minute=0), timedelta(days=1))),
    )
    if op is not Op.IS:
        times = times | spans.map(Offset) | spans.map(lambda span: Offset(-span))
    kinds: dict[Kind, st.SearchStrategy[Content]] = {
        Kind.CHOICE: st.sampled_from(list(qualifier.choices) or [""]),
        Kind.NAME: st.from_regex(NAMES, fullmatch=True),
        Kind.RUN_ID: st.just(RUN_ID),
        Kind.WORD: texts().filter(bool),
        Kind.TEXT: texts().filter(bool),
        Kind.NUMBER: st.integers(0, 999_999_999),
        Kind.DURATION: spans,
        Kind.TIME: times,
        Kind.TAG: st.builds(
            lambda name, rest: name + rest,
            st.from_regex(NAMES, fullmatch=True),
            st.one_of(st.just(""), texts().map("={}".format)),
        ),
        Kind.JSON: texts() if op is Op.IS else st.integers(-999, 999).map(str),
    }
    return kinds[qualifier.kind]


@st.composite
def terms(draw: st.DrawFn, vocabulary: Vocabulary) -> Term:
    """Return any term of a vocabulary."""
    negated = draw(st.booleans())
    shipped = sorted(vocabulary.named)
    kind = draw(st.sampled_from(["word", "term", "term", *(["named"] if shipped else [])]))
    if kind == "named":
        return Term(NAMED, (Value(Op.IS, draw(st.sampled_from(shipped))),), negated)
    if kind == "word":
        words = draw(st.lists(texts().filter(bool), min_size=1, max_size=3))
        return Term(WORD, tuple(Value(Op.IS, word) for word in words), negated)
    qualifier = draw(st.sampled_from(vocabulary.qualifiers))
    path = draw(st.from_regex(r"[\w-]{1,5}(\.[\w-]{1,5})?", fullmatch=True))
    values = []
    for _ in range(draw(st.integers(1, 3))):
        signs = list(Op) if qualifier.kind in COMPARED else [Op.IS]
        if qualifier.kind is Kind.DURATION:
            signs.remove(Op.IS)
        op = draw(st.sampled_from(signs))
        values.append(Value(op, draw(contents(qualifier, op))))
    return Term(qualifier.name, tuple(values), negated, path if qualifier.path else "")


@given(st.data())
def test_a_printed_filter_is_read_as_the_same_filter(data: st.DataObject) -> None:
    """Whatever its values hold."""
    vocabulary = data.draw(st.sampled_from(VOCABULARIES))
    found = Filter(tuple(data.draw(st.lists(terms(vocabulary), max_size=5))), vocabulary)
    again = parse(found.text, vocabulary)
    assert again == found
    assert again.text == found.text
    assert again.describe() == found.describe()


@given(texts(), st.sampled_from(VOCABULARIES))
def test_any_text_is_a_filter_or_an_error_with_its_column(
    text: str, vocabulary: Vocabulary
) -> None:
    """The reader never fails in another way, and what it reads it prints."""
    try:
        found = parse(text, vocabulary)
    except FilterError as error:
        fault = error
    else:
        assert parse(found.text, vocabulary) == found
        return
    assert 0 <= fault.column <= len(text)
    shown, caret = fault.pointer()
    assert len(caret) - 1 <= len(shown)


@given(
    st.lists(
        st.sampled_from(
            [
                "state:",
                "dead",
                "-",
                ",",
                " ",
                '"',
                ">",
                "-1h",
                "payload.a:",
                "@late",
                "x",
                "\\",
                "sched:",
                "2026-11-29",
                "T10:00Z",
                "9" * 30,
                "1e999",
                "id:",
                RUN_ID,
                "tag:",
                "=",
            ]
        ),
        max_size=9,
    )
)
def test_any_pieces_of_filters_are_a_filter_or_an_error(pieces: list[str]) -> None:
    """Nearly right texts reach the far corners of the reader."""
    text = "".join(pieces)
    try:
        found = parse(text, RUNS)
    except FilterError as error:
        fault = error
    else:
        assert parse(found.text, RUNS) == found
        return
    assert 0 <= fault.column <= len(text)


def test_a_term_from_other_words_reads_back_whatever_they_hold() -> None:
    """What an option gave becomes a value and never more."""
    text = term_text("err", 'a "b', "x,-state:dead", "plain")
    assert [term.words for term in parse(text, RUNS).terms] == [('a "b', "x,-state:dead", "plain")]


def test_groups_are_asked_for_dead_runs_only() -> None:
    """Another state is a mistake, not an empty list."""
    assert parse("state:dead err:x", GROUPS).text == "state:dead err:x"
    with pytest.raises(FilterError, match=r"'ready' is no value of state \(did you mean dead\?\)"):
        parse("state:ready", GROUPS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "all runs"),
        ("-err:a,b", "runs whose error contains neither 'a' nor 'b'"),
        ("attempt:>3 delay:<=1m", "runs whose number of tries is over 3, delay is at most 1m"),
        (
            "due:<+1h sched:2026-11-29",
            "runs whose earliest start is before 1h from now, scheduled instant is in 2026-11-29",
        ),
        ("@expired", "runs that are leased by a worker that is gone"),
        (
            "-@late boom",
            "runs that are not still waiting more than a minute after they were to"
            " start, whose id, job name or error contains 'boom'",
        ),
    ],
)
def test_a_filter_is_told_in_words(text: str, words: str) -> None:
    """One line for people who do not know the language."""
    assert parse(text, RUNS).describe() == words


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("is:re", ["retried", "replayed"]),
        ("state:dead,do", ["done"]),
        ("state:dead,", [*RUNS.qualifiers[0].choices]),
        ("state:dead -pr", ["prio:"]),
        ("pay", ["payload."]),
        ("@dead", ["@dead-last-hour", "@dead-again"]),
        ("-@ex", ["@expired"]),
        ("sched:", [">-1h", "<-1d"]),
        ("job:n", []),
        ("nonsense:", []),
        ('err:"st', []),
        (
            "state:dead ",
            [
                *(f"{one.name}." if one.path else f"{one.name}:" for one in RUNS.qualifiers),
                *(f"@{name}" for name in RUNS.named),
            ],
        ),
    ],
)
def test_what_may_follow_is_offered(text: str, offered: list[str]) -> None:
    """Names first, then the values that a qualifier knows."""
    found = complete(text, len(text), RUNS)
    assert [one.text for one in found] == offered
    for one in found:
        assert one.apply(text).endswith(one.text)


def test_a_completion_replaces_what_was_begun_and_keeps_the_rest() -> None:
    """In the middle of a filter too, and never outside of the text."""
    text = "-sta tenant:a"
    first = complete(text, 4, RUNS)[0]
    assert first.apply(text) == "-state: tenant:a"
    assert first.hint == "where it stands"
    assert complete("st", 99, RUNS)[0].apply("st") == "state:"
    assert complete("", -1, JOBS)[0].apply("") == "state:"
