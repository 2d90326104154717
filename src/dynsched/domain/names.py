"""Names and ids: what tenants, jobs and queues may be called, and how ids are made."""

from __future__ import annotations

import re
import zlib
from random import Random

from dynsched.errors import InvalidInput

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
JOB_ID = re.compile(r"[0-9a-z]{13}")
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def check_name(value: str, field: str) -> str:
    """Return a tenant, job, queue or tag name after checking its form.

    The form matters: in index keys `#` must sort before every character of a name.

    Raises:
        InvalidInput: it is empty, too long or has other characters.

    >>> check_name("nightly-report", "job")
    'nightly-report'
    """
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InvalidInput(
            field,
            f"{value!r} is not a name",
            "use 1 to 64 of A-Z a-z 0-9 . _ - and start with a letter or digit",
        )
    return value


def new_id(rng: Random, length: int = 13) -> str:
    """Return a random id of `length` characters, 5 bits each, in lower case without look-alikes."""
    bits = rng.getrandbits(5 * length)
    return "".join([ALPHABET[bits >> place & 31] for place in range(0, 5 * length, 5)])


def new_ordered_ids(rng: Random, ms: int, count: int) -> list[str]:
    """Return random ids in their order, which sort behind those made in earlier milliseconds.

    Rows of one instant that lie in the order in which they were made are claimed from few pages
    of a file, and in that order. The order comes round after twelve days.

    Args:
        rng: for the random part, as long as that of `new_id`.
        ms: when they are made, milliseconds since 1970.
        count: how many.

    >>> [one[:6] for one in new_ordered_ids(Random(1), 31, 2)], new_ordered_ids(Random(1), 32, 0)
    (['00000z', '00000z'], [])
    """
    time = "".join([ALPHABET[ms >> place & 31] for place in range(25, -1, -5)])
    return sorted([time + new_id(rng) for _ in range(count)])


def new_timed_id(rng: Random, ms: int) -> str:
    """Return a random id of 13 characters; ids sort by the millisecond in which they were made.

    Args:
        rng: for the last four characters.
        ms: when it is made, milliseconds since 1970; it fits until the year 3084.

    >>> new_timed_id(Random(1), 31)[:9], new_timed_id(Random(1), 1_772_366_400_000)[:9]
    ('00000000z', '1kjmma2g0')
    """
    time = "".join([ALPHABET[ms >> place & 31] for place in range(40, -1, -5)])
    return time + new_id(rng, 4)


def bucket_of(text: str, buckets: int) -> int:
    """Return a stable bucket in [0, buckets) for a text: the shard of a job, the lane of a run.

    >>> bucket_of("anything", 1)
    0
    """
    return zlib.crc32(text.encode()) % buckets if buckets > 1 else 0
