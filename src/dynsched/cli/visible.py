"""Text for terminals, under the name that the command line has for it."""

from __future__ import annotations

from dynsched.domain.visible import cut, escaped, visible, width

__all__ = ["cut", "escaped", "visible", "width"]
