"""Dates in English texts: the months and days that a query names, and "yesterday" with the day it means.

A query names `in May`, `May 2023`, `8th of May, 2023` or `2023-05-08`.
`may`, `march` and short forms such as `Dec` are words and names too: they count only beside a day or a year, or after
a word that a month follows (`in`, `since`, `mid-`), `March` and `May` with their capital also after `or`, `and`, `to`.
Knows neither entries nor the time now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from wellworn.core.lazy import regex
from wellworn.ingest.word_lists import MONTHS, WEEKDAYS


class NamedDate(NamedTuple):
    """A month, with its day if that is named. Without a year it is of any year."""

    month: int
    day: int | None
    year: int | None


_MONTHS = {name: number for number, name in enumerate(MONTHS, start=1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_UNSURE = "|".join(sorted({"march", "may", *(name for name in _MONTHS if len(name) < 5)} - {"june", "july"}))
_SURE = "|".join(name for name in MONTHS if name not in ("march", "may"))
_YEAR = r"(?:19|20)\d\d"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_BEFORE_A_MONTH = "in by of mid late last next this from since until after early before during"
_LEADS = "|".join(rf"(?<=\b{word}[\s-])" for word in _BEFORE_A_MONTH.split())
_BETWEEN_MONTHS = "|".join(rf"(?<=\b{word}\s)" for word in ("or", "and", "to"))
_DATE = regex(
    rf"""\b(?:
        (?P<year_1>{_YEAR})-(?P<month_1>0[1-9]|1[0-2])(?:-(?P<day_1>0[1-9]|[12]\d|3[01]))?
      | (?P<day_2>{_DAY})(?:st|nd|rd|th)?(?:\sof)?\s(?P<month_2>{_SURE}|{_UNSURE})\b\.?(?:,?\s?(?P<year_2>{_YEAR}))?
      | (?P<month_3>{_SURE}|{_UNSURE})\.?\s(?:
            (?P<day_3>{_DAY})(?:st|nd|rd|th)?\b(?:,?\s?(?P<year_3>{_YEAR}))?
          | (?:of\s)?(?P<year_4>{_YEAR}))
      | (?P<month_4>{_SURE})
      | (?:{_LEADS})(?P<month_5>{_UNSURE})
      | (?:{_BETWEEN_MONTHS})(?P<month_6>(?-i:March|May))
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_ANY_YEAR = regex(rf"\b{_YEAR}\b")
_ISO = regex(rf"\b{_YEAR}-\d\d\b")


def named_dates(query: str, words: Iterable[str]) -> tuple[NamedDate, ...]:
    """Every month or day the query names; `words` are its lower-case words.

    A month without a year of its own is of the years named elsewhere in the query, if there are any.
    """
    if _MONTHS.keys().isdisjoint(words) and not ("-" in query and _ISO.search(query)):
        return ()
    elsewhere = [int(year) for year in _ANY_YEAR.findall(query)]
    found: list[NamedDate] = []
    for match in _DATE.finditer(query):
        month, day, year = (_first(match, part) for part in ("month", "day", "year"))
        years: list[int | None] = [int(year)] if year else [*elsewhere] or [None]
        number = _MONTHS.get(month.lower(), 0) or int(month)
        found += [NamedDate(month=number, day=int(day) if day else None, year=one) for one in years]
    return tuple(dict.fromkeys(found))


def _first(match: re.Match[str], part: str) -> str:
    """What the match has for a part in any of its ways to be written; empty when nothing."""
    return next((found for name, found in match.groupdict().items() if found and name.startswith(part)), "")


# -- relative dates ----------------------------------------------------------------------------------------------------

_NUMBERS = {"a": 1, "an": 1, "a couple of": 2}
_NUMBERS |= {word: n for n, word in enumerate("one two three four five six seven eight nine ten".split(), 1)}  # noqa: SIM905
_DAYS_AWAY = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0}
_DAYS_AWAY |= {"this morning": 0, "this evening": 0, "tomorrow": 1, "the day after tomorrow": 2}
_COUNT = rf"\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))}"
_UNIT = "day|week|month|year"
_RELATIVE = regex(
    rf"\b(?:(?P<mark>since|starting|from|until|till)\ (?:on\ )?)?(?:(?P<away>{'|'.join(_DAYS_AWAY)})"
    rf"|(?P<which>last|next|this)\ (?P<period>week|weekend|month|year|{'|'.join(WEEKDAYS)})"
    rf"|(?P<ago>{_COUNT})\ (?P<ago_unit>{_UNIT})s?\ ago"
    rf"|in\ (?P<ahead>{_COUNT})\ (?P<ahead_unit>{_UNIT})s?(?!\ of\b)"
    rf"|(?:on|until|till|since)\ (?P<weekday>{'|'.join(WEEKDAYS)}))\b(?!\ \()",
    re.IGNORECASE,
)
_LOOKS_BACK = regex(r"\b(?:[a-z]+ed|was|were|had|went|met|saw|ran|flew|came|took|got|did|made|left|bought)\b", re.I)
_LOOKS_AHEAD = regex(r"\b(?:will|going to|gonna|plan\w*|need to|want to|have to|due|must|should|next)\b|'ll\b", re.I)


class Dated(NamedTuple):
    """A text with its dates, and since and until when it says that it holds."""

    text: str
    valid_from: datetime | None = None
    valid_to: datetime | None = None


def with_dates(text: str, at: datetime) -> Dated:
    """Put dates behind words such as "yesterday", counted from `at`: "yesterday (2023-05-07)".

    "Since" and "until" become bounds. Where two readings are possible ("next Friday" on a Wednesday) nothing is added.
    """
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    done, shown = 0, ""
    since: datetime | None = None
    until: datetime | None = None
    for found in _RELATIVE.finditer(text):
        try:
            span = _span(found, day, text)
        except (ValueError, OverflowError):  # outside the calendar
            continue
        if span is None:
            continue
        start, end = span
        mark = (found["mark"] or found[0]).lower()
        since = start if mark.startswith(("since", "starting", "from")) else since
        until = end if mark.startswith(("until", "till")) else until
        shown += f"{text[done : found.end()]} ({_shown(start, end)})"
        done = found.end()
    return Dated(shown + text[done:], since, until)


def _shown(start: datetime, end: datetime) -> str:
    days = (end - start).days
    if days == 1:
        return f"{start:%Y-%m-%d}"
    if days <= 7:
        return f"{start:%Y-%m-%d} to {end - timedelta(days=1):%Y-%m-%d}"
    return f"{start:%Y-%m}" if days < 32 else f"{start:%Y}"


def _span(found: re.Match[str], day: datetime, text: str) -> tuple[datetime, datetime] | None:
    """The days that an expression names, from the first up to the one after the last."""
    if found["away"]:
        return _around(day + timedelta(days=_DAYS_AWAY[found["away"].lower()]), "day")
    for group, sign in (("ago", -1), ("ahead", 1)):
        if found[group]:
            unit, word = found[f"{group}_unit"].lower(), found[group].lower()
            count = int(word) if word.isdigit() else _NUMBERS[word]
            return _around(_shift(day, sign * count, unit), unit)
    if found["weekday"]:
        past = found[0].lower().startswith("since ") or (
            not found["mark"] and _LOOKS_BACK.search(text) and not _LOOKS_AHEAD.search(text)
        )
        return _weekday(found["weekday"].lower(), day, "last" if past else "this")
    which, period = found["which"].lower(), found["period"].lower()
    if period in WEEKDAYS:
        return _weekday(period, day, which)
    step = {"last": -1, "next": 1, "this": 0}[which]
    return _around(_shift(day, step, "week" if period == "weekend" else period), period)


def _weekday(name: str, day: datetime, which: str) -> tuple[datetime, datetime] | None:
    ahead = (WEEKDAYS.index(name) - day.weekday()) % 7
    if ahead == 0 or (which == "next" and WEEKDAYS.index(name) > day.weekday()):
        return None  # today or in a week; this week or the next
    return _around(day + timedelta(days=ahead - 7 if which == "last" else ahead), "day")


def _around(day: datetime, unit: str) -> tuple[datetime, datetime]:
    """The day, week, weekend, month or year that a day is in."""
    if unit == "day":
        return day, day + timedelta(days=1)
    if unit in ("week", "weekend"):
        monday = day - timedelta(days=day.weekday())
        return monday + timedelta(days=5 if unit == "weekend" else 0), monday + timedelta(days=7)
    start = day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)
    return start, _shift(start, 1, unit)


def _shift(day: datetime, count: int, unit: str) -> datetime:
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    year, month = divmod(day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1), 12)
    return day.replace(year=year, month=month + 1, day=min(day.day, 28))
