"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes is the machine's affair, not the code's.
settings.register_profile("dynsched", deadline=None)
settings.load_profile("dynsched")
