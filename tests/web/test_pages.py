"""What visitors see: every page, its part, hostile data, faults in filters, links that hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from dynsched.bootstrap import build_views
from dynsched.domain import lifecycle
from dynsched.domain.access import Access, Role
from dynsched.domain.run import parse_run_id
from tests.web.stage import HOSTILE, Stage, Visitor, staged

BYTES_MAX = 150 * 1024
PAGES = (
    "/", "/runs", "/jobs", "/jobs/new", "/dlq", "/dlq?by=entries", "/replays", "/tenants",
    "/workers", "/audit", "/system", "/help", "/login",
)  # fmt: skip
RUN_ROW = re.compile(r'<tr id="r-([^"]+)"')
LINK = re.compile(r'(?:href|hx-get)="([^"]+)"')
CRAWLED_MAX = 150


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A store with runs of several states, a hostile one among them; tests only look at it."""
    with staged() as made:
        made.job()
        for _ in range(3):
            made.run()
        made.run("bad@", tenant="globex")
        made.run(HOSTILE)
        made.wait()
        made.operations.confirm_replay(made.draft("tenant:globex"))
        made.draft()
        yield made


def unescaped(text: str) -> str:
    """Return the text of a page's address as a browser reads it."""
    return text.replace("&amp;", "&").replace("&#39;", "'").replace("&#34;", '"')


def crawl(visitor: Visitor) -> dict[str, str]:
    """Return every page that links lead to, by its address."""
    todo, found = list(PAGES), dict[str, str]()
    while todo and len(found) < CRAWLED_MAX:
        path = todo.pop(0)
        if path in found:
            continue
        answer = visitor.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        if answer.mimetype != "text/html":
            continue
        found[path] = answer.text
        links = (unescaped(one) for one in LINK.findall(answer.text))
        todo += [one for one in links if one.startswith("/") and "/static/" not in one]
    return found


def test_every_page_that_a_link_leads_to_is_there_and_small(stage: Stage) -> None:
    """Nothing on a page leads nowhere, and no page is heavier than a slow line carries."""
    found = crawl(stage.visitor())
    assert len(found) > 40
    assert {path: len(text) for path, text in found.items() if len(text) > BYTES_MAX} == {}


def test_no_page_holds_what_a_stranger_wrote_as_markup(stage: Stage) -> None:
    """Names and errors that attack a browser are shown as what they are."""
    for path, text in crawl(stage.visitor()).items():
        assert "<script>alert" not in text, path
        assert "<img src=x" not in text, path
        assert "\u202e" not in text, path
        assert "\x1b" not in text, path
        assert "49}}" not in text, path


def test_no_get_writes_to_the_store() -> None:
    """A crawl over all pages leaves every row but the look that all visitors share."""
    with staged() as made:
        made.job()
        made.run("bad@")
        made.draft()
        made.engine.written.clear()
        crawl(made.visitor())
        assert set(made.engine.written) <= {"health"}


def test_a_read_only_console_writes_nothing_at_all() -> None:
    """It looks for itself and shares not even that."""
    with staged(access=Access(actor="eve", read_only=True)) as made:
        made.run("bad@")
        made.engine.written.clear()
        crawl(made.visitor())
        assert made.engine.written == []


LIVE = tuple(path for path in PAGES if path not in ("/jobs/new", "/help", "/login"))


@pytest.mark.parametrize("path", LIVE)
def test_a_script_is_given_the_part_of_a_page_that_changes(stage: Stage, path: str) -> None:
    """The part has neither head nor header, and the page holds the same."""
    part = stage.visitor().part(path)
    assert part.status_code == 200
    assert "<html" not in part.text
    assert "HX-Request" in part.headers["Vary"]


def test_what_has_not_changed_is_not_sent_again(stage: Stage) -> None:
    """The script leaves a page alone at 204."""
    visitor = stage.visitor()
    first = visitor.part("/runs")
    again = visitor.part("/runs", X_Seen=first.headers["X-Seen"])
    assert (again.status_code, again.data) == (204, b"")


def test_ticked_rows_are_ticked_again_in_the_part(stage: Stage) -> None:
    """The ids that a poll sends come back as ticks, whatever the browser's script did."""
    (run_id, *_) = re.findall(
        r'name="run" id="x-([^"]+)"', stage.visitor().get("/dlq?by=entries").text
    )
    part = stage.visitor().part(f"/dlq?by=entries&run={run_id}").text
    assert re.search(rf'value="{re.escape(run_id)}"[^>]* checked', part)
    assert part.count(" checked") == 1


def test_a_fault_in_a_filter_is_shown_below_it_with_a_caret(stage: Stage) -> None:
    """The visitor sees where, and what was meant; never an empty list."""
    page = stage.visitor().get("/runs?q=tenant:acme+sate:dead").text
    assert 'aria-invalid="true"' in page
    assert "tenant:acme sate:dead\n            ^" in page
    assert "state" in page
    part = stage.visitor().part("/runs?q=sate:dead")
    assert part.status_code == 422


@pytest.mark.parametrize(
    "text",
    ["", "state:dead", "-state:dead", "tenant:globex", "err:bounced", "kind:manual",
     "attempt:>0 -tenant:acme", "bounced"],
)  # fmt: skip
def test_a_filter_finds_the_same_runs_in_the_same_order_as_elsewhere(
    stage: Stage, text: str
) -> None:
    """The command line, the terminal console and the API ask the same search."""
    elsewhere = [run.run_id for run in build_views(stage.base).find_runs(text, limit=200).items]
    page = stage.visitor().get(f"/runs?{urlencode({'q': text})}").text
    assert elsewhere
    assert list(dict.fromkeys(RUN_ROW.findall(page))) == elsewhere


def test_a_link_may_name_the_time_zone(stage: Stage) -> None:
    """Two people who share a link see the same times."""
    page = stage.visitor().get("/runs?tz=Asia/Kolkata").text
    assert "+0530" in page or "Asia/Kolkata" in page


def test_pages_say_that_the_refreshing_script_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without htmx every page works, names what is missing and asks for no refresh."""
    monkeypatch.setattr("dynsched_web.app.SCRIPT", "vendor/nothing.js")
    with staged() as made:
        page = made.visitor().get("/runs").text
        assert "htmx) is missing" in page
        assert "hx-get" not in page
        assert "vendor/" not in page


def test_a_visitor_sees_what_they_may_not_do_and_why() -> None:
    """A viewer's buttons are off and say what role they need."""
    with staged(access=Access(actor="vera", role=Role.VIEWER)) as made:
        run_id = made.run("bad@")
        page = made.visitor().get(f"/runs/{run_id}").text
        assert "vera is viewer, and run.replay needs operator" in page
        assert f'action="/runs/{run_id}/replay"' not in page


@pytest.mark.parametrize(
    "name", ["run_id", "job_id", "batch_id", "endpoint", "self", "_anchor", "_scheme", "_external"]
)
def test_a_name_in_an_address_means_nothing_to_the_console_itself(stage: Stage, name: str) -> None:
    """Whatever somebody puts into a link, the page is shown, and its own links stay here."""
    for path in {*PAGES, f"/jobs/{stage.job()}"}:
        mark = "&" if "?" in path else "?"
        answer = stage.visitor().get(f"{path}{mark}{name}=javascript")
        assert answer.status_code == 200, path
        assert "//localhost" not in answer.text, path


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_the_ends_of_the_calendar_are_shown_in_each_zone(stage: Stage, zone: str) -> None:
    """An instant that a zone's clock cannot show is shown in UTC."""
    for at in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"):
        answer = stage.visitor().get(f"/jobs/{stage.job()}/why?at={at}&tz={zone}")
        assert answer.status_code == 200, at


def test_unknown_things_are_told_in_a_page_of_the_console(stage: Stage) -> None:
    """A wrong address, run, job or batch is answered with 404 and a way on."""
    for path in (
        "/nowhere",
        "/runs/x@2026-01-01T00:00:00.000Z-c",
        "/jobs/nothing",
        "/replays/none",
    ):
        answer = stage.visitor().get(path)
        assert answer.status_code == 404, path
        assert "Overview" in answer.text


def test_a_secret_in_a_payload_is_masked_until_it_is_asked_for_with_a_reason(stage: Stage) -> None:
    """The page of a job hides it, and the form to edit the job does too."""
    job_id = stage.job()
    for path in (f"/jobs/{job_id}", f"/jobs/{job_id}/edit"):
        page = stage.visitor().get(path).text
        assert "hunter2" not in page
        assert "***" in page


@pytest.mark.parametrize(
    ("session", "holder"),
    [("~8e1c", "function invocation 8e1c"), ("~callback:8e1c", "waits for its callback")],
)
def test_a_run_without_a_worker_says_who_has_it_and_until_when(session: str, holder: str) -> None:
    """What the lease names is no session that anybody could look up among the workers."""
    with staged() as stage:
        runs, now = stage.base.store.runs, stage.clock.now()
        run = runs.get(parse_run_id(stage.wait()))
        assert run is not None
        ends_at = now + timedelta(minutes=5)
        runs.apply(lifecycle.claim(run, session=session, now=now, lease_ends_at=ends_at))
        page = stage.visitor().get(f"/runs/{run.run_id}").text
        assert f"{holder}, 1</dd>" in page
        assert "Lease ends" in page
