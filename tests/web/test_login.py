"""Who comes in: passwords, sessions, proxies, and what an open address demands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynsched.domain.access import Access, Role
from dynsched.errors import InvalidInput
from dynsched.testing import SettableClock
from dynsched_web.login import LoginLimit
from dynsched_web.people import People, add_person, read_people
from dynsched_web.serve import Typed, config_of
from tests.web.stage import NOW, PASSWORD, people, people_file, staged


def test_nobody_sees_a_page_before_the_login_and_everybody_is_led_there(tmp_path: Path) -> None:
    """A page leads to the login and back to where it was asked for; a script is told 401."""
    with staged(login=True, people=people(tmp_path)) as stage:
        ada = stage.visitor()
        answer = ada.get("/runs?q=state:dead")
        assert answer.status_code == 302
        assert answer.headers["Location"] == "/login?next=/runs?q%3Dstate:dead"
        assert ada.part("/runs").status_code == 401
        entered = ada.post("/login", name="ada", password=PASSWORD, next="/runs?q=state:dead")
        assert entered.headers["Location"] == "/runs?q=state:dead"
        assert "ada · admin" in ada.get("/runs").text


def test_the_login_leads_to_no_other_site(tmp_path: Path) -> None:
    """Where to go on is a path of this console, or its first page."""
    with staged(login=True, people=people(tmp_path)) as stage:
        for goes_on in (
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "javascript:x",
            "//[",
            "http://[evil",
        ):
            answer = stage.visitor().post("/login", name="ada", password=PASSWORD, next=goes_on)
            assert answer.headers["Location"] == "/"


def test_a_login_begins_a_session_of_its_own(tmp_path: Path) -> None:
    """The token of before is worth nothing after; the cookie is for this console only."""
    with staged(login=True, people=people(tmp_path), secure=True) as stage:
        ada = stage.visitor()
        before = ada.token()
        answer = ada.client.post(
            "/login",
            data={"csrf": before, "name": "ada", "password": PASSWORD},
            base_url="https://localhost",
        )
        cookie = answer.headers["Set-Cookie"]
        assert answer.status_code == 403 or all(
            word in cookie for word in ("HttpOnly", "Secure", "SameSite=Strict")
        )
    with staged(login=True, people=people_again(tmp_path)) as stage:
        ada = stage.visitor()
        before = ada.token()
        ada.log_in("ada")
        assert ada.token() != before
        assert ada.post("/logout", csrf=before).status_code == 403


def people_again(folder: Path) -> People:
    """Return the people of a folder that has them already."""
    return People(folder / "people")


def test_a_copied_cookie_opens_nothing_after_the_logout(tmp_path: Path) -> None:
    """Whoever has it is out too; another session of the same person is not."""
    with staged(login=True, people=people(tmp_path)) as stage:
        ada, other, thief = stage.visitor(), stage.visitor(), stage.visitor()
        ada.log_in("ada")
        other.log_in("ada")
        cookie = ada.client.get_cookie("dynsched")
        assert cookie is not None
        thief.client.set_cookie("dynsched", cookie.value)
        assert thief.get("/runs").status_code == 200
        assert ada.post("/logout").status_code == 303
        assert thief.get("/runs").status_code == 302
        assert thief.part("/runs").status_code == 401
        assert other.get("/runs").status_code == 200


def test_who_is_not_let_in_does_not_make_the_store_be_read_again(tmp_path: Path) -> None:
    """What is kept for all visitors stays kept, whatever a stranger sends; a change ends it."""
    with staged(login=True, people=people(tmp_path)) as stage:
        reading = stage.app.extensions["dynsched"].reading
        assert reading.get("q", lambda: "old").value == "old"
        stranger, job = stage.visitor(), stage.job()
        stranger.post(f"/jobs/{job}/pause", csrf="x")
        stranger.log_in("ada", "wrong")
        stranger.client.post(f"/api/v1/jobs/{job}/pause", json={})
        assert reading.get("q", lambda: "new").value == "old"
        ada = stage.visitor()
        ada.log_in("ada")
        assert ada.post(f"/jobs/{job}/pause", reason="why").status_code == 303
        assert reading.get("q", lambda: "new").value == "new"


def test_wrong_passwords_are_answered_alike_and_not_without_end(tmp_path: Path) -> None:
    """An unknown name sounds as a wrong password; after five tries there is a pause."""
    with staged(login=True, people=people(tmp_path)) as stage:
        eve = stage.visitor()
        known, unknown = (eve.log_in(name, "wrong one").text for name in ("ada", "nobody"))
        assert known.replace("ada", "").count("is wrong") == unknown.count("is wrong") == 1
        codes = [eve.log_in("ada", "wrong one").status_code for _ in range(5)]
        assert codes[-1] == 429
        assert eve.log_in("ada").status_code == 429
        stage.clock.step(seconds=61)
        assert eve.log_in("ada").status_code == 303


def test_wrong_passwords_from_elsewhere_do_not_keep_a_person_out_at_once() -> None:
    """Whoever is called at night must get in, whoever else tries that name; but not for ever."""
    clock = SettableClock(NOW)
    limit = LoginLimit(clock)
    for _ in range(5):
        limit.note_failure("ada", "192.0.2.1")
    assert limit.wait_s("ada", "192.0.2.1") > 0
    assert limit.wait_s("ada", "192.0.2.2") == 0
    assert limit.wait_s("vera", "192.0.2.1") == 0
    limit.forgive("ada", "192.0.2.1")
    assert limit.wait_s("ada", "192.0.2.1") == 0
    for host in range(60):
        limit.note_failure("ada", f"198.51.100.{host}")
    assert limit.wait_s("ada", "192.0.2.3") > 0
    clock.step(seconds=61)
    assert limit.wait_s("ada", "192.0.2.3") == 0


def test_a_session_ends_after_its_time_and_with_any_change_of_the_person(tmp_path: Path) -> None:
    """A changed role or password holds at once; eight hours are the end in any case."""
    with staged(login=True, people=people(tmp_path)) as stage:
        vera = stage.visitor()
        vera.log_in("vera")
        assert vera.get("/").status_code == 200
        add_person(tmp_path / "people", "vera", PASSWORD, role=Role.ADMIN)
        assert vera.get("/").status_code == 302
        vera.log_in("vera")
        assert "vera · admin" in vera.get("/").text
        stage.clock.step(hours=8)
        assert vera.get("/").status_code == 302


def test_the_roles_of_people_hold_and_no_more_than_the_console_itself_may(tmp_path: Path) -> None:
    """A read-only console is so for its admins too, and an operator's console makes no admins."""
    access = Access(actor="starter", role=Role.OPERATOR)
    with staged(login=True, people=people(tmp_path), access=access) as stage:
        for name, role in (("ada", "operator"), ("vera", "viewer")):
            visitor = stage.visitor()
            visitor.log_in(name)
            assert f"{name} · {role}" in visitor.get("/").text
    access = Access(actor="starter", read_only=True)
    with staged(login=True, people=people_again(tmp_path), access=access) as stage:
        ada = stage.visitor()
        ada.log_in("ada")
        assert "READ-ONLY" in ada.get("/").text
        assert ada.post("/replays", filter="state:dead").status_code == 403


def test_a_proxys_word_is_taken_only_from_its_address(tmp_path: Path) -> None:
    """The header of anybody else is taken off, and so are the forwarded ones."""
    config = {"login": True, "proxies": frozenset({"10.0.0.7"}), "proxy_header": "X-Forwarded-User"}
    with staged(**config, people=people(tmp_path)) as stage:
        client = stage.app.test_client()
        said = {"X-Forwarded-User": "otto"}
        believed = client.get("/", headers=said, environ_base={"REMOTE_ADDR": "10.0.0.7"})
        assert "otto · operator" in believed.text
        other = client.get("/", headers=said, environ_base={"REMOTE_ADDR": "10.0.0.8"})
        assert other.status_code == 302
        unknown = {"X-Forwarded-User": "mallory"}
        refused = client.get("/", headers=unknown, environ_base={"REMOTE_ADDR": "10.0.0.7"})
        assert refused.status_code == 302
    with staged(**config) as stage:
        client = stage.app.test_client()
        believed = client.get("/", headers=said, environ_base={"REMOTE_ADDR": "10.0.0.7"})
        assert "otto · viewer" in believed.text


def test_an_address_that_others_reach_demands_a_login(tmp_path: Path) -> None:
    """Loopback is open to the one who started it; anything else is not started without."""
    access = Access(actor="ada")
    assert not config_of(access, Typed(environment={})).login
    with pytest.raises(InvalidInput, match="nobody has to log in"):
        config_of(access, Typed(host="0.0.0.0", environment={}))  # noqa: S104
    with pytest.raises(InvalidInput, match="no proxy is trusted"):
        config_of(access, Typed(proxy_header="X-User", environment={}))
    path = str(people_file(tmp_path))
    assert config_of(access, Typed(host="::", password_file=path, environment={})).login


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("ann", "is no role"),
        ("ann:boss::-", "is no role"),
        ("ann:admin::secret", "not hashed"),
        (":admin::-", "the name is empty"),
        ("ann:admin::-\nann:viewer::-", "twice"),
    ],
)
def test_a_malformed_password_file_names_its_line(line: str, fault: str) -> None:
    """Nobody is let in by a file that does not say what it means."""
    with pytest.raises(InvalidInput, match=fault):
        read_people(line, "people")


def test_everything_works_under_a_path(tmp_path: Path) -> None:
    """Whether or not the proxy takes the path off, every link has it."""
    with staged(login=True, people=people(tmp_path), base_path="/jobs-console") as stage:
        for prefix in ("", "/jobs-console"):
            ada = stage.visitor()
            ada.get(f"{prefix}/login")
            token = ada.token()
            answer = ada.client.post(
                f"{prefix}/login",
                data={"csrf": token, "name": "ada", "password": PASSWORD, "next": "/runs"},
                base_url="http://localhost/jobs-console",
            )
            assert answer.status_code in (303, 403)
        page = stage.visitor().get("/jobs-console/login").text
        assert 'href="/jobs-console/static/app.css"' in page
