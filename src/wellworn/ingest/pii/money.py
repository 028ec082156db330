"""Where money is: payment cards by brand and check digit, account numbers by country, length and checksum."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wellworn.ingest.pii.checks import iban_checks, luhn
from wellworn.ingest.pii.finding import Finding
from wellworn.ingest.pii.near import is_numbered

_CARD = re.compile(
    r"[2-6](?<![\w.].)(?:\d{12,18}|\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{3}([ -])\d{6}\2\d{4,5})"
    r"(?!\w|-\d|\.\d)"
)
_BRANDS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|"
    r"(?:6011|65\d\d|64[4-9]\d)\d{12}|3(?:6\d|8\d|0[0-5])\d{11}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|220[0-4]\d{12}"
)
"""Visa, Mastercard, American Express, Discover, Diners, JCB, UnionPay, Mir: first digits and length."""


def cards(text: str) -> Iterator[Finding]:
    last = -1  # where the number before ends: one right after it has no words before it
    for found in _CARD.finditer(text):
        start, end = found.span()
        digits = found[0].replace(" ", "").replace("-", "")
        if _BRANDS.fullmatch(digits) and luhn(digits) and (start - last == 1 or not is_numbered(text, start)):
            yield Finding(start, end, "CARD", digits)
        last = end


_IBAN = re.compile(r"[A-Za-z](?<![A-Za-z0-9].)[A-Za-z]\d\d")
"""How one begins: read no further, as the next may begin before this one would end."""
_LENGTHS = {
    country: int(length)
    for length, countries in {
        "15": "NO",
        "16": "BE",
        "18": "DK FI FO GL NL SD",
        "19": "MK SI",
        "20": "AT BA EE KZ LT LU MN XK",
        "21": "CH HR LI LV",
        "22": "BG BH CR DE GB GE IE ME RS VA",
        "23": "AE GI IL IQ OM SO TL",
        "24": "AD CZ DZ ES MD PK RO SA SE SK TN VG",
        "25": "LY PT ST",
        "26": "IS TR",
        "27": "BI DJ FR GR IT MC MR SM",
        "28": "AL AZ BY CY DO GT HU LB NI PL SV",
        "29": "BR EG PS QA UA",
        "30": "JO KW MU YE",
        "31": "MT SC",
        "32": "LC",
        "33": "RU",
    }.items()
    for country in countries.split()
}
_SIGNS = {length: re.compile(rf"(?:[ -]?[A-Za-z0-9]){{{length}}}") for length in {*_LENGTHS.values()}}


def accounts(text: str) -> Iterator[Finding]:
    for found in _IBAN.finditer(text):
        wanted = _LENGTHS.get(found[0][:2].upper())
        number = None if wanted is None else _SIGNS[wanted].match(text, found.start())
        if number is None or text[number.end() : number.end() + 1].isalnum():  # too short, or it goes on
            continue
        iban = number[0].replace(" ", "").replace("-", "").upper()
        if iban_checks(iban):
            yield Finding(number.start(), number.end(), "IBAN", iban)
