"""Reverse proxies: what those say who are named is believed, what others say is taken off."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from werkzeug.middleware.proxy_fix import ProxyFix

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

FORWARDED = (
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PORT",
    "HTTP_X_FORWARDED_PREFIX",
    "HTTP_FORWARDED",
)


class Proxies:
    """Believes the headers of named proxies, and of nobody else.

    Args:
        app: what is behind it.
        trusted: addresses of the proxies.
        user_header: in which they say whom they have let in; empty for none.
    """

    def __init__(
        self, app: WSGIApplication, *, trusted: frozenset[str], user_header: str = ""
    ) -> None:
        self._app = app
        self._fixed = ProxyFix(app, x_for=1, x_proto=1, x_host=1)
        self._trusted = trusted
        self._user = f"HTTP_{user_header.upper().replace('-', '_')}"

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        if environ.get("REMOTE_ADDR", "") in self._trusted:
            return self._fixed(environ, start_response)
        for name in (*FORWARDED, self._user):
            environ.pop(name, None)
        return self._app(environ, start_response)


class BasePath:
    """Shows an application under a path, whether or not the proxy takes that off.

    Args:
        app: what is behind it.
        path: such as `/dynsched`; empty for none.
    """

    def __init__(self, app: WSGIApplication, path: str) -> None:
        self._app = app
        self._path = path

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        """Answer a request."""
        if self._path:
            asked = environ.get("PATH_INFO", "")
            if asked == self._path or asked.startswith(f"{self._path}/"):
                environ["PATH_INFO"] = asked[len(self._path) :] or "/"
            environ["SCRIPT_NAME"] = self._path
        return self._app(environ, start_response)
