"""A field to type into: it holds what was given, and draws it harmlessly."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import Input

from dynsched.domain.visible import replaced


class Field(Input):
    """An input whose text may come from a clipboard, a link or a file, and so be hostile."""

    _drawn: tuple[str, str] = ("", "")

    @property
    def _value(self) -> Text:
        """Return the text as it is drawn: a sign for each character that would not show."""
        return Text(self._shown(), no_wrap=True, overflow="ignore", end="")

    def _shown(self) -> str:
        if self._drawn[0] != self.value:
            self._drawn = (self.value, replaced(self.value))
        return self._drawn[1]

    def _position_to_cell(self, position: int) -> int:
        """Return the column at which a place of the text is drawn."""
        return cell_len(self._shown()[:position])
