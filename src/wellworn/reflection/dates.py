"""Put the date behind words such as "yesterday" or "last week", counted from the time of the turn.

The words stay as they are: "yesterday (2023-05-07)". English only. Where two readings are possible ("next Friday" on a
Wednesday) nothing is added.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from wellworn.reflection.person import is_past

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_NUMBERS |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
_PLAIN = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0}
_PLAIN |= {"this morning": 0, "this afternoon": 0, "this evening": 0, "tomorrow": 1, "the day after tomorrow": 2}
_COUNT = rf"\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))}"
_UNIT = "day|week|month|year"
_WHEN = re.compile(
    rf"\b(?:(?P<mark>since|starting|from|until|till)\ (?:on\ )?)?(?:(?P<plain>{'|'.join(_PLAIN)})"
    rf"|(?P<which>last|next|this)\ (?P<period>week|weekend|month|year|{'|'.join(_DAYS)})"
    rf"|(?P<ago>{_COUNT})\ (?P<ago_unit>{_UNIT})s?\ ago"
    rf"|in\ (?P<ahead>{_COUNT})\ (?P<ahead_unit>{_UNIT})s?(?!\ of\b)"
    rf"|(?:on|until|till|since)\ (?P<weekday>{'|'.join(_DAYS)})"
    rf"|for\ the\ next\ (?:(?P<span>{_COUNT})\ )?(?P<span_unit>{_UNIT})s?"
    rf"|(?<=since\ )(?P<year>(?:19|20)\d\d)(?![-/\d])|(?P<now>from\ now\ on))\b(?!\ \()",
    re.IGNORECASE,
)
_FUTURE = re.compile(r"\b(?:will|going to|gonna|plan\w*|need to|want to|have to|due|must|should|next)\b|'ll\b", re.I)


@dataclass(frozen=True, kw_only=True)
class Dated:
    """A sentence with its dates, and from when to when it says that it holds."""

    text: str
    valid_from: datetime | None = None
    valid_to: datetime | None = None


def with_dates(text: str, at: datetime) -> Dated:
    """Put dates behind relative expressions; "since", "until" and "for the next two weeks" become bounds."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    done, shown = 0, ""
    since: datetime | None = None
    until: datetime | None = None
    for found in _WHEN.finditer(text):
        try:
            span = _span(found, day, text)
        except (ValueError, OverflowError):  # outside the calendar
            continue
        if span is None:
            continue
        start, end = span
        mark = (found["mark"] or found[0]).lower()
        if mark.startswith(("since", "starting", "from")) or found["year"] or found["span"] or found["span_unit"]:
            since = start
        if mark.startswith(("until", "till", "for the next")):
            until = end
        if not (found["year"] or found["now"] or found["span_unit"]):
            shown += f"{text[done : found.end()]} ({_shown(start, end)})"
            done = found.end()
    return Dated(text=shown + text[done:], valid_from=since, valid_to=until)


def _shown(start: datetime, end: datetime) -> str:
    days = (end - start).days
    if days == 1:
        return f"{start:%Y-%m-%d}"
    if days <= 7:
        return f"{start:%Y-%m-%d} to {end - timedelta(days=1):%Y-%m-%d}"
    return f"{start:%Y-%m}" if days < 32 else f"{start:%Y}"


def _span(found: re.Match[str], day: datetime, text: str) -> tuple[datetime, datetime] | None:
    """The days that an expression names, from the first up to the one after the last."""
    if found["plain"]:
        return _unit(day + timedelta(days=_PLAIN[found["plain"].lower()]), "day")
    if found["now"]:
        return _unit(day, "day")
    if found["year"]:
        return _unit(day.replace(year=int(found["year"]), month=1, day=1), "year")
    if found["span_unit"]:
        return day, _shift(day, _number(found["span"] or "one"), found["span_unit"].lower())
    if found["ago"]:
        return _unit(_shift(day, -_number(found["ago"]), found["ago_unit"].lower()), found["ago_unit"].lower())
    if found["ahead"]:
        return _unit(_shift(day, _number(found["ahead"]), found["ahead_unit"].lower()), found["ahead_unit"].lower())
    if found["weekday"]:
        return _weekday(found["weekday"].lower(), day, "" if found["mark"] else _direction(text))
    return _period(found["which"].lower(), found["period"].lower(), day)


def _period(which: str, period: str, day: datetime) -> tuple[datetime, datetime] | None:
    if period in _DAYS:
        return _weekday(period, day, which)
    step = {"last": -1, "next": 1, "this": 0}[which]
    return _unit(_shift(day, step, "week" if period == "weekend" else period), period)


def _direction(text: str) -> str:
    """Whether a sentence looks back ("last") or ahead ("this")."""
    past = any(is_past(word) for word in re.findall(r"[a-z']+", text.lower()))
    return "last" if past and not _FUTURE.search(text) else "this"


def _weekday(name: str, day: datetime, which: str) -> tuple[datetime, datetime] | None:
    ahead = (_DAYS.index(name) - day.weekday()) % 7
    still_this_week = _DAYS.index(name) > day.weekday()
    if ahead == 0 or (which == "next" and still_this_week):
        return None  # today or in a week; this week or the next
    return _unit(day + timedelta(days=ahead - 7 if which == "last" else ahead), "day")


def _unit(day: datetime, unit: str) -> tuple[datetime, datetime]:
    """The day, week, weekend, month or year that a day is in."""
    if unit == "day":
        return day, day + timedelta(days=1)
    if unit in ("week", "weekend"):
        monday = day - timedelta(days=day.weekday())
        return (
            (monday, monday + timedelta(days=7))
            if unit == "week"
            else (monday + timedelta(days=5), monday + timedelta(days=7))
        )
    start = day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)
    return start, _shift(start, 1, unit)


def _shift(day: datetime, count: int, unit: str) -> datetime:
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    year, month = divmod(day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1), 12)
    return day.replace(year=year, month=month + 1, day=min(day.day, 28))


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word.lower()]
