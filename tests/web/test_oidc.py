"""Logging in by OIDC: the whole way at a provider of our own, and each way to fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from werkzeug.test import TestResponse

from dynsched.domain.access import Access, Role
from dynsched.errors import Forbidden, InvalidInput
from dynsched_web.oidc import SECRET_VARIABLE, OidcConfig, claimed
from dynsched_web.serve import Typed, config_of
from tests.web.stage import NOW, Visitor, staged
from tests.web.stub_provider import CLIENT_ID, CLIENT_SECRET, OTHER_KEY, StubProvider, providing

NOW_S = int(NOW.timestamp())
BACK = "/login/oidc/return"


def oidc(stub: StubProvider, **more: Any) -> OidcConfig:
    """Return how a console logs people in at the stub."""
    usual = {"roles": {"ops": Role.OPERATOR, "boss": Role.ADMIN, "staff": Role.VIEWER}}
    return OidcConfig(
        issuer=stub.issuer, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, **(usual | more)
    )


@contextmanager
def console(*, claims: dict[str, Any] | None = None, **config: Any) -> Iterator[tuple[Any, Any]]:
    """Set a stage whose people log in at a stub; the claims are over the usual ones."""
    tenant = config.pop("tenant_claim", "")
    with providing(NOW_S) as stub:
        stub.claims |= claims or {}
        chosen = oidc(stub, tenant_claim=tenant)
        with staged(login=True, oidc=chosen, **config) as stage:
            yield stage, stub


def log_in(visitor: Visitor, stub: StubProvider, path: str = "/login/oidc") -> TestResponse:
    """Go to the provider and come back."""
    led = visitor.get(path)
    assert led.status_code == 303
    return visitor.client.get(BACK, query_string=stub.authorize(led.headers["Location"]))


def refused(visitor: Visitor, answer: TestResponse, words: str) -> bool:
    """Return whether a page says why nobody came in, and nobody did."""
    assert answer.status_code == 403
    assert words in answer.text
    assert 'role="alert"' in answer.text
    return visitor.get("/").status_code == 302


def test_somebody_logs_in_at_the_provider_and_goes_on_where_they_wanted() -> None:
    """The highest of their roles holds, the audit names them and the door, and they can leave."""
    with console() as (stage, stub):
        olga = stage.visitor()
        page = olga.get("/login?next=/runs?q%3Dstate:dead").text
        assert "Log in with 127.0.0.1" in page
        assert "/login/oidc?next=/runs?q%3Dstate:dead" in page
        entered = log_in(olga, stub, "/login/oidc?next=/runs?q%3Dstate:dead")
        assert entered.status_code == 200, entered.text
        assert 'content="0; url=/runs?q=state:dead"' in entered.text
        assert "olga · operator" in olga.get("/runs").text
        job_id = stage.job()
        assert olga.post(f"/jobs/{job_id}/run", reason="now").status_code in (302, 303)
        entry = stage.app.extensions["dynsched"].views.audit().items[0]
        assert (entry.actor, entry.via) == ("olga", "web")
        assert olga.post("/logout").status_code == 303
        assert olga.get("/").status_code == 302


def test_the_session_is_new_at_the_login_and_its_cookie_stays_strict() -> None:
    """Only what was begun is sent from the provider's page, to two paths, and is then dropped."""
    with console(secure=True) as (stage, stub):
        client = stage.app.test_client()
        at = "https://localhost"
        client.get("/login", base_url=at)
        led = client.get("/login/oidc", base_url=at)
        begun = led.headers["Set-Cookie"]
        for word in ("dynsched-oidc=", "SameSite=Lax", "HttpOnly", "Secure", "Path=/login/oidc;"):
            assert word in f"{begun};"
        back = stub.authorize(led.headers["Location"])
        answer = client.get(BACK, base_url=at, query_string=back)
        cookies = answer.headers.getlist("Set-Cookie")
        session = next(one for one in cookies if one.startswith("dynsched="))
        assert "SameSite=Strict" in session
        dropped = next(one for one in cookies if one.startswith("dynsched-oidc="))
        assert "Max-Age=0" in dropped
        again = client.get(BACK, base_url=at, query_string=back)
        assert again.status_code == 403
        assert stub.tokens == 1


def test_a_token_of_before_the_login_is_worth_nothing_after() -> None:
    """A session that somebody else has begun in this browser is not the one that is let in."""
    with console() as (stage, stub):
        olga = stage.visitor()
        olga.get("/login")
        with olga.client.session_transaction() as before:
            before["csrf"] = "0" * 48
        log_in(olga, stub)
        assert olga.token() != "0" * 48
        assert olga.post("/logout", csrf="0" * 48).status_code == 403


def test_the_provider_is_asked_with_state_nonce_and_a_challenge() -> None:
    """Each login has its own, and the address for the answer is this console's."""
    with console() as (stage, stub):
        asked = []
        for _ in range(2):
            led = stage.visitor().get("/login/oidc").headers["Location"]
            asked.append(stub.asked(stub.authorize(led)["code"]))
        for name in ("state", "nonce", "code_challenge"):
            assert len({one[name] for one in asked}) == 2
            assert min(len(one[name]) for one in asked) >= 20
        assert asked[0]["code_challenge_method"] == "S256"
        assert asked[0]["response_type"] == "code"
        assert asked[0]["redirect_uri"] == f"http://localhost{BACK}"


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": ["another"], "azp": CLIENT_ID},
        {"aud": None},
        {"exp": NOW_S - 61},
        {"exp": None},
        {"iss": "https://another.example"},
        {"azp": "another"},
    ],
    ids=lambda claims: "-".join(f"{name}={value}" for name, value in claims.items()),
)
def test_a_token_for_another_login_client_or_time_lets_nobody_in(claims: dict[str, Any]) -> None:
    """A right signature alone is not enough."""
    with console(claims=claims) as (stage, stub):
        olga = stage.visitor()
        assert refused(olga, log_in(olga, stub), "is not valid")


@pytest.mark.parametrize("wrong", ["unsigned", "another key"])
def test_a_token_that_the_provider_has_not_signed_lets_nobody_in(wrong: str) -> None:
    """Not even where the provider says that it would send unsigned ones."""
    with console() as (stage, stub):
        if wrong == "unsigned":
            stub.header = {"alg": "none"}
        else:
            stub.key = OTHER_KEY
        olga = stage.visitor()
        assert refused(olga, log_in(olga, stub), "is not valid")
        assert stub.refusals == []


@pytest.mark.parametrize("wrong", ["state", "browser", "time", "provider", "error"])
def test_an_answer_to_another_login_is_not_redeemed(wrong: str) -> None:
    """A code is not even shown to the provider unless this browser has just asked for it."""
    with console() as (stage, stub):
        olga = stage.visitor()
        back = stub.authorize(olga.get("/login/oidc").headers["Location"])
        words = "was not begun in this browser"
        if wrong == "state":
            back["state"] = "another"
        elif wrong == "browser":
            olga = stage.visitor()
        elif wrong == "time":
            stage.clock.step(minutes=10)
        elif wrong == "provider":
            back["iss"], words = "https://another.example", "another login provider"
        else:
            back, words = {"error": "access_denied", "state": back["state"]}, "access_denied"
        assert refused(olga, olga.client.get(BACK, query_string=back), words.capitalize()[1:])
        assert stub.tokens == 0


def test_somebody_without_a_mapped_role_is_told_so() -> None:
    """They are known, and still have nothing to do here."""
    with console(claims={"roles": ["cooks"]}) as (stage, stub):
        olga = stage.visitor()
        assert refused(olga, log_in(olga, stub), "no role here")


def test_the_tenant_claim_scopes_and_who_has_none_sees_nothing() -> None:
    """A star is all tenants; a missing or ambiguous claim is not."""
    with console(claims={"org": "acme"}, tenant_claim="org") as (stage, stub):
        for tenant in ("acme", "zeta"):
            stage.run("bad", tenant=tenant)
        olga = stage.visitor()
        assert log_in(olga, stub).status_code == 200
        assert "olga · operator · acme" in olga.get("/runs").text
        assert "zeta" not in olga.get("/runs").text
        assert olga.get("/system").status_code == 403
        stub.claims["org"] = "*"
        log_in(olga, stub)
        assert olga.get("/system").status_code == 200
        for none in (None, ["acme", "zeta"], "", "no name"):
            stub.claims["org"] = none
            other = stage.visitor()
            assert refused(other, log_in(other, stub), "no tenant here")


def test_a_provider_that_is_down_is_told_on_the_page() -> None:
    """At the start and at the end of a login; another try is one press away."""
    with providing(NOW_S) as stub:
        pass
    with staged(login=True, oidc=oidc(stub)) as stage:
        answer = stage.visitor().get("/login/oidc?next=/runs")
        assert answer.status_code == 503
        assert "does not answer" in answer.text
        assert 'href="/login/oidc?next=/runs"' in answer.text
    with console() as (stage, stub):
        olga = stage.visitor()
        back = stub.authorize(olga.get("/login/oidc").headers["Location"])
        stub.broken = True
        answer = olga.client.get(BACK, query_string=back)
        assert answer.status_code == 503
        assert "does not answer" in answer.text


@pytest.mark.parametrize(
    "said",
    [{"issuer": "https://another.example"}, {"token_endpoint": None}, {"jwks_uri": "file:///x"}],
)
def test_a_provider_that_says_what_does_not_fit_is_not_used(said: dict[str, Any]) -> None:
    """Nor is that remembered: once it is mended, people come in."""
    with console() as (stage, stub):
        stub.metadata = said
        olga = stage.visitor()
        assert refused(olga, olga.get("/login/oidc"), "does not fit it")
        stub.metadata = {}
        assert log_in(olga, stub).status_code == 200


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("keys", []),
        ("keys", {"keys": "none"}),
        ("keys", {"keys": [{"kty": "RSA"}]}),
        ("keys", None),
        ("answer", {"id_token": 7}),
        ("answer", {"id_token": "a.b.c"}),
        ("answer", {"id_token": None}),
        ("claims", {"exp": "soon"}),
        ("claims", {"aud": {}}),
        ("metadata", {"id_token_signing_alg_values_supported": 7}),
    ],
)
def test_an_answer_that_is_no_answer_is_no_fault_of_the_console(name: str, said: Any) -> None:
    """Whatever a provider sends, the page says that it is not valid."""
    with console() as (stage, stub):
        setattr(stub, name, said)
        olga = stage.visitor()
        led = olga.get("/login/oidc")
        if led.status_code == 303:
            back = stub.authorize(led.headers["Location"])
            led = olga.client.get(BACK, query_string=back)
        assert refused(olga, led, "is not valid")


def test_the_login_leads_to_no_other_site() -> None:
    """Where to go on is a path of this console, or its first page."""
    with console() as (stage, stub):
        for goes_on in (
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "javascript:x",
        ):
            entered = log_in(stage.visitor(), stub, f"/login/oidc?next={goes_on}")
            assert 'content="0; url=/"' in entered.text
            assert "evil" not in entered.text


def test_it_works_under_a_path_behind_a_proxy_that_ends_tls() -> None:
    """The provider leads back to the address that people see; what was begun is sent there only."""
    proxied: dict[str, Any] = {
        "proxies": frozenset({"10.0.0.7"}),
        "base_path": "/jobs",
        "secure": True,
    }
    with console(**proxied) as (stage, stub):
        client = stage.app.test_client()
        asked: dict[str, Any] = {
            "headers": {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "ops.example"},
            "environ_base": {"REMOTE_ADDR": "10.0.0.7"},
            "base_url": "https://ops.example",
        }
        led = client.get("/jobs/login/oidc?next=/jobs/runs", **asked)
        assert "Path=/jobs/login/oidc" in led.headers["Set-Cookie"]
        back = stub.authorize(led.headers["Location"])
        assert stub.asked(back["code"])["redirect_uri"] == f"https://ops.example/jobs{BACK}"
        entered = client.get(f"/jobs{BACK}", query_string=back, **asked)
        assert 'content="0; url=/jobs/runs"' in entered.text
        assert "olga · operator" in client.get("/jobs/runs", **asked).text


def test_a_session_is_over_in_its_time_and_when_the_mapping_changes() -> None:
    """A restart with other roles lets nobody stay as what they were."""
    with console(secret="s" * 32) as (stage, stub):
        olga = stage.visitor()
        log_in(olga, stub)
        cookie = olga.client.get_cookie("dynsched")
        for roles, code in (({"ops": Role.VIEWER}, 302), (dict(oidc(stub).roles), 200)):
            config = oidc(stub, roles=roles)
            with staged(login=True, oidc=config, secret="s" * 32) as other:
                again = other.visitor()
                again.client.set_cookie("dynsched", cookie.value)
                assert again.get("/").status_code == code
        stage.clock.step(hours=8)
        assert olga.get("/").status_code == 302


def test_logins_that_fail_are_not_tried_without_end() -> None:
    """An address that has failed twenty times in a minute waits."""
    with console() as (stage, stub):
        olga = stage.visitor()
        codes = [olga.get(f"{BACK}?code=x&state=x").status_code for _ in range(21)]
        assert codes[-2:] == [403, 429]
        assert olga.get("/login/oidc").status_code == 429
        stage.clock.step(seconds=61)
        assert log_in(olga, stub).status_code == 200


def test_a_console_without_a_provider_has_no_such_login() -> None:
    """The pages are there for nobody."""
    with staged(login=True) as stage:
        assert stage.visitor().get("/login/oidc").status_code == 404
        assert stage.visitor().get(BACK).status_code == 404


@pytest.mark.parametrize(
    ("typed", "fault"),
    [
        ({"oidc_client_id": "x"}, "--oidc-issuer"),
        ({"oidc_issuer": "http://login.example"}, "cannot be trusted"),
        ({"oidc_issuer": "https://login.example"}, "--oidc-client-id"),
        ({"oidc_issuer": "https://login.example", "oidc_client_id": "x"}, "nobody could come in"),
        (
            {
                "oidc_issuer": "https://login.example",
                "oidc_client_id": "x",
                "oidc_roles": ["ops=boss"],
            },
            "maps nothing to a role",
        ),
    ],
)
def test_a_login_that_was_typed_wrong_is_not_started(typed: dict[str, Any], fault: str) -> None:
    """What is missing is named."""
    with pytest.raises(InvalidInput, match=fault):
        config_of(Access(actor="ada"), Typed(environment={}, **typed))


def test_the_secret_comes_from_the_environment_and_is_not_shown() -> None:
    """An open address may be served with a provider alone; values may hold equals signs."""
    config = config_of(
        Access(actor="ada"),
        Typed(
            host="0.0.0.0",  # noqa: S104
            oidc_issuer="https://login.example",
            oidc_client_id="x",
            oidc_roles=["cn=ops,dc=x=operator"],
            environment={SECRET_VARIABLE: CLIENT_SECRET},
        ),
    )
    assert config.login
    assert config.oidc is not None
    assert config.oidc.client_secret == CLIENT_SECRET
    assert CLIENT_SECRET not in repr(config)
    assert config.oidc.roles == {"cn=ops,dc=x": Role.OPERATOR}


def test_claims_are_read_where_providers_put_them() -> None:
    """Within objects, as one text, and a name that would not show gives way to the id."""
    config = OidcConfig(
        issuer="https://x", client_id="x", role_claim="realm.roles", roles={"a": Role.ADMIN}
    )
    given = {"sub": "u-1", "preferred_username": "ev\x1bil", "realm": {"roles": "a"}}
    assert claimed(given, config).name == "u-1"
    with pytest.raises(Forbidden, match="who you are"):
        claimed({"realm": {"roles": "a"}}, config)
