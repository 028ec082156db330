"""Everything personal or secret in a text, and which finding stays where two overlap.

Detectors read a plain form of the text: digits of other alphabets, wide letters and dashes as in ASCII, accents
composed, no invisible signs. Findings are spans of the text itself. The patterns are data (`person_forms.txt`, `strict_forms.txt`); half of
the judgement is in the words before a number: an order number is not a telephone number. Takes time in proportion to
the text, whatever the text.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import string
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from wellworn.core.lazy import regex
from wellworn.ingest.pii.secrets import (
    Finding,
    api_keys,
    named_secrets,
    names_secrets,
    patterns,
    private_keys,
    url_secrets,
    web_tokens,
)

PLACEHOLDER = regex(r"\[(?!(?:AKIA|ASIA|ABIA|ACCA)[A-Z]{16}\])[A-Z][A-Z_]{0,40}(?:_\d{1,12})?\]")
"""A type in brackets; not the one kind of key that may have nothing but capitals."""
_HINT = regex(
    r"\d|(?<![\s\[\]])@[\w\[]|:[0-9A-Fa-f]{0,4}:|[?&;][\w.-]{1,64}=[^\s\[\]]{4}|[\w-]{16}|-----|eyJ|"
    r"[Bb](?:earer|asic)\s"
)
"""Nothing is found in a text without one of these outside of placeholders, and most texts have none."""
_MARK = ""
"""The type of what is a placeholder already: before all others, and nothing to mask."""
_TYPES = "PRIVATE_KEY JWT API_KEY URL_SECRET SECRET EMAIL IBAN CARD SSN IP PHONE".split()  # noqa: SIM905
SECRETS = frozenset(_TYPES[:5])
_RANK = {type_: rank for rank, type_ in enumerate((_MARK, *_TYPES))}
"""The surest first: where two findings overlap, the earlier type stays; types of the stricter level come last."""
_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_HIDDEN = regex(f"[{_INVISIBLE}]")
_SIGN = regex(f"[^{_INVISIBLE}][\u0300-\u036f\u0653-\u0655\u1160-\u11ff\u3099\u309a]*")
"""One that can be seen, with the marks and parts that may be composed with it."""
_CJK = regex("[\u3040-\ud7af]")
_CJK_BESIDE_ASCII = regex(f"(?<={_CJK.pattern})(?=[!-~])|(?<=[!-~])(?={_CJK.pattern})")
"""Between these signs and a number stands no space: `\\w` takes them for a part of it."""
_FORMS = dict(patterns("person_forms.txt"))
REACH = 28
"""How many characters before a number are read."""


def find(text: str, *, strict: bool = False) -> list[Finding]:
    """What is in a text, in its order, without overlaps."""
    plain, places = _plain(text)
    found = _detected(plain, strict=strict)
    if not plain.isascii() and _CJK.search(plain):
        found += _beside_ascii(plain, strict=strict)
    if places is not None:
        found = [Finding(places[start][0], places[end - 1][1], *rest) for start, end, *rest in found]
    if found and "[" in text:
        found += [Finding(mark.start(), mark.end(), _MARK, "") for mark in PLACEHOLDER.finditer(text)]
    return _apart(found, len(text)) if found else []


def _beside_ascii(plain: str, *, strict: bool) -> list[Finding]:
    """What is found when a comma stands between such signs and ASCII."""
    spans = [*pairwise([0, *(cut.start() for cut in _CJK_BESIDE_ASCII.finditer(plain)), len(plain)])]
    places = [place for start, end in spans for place in (*range(start, end), end - 1)]
    found = _detected("、".join(plain[start:end] for start, end in spans), strict=strict)
    return [Finding(places[start], places[end - 1] + 1, *rest) for start, end, *rest in found]


def _detected(plain: str, *, strict: bool) -> list[Finding]:
    found: list[Finding] = []
    if _HINT.search(PLACEHOLDER.sub("[]", plain) if "[" in plain else plain) or names_secrets(plain):
        detectors = (private_keys, web_tokens, api_keys, url_secrets, named_secrets, _emails, _accounts, _v6, _numbers)
        found = [finding for detector in detectors for finding in detector(plain)]
    return [*found, *_strict(plain)] if strict else found


def _apart(found: list[Finding], length: int) -> list[Finding]:
    """The surest first, then the longest; whatever overlaps one that stays, or a placeholder, goes. Places are marked
    off, so the time is linear however many there are."""
    taken, kept = bytearray(length), []
    for one in sorted(found, key=lambda one: (_RANK.get(one.type, len(_RANK)), one.start - one.end, one.start)):
        if taken.find(1, one.start, one.end) < 0:
            taken[one.start : one.end] = b"\x01" * (one.end - one.start)
            kept.append(one)
    return sorted(one for one in kept if one.type != _MARK)


def _plain(text: str) -> tuple[str, Sequence[tuple[int, int]] | None]:
    """The plain form, and for each of its characters its span in the text; None when the places are the same."""
    if text.isascii():
        return text, None
    if unicodedata.is_normalized("NFC", text) and not _HIDDEN.search(text):
        return text.translate(_table()), None
    signs = [(unicodedata.normalize("NFC", sign[0]), sign.span()) for sign in _SIGN.finditer(text)]
    places = [span for composed, span in signs for _ in composed]
    return "".join(composed for composed, _ in signs).translate(_table()), places


@functools.cache
def _table() -> dict[int, int]:
    wide = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    spaces = dict.fromkeys([0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], ord(" "))
    dashes = dict.fromkeys([*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63], ord("-"))
    values = ((code, unicodedata.decimal(chr(code), None)) for code in range(0x660, 0x1FBFA))  # to the last digits
    digits = {code: ord("0") + value for code, value in values if value is not None}
    return {**wide, **spaces, **dashes, **digits}


# -- numbers: cards, social security, IP version 4 and telephones ------------------------------------------------------


def _told_before(form: str, text: str, place: int) -> bool:
    """Whether the words before a number say what it is."""
    return _FORMS[form].search(text[max(0, place - REACH) : place].lower()) is not None


_is_numbered = functools.partial(_told_before, "numbered")
"""An order, a ticket, an ISBN: a number that somebody gave to a thing."""
_is_versioned = functools.partial(_told_before, "versioned")
"""A version, or a place in a document."""


def _is_released(text: str, place: int) -> bool:
    """A version by the words around it, or small numbers after the name of a product; unless machines are named."""
    before, after = text[max(0, place - REACH) : place].lower(), text[place : place + REACH].lower()
    if text[place : place + 3].isdigit() or text.startswith("10.", place):
        return False
    if _FORMS["released"].search(before + after):
        return not _FORMS["addressed"].search(before)
    small, product = _FORMS["small"].match(after), _FORMS["product"].search(before)
    if small is None or (product is not None and _FORMS["machines"].fullmatch(product[1])):
        return False
    return product is not None or (small[0].endswith(".0.0") and after[small.end() : small.end() + 1] != "/")


def _digits(written: str) -> str:
    """The digits of a number, which is ASCII in plain form."""
    return written.encode("ascii").translate(None, b" .()/+-").decode("ascii")


def _card(written: str) -> str:
    digits = _digits(written)
    return digits if _FORMS["brands"].fullmatch(digits) and luhn(digits) else ""


def _v4(written: str) -> str:
    """Loopback, "any" and net masks are the same for everybody and stay."""
    first = int(written.partition(".")[0])
    return "" if first in (0, 127) or first >= 255 else written


def _international(written: str) -> str:
    digits = _digits(written[2:] if written.startswith("00") else written)
    known = _FORMS["international"].fullmatch(digits) and not _FORMS["thousands"].match(written)
    return f"+{digits}" if known else ""


def _national(written: str) -> str:
    """After a word for telephones: a trunk zero or brackets, groups that are no thousands, or nine digits and more."""
    digits = _digits(written)
    if written[0] != "0" and written.count(".") == 3:  # "WhatsApp 2.23.25.83"
        return ""
    odd_groups = any(len(group) != 3 for group in re.split(r"[ .]", written)[1:])
    return digits if written[0] in "0(" or "-" in written or odd_groups or len(digits) >= 9 else ""


class _Number(NamedTuple):
    """A form of numbers: which words before it say that it is something else, and its one way to be written."""

    type: str
    form: str
    refused: tuple[Callable[[str, int], bool], ...]
    value: Callable[[str], str]
    """Empty when it is none."""


_NUMBERS = (
    _Number("CARD", "card", (_is_numbered,), _card),
    _Number("SSN", "ssn", (_is_numbered,), _digits),
    _Number("SSN", "ssn_spoken", (), _digits),
    _Number("IP", "v4", (_is_versioned, _is_released), _v4),
    _Number("PHONE", "plus", (_is_numbered,), _international),
    _Number("PHONE", "american", (_is_numbered, _is_versioned), _digits),
    _Number("PHONE", "french", (_is_numbered, _is_versioned), _digits),
    _Number("PHONE", "bracketed", (_is_numbered, _is_versioned), _digits),
    _Number("PHONE", "telephone", (), _national),
)


def _numbers(text: str) -> Iterator[Finding]:
    for type_, form, refused, value in _NUMBERS:
        last = -1
        for found in _FORMS[form].finditer(text):
            start, end = found.span("v" if "v" in found.re.groupindex else 0)
            # One right behind another has no words before it.
            known = start - last == 1 or not any(says(text, start) for says in refused)
            if known and (written := value(text[start:end])):
                yield Finding(start, end, type_, written)
            last = end


def luhn(digits: str) -> bool:
    """Whether the last digit checks the others: every second one from the right doubled, digit sums added, mod 10."""
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


# -- bank accounts by country, length and checksum; IP version 6 -------------------------------------------------------

_IBAN_COUNTRIES = """
15 NO · 16 BE · 18 DK FI FO GL NL SD · 19 MK SI · 20 AT BA EE KZ LT LU MN XK · 21 CH HR LI LV
22 BG BH CR DE GB GE IE ME RS VA · 23 AE GI IL IQ OM SO TL · 24 AD CZ DZ ES MD PK RO SA SE SK TN VG · 25 LY PT ST
26 IS TR · 27 BI DJ FR GR IT MC MR SM · 28 AL AZ BY CY DO GT HU LB NI PL SV · 29 BR EG PS QA UA
30 JO KW MU YE · 31 MT SC · 32 LC · 33 RU
"""
_IBAN_FORMS = {
    country: regex(rf"(?:[ -]?[A-Za-z0-9]){{{length}}}")
    for length, *countries in (part.split() for part in re.split(r"·|\n", _IBAN_COUNTRIES) if part.strip())
    for country in countries
}
_ALNUM = {char: str(value) for value, char in enumerate(string.digits + string.ascii_uppercase)}


def _accounts(text: str) -> Iterator[Finding]:
    for found in _FORMS["iban"].finditer(text):
        form = _IBAN_FORMS.get(found[0][:2].upper())
        number = None if form is None else form.match(text, found.start())
        if number is None or text[number.end() : number.end() + 1].isalnum():  # too short, or it goes on
            continue
        iban = number[0].replace(" ", "").replace("-", "").upper()
        if iban_checks(iban):
            yield Finding(number.start(), number.end(), "IBAN", iban)


def iban_checks(iban: str) -> bool:
    """ISO 7064 mod 97-10: country and check digits moved to the end, letters as 10 … 35, the remainder is 1."""
    try:
        return int("".join([_ALNUM[char] for char in iban[4:] + iban[:4]])) % 97 == 1
    except KeyError:
        return False


def _v6(text: str) -> Iterator[Finding]:
    for found in _FORMS["v6"].finditer(text) if "::" in text or text.count(":") >= 7 else ():
        for written in dict.fromkeys((found[0], found[0].rstrip(":"))):  # a colon after it, or two at its end
            try:
                value = str(ipaddress.IPv6Address(written))
            except ValueError:
                continue
            if _FORMS["usual_v6"].match(written):
                yield Finding(found.start(), found.start() + len(written), "IP", value)
                break


# -- e-mail addresses: each `@` is looked at from both sides -----------------------------------------------------------

_NOT_TOP_LEVEL = frozenset(
    """
    png jpg jpeg gif svg webp ico pdf txt md py js ts css html json yaml yml tgz gz zip tar so dll exe whl jar log
    service timer socket target mount slice device local localdomain internal lan home localhost mean sum
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
"""What ends names of files, units of a system and machines at home."""
_OPENING = "'`!#$%&*+/=?^{|}~.-"


def _emails(text: str) -> Iterator[Finding]:
    for at in _FORMS["at"].finditer(text) if "@" in text or "%40" in text else ():
        place, after = at.span()
        domain = _FORMS["domain"].match(text, after)
        if domain is None or domain[1].lower() in _NOT_TOP_LEVEL:
            continue
        name = _local_part(text[max(0, place - 64) : place][::-1])
        start, end = place - len(name), domain.end()
        # `git@host:repo`, `scheme://user@host`: a login on a machine
        login = text[max(0, start - 3) : start] == "://" or (
            name in ("git", "hg", "svn") and text[end : end + 1] in ":/"
        )
        if name and not login:
            yield Finding(start, end, "EMAIL", f"{name}@{domain[0]}".lower())


def _local_part(backwards: str) -> str:
    """What stands before an `@`, without signs that more often belong around it; empty when there is nothing."""
    local = _FORMS["local_backwards"].match(backwards)
    run = local[0][::-1] if local else ""
    for mark in ("=", "/", "|", "?", "{", "`", "'"):  # `user=ada@…`, `?u=ada@…`, `'ada@…'`; but o'brien
        if mark != "'" or run.startswith("'"):
            run = run.rpartition(mark)[2]
    return run.lstrip(_OPENING)


# -- the stricter level: names, addresses, dates of birth, documents, plates, devices and wallets ----------------------

_NO_NAMES = ("The", "This", "That", "There", "Then", "When", "What", "Sir", "Madam", "All", "Team", "Both", "Customer")


@functools.cache
def _strict_forms() -> tuple[list[tuple[str, re.Pattern[str]]], frozenset[str]]:
    """Types with their patterns, and the given names."""
    names = Path(__file__).with_name("given_names.txt").read_text("utf-8").split()
    return patterns("strict_forms.txt"), frozenset(names)


def _strict(text: str) -> Iterator[Finding]:
    """Most of these have no form of their own, so words beside them decide: "born", "passport", "Dr.", a given name."""
    forms, names = _strict_forms()
    for type_, form in forms:
        for found in form.finditer(text):
            span = found.span("v" if "v" in form.groupindex else 0)
            first = found["given"] if "given" in form.groupindex else None
            written = text[slice(*span)].rstrip(" .,'’-")
            if (first is None or first in names) and written.partition(" ")[0] not in _NO_NAMES:
                yield Finding(span[0], span[0] + len(written), type_, " ".join(written.casefold().split()))
