"""The OIDC provider, asked through Authlib. It is imported only where somebody logs in by OIDC."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.flask_client import FlaskIntegration, FlaskOAuth2App
from authlib.oidc.core import CodeIDToken
from joserfc.errors import JoseError
from requests import RequestException

from dynsched.domain.instants import Clock
from dynsched.errors import DynschedError
from dynsched_web.oidc import OidcConfig

log = logging.getLogger("dynsched.web")

DISCOVERY = "/.well-known/openid-configuration"
SCOPE = "openid profile email"
TIMEOUT_S = 5.0
LEEWAY_S = 60  # clocks differ
AT_ONCE = 4  # a provider that hangs must not hold every thread of the console
# Keys of two halves only: neither unsigned tokens, nor ones that a client's secret signs.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
# What Authlib raises for answers that are refused, or are not even of the right form.
UNFIT = (
    AuthlibBaseError,
    JoseError,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
)
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class ProviderDown(DynschedError):
    """The provider does not answer."""

    code = "provider_down"
    http_status = 503


class ProviderRefused(DynschedError):
    """The provider's answer lets nobody in."""

    code = "provider_refused"
    http_status = 403


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A login that was begun, as the browser keeps it.

    Attributes:
        url: where the browser goes.
        state: ties the answer to this browser.
        nonce: ties the token to this login.
        verifier: proves that who began it redeems it (PKCE).
    """

    url: str
    state: str
    nonce: str
    verifier: str


class Provider:
    """A provider of logins.

    Args:
        config: which one.
        clock: says whether a token is still valid.

    What it says about itself is read when it is first needed, and kept; so are its keys, until a
    token names another one. Any number of threads may ask.
    """

    def __init__(self, config: OidcConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self._client: Any = FlaskOAuth2App(
            FlaskIntegration("oidc"),
            name="oidc",
            client_id=config.client_id,
            client_secret=config.client_secret or None,
            server_metadata_url=config.issuer.rstrip("/") + DISCOVERY,
            client_kwargs={
                "scope": SCOPE,
                "code_challenge_method": "S256",
                "default_timeout": TIMEOUT_S,
            },
        )

    def begin(self, back: str) -> Begun:
        """Return where a browser logs in.

        Args:
            back: this console's address for the answer.

        Raises:
            ProviderDown: it does not answer.
            ProviderRefused: it does not say about itself what is needed.
        """
        with self._asking():
            self._know()
            found = self._client.create_authorization_url(back)
        return Begun(
            url=found["url"],
            state=found["state"],
            nonce=found["nonce"],
            verifier=found["code_verifier"],
        )

    def finish(self, *, code: str, nonce: str, verifier: str, back: str) -> Mapping[str, Any]:
        """Return the claims about somebody, from a token whose every bound was checked.

        Args:
            code: what the browser brought.
            nonce: as it was begun.
            verifier: as it was begun.
            back: as it was begun.

        Raises:
            ProviderDown: it does not answer.
            ProviderRefused: the code or the token is not valid.
        """
        with self._asking():
            issuer = self._know()
            token = self._client.fetch_access_token(
                redirect_uri=back, code=code, code_verifier=verifier
            )
            claims = self._client.parse_id_token(
                token,
                nonce=nonce,
                claims_options={
                    "iss": {"essential": True, "value": issuer},
                    "aud": {"essential": True, "value": self._config.client_id},
                },
                claims_cls=_claims_at(int(self._clock.now().timestamp())),
                leeway=LEEWAY_S,
            )
        if not claims:
            raise ProviderRefused("the login provider has sent no ID token")
        return dict(claims)

    def _know(self) -> str:
        """Return the issuer as the provider names itself, once all that it says is fit for use."""
        said = self._client.load_server_metadata()
        issuer, wanted = said.get("issuer"), self._config.issuer
        wrong = not isinstance(issuer, str) or issuer.rstrip("/") != wanted.rstrip("/")
        safe = ("https://",) if wanted.startswith("https://") else ("https://", "http://")
        if wrong or not all(str(said.get(name)).startswith(safe) for name in ENDPOINTS):
            said.clear()  # it is asked again when it may be mended
            raise ProviderRefused(f"what {self._config.host} says about itself does not fit it")
        offered = said.get("id_token_signing_alg_values_supported") or ["RS256"]
        said["id_token_signing_alg_values_supported"] = [
            one for one in offered if one in ALGORITHMS
        ] or ["RS256"]
        methods = said.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        basic = "client_secret_basic" in methods or "client_secret_post" not in methods
        secret = "client_secret_basic" if basic else "client_secret_post"
        said["token_endpoint_auth_method"] = secret if self._config.client_secret else "none"
        return str(issuer)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Bound how many ask at once, and tell every way to fail in two words."""
        host = self._config.host
        if not self._slots.acquire(blocking=False):
            raise ProviderDown("many log in at once: try again in a few seconds")
        try:
            yield
        except RequestException as error:
            log.warning("the login provider %s does not answer: %s", host, error)
            raise ProviderDown(
                f"the login provider {host} does not answer: try again in a moment"
            ) from None
        except UNFIT as error:
            log.warning("the login provider %s is not believed: %s", host, error)
            raise ProviderRefused(
                f"what the login provider {host} has answered is not valid: log in again"
            ) from None
        finally:
            self._slots.release()


def _claims_at(now_s: int) -> type[Any]:
    """Return Authlib's checks of a token at an instant of the injected clock."""

    class Claims(CodeIDToken):  # type: ignore[misc]
        def validate(self, now: int | None = None, leeway: int = 0) -> None:
            super().validate(now_s if now is None else now, leeway)

    return Claims
