"""Keys: how they are written, and the ids by which an operator gives actions other keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from textual.binding import Binding, BindingType

WRITTEN = {
    "asterisk": "*",
    "colon": ":",
    "slash": "/",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "minus": "-",
    "escape": "Esc",
    "enter": "Enter",
    "space": "space",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "tab": "Tab",
}


def written(key: str) -> str:
    """Return a key as people write it; several are separated by blanks.

    >>> written("left_square_bracket"), written("ctrl+r"), written("down,j")
    ('[', 'ctrl-r', '↓ j')
    """
    return " ".join(_one(part) for part in key.split(","))


def _one(key: str) -> str:
    *modifiers, name = key.split("+")
    return "-".join([*modifiers, WRITTEN.get(name, name)])


def shown_key(binding: Binding) -> str:
    """Return a binding's key as people write it."""
    return binding.key_display or written(binding.key)


def own_bindings(classes: Iterable[type]) -> Iterator[tuple[type, Binding]]:
    """Yield the bindings that classes of the console declare themselves, with an id each."""
    for owner in classes:
        found: Iterable[BindingType] = owner.__dict__.get("BINDINGS", ())
        for binding in found:
            assert isinstance(binding, Binding), f"{owner.__name__}: use Binding(...)"
            yield owner, binding
