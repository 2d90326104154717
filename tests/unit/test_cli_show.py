"""What is shown to people, whatever handlers and commands have left in a run."""

from __future__ import annotations

import pytest

from dynsched.cli.show import _print_output


@pytest.mark.parametrize(
    "text", ["[" * 4096, '{"a":' * 800, '{"a":' + "[" * 2000 + "]" * 2000 + "}"]
)
def test_an_output_of_nothing_but_brackets_is_shown(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A text that nests deeper than the parser goes is shown as the text it is."""
    _print_output("output", text)
    assert text[:40] in capsys.readouterr().out
