"""What may not be done: by whom, from where, to whose; and what every answer tells browsers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from dynsched.domain.access import Access, Role
from tests.web.stage import Stage, people, staged


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """What there is of a tenant to be changed."""

    run: str
    job: str
    batch: str
    tenant: str


def things(stage: Stage, tenant: str) -> Things:
    """Make one of each, the run dead."""
    run = stage.run("bad@", tenant=tenant)
    batch = stage.draft(f"tenant:{tenant}")
    return Things(run=run, job=stage.job(tenant), batch=batch, tenant=tenant)


FORMS: Mapping[str, Mapping[str, str]] = {
    "/runs/{run}/cancel": {},
    "/runs/{run}/replay": {},
    "/runs/{run}/discard": {},
    "/runs/{run}/restore": {},
    "/runs/{run}/as-new": {"reason": "why"},
    "/runs/{run}/edit": {"reason": "why", "payload": '"good"'},
    "/runs/{run}/unmask": {"reason": "why"},
    "/jobs": {"name": "new", "tenant": "{tenant}", "kind": "manual", "handler": "mail"},
    "/jobs/{job}/edit": {"kind": "manual", "handler": "other", "reason": "why"},
    "/jobs/{job}/pause": {"reason": "why"},
    "/jobs/{job}/resume": {},
    "/jobs/{job}/run": {},
    "/jobs/{job}/delete": {"name": "hourly"},
    "/dlq/discard": {"run": "{run}", "count": "1"},
    "/replays": {"filter": "tenant:{tenant}"},
    "/replays/{batch}/confirm": {"reason": "why", "count": "1"},
    "/replays/{batch}/pause": {},
    "/replays/{batch}/resume": {},
    "/replays/{batch}/abort": {},
    "/replays/{batch}/pull-back": {},
    "/replays/{batch}/pace": {"rate": "5"},
    "/replays/{batch}/rest": {},
    "/tenants/{tenant}/cap": {"max_running": "3"},
}
"""Every form that changes the store, with fields that would do it."""
HARMLESS = frozenset({"/login", "/logout", "/wishes", "/jobs/preview"})


def filled(path: str, of: Things) -> tuple[str, dict[str, str]]:
    """Return a form's address and fields for given things."""
    words = {"run": of.run, "job": of.job, "batch": of.batch, "tenant": of.tenant}
    fields = {
        name: value if value.startswith('"') else value.format(**words)
        for name, value in FORMS[path].items()
    }
    return path.format(**words), fields


def test_the_list_of_forms_is_complete() -> None:
    """A route that takes a form and is not in the list above would not be tested."""
    with staged() as stage:
        rules = [
            rule
            for rule in stage.app.url_map.iter_rules()
            if rule.methods and "POST" in rule.methods and not rule.rule.startswith("/api/")
        ]
        listed = {path.split("/")[-1] for path in FORMS}
        for rule in rules:
            last = rule.rule.split("/")[-1]
            known = rule.rule in HARMLESS or last in listed or last.startswith("<any(")
            assert known, rule.rule
        acts = [str(one) for rule in rules for one in [rule.rule] if "<any(" in one]
        for text in acts:
            inside = text.partition("<any(")[2].partition(")")[0]
            assert {one.strip(" '") for one in inside.split(",")} <= listed


@pytest.fixture(scope="module")
def viewed() -> Iterator[tuple[Stage, Things]]:
    """A console for a viewer."""
    with staged(access=Access(actor="vera", role=Role.VIEWER)) as stage:
        yield stage, things(stage, "acme")


@pytest.mark.parametrize("path", FORMS)
def test_a_viewer_changes_nothing(viewed: tuple[Stage, Things], path: str) -> None:
    """Every form is refused, whatever the page had shown."""
    stage, of = viewed
    address, fields = filled(path, of)
    assert stage.visitor().post(address, **fields).status_code == 403


@pytest.fixture(scope="module")
def looked_at() -> Iterator[tuple[Stage, Things]]:
    """A read-only console for an admin."""
    with staged(access=Access(actor="ada", read_only=True)) as stage:
        yield stage, things(stage, "acme")


@pytest.mark.parametrize("path", FORMS)
def test_a_read_only_console_changes_nothing(looked_at: tuple[Stage, Things], path: str) -> None:
    """Every form is refused, and not a row is written for that."""
    stage, of = looked_at
    address, fields = filled(path, of)
    stage.engine.written.clear()
    assert stage.visitor().post(address, **fields).status_code == 403
    assert stage.engine.written == []


@pytest.fixture(scope="module")
def opened() -> Iterator[tuple[Stage, Things]]:
    """A console for an admin."""
    with staged() as stage:
        yield stage, things(stage, "acme")


@pytest.mark.parametrize("token", ["", "0" * 48])
@pytest.mark.parametrize("path", FORMS)
def test_a_form_without_its_token_changes_nothing(
    opened: tuple[Stage, Things], path: str, token: str
) -> None:
    """A page of somebody else cannot send it, as it cannot know the token."""
    stage, of = opened
    address, fields = filled(path, of)
    visitor = stage.visitor()
    visitor.token()
    stage.engine.written.clear()
    assert visitor.post(address, csrf=token, **fields).status_code == 403
    assert stage.engine.written == []


@pytest.mark.parametrize("path", FORMS)
def test_a_form_of_another_site_changes_nothing(opened: tuple[Stage, Things], path: str) -> None:
    """Whatever token it has: the browser says where it comes from."""
    stage, of = opened
    address, fields = filled(path, of)
    visitor = stage.visitor()
    data = {"csrf": visitor.token(), **fields}
    stage.engine.written.clear()
    answer = visitor.client.post(address, data=data, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert stage.engine.written == []


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Things]]:
    """A console with people, and what is of the tenant that Tom may not see."""
    folder: Path = tmp_path_factory.mktemp("people")
    with staged(login=True, people=people(folder)) as stage:
        things(stage, "acme")
        yield stage, things(stage, "globex")


@pytest.mark.parametrize("path", FORMS)
def test_somebody_of_one_tenant_changes_nothing_of_another(
    shared: tuple[Stage, Things], path: str
) -> None:
    """Tom is an admin of acme and gets nowhere at globex."""
    stage, of = shared
    tom = stage.visitor()
    assert tom.log_in("tom").status_code == 303
    address, fields = filled(path, of)
    before = stage.operations.get_run(of.run), stage.operations.get_job(of.job)
    answer = tom.post(address, **fields)
    assert answer.status_code in (403, 404, 422), answer.text
    assert (stage.operations.get_run(of.run), stage.operations.get_job(of.job)) == before


def test_somebody_of_one_tenant_sees_nothing_of_another(shared: tuple[Stage, Things]) -> None:
    """Lists, objects, groups, the audit, the overview: the neighbour's name is nowhere."""
    stage, of = shared
    tom = stage.visitor()
    tom.log_in("tom")
    at = "at=2026-01-01T00:00:00Z"
    hidden = (
        f"/runs/{of.run}", f"/jobs/{of.job}", f"/jobs/{of.job}/edit", f"/jobs/{of.job}/why?{at}",
        f"/replays/{of.batch}", f"/replays/{of.batch}/entries.csv",
    )  # fmt: skip
    assert [path for path in hidden if tom.get(path).status_code != 404] == []
    whole = ("/workers", "/system", "/metrics")
    assert [path for path in whole if tom.get(path).status_code != 403] == []
    lists = ("/", "/runs", "/jobs", "/dlq", "/dlq?by=entries", "/replays", "/tenants", "/audit")
    for path in lists:
        page = tom.get(path).text
        assert "globex" not in page, path
        assert of.job not in page, path
    for path in ("/runs?q=tenant:globex", "/dlq?q=tenant:globex", f"/runs?q=id:{of.run}"):
        assert "matched 0" in tom.get(path).text, path


def test_the_overview_of_one_tenant_counts_nothing_of_others(
    shared: tuple[Stage, Things],
) -> None:
    """Levels and charts are of the whole store, as `/metrics` is, and lead to other figures."""
    stage, _ = shared
    tom, ada = stage.visitor(), stage.visitor()
    tom.log_in("tom")
    ada.log_in("ada")
    for words in ("Is it on time?", 'aria-label="Levels"', 'aria-label="Charts"'):
        assert words in ada.get("/").text, words
        assert words not in tom.get("/").text, words
    assert "Top error groups" in tom.get("/").text


def test_what_is_anothers_is_told_in_the_words_for_what_is_nowhere(
    shared: tuple[Stage, Things],
) -> None:
    """Neither advice nor a guess of a name tells somebody of one tenant what others have."""
    stage, of = shared
    tom = stage.visitor()
    tom.log_in("tom")
    nowhere = "x" * len(of.job)
    for kind, theirs in (("jobs", of.job), ("runs", of.run), ("replays", of.batch)):
        none = theirs.replace(of.job, nowhere) if kind == "runs" else nowhere
        told = tom.part(f"/{kind}/{theirs}").text.replace(theirs, "ID")
        assert tom.part(f"/{kind}/{none}").text.replace(none, "ID") == told, kind
    assert "globex" not in tom.get("/jobs/mail").text
    guesses = [tom.post(f"/jobs/{of.job}/delete", name=name) for name in ("hourly", "other")]
    assert [answer.status_code for answer in guesses] == [404, 404]


def test_every_answer_tells_browsers_what_they_may_do(opened: tuple[Stage, Things]) -> None:
    """The strict policy, no sniffing, no frame, nothing kept; on errors and scripts too."""
    stage, _ = opened
    visitor = stage.visitor()
    for path in ("/", "/nowhere", "/static/app.css", "/healthz"):
        headers = visitor.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert visitor.get("/").headers["Cache-Control"] == "no-store"


def test_a_method_that_a_page_does_not_take_is_refused_with_those_that_it_takes(
    opened: tuple[Stage, Things],
) -> None:
    """HTTP demands it, and a page of the console says so."""
    answer = opened[0].visitor().client.open("/runs", method="DELETE")
    assert answer.status_code == 405
    assert "GET" in answer.headers["Allow"]
    assert answer.mimetype == "text/html"


def test_a_console_without_login_answers_to_its_own_names_only() -> None:
    """A stranger's name that was turned to this machine reads nothing."""
    with staged(hosts=("localhost", "127.0.0.1", "[::1]")) as stage:
        visitor = stage.visitor()
        assert visitor.get("/").status_code == 200
        assert visitor.get("/", Host="evil.example:8420").status_code == 403
        assert visitor.get("/", Host="127.0.0.1:8420").status_code == 200
