"""Numbers, days and times of day in one form each: `thirty-one` is 31, `May 3rd` and `3 May` are one day.

Reads tokens and gives tokens; a year is a token of its own, so a day with a year holds more than one without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wellworn.reflection.matching.tokens import Token


def _numbers(names: str, first: int = 0) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), start=first)}


_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_ALSO_WORDS = frozenset({"may", "march", "mar", "jan", "jun", "sep", "dec", "august"})
_DAYS = {
    short: name
    for name in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    for short in (name, name[:3], name[:4])
}
_ALSO_WORDS_DAYS = frozenset({"sun", "sat", "wed", "mon", "thur", "satu"})
_UNITS = _numbers(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = {
    name: 10 * number for name, number in _numbers("twenty thirty forty fifty sixty seventy eighty ninety", 2).items()
}
_CURRENCIES = frozenset("$€£¥")
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "dozen": 12}
_TIMES = {"noon": "12:00", "midday": "12:00", "midnight": "00:00"}
_SUFFIXES = {"k": 1000, "m": 1_000_000, "mn": 1_000_000, "bn": 1_000_000_000}


def quantified(found: Sequence[Token]) -> list[Token]:
    """The tokens with numbers, days and times in one form."""
    return _dated(_priced(_numbered(found)))


def _priced(found: Sequence[Token]) -> list[Token]:
    """The currency behind the amount, where words put it: `$40` as `40 dollars`."""
    made = [*found]
    for place in range(len(made) - 1):
        if made[place].raw in _CURRENCIES and made[place + 1].kind == "number":
            made[place], made[place + 1] = made[place + 1], made[place]
    return made


def _numbered(found: Sequence[Token]) -> list[Token]:
    made: list[Token] = []
    place = 0
    while place < len(found):
        token = found[place]
        if token.kind == "word":
            value, used = _spelled(found, place)
            if used:
                last = found[place + used - 1]
                token = replace(token, kind="number", raw=str(value), end=last.end)
            elif token.raw in _TIMES:
                token, used = replace(token, kind="clock", raw=_TIMES[token.raw]), 1
            place += max(used, 1)
        elif token.kind == "number":
            token, used = _suffixed(found, place)
            place += used
        else:
            place += 1
        made.append(token)
    return made


def _spelled(found: Sequence[Token], place: int) -> tuple[int, int]:
    """The number spelled out from here on, and how many tokens it takes; nothing when there is none."""
    total = used = 0
    first = found[place].raw
    if first == "one" and place + 1 < len(found) and found[place + 1].raw in ("of", "another"):
        return 0, 0
    if first in _TENS:
        total, used = _TENS[first], 1
        after = _UNITS.get(_raw(found, place + 1), 0)
        if 1 <= after <= 9:
            total, used = total + after, 2
    elif first in _UNITS:
        total, used = _UNITS[first], 1
    elif first in ("dozen",):
        total, used = 12, 1
    while used and _raw(found, place + used) in _SCALES and used < 6:
        total, used = total * _SCALES[_raw(found, place + used)], used + 1
    return total, used


def _raw(found: Sequence[Token], place: int) -> str:
    return found[place].raw if place < len(found) and found[place].kind == "word" else ""


def _suffixed(found: Sequence[Token], place: int) -> tuple[Token, int]:
    """`3rd` is 3, `20k` is 20000, `4 thousand` is 4000."""
    token, after = found[place], _raw(found, place + 1)
    close = bool(after) and found[place + 1].start == token.end
    if close and after in ("st", "nd", "rd", "th"):
        return replace(token, end=found[place + 1].end), 2
    scale = _SUFFIXES.get(after, 0) if close else _SCALES.get(after, 0)
    if scale and token.raw.lstrip("-").replace(".", "").isascii():
        value = float(token.raw) * scale if len(token.raw) < 16 and token.raw.count(".") < 2 else None
        if value is not None:
            return replace(token, raw=f"{value:.10g}" if value % 1 else str(int(value)), end=found[place + 1].end), 2
    return token, 1


def _dated(found: Sequence[Token]) -> list[Token]:
    made: list[Token] = []
    place = 0
    while place < len(found):
        tokens, used = _day_at(found, place)
        if not used:
            tokens, used = [_weekday(found[place])], 1
            if made and made[-1].raw in ("every", "each") and _is_weekday(tokens[0]):
                several = tokens[0].raw.removesuffix("s") + "s"
                tokens = [replace(tokens[0], raw=several, start=made.pop().start)]
        made += tokens
        place += used
    return made


def _day_at(found: Sequence[Token], place: int) -> tuple[list[Token], int]:
    """The day, month or ISO date that begins here, and how many tokens it takes."""
    token = found[place]
    if token.kind == "date":
        year, _, day = token.raw.partition("-")
        return [replace(token, raw=day), replace(token, kind="number", raw=year, start=token.end)], 1
    ahead = 1
    if token.kind == "number" and _is_day(token):
        if _raw(found, place + ahead) == "of":
            ahead += 1
        month = _month(found, place + ahead)
        if month:
            return _day(found, place, ahead + 1, month, token)
    month = _month(found, place)
    if not month:
        return [], 0
    if _raw(found, place + 1) == "the":
        ahead = 2
    after = found[place + ahead] if place + ahead < len(found) else None
    if after is not None and _is_day(after):
        return _day(found, place, ahead + 1, month, after)
    if token.raw in _ALSO_WORDS and not token.capital:
        return [], 0
    return [replace(token, kind="date", raw=f"{month:02}")], 1


def _day(found: Sequence[Token], place: int, used: int, month: int, day: Token) -> tuple[list[Token], int]:
    last = found[place + used - 1]
    made = replace(found[place], kind="date", raw=f"{month:02}-{int(day.raw):02}", end=last.end)
    if place + used + 1 < len(found) and found[place + used].raw == "," and _is_year(found[place + used + 1]):
        return [made, found[place + used + 1]], used + 2
    return [made], used


def _weekday(token: Token) -> Token:
    """A day of the week in one form; `Mondays` stays apart from `Monday`."""
    if token.kind != "word" or not token.raw:
        return token
    several = token.raw.endswith("s") and token.raw[:-1] in _DAYS and len(token.raw) > 5
    name = _DAYS.get(token.raw[:-1] if several else token.raw)
    if name is None or (token.raw in _ALSO_WORDS_DAYS and not token.capital):
        return token
    return replace(token, kind="date", raw=name + ("s" if several else ""))


def _is_weekday(token: Token) -> bool:
    return token.kind == "date" and token.raw.removesuffix("s") in _DAYS


def _month(found: Sequence[Token], place: int) -> int:
    return _MONTHS.get(_raw(found, place), 0)


def _is_day(token: Token) -> bool:
    return token.kind == "number" and token.raw.isdecimal() and len(token.raw) <= 2 and 1 <= int(token.raw) <= 31


def _is_year(token: Token) -> bool:
    return token.kind == "number" and len(token.raw) == 4 and token.raw.isascii() and token.raw.isdecimal()
