"""The desk: what the pages of one application share, and who asks for the present one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from flask import current_app, g, session

from dynsched.bootstrap import Base, build_operations, build_views
from dynsched.domain.access import Access, Action
from dynsched.domain.audit import check_reason
from dynsched.domain.instants import Clock
from dynsched.errors import InvalidInput
from dynsched.services.health import Health
from dynsched.services.operations import Operations
from dynsched.services.views import Views
from dynsched_web.config import WebConfig
from dynsched_web.login import Ended, LoginLimit
from dynsched_web.reading import Reading

if TYPE_CHECKING:
    from dynsched_web.provider import Provider

T = TypeVar("T")

NAME = "dynsched"
HEALTH = "health"


@dataclass(frozen=True, slots=True)
class Desk:
    """What the pages of one application share.

    Attributes:
        base: the store.
        config: how the console was started.
        views: all that can be read; they do not ask who reads, see `dynsched_web.scope`.
        reading: shares what is read, and bounds how long it is waited for.
        limit: bounds how often a password may be tried.
        provider: of logins by OIDC; None is none.
        ended: sessions of those who have logged out.
        htmx: the script that refreshes pages is there.
    """

    base: Base
    config: WebConfig
    views: Views
    reading: Reading
    limit: LoginLimit
    provider: Provider | None
    ended: Ended
    htmx: bool


def make_desk(base: Base, config: WebConfig, *, htmx: bool) -> Desk:
    """Return the desk of a new application."""
    return Desk(
        base,
        config,
        build_views(base, read_only=config.access.read_only),
        Reading(base.clock, fresh=config.fresh, patience=config.patience),
        LoginLimit(base.clock),
        _provider(config, base.clock),
        Ended(),
        htmx,
    )


def _provider(config: WebConfig, clock: Clock) -> Provider | None:
    """Return the provider of logins; who has none needs no Authlib, and does not load it.

    Raises:
        InvalidInput: Authlib is not installed.
    """
    if config.oidc is None:
        return None
    try:
        from dynsched_web.provider import Provider  # noqa: PLC0415
    except ImportError:
        mend = "install it with pip install 'dynsched[oidc]'"
        raise InvalidInput("--oidc-issuer", "Authlib is not installed", mend) from None
    return Provider(config.oidc, clock)


def desk() -> Desk:
    """Return the desk of the present application."""
    found: Desk = current_app.extensions[NAME]
    return found


def access() -> Access:
    """Return who asks for the present page."""
    found: Access = g.access
    return found


def operations() -> Operations:
    """Return the door for what the present visitor changes."""
    return build_operations(desk().base, access())


def now() -> datetime:
    """Return the present instant."""
    return desk().base.clock.now()


def read(key: Hashable, load: Callable[[Views], T]) -> T:
    """Return what the store says; of a failing store the last that it said, with a banner.

    Args:
        key: the question: the page, the tenant that it is bound to, the filter, the cursor.
        load: asks the views; it runs on another thread, without the request.

    Raises:
        StoreError: the store failed, and never answered this question.
    """
    here = desk()
    answer = here.reading.get(key, lambda: load(here.views))
    if answer.trouble:
        g.troubles.append(
            f"The store does not answer ({answer.trouble})."
            f" What you see is {answer.age_s:.0f} seconds old."
        )
    return answer.value


def health() -> Health:
    """Return the health that all visitors share, with its age as it is now."""
    found = read(HEALTH, lambda views: views.health())
    age = max(now() - found.at, now() - now())
    return replace(found, age=age)


def refusal(action: Action, tenant: str | None = None) -> str:
    """Return why the present visitor may not do something; empty if it may."""
    return access().why_not(action, tenant=tenant or access().tenant)


def flash(words: str, grade: str = "ok") -> None:
    """Say something on the next page that the visitor sees."""
    # It travels in the cookie, for which browsers have four thousand bytes.
    session["said"] = [*session.get("said", []), [grade, words[:300]]][-3:]


def reason_of(text: str | None) -> str:
    """Return a reason as a form gave it, checked.

    Raises:
        InvalidInput: it is too long or would not show as it is.
    """
    return check_reason(text or "")
