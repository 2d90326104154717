"""A cron expression in words, for tables and confirmations: short, and never wrong.

What has no short form is told by its number of runs a day or by the day fields themselves.
"""

from __future__ import annotations

from dynsched.domain.cron_fields import CronFields, parse_fields

_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIMES_MAX = 4
"""Times of day that are listed one by one; more are counted."""


def describe_cron(expr: str, *, seconds: bool = False, key: str = "") -> str:
    """Return an expression in words.

    Raises:
        InvalidInput: the expression is wrong.

    >>> describe_cron("0 6,18 1 * *")
    'at 06:00 and 18:00, on day 1'
    >>> describe_cron("*/5 * * * *")
    'every 5 minutes'
    >>> describe_cron("0 0 1 1 mon")
    'at 00:00, on day 1 or on Mon, in Jan'
    """
    fields = parse_fields(expr, seconds, key)
    dates = _days(fields) + _months(fields)
    few = _runs_a_day(fields) <= _TIMES_MAX
    return _times(fields) + (dates or (" every day" if few else ""))


def _times(fields: CronFields) -> str:
    hours, minutes, seconds = map(_bits, (fields.hours, fields.minutes, fields.seconds))
    runs = _runs_a_day(fields)
    if runs <= _TIMES_MAX:
        clock = [
            f"{hour:02}:{minute:02}" + (f":{second:02}" if fields.seconds != 1 else "")
            for hour in hours
            for minute in minutes
            for second in seconds
        ]
        return "at " + _listed(clock)
    if fields.seconds != 1:
        return "every second" if runs == 86_400 else f"{runs:,} times a day"
    step = _step(minutes)
    if len(minutes) == 60:
        pace = "every minute"
    elif len(minutes) == 1:
        pace = f"at minute {minutes[0]} of every hour"
    elif step:
        pace = f"every {step} minutes"
    else:
        return f"{runs:,} times a day"
    if len(hours) == 24:
        return pace
    if hours[-1] - hours[0] + 1 == len(hours):
        return f"{pace} from {hours[0]:02}:00 to {hours[-1]:02}:59"
    return f"{runs:,} times a day"


def _runs_a_day(fields: CronFields) -> int:
    return fields.hours.bit_count() * fields.minutes.bit_count() * fields.seconds.bit_count()


def _days(fields: CronFields) -> str:
    by_date = "" if fields.days.bit_count() == 31 else "on day " + _spans(_bits(fields.days))
    weekdays = _bits(fields.weekdays)
    joint = "or" if fields.both_days and by_date else "and"
    by_weekday = "" if len(weekdays) == 7 else _weekday_words(weekdays, joint)
    if fields.both_days:
        words = " if it is a ".join(filter(None, (by_date, by_weekday)))
    elif by_date and by_weekday:
        words = f"{by_date} or on {by_weekday}"
    else:
        words = ""  # either field names every day
    return f", {words}" if words else ""


def _months(fields: CronFields) -> str:
    months = _bits(fields.months)
    if len(months) == 12:
        return ""
    return ", in " + _listed([_MONTHS[month - 1] for month in months])


def _weekday_words(weekdays: list[int], joint: str) -> str:
    if weekdays == [1, 2, 3, 4, 5] and joint == "and":
        return "Mon to Fri"
    return _listed([_DAYS[day] for day in weekdays], joint)


def _step(minutes: list[int]) -> int:
    """Return n if the minutes are those of `*/n` and n divides the hour, else 0."""
    width = minutes[1] if len(minutes) > 1 and minutes[0] == 0 else 0
    return width if width and minutes == list(range(0, 60, width)) and 60 % width == 0 else 0


def _spans(numbers: list[int]) -> str:
    """Return numbers with runs of three or more drawn together."""
    parts, index = [], 0
    while index < len(numbers):
        last = index
        while last + 1 < len(numbers) and numbers[last + 1] == numbers[last] + 1:
            last += 1
        if last - index >= 2:
            parts.append(f"{numbers[index]}-{numbers[last]}")
        else:
            parts.extend(str(number) for number in numbers[index : last + 1])
        index = last + 1
    return ", ".join(parts)


def _listed(words: list[str], joint: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {joint} {words[-1]}"


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
