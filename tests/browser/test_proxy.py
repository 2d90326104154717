"""The console behind nginx: under a path, with TLS in front, everything works."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from playwright.sync_api import expect

from tests.browser.conftest import Open, served
from tests.web.stage import PASSWORD, people

BASE = "/ops/dynsched"
CONFIG = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    location {base}/ {{
      proxy_pass {console};
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $http_host;
    }}
  }}
}}
"""


def certificate(folder: Path) -> None:
    """Write a certificate of this machine's loopback address, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def free_port() -> int:
    """Return a port that nobody listens at."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def nginx() -> str:
    """Where nginx is, or a loud skip."""
    path = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if path is None:
        said = "nginx is not installed: nothing is proved of the console behind a proxy"
        if os.environ.get("DYNSCHED_REQUIRE_ALL"):
            pytest.fail(said)
        pytest.skip(said)
    return path


@pytest.fixture
def proxied(nginx: str, tmp_path: Path) -> Iterator[str]:
    """The address of a console behind a proxy, under a path."""
    config = {
        "login": True,
        "people": people(tmp_path),
        "base_path": BASE,
        "secure": True,
        "proxies": frozenset({"127.0.0.1"}),
    }
    with served(**config) as site:
        for _ in range(3):
            site.stage.run("bad@")
        certificate(tmp_path)
        port, console = free_port(), site.url.removesuffix(BASE)
        text = CONFIG.format(folder=tmp_path, port=port, base=BASE, console=console)
        (tmp_path / "nginx.conf").write_text(text)
        process = subprocess.Popen([nginx, "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)])
        try:
            yield f"https://127.0.0.1:{port}{BASE}"
        finally:
            process.terminate()
            process.wait(10)


def test_the_story_behind_a_proxy_with_tls_under_a_path(proxied: str, visit: Open) -> None:
    """Login, lists, refresh, preview, confirm, export: every address keeps the path."""
    page = visit("about:blank", ignore_https_errors=True)
    for _ in range(50):  # nginx takes a moment to listen
        try:
            page.goto(f"{proxied}/dlq")
            break
        except Exception:  # noqa: BLE001  # whatever the browser calls it
            page.wait_for_timeout(100)
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("h1")).to_have_text("Dead letters")
    assert page.url == f"{proxied}/dlq"
    cookies = {one["name"]: one for one in page.context.cookies()}
    assert cookies["dynsched"]["secure"] is True
    assert cookies["dynsched"]["path"] == BASE
    links = page.eval_on_selector_all("a[href]", "all => all.map(one => one.getAttribute('href'))")
    assert [one for one in links if not one.startswith((f"{BASE}/", "#"))] == []
    page.evaluate("htmx.trigger('[data-live]', 'refresh')")
    expect(page.locator("#trouble")).to_be_hidden()
    page.get_by_role("button", name="Preview the replay of 3 runs").click()
    page.get_by_role("textbox", name="Reason", exact=True).fill("mended")
    page.get_by_role("button", name="Replay 3 runs").click()
    expect(page.get_by_text("the replay of 3 runs has begun")).to_be_visible()
    assert page.url.startswith(f"{proxied}/replays/")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("h1")).to_have_text("Log in")
