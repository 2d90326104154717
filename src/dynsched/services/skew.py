"""The clocks' agreement: who is too far off the store's clock must not act on times."""

from __future__ import annotations

from datetime import datetime, timedelta

from dynsched.errors import ClockSkewed
from dynsched.settings import Settings

DATE_GRAIN = timedelta(seconds=1)  # the store's clock is told in whole seconds


def check_clock(store_time: datetime | None, now: datetime, settings: Settings) -> None:
    """Compare this process's clock with the store's.

    Raises:
        ClockSkewed: they differ by more than `skew_stop`; acting would harm living leases.
    """
    if store_time is None:
        return
    skew = now - store_time
    if skew > settings.skew_stop + DATE_GRAIN or -skew > settings.skew_stop:
        raise ClockSkewed(
            f"this process's clock is {skew.total_seconds():+.1f} s off the store's; "
            f"it stops until the clocks agree within {settings.skew_stop.total_seconds():g} s"
        )
