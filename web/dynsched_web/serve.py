"""Serving: from what was typed to an open port, and the loop behind it."""

from __future__ import annotations

import ipaddress
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from waitress import wasyncore
from waitress.server import create_server

from dynsched.bootstrap import Base
from dynsched.domain.access import Access
from dynsched.errors import InvalidInput
from dynsched_web.app import create_app
from dynsched_web.config import LOOPBACK_NAMES, PROXY_HEADER, WebConfig
from dynsched_web.desk import NAME
from dynsched_web.oidc import SECRET_VARIABLE as OIDC_SECRET_VARIABLE
from dynsched_web.oidc import OidcConfig, oidc_of
from dynsched_web.people import People

log = logging.getLogger("dynsched.web")

PORT = 8420
THREADS = 12
POLL_S = 1.0
BODY_MAX = 4 * 1024 * 1024
SECRET_VARIABLE = "DYNSCHED_WEB_SECRET"  # noqa: S105  # the name of a variable
SECRET_MIN = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What was typed to start a web console.

    Attributes:
        host: the address to listen at.
        port: 0 takes any that is free.
        any_port: take another one if it is taken.
        password_file: those who may log in; empty for nobody.
        proxies: addresses of reverse proxies whose word is taken.
        proxy_header: in which they say whom they have let in; empty for the usual one.
        oidc_issuer: the provider by which people may log in; empty for none.
        oidc_client_id: this console, as that provider calls it.
        oidc_role_claim: the claim whose values name roles; empty for the usual one.
        oidc_roles: what those values mean, each as `VALUE=ROLE`.
        oidc_name_claim: the claim that names people in the audit; empty for the usual one.
        oidc_tenant_claim: the claim that names the only tenant to be seen; empty for all tenants.
        base_path: the path under which a proxy shows the console; empty for none.
        secure: it is reached by HTTPS only.
        open_metrics: `/metrics` needs no login.
        url: the store as people name it.
        environment: where the rest is read: the badge and the secrets.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    any_port: bool = False
    password_file: str = ""
    proxies: Sequence[str] = ()
    proxy_header: str = ""
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_role_claim: str = ""
    oidc_roles: Sequence[str] = ()
    oidc_name_claim: str = ""
    oidc_tenant_claim: str = ""
    base_path: str = ""
    secure: bool = False
    open_metrics: bool = False
    url: str = ""
    environment: Mapping[str, str] | None = None


class Server:
    """A console at an open port.

    Args:
        base: the store.
        config: who may come in.
        typed: where to listen.

    Raises:
        InvalidInput: the port cannot be opened.
    """

    def __init__(self, base: Base, config: WebConfig, typed: Typed) -> None:
        self._app = create_app(base, config)
        self._sockets: dict[Any, Any] = {}
        self._stop = threading.Event()
        self._server = self._opened(typed)
        shown = f"[{typed.host}]" if ":" in typed.host else typed.host
        self.url = f"http://{shown}:{self._server.effective_port}{config.base_path}/"

    def _opened(self, typed: Typed) -> Any:
        ports = [typed.port, 0] if typed.any_port else [typed.port]
        for port in ports:
            try:
                return create_server(
                    self._app,
                    map=self._sockets,
                    host=typed.host,
                    port=port,
                    threads=THREADS,
                    max_request_body_size=BODY_MAX,
                    ident="dynsched",
                    # `dynsched_web.proxies` decides whose headers are believed.
                    clear_untrusted_proxy_headers=False,
                )
            except OSError as error:
                # What could not be opened lies among the sockets already, half made.
                wasyncore.close_all(self._sockets, ignore_all=True)
                reason = error.strerror or str(error)
                failure = InvalidInput(
                    "--port", f"{typed.host}:{port} cannot be opened: {reason}", "name another one"
                )
        raise failure

    def run(self) -> None:
        """Answer requests until `stop` is called."""
        while not self._stop.is_set():
            wasyncore.loop(timeout=POLL_S, map=self._sockets, count=1)
        self._server.task_dispatcher.shutdown(timeout=1)
        wasyncore.close_all(self._sockets)
        self._app.extensions[NAME].reading.close()

    def stop(self) -> None:
        """End `run`; safe from any thread."""
        self._stop.set()
        self._server.pull_trigger()


def open_server(base: Base, access: Access, typed: Typed) -> Server:
    """Return a console at an open port.

    Args:
        base: the store.
        access: who a visitor is where nobody has to log in; its bounds hold for everybody.
        typed: how it shall be.

    Raises:
        InvalidInput: what was typed does not go together, or the port cannot be opened.
    """
    return Server(base, config_of(access, typed), typed)


def main(base: Base, access: Access, **typed: Any) -> Server:
    """Return a console at an open port, for the command line; see `Typed` for what may be typed."""
    return open_server(base, access, Typed(**typed))


def config_of(access: Access, typed: Typed) -> WebConfig:
    """Return the configuration that was typed, after checking it.

    Raises:
        InvalidInput: it cannot be served so.
    """
    environment = os.environ if typed.environment is None else typed.environment
    people = People(Path(typed.password_file)) if typed.password_file else None
    proxies = frozenset(map(_address, typed.proxies))
    header = (typed.proxy_header or PROXY_HEADER) if _names_people(typed) else ""
    oidc = _oidc(typed, environment)
    login = people is not None or oidc is not None or bool(header)
    loopback = is_loopback(typed.host)
    if not loopback and not login:
        raise InvalidInput(
            "--host",
            f"{typed.host} can be reached from other machines, and nobody has to log in",
            "give --password-file, --oidc-issuer, or --trusted-proxy with --proxy-header",
        )
    secret = environment.get(SECRET_VARIABLE, "")
    if secret and len(secret) < SECRET_MIN:
        raise InvalidInput(SECRET_VARIABLE, "it is too short", f"give {SECRET_MIN} characters")
    return WebConfig(
        access=replace(access, via="web"),
        login=login,
        people=people,
        oidc=oidc,
        proxies=proxies,
        proxy_header=header,
        hosts=LOOPBACK_NAMES if loopback and not login else (),
        url=typed.url,
        environment=environment.get("DYNSCHED_ENVIRONMENT", ""),
        base_path=_base_path(typed.base_path),
        secure=typed.secure,
        secret=secret,
        open_metrics=typed.open_metrics,
    )


def _oidc(typed: Typed, environment: Mapping[str, str]) -> OidcConfig | None:
    return oidc_of(
        issuer=typed.oidc_issuer,
        client_id=typed.oidc_client_id,
        client_secret=environment.get(OIDC_SECRET_VARIABLE, ""),
        role_claim=typed.oidc_role_claim,
        roles=typed.oidc_roles,
        name_claim=typed.oidc_name_claim,
        tenant_claim=typed.oidc_tenant_claim,
    )


def _names_people(typed: Typed) -> bool:
    if typed.proxy_header and not typed.proxies:
        raise InvalidInput("--proxy-header", "no proxy is trusted", "give --trusted-proxy too")
    return bool(typed.proxy_header)


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise InvalidInput(
            "--trusted-proxy", f"{text!r} is no address", "such as 10.0.0.1"
        ) from None


def _base_path(text: str) -> str:
    path = text.rstrip("/")
    if not path:
        return ""
    if not path.startswith("/") or "//" in path or not path.isascii() or not path.isprintable():
        raise InvalidInput("--base-path", f"{text!r} is no path", "such as /dynsched")
    return path


def is_loopback(host: str) -> bool:
    """Return whether an address is reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
