"""A login by OIDC in a real browser, which decides what cookies are sent to whom."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from dynsched.domain.access import Role
from dynsched_web.oidc import OidcConfig
from tests.browser.conftest import PATIENCE_MS, served
from tests.web.stage import NOW
from tests.web.stub_provider import CLIENT_ID, CLIENT_SECRET, providing


def test_a_browser_that_comes_from_the_provider_is_let_in_and_led_on(browser: Browser) -> None:
    """The provider is another site, so that Strict cookies stay at home on the way back."""
    with providing(int(NOW.timestamp())) as stub:
        config = OidcConfig(
            issuer=stub.issuer,
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            roles={"ops": Role.OPERATOR},
        )
        with served(login=True, oidc=config) as site, browser.new_context() as context:
            page = context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.goto(f"{site.url.replace('127.0.0.1', 'localhost')}/jobs")
            page.get_by_role("link", name="Log in with").click()
            page.get_by_role("link", name="Yes").click()
            expect(page.get_by_role("heading", name="Jobs")).to_be_visible(timeout=PATIENCE_MS)
            expect(page.get_by_text("olga · operator")).to_be_visible()
            assert page.url.endswith("/jobs")
            page.get_by_role("button", name="Log out").click()
            expect(page.get_by_role("link", name="Log in with")).to_be_visible()
