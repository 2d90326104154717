"""Who asks: by a session, by a trusted proxy's word, or everybody where no login is asked for."""

from __future__ import annotations

import hmac
import threading
from collections import OrderedDict
from dataclasses import replace
from random import Random
from typing import Any

from flask import Request, session

from dynsched.domain.access import RANK, Access, Role
from dynsched.domain.instants import Clock, from_ms, to_ms
from dynsched_web.config import WebConfig
from dynsched_web.people import NO_PASSWORD, Person

WINDOW_S = 60.0
TRIES = 5  # wrong passwords within the window, for a name from one address
ADDRESS_TRIES = 20  # from one address, whatever the names
NAME_TRIES = 60  # for a name from everywhere: many, so that no stranger keeps its owner out soon
REMEMBERED = 10_000
TOKEN_BYTES = 24


class LoginLimit:
    """Bounds how often a password may be tried, by name and by address.

    Args:
        clock: measures the window.

    It holds for one process; what it remembers is bounded.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failed: OrderedDict[str, list[float]] = OrderedDict()

    def wait_s(self, name: str | None, address: str) -> float:
        """Return how many seconds somebody has to wait before the next try; 0 for none.

        Args:
            name: who it is; None if that is not known before the login.
            address: where it is tried from.
        """
        with self._lock:
            return max(self._wait_s(key, tries) for key, tries in _counts(name, address).items())

    def note_failure(self, name: str | None, address: str) -> None:
        """Remember a wrong password, or a login by OIDC that let nobody in."""
        now = self._clock.monotonic()
        with self._lock:
            for key, tries in _counts(name, address).items():
                recent = [at for at in self._failed.pop(key, []) if now - at < WINDOW_S]
                self._failed[key] = [*recent, now][-tries:]
            while len(self._failed) > REMEMBERED:
                self._failed.popitem(last=False)

    def forgive(self, name: str, address: str) -> None:
        """Forget the wrong passwords of somebody who then knew the right one."""
        with self._lock:
            self._failed.pop(_of_both(name, address), None)

    def _wait_s(self, key: str, tries: int) -> float:
        now = self._clock.monotonic()
        recent = [at for at in self._failed.get(key, []) if now - at < WINDOW_S]
        return 0.0 if len(recent) < tries else WINDOW_S - (now - recent[-tries])


def _counts(name: str | None, address: str) -> dict[str, int]:
    """Return what a wrong password is counted under, with the tries that each may have."""
    counts = {f"from {address}": ADDRESS_TRIES}
    if name is not None:
        counts |= {_of_both(name, address): TRIES, f"name {name}": NAME_TRIES}
    return counts


def _of_both(name: str, address: str) -> str:
    return f"both {address} {name}"


class Ended:
    """Sessions that were ended before their time: a copy of their cookie opens nothing.

    It holds for one process; what it remembers is bounded, the oldest goes first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: OrderedDict[str, None] = OrderedDict()

    def add(self, token: object) -> None:
        """End the session with this token."""
        with self._lock:
            self._tokens[str(token)] = None
            while len(self._tokens) > REMEMBERED:
                self._tokens.popitem(last=False)

    def __contains__(self, token: object) -> bool:
        """Return whether the session with this token was ended."""
        return str(token) in self._tokens


def access_for(person: Person, config: WebConfig) -> Access:
    """Return what a person may do here: no more than the console itself."""
    own = config.access
    role = min(person.role, own.role, key=lambda one: RANK[one])
    tenant = person.tenant if own.tenant is None else own.tenant
    return replace(own, actor=person.name, role=role, tenant=tenant, via="web")


def who_asks(request: Request, config: WebConfig, clock: Clock, ended: Ended) -> Access | None:
    """Return who asks; None for somebody who has to log in."""
    if not config.login:
        return replace(config.access, via="web")
    by_proxy = proxied(request, config)
    if by_proxy is not None:
        return by_proxy
    name, since = session.get("who"), session.get("since")
    if not isinstance(name, str) or not isinstance(since, int):
        return None
    person = _logged_in(name, config)
    if person is None or not hmac.compare_digest(str(session.get("mark")), person.mark):
        return None
    over = session.get("csrf") in ended or clock.now() - from_ms(since) >= config.session
    return None if over else access_for(person, config)


def _logged_in(name: str, config: WebConfig) -> Person | None:
    """Return whom a session names: by the password file, or as the provider said at the login."""
    by_oidc = session.get("oidc")
    if by_oidc is None:
        return None if config.people is None else config.people.find(name)
    return None if config.oidc is None else config.oidc.person(name, *by_oidc)


def proxied(request: Request, config: WebConfig) -> Access | None:
    """Return whom a trusted proxy has let in.

    The header of anybody else was taken off before, see `dynsched_web.proxies`.
    """
    name = request.headers.get(config.proxy_header, "") if config.proxy_header else ""
    if not name.strip():
        return None
    if config.people is None:
        person = Person(name=name.strip()[:100], role=Role.VIEWER, tenant=None, hashed=NO_PASSWORD)
        return access_for(person, config)
    known = config.people.find(name.strip())  # a list of people is one of all who may come in
    return None if known is None else access_for(known, config)


def log_in(person: Person, *, clock: Clock, rng: Random) -> None:
    """Begin a session of its own: nothing of the one before stays, its token neither."""
    session.clear()
    session.permanent = True
    session["who"], session["mark"] = person.name, person.mark
    session["since"] = to_ms(clock.now())
    csrf_token(rng)


def csrf_token(rng: Random) -> str:
    """Return what a form has to send back, made when it is first needed."""
    token: Any = session.get("csrf")
    if not isinstance(token, str):
        token = session["csrf"] = rng.randbytes(TOKEN_BYTES).hex()
    return str(token)
