"""How one web console is set up: who may come in, from where, and what it calls itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from dynsched.domain.access import Access
from dynsched_web.oidc import OidcConfig
from dynsched_web.people import People

SESSION = timedelta(hours=8)
PATIENCE = timedelta(seconds=5)
FRESH = timedelta(seconds=1.5)
PROXY_HEADER = "X-Forwarded-User"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """What a web console is started with.

    Attributes:
        access: who a visitor is where nobody has to log in, and the bounds of all others: its
            read-only mode and its replay limit hold for everybody.
        login: visitors have to say who they are.
        people: those who may log in by password; None is nobody.
        oidc: the provider by which people may log in; None is none.
        proxies: addresses of reverse proxies whose forwarded headers are believed.
        proxy_header: the header in which such a proxy names who it has let in; empty for none.
        hosts: names under which this console may be asked for; empty for any. It keeps strangers'
            pages from reading a console without a login through a name that they have turned to
            this machine.
        url: the store as people name it; it is shown to everybody.
        environment: what the store is for (`prod`, `staging`); a badge on every page.
        base_path: the path under which a proxy shows it, such as `/dynsched`; empty for none.
        secure: it is reached by HTTPS only, so cookies are sent by nothing else.
        secret: signs the cookies; empty makes one for the life of the process.
        open_metrics: `/metrics` needs no login.
        session: how long a login lasts.
        patience: how long a page waits for the store.
        fresh: how old a list may be that several visitors share.
    """

    access: Access
    login: bool = False
    people: People | None = None
    oidc: OidcConfig | None = None
    proxies: frozenset[str] = frozenset()
    proxy_header: str = ""
    hosts: tuple[str, ...] = ()
    url: str = ""
    environment: str = ""
    base_path: str = ""
    secure: bool = False
    secret: str = ""
    open_metrics: bool = False
    session: timedelta = SESSION
    patience: timedelta = PATIENCE
    fresh: timedelta = FRESH
