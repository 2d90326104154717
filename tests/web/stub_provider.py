"""A small OIDC provider on loopback, which keeps the protocol unless it is told not to."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from flask import Flask, jsonify, request
from joserfc import jwt
from joserfc.jwk import RSAKey
from joserfc.jws import JWSRegistry
from markupsafe import escape
from werkzeug.serving import make_server

CLIENT_ID = "console"
CLIENT_SECRET = "hush-hush"  # noqa: S105  # of a stub
KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})


class StubProvider:
    """A provider that lets everybody in who is led to it.

    Attributes:
        issuer: its address.
        claims: what it says about them besides what the protocol asks for; None takes one away.
        header: of its tokens.
        key: signs its tokens.
        metadata: what it says about itself, over what is right.
        tokens: how many tokens were asked for.
        broken: it gives none, for its own reasons.
        keys: what fits its tokens, as it tells it.
        answer: what it gives for a code, over what is right.
        refusals: why it gave none.
    """

    def __init__(self, now_s: int) -> None:
        self.issuer = ""
        self.claims: dict[str, Any] = {"preferred_username": "olga", "roles": ["ops", "staff"]}
        self.header: dict[str, Any] = {"alg": "RS256", "kid": "one"}
        self.key = KEY
        self.metadata: dict[str, Any] = {}
        self.tokens = 0
        self.broken = False
        self.keys: Any = {"keys": [KEY.as_dict(private=False)]}
        self.answer: dict[str, Any] = {}
        self.refusals: list[str] = []
        self._now_s = now_s
        self._codes: dict[str, dict[str, str]] = {}
        self.app = Flask("stub_provider")
        self.app.get("/.well-known/openid-configuration")(self._about)
        self.app.get("/keys")(lambda: jsonify(self.keys))
        self.app.get("/authorize")(self._authorize)
        self.app.post("/token")(self._token)

    def authorize(self, url: str) -> dict[str, str]:
        """Do what a browser and its user do at the provider; return what it leads back with."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        code = f"code-{len(self._codes)}"
        self._codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def asked(self, code: str) -> dict[str, str]:
        """Return what a login was begun with."""
        return self._codes[code]

    def _about(self) -> Any:
        said = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "id_token_signing_alg_values_supported": ["RS256", "none"],
        }
        return jsonify(said | self.metadata)

    def _authorize(self) -> str:
        """Ask a browser's user whether to go on."""
        back = urlencode(self.authorize(request.url))
        return f'<a href="{request.args["redirect_uri"]}?{escape(back)}">Yes</a>'

    def _token(self) -> Any:
        self.tokens += 1
        if self.broken:
            return "the database is gone", 503
        asked = self._codes.get(request.form["code"], {})
        hashed = hashlib.sha256(request.form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()
        given = request.authorization
        checks = {
            "client": given is not None
            and (given.username, given.password) == (CLIENT_ID, CLIENT_SECRET),
            "verifier": asked.get("code_challenge") == challenge,
            "method": asked.get("code_challenge_method") == "S256",
            "redirect": asked.get("redirect_uri") == request.form["redirect_uri"],
        }
        self.refusals = [name for name, right in checks.items() if not right]
        if self.refusals:
            return jsonify(error="invalid_grant"), 400
        token = {"access_token": "x", "token_type": "Bearer", "id_token": self._signed(asked)}
        return jsonify(token | self.answer)

    def _signed(self, asked: dict[str, str]) -> str:
        usual = {
            "iss": self.issuer,
            "sub": "u-1",
            "aud": CLIENT_ID,
            "iat": self._now_s,
            "exp": self._now_s + 300,
            "nonce": asked["nonce"],
        }
        claims = {k: v for k, v in (usual | self.claims).items() if v is not None}
        registry = JWSRegistry(algorithms=["RS256", "none"])
        return jwt.encode(self.header, claims, self.key, registry=registry)


@contextmanager
def providing(now_s: int) -> Iterator[StubProvider]:
    """Serve a stub provider, whose clock says `now_s`."""
    stub = StubProvider(now_s)
    server = make_server("127.0.0.1", 0, stub.app, threaded=True)
    stub.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
