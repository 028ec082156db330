"""When something is said to happen: relative dates resolved against the time of the turn, in words and as bounds.

The words stay, the date is put behind them: "yesterday (2023-05-07)". Knows English expressions of time only; a date
that no calendar holds is left alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from wellworn.reflection.rules.lists import words
from wellworn.reflection.rules.verbs import is_past

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "a couple": 2,
    "a couple of": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
}

_N = r"(?P<{0}>\d{{1,3}}|a\ couple\ of|a\ couple|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_UNIT = r"(?P<{0}>day|week|weekend|month|year)s?"
_DAY = "|".join(_DAYS)
_MONTH = "|".join(_MONTHS)
_INTRO = "in|by|to|until|till|since|during|of|for|from|early|mid|late|every|around|through|starting"
_EXPRESSION = re.compile(
    rf"""
    \b(?:
      (?P<plain>the\ day\ before\ yesterday|the\ day\ after\ tomorrow|yesterday|today|tonight|tomorrow
        |this\ (?:morning|afternoon|evening)|last\ night)
      | (?P<which>last|next|this|this\ past|this\ coming)\ (?P<period>week|weekend|month|year|{_DAY}|{_MONTH})
      | {_N.format("ago")}\ {_UNIT.format("ago_unit")}\ ago
      | in\ {_N.format("ahead")}\ {_UNIT.format("ahead_unit")}(?!\ of\b)
      | {_N.format("hence")}\ {_UNIT.format("hence_unit")}\ from\ (?:now|today)
      | (?<!every\ )(?<!each\ )(?:on\ )?(?<!every\ )(?P<weekday>{_DAY})
      | (?P<month>{_MONTH})\ (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\ (?P<year>(?:19|20)\d\d))?
      | (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\ (?:of\ )?(?P<month2>{_MONTH})\b(?:,?\ (?P<year2>(?:19|20)\d\d))?
      | (?P<month3>{_MONTH})\ (?P<year3>(?:19|20)\d\d)
      | (?P<inyear>(?:19|20)\d\d)(?![-/\d])
      | (?P<iso>(?:19|20)\d\d-\d\d-\d\d)
      | (?:{_INTRO})[ -](?P<month4>{_MONTH})(?!,?\ \d)
    )\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BEFORE = re.compile(
    r"\b(?:(?P<since>since|starting|beginning|effective|as of|from)|(?P<until>until|till|through|up to))"
    r"(?: the| on| in)?\s+\Z",
    re.IGNORECASE,
)
_WITH_MONTH = re.compile(r"(?:(?P<since>since|from|starting)|(?P<until>until|till|through))[ -]", re.IGNORECASE)
_STARTING_NOW = re.compile(r"\b(?:from now on|going forward|as of now|starting now|from today)\b", re.IGNORECASE)
_SPAN = re.compile(
    rf"\bfor the (?P<side>next|past|last)\s+(?:{_N.format('n')}\s+)?{_UNIT.format('unit')}\b", re.IGNORECASE
)
_WORD = re.compile(r"[a-z']+")
_AHEAD = words("will 'll going gonna plan planning need needs want wants before by due must should shall would")


@dataclass(frozen=True, kw_only=True)
class When:
    """A stretch of time: from `start` up to, not including, `end`."""

    start: datetime
    end: datetime

    def __str__(self) -> str:
        days = (self.end - self.start).days
        if days == 1:
            return f"{self.start:%Y-%m-%d}"
        if days in (2, 7):
            return f"{self.start:%Y-%m-%d} to {self.end - timedelta(days=1):%Y-%m-%d}"
        return f"{self.start:%Y-%m}" if days < 32 else f"{self.start:%Y}"


@dataclass(frozen=True, kw_only=True)
class Dated:
    """A sentence with its dates resolved, and from when to when it says that it holds."""

    text: str
    valid_from: datetime | None = None
    valid_to: datetime | None = None


_EVERY_YEAR = re.compile(r"\b(?:birthday|anniversary|name day)(?:'s| is| falls)\b", re.IGNORECASE)
"""A day of the calendar behind it comes back every year."""


def resolve(text: str, at: datetime) -> Dated:
    """Put the date behind each relative expression; read "since", "until" and "for the next two weeks"."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    past = _speaks_of_past(text)
    valid_from, valid_to = _span(text, day)
    if _STARTING_NOW.search(text):
        valid_from = day
    pieces: list[str] = []
    done = 0
    for found in _EXPRESSION.finditer(text):
        when = _read(found, day, past=past)
        if when is None or (_EVERY_YEAR.search(text, 0, found.start()) and (found["month"] or found["month2"])):
            continue
        marker = _BEFORE.search(text, max(0, found.start() - 24), found.start()) or _WITH_MONTH.match(found[0])
        if marker and marker["since"]:
            valid_from = when.start
        elif marker and marker["until"]:
            valid_to = when.end if when.end - when.start <= timedelta(days=1) else when.start
        elif valid_from and text[done : found.end()].lower().lstrip().startswith("to "):  # from … to …
            valid_to = when.end
        if _relative(found) and text[found.end() : found.end() + 2] != " (":
            pieces += [text[done : found.end()], f" ({when})"]
            done = found.end()
    return Dated(text="".join(pieces) + text[done:], valid_from=valid_from, valid_to=valid_to)


def _speaks_of_past(text: str) -> bool:
    """Whether "on Monday" is the last one: a verb in the past, and nothing that looks ahead."""
    said = _WORD.findall(text.lower())
    return any(is_past(word) for word in said) and _AHEAD.isdisjoint(said)


def _relative(found: re.Match[str]) -> bool:
    """Whether the expression needs a date beside it: it says less than one."""
    if found["month"] or found["month2"]:
        return not (found["year"] or found["year2"])
    return not (found["iso"] or found["inyear"] or found["month3"])


def _span(text: str, day: datetime) -> tuple[datetime | None, datetime | None]:
    found = _SPAN.search(text)
    if not found:
        return None, None
    count, unit = _count(found["n"] or "1"), found["unit"].lower()
    try:
        if found["side"].lower() == "next":
            return day, _shift(day, count, unit)
        return _shift(day, -count, unit), None
    except (ValueError, OverflowError):
        return None, None


def _read(found: re.Match[str], day: datetime, *, past: bool) -> When | None:
    """The stretch an expression names; None where it names none that exists."""
    try:
        if found["plain"]:
            return _days(day, _PLAIN.get(found["plain"].lower(), 0))
        if found["which"]:
            return _period(found["which"].lower(), found["period"].lower(), day)
        for count, unit, sign in (("ago", "ago_unit", -1), ("ahead", "ahead_unit", 1), ("hence", "hence_unit", 1)):
            if found[count]:
                return _away(day, sign * _count(found[count]), found[unit].lower())
        if found["weekday"]:
            return _weekday(found["weekday"].lower(), day, past=past)
        if found["iso"]:
            return _days(datetime.fromisoformat(found["iso"]).replace(tzinfo=day.tzinfo), 0)
        if found["inyear"]:
            return _year(day, int(found["inyear"]))
        return _calendar(found, day, past=past)
    except (ValueError, OverflowError):
        return None


_PLAIN = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1, "the day after tomorrow": 2}


def _days(day: datetime, offset: int, length: int = 1) -> When:
    start = day + timedelta(days=offset)
    return When(start=start, end=start + timedelta(days=length))


def _period(which: str, period: str, day: datetime) -> When | None:
    step = -1 if which in ("last", "this past") else 1 if which == "next" else 0
    if period == "week":
        return _days(day, 7 * step - day.weekday(), 7)
    if period == "weekend":
        back = step if which != "this past" or day.weekday() < 5 else 0
        return _days(day, 5 - day.weekday() + 7 * back, 2)
    if period == "month":
        return _month(_shift(day, step, "month"))
    if period == "year":
        return _year(day, day.year + step)
    if period in _MONTHS:
        month = _MONTHS.index(period) + 1
        return _month(_near_month(day, month, past=step < 0))
    number = _DAYS.index(period)
    if which == "next":  # that day of the next week, not of this one
        return _days(day, 7 - day.weekday() + number)
    ahead = (number - day.weekday()) % 7
    return _days(day, (ahead - 7 if ahead else -7) if step < 0 else ahead)


def _away(day: datetime, count: int, unit: str) -> When:
    """So many days, weeks, months or years off: as exact as its unit."""
    there = _shift(day, count, unit)
    if unit == "day":
        return _days(there, 0)
    if unit == "week":
        return _days(there, -there.weekday(), 7)
    if unit == "weekend":
        return _days(there, 5 - there.weekday(), 2)
    return _month(there) if unit == "month" else _year(there, there.year)


def _weekday(name: str, day: datetime, *, past: bool) -> When:
    """The nearest such day: the last one in a sentence about the past, else the next."""
    ahead = (_DAYS.index(name) - day.weekday()) % 7
    return _days(day, ahead - 7 if past else ahead)


def _calendar(found: re.Match[str], day: datetime, *, past: bool) -> When:
    name = found["month"] or found["month2"] or found["month3"] or found["month4"]
    month = _MONTHS.index(name.lower()) + 1
    if name == "may" or name == "march":
        raise ValueError("a word, not a month")
    year = found["year"] or found["year2"] or found["year3"]
    base = day.replace(year=int(year), month=month, day=1) if year else _near_month(day, month, past=past)
    number = found["day"] or found["day2"]
    return _days(base.replace(day=int(number)), 0) if number else _month(base)


def _near_month(day: datetime, month: int, *, past: bool) -> datetime:
    """The first of the nearest such month on that side of the day; the running month counts for both."""
    year = day.year + (-1 if past and month > day.month else 1 if not past and month < day.month else 0)
    return day.replace(year=year, month=month, day=1)


def _month(day: datetime) -> When:
    start = day.replace(day=1)
    return When(start=start, end=_shift(start, 1, "month"))


def _year(day: datetime, year: int) -> When:
    start = day.replace(year=year, month=1, day=1)
    return When(start=start, end=start.replace(year=year + 1))


def _shift(day: datetime, count: int, unit: str) -> datetime:
    if unit == "day":
        return day + timedelta(days=count)
    if unit in ("week", "weekend"):
        return day + timedelta(days=7 * count)
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    for last in (day.day, 30, 29, 28):
        try:
            return day.replace(year=year, month=month + 1, day=min(day.day, last))
        except ValueError:
            if not 1 <= year <= 9999:
                raise
    raise ValueError("no such day")  # unreachable: every month has 28


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word.lower()]
