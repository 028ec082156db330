"""The months and days that a query names, in English: `in May`, `May 2023`, `8th of May, 2023`, `2023-05-08`.

`may`, `march` and short forms such as `Dec` are words and names too: they count only beside a day or a year, or after
a word that a month follows (`in`, `since`, `mid-`), `March` and `May` with their capital also after `or`, `and`, `to`.
Knows neither entries nor the time now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class NamedDate(NamedTuple):
    """A month, with its day if that is named. Without a year it is of any year."""

    month: int
    day: int | None
    year: int | None


_NAMES = "january february march april may june july august september october november december".split()  # noqa: SIM905
_MONTHS = {name: number for number, name in enumerate(_NAMES, start=1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_UNSURE = "|".join(sorted({"march", "may", *(name for name in _MONTHS if len(name) < 5)} - {"june", "july"}))
_SURE = "|".join(name for name in _NAMES if name not in ("march", "may"))
_YEAR = r"(?:19|20)\d\d"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_BEFORE_A_MONTH = "in by of mid late last next this from since until after early before during"
_LEADS = "|".join(rf"(?<=\b{word}[\s-])" for word in _BEFORE_A_MONTH.split())
_BETWEEN_MONTHS = "|".join(rf"(?<=\b{word}\s)" for word in ("or", "and", "to"))
_DATE = re.compile(
    rf"""\b(?:
        (?P<iso_year>{_YEAR})-(?P<iso_month>0[1-9]|1[0-2])(?:-(?P<iso_day>0[1-9]|[12]\d|3[01]))?
      | (?P<day>{_DAY})(?:st|nd|rd|th)?(?:\sof)?\s(?P<month>{_SURE}|{_UNSURE})\b\.?(?:,?\s?(?P<year>{_YEAR}))?
      | (?P<month_>{_SURE}|{_UNSURE})\.?\s(?:
            (?P<day_>{_DAY})(?:st|nd|rd|th)?\b(?:,?\s?(?P<year_>{_YEAR}))?
          | (?:of\s)?(?P<year__>{_YEAR}))
      | (?P<sure>{_SURE})
      | (?:{_LEADS})(?P<unsure>{_UNSURE})
      | (?:{_BETWEEN_MONTHS})(?P<other>(?-i:March|May))
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_ANY_YEAR = re.compile(rf"\b{_YEAR}\b")
_ISO = re.compile(rf"\b{_YEAR}-\d\d\b")


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
    """What the match has for a part under any of its names; empty when nothing."""
    names = {
        "month": ("iso_month", "month", "month_", "sure", "unsure", "other"),
        "day": ("iso_day", "day", "day_"),
        "year": ("iso_year", "year", "year_", "year__"),
    }
    return next((found for name in names[part] if (found := match[name])), "")
