"""Tokens: made once, shown once, kept as a hash, good until they expire or are revoked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from dynsched.bootstrap import build_views
from dynsched.domain.access import Role
from dynsched.domain.token import LIFE_MAX
from dynsched.errors import AlreadyExists, Conflict, InvalidInput, Unauthenticated
from dynsched.services.documents import token_document
from dynsched.services.views import Views
from tests.unit.verb_calls import Scene


@pytest.fixture
def scene() -> Scene:
    """Return a store."""
    return Scene()


@pytest.fixture
def views(scene: Scene) -> Views:
    """Return what can be read of it."""
    return build_views(scene.base)


def test_whoever_shows_a_token_is_known_by_its_row(scene: Scene, views: Views) -> None:
    """Role and tenant are the row's, whatever the bearer says."""
    made = scene.owner.create_token("ci", role=Role.OPERATOR, tenant="acme")
    found = views.bearer(made.text)
    assert (found.name, found.role, found.tenant) == ("ci", Role.OPERATOR, "acme")


def test_the_store_keeps_no_secret_and_no_document_shows_one(scene: Scene, views: Views) -> None:
    """Neither the token's row nor the audit can be shown as a token."""
    text = scene.owner.create_token("ci").text
    secret = text.rpartition("_")[2]
    assert secret not in str(scene.rows(audit=True))
    digests = [token.digest for token in views.tokens().items]
    assert not any(digest in str(token_document(views.bearer(text))) for digest in digests)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"),
        lambda text: text.replace("ci", "graphs"),
        lambda text: text.replace("ci", "nobody"),
        lambda text: text.removeprefix("dynsched_"),
        lambda text: text + "\n",
        lambda text: text.upper(),
    ],
)
def test_what_is_not_quite_the_token_is_refused(
    scene: Scene, views: Views, spoil: Callable[[str], str]
) -> None:
    """Another's name, another secret, another form."""
    text = scene.owner.create_token("ci").text
    with pytest.raises(Unauthenticated, match=r"no token was shown|the token is not known"):
        views.bearer(spoil(text))


def test_a_token_is_refused_from_its_expiry_and_from_its_revocation_on(
    scene: Scene, views: Views
) -> None:
    """To the instant, and at once."""
    short = scene.owner.create_token("short", life=timedelta(hours=1)).text
    long = scene.owner.create_token("long").text
    scene.clock.step(seconds=3_599)
    assert views.bearer(short).name == "short"
    scene.clock.step(seconds=1)
    with pytest.raises(Unauthenticated, match="it has expired"):
        views.bearer(short)
    scene.owner.revoke_token("long")
    with pytest.raises(Unauthenticated, match="it was revoked"):
        views.bearer(long)


def test_a_name_means_one_bearer_for_good(scene: Scene) -> None:
    """Else the audit's actor would be two programs; a revoked token's name stays taken."""
    scene.owner.revoke_token("graphs")
    with pytest.raises(AlreadyExists, match="choose another name"):
        scene.owner.create_token("graphs")
    with pytest.raises(Conflict, match="was revoked before, by program on"):
        scene.owner.revoke_token("graphs")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("no name", {}),
        ("ci", {"tenant": "no tenant"}),
        ("ci", {"life": timedelta(0)}),
        ("ci", {"life": LIFE_MAX + timedelta(seconds=1)}),
    ],
)
def test_a_token_is_not_made_of_wrong_arguments(
    scene: Scene, name: str, options: dict[str, Any]
) -> None:
    """And nothing is written but the audit's entry."""
    before = scene.rows()
    with pytest.raises(InvalidInput):
        scene.owner.create_token(name, **options)
    assert scene.rows() == before


def test_tokens_are_listed_by_name_in_pages(scene: Scene, views: Views) -> None:
    """No page repeats or leaves out a name."""
    for name in ("b", "a-1", "a", "c"):
        scene.owner.create_token(name)
    names: list[str] = []
    cursor = None
    while True:
        page = views.tokens(limit=2, cursor=cursor)
        names += [token.name for token in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert names == ["a", "a-1", "b", "c", "graphs"]
