"""What the templates may not hold, since browsers are told to refuse it or because it runs code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dynsched_web

FOLDER = Path(dynsched_web.__file__).parent
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))
SOURCES = [*TEMPLATES, FOLDER / "charts.py", FOLDER / "showing.py"]
BANNED = {
    "an inline style": r"\sstyle\s*=",
    "a style element": r"<style",
    "an inline handler": r"\son[a-z]+=",
    "code of htmx": r"hx-(?:on|vars|live)\b|hx-(?:vals|headers|confirm)\s*=\s*[\"']?js:",
    "a condition of a trigger": r"hx-trigger\s*=\s*\"[^\"]*\[",
    "a link that runs": r"javascript:",
    "an address elsewhere": r"(?:src|href|action|hx-\w+)\s*=\s*[\"']?(?:https?:)?//",
    "markup that is not escaped": r"\|\s*safe\b|autoescape\s+false",
}
INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)", re.IGNORECASE)


@pytest.mark.parametrize("path", SOURCES, ids=[path.name for path in SOURCES])
def test_a_template_holds_nothing_that_the_policy_forbids(path: Path) -> None:
    """No inline script or style, no evaluated attribute of htmx, no address elsewhere."""
    text = path.read_text("utf-8")
    assert {
        what: re.findall(rule, text) for what, rule in BANNED.items() if re.search(rule, text)
    } == {}
    assert not INLINE_SCRIPT.search(text)


@pytest.mark.parametrize(
    "text",
    [
        '<p style="x">', "<style>", '<a onclick="x">', 'hx-on:click="x"', "hx-vals='js:{}'",
        'hx-trigger="click[ctrlKey]"', 'href="javascript:x"', 'src="//cdn.example/x"',
        "{{ x|safe }}",
    ],
)  # fmt: skip
def test_each_kind_of_forbidden_thing_is_found(text: str) -> None:
    """The check above is not blind."""
    assert any(re.search(rule, text) for rule in BANNED.values())


def test_every_form_that_is_posted_has_its_token() -> None:
    """One that has not would be refused, which its visitor cannot mend."""
    for path in TEMPLATES:
        text = path.read_text("utf-8")
        for form in re.findall(r'<form[^>]*method="post".*?</form>', text, re.DOTALL):
            assert "csrf_field()" in form, (path.name, form[:80])
