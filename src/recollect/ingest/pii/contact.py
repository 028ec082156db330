"""How a person is reached or known to the state: e-mail addresses, telephone numbers, US social security numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.ingest.pii.finding import Finding
from recollect.ingest.pii.near import is_numbered, is_versioned

_AT = re.compile(r"(?<![\s@:,;])(?:@|%40)(?=\w)")
_LOCAL_BACKWARDS = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}")
_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(?:xn--[a-z0-9-]{2,59}|[^\W\d_]{2,24})(?![\w@])", re.I)
_NOT_TOP_LEVEL = frozenset(
    """
    png jpg jpeg gif svg webp ico pdf txt md py js ts css html json yaml yml tgz gz zip tar so dll exe whl jar log
    service timer socket target mount slice device local localdomain internal lan home localhost mean sum
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
"""What ends names of files, units of a system and machines at home."""
_OPENING = "'`!#$%&*+/=?^{|}~.-"
_VERSION_CONTROL = frozenset({"git", "hg", "svn"})


def emails(text: str) -> Iterator[Finding]:
    """Each `@` is looked at from both sides, so the time is linear in the text."""
    for at in _AT.finditer(text) if "@" in text or "%40" in text else ():
        domain = _DOMAIN.match(text, at.end())
        local = _LOCAL_BACKWARDS.match(text[max(0, at.start() - 64) : at.start()][::-1]) if domain else None
        if domain is None or local is None:
            continue
        if domain[0].rpartition(".")[2].lower() in _NOT_TOP_LEVEL:
            continue
        name = _name(local[0][::-1])
        start = at.start() - len(name)
        if name and not _is_remote(text, start, name, domain.end()):
            yield Finding(start=start, end=domain.end(), type="EMAIL", value=f"{name}@{domain[0]}".lower())


def _name(run: str) -> str:
    """The local part of a run of characters that may be in one: signs that more often belong around it left out."""
    for mark in ("=", "/", "|", "?", "{", "`", "'"):  # `user=ada@…`, `?u=ada@…`, `'ada@…'`; but o'brien
        if mark != "'" or run.startswith("'"):
            run = run.rpartition(mark)[2]
    return run.lstrip(_OPENING)


def _is_remote(text: str, start: int, name: str, end: int) -> bool:
    """`git@host:repo`, `scheme://user@host`: a login on a machine."""
    return text[max(0, start - 3) : start] == "://" or (name in _VERSION_CONTROL and text[end : end + 1] in (":", "/"))


# A class first and the look behind it second: so the engine skips to the few places where a number can begin.
_PLUS = re.compile(
    r"[+0](?<![\w+].)(?:(?<=\+)|(?<!\d[ .-].)0(?=[1-9]))\d{1,3}(?:[ .()/-]{0,2}\d){5,14}(?!\d)(?!-?[A-Za-z_])"
)
_AMERICAN = re.compile(
    r"[(2-9](?<![\w.+-].)(?:(?<=\()[2-9]\d\d\) ?|(?<!\()\d\d([ .-]))[2-9]\d\d(?(1)\1|[ .-])\d{4}(?![\w-]|\.\d)"
)
_FRENCH = re.compile(r"0(?<![\w.+-].)[1-9]([ .-])\d\d\1\d\d\1\d\d\1\d\d(?![\w-]|[ .]\d)")
_SPOKEN = re.compile(
    r"(?:\b(?:tel|tél|phone|telephone|telefon\w{0,12}|téléphone|teléfono|telefone|telefono|telefoon|puhelin|mobile|mobil|"
    r"móvil|portable|cell|cellulare|celular|handy\w{0,12}|fax|whatsapp|sms|rufnummer|call|ring|dial|text|"
    r"reach (?:me|us|him|her|them))\b|тел|телефон|電話\w{0,4}|电话|手机|טלפון|هاتف|☎)"
    r"(?: (?:me|us|him|her|number|nummer|no|nr|phone|on|at|is|the|to|mi|my|el|es|שלי)\b){0,4}[ .:#=()\"'-]{0,5}?"
    r"(?<![\w+-])(\(?\d(?:(?: / |[ .()/-]{0,2})\d){6,13})(?![\w-]|[.,]\d)",
    re.IGNORECASE,
)
"""A word for telephones, then a number."""
_PHONE_WORDS = (
    "tel", "tél", "phone", "puhelin", "mob", "móvil", "portable", "cel", "handy", "fax", "whatsapp", "sms", "rufnummer",
    "call", "ring", "dial", "text", "reach", "тел", "電話", "电话", "手机", "טלפון", "هاتف", "☎",
)  # fmt: skip
"""Without one of these there is none of them: looked for first, because it takes a tenth of the time."""
_DIGIT = re.compile(r"\d")
_COUNTRY = re.compile(
    r"1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|2[1-689]\d|3[578]\d|42\d|50\d|59\d|6[789]\d|8[0578]\d|"
    r"9[679]\d"
)
_LENGTHS = {"1": (11, 11), "7": (11, 11), "33": (11, 11), "86": (11, 13), "91": (12, 12), "44": (11, 13)}
_THOUSANDS = re.compile(r"\+\d{1,3}(?:\.\d{3})+$")


def phones(text: str) -> Iterator[Finding]:
    """International numbers by their form; national ones by a form that nothing else has, or by the word before."""
    for found in _PLUS.finditer(text):
        digits = "".join(_DIGIT.findall(found[0])).removeprefix("00" if found[0].startswith("00") else "")
        if _is_international(digits, found[0]) and not is_numbered(text, found.start()):
            yield _phone(found, "+" + digits)
    for form in (_AMERICAN, _FRENCH):
        for found in form.finditer(text):
            if not is_numbered(text, found.start()) and not is_versioned(text, found.start()):
                yield _phone(found, "".join(_DIGIT.findall(found[0])))
    lower = text.lower()
    for found in _SPOKEN.finditer(text) if any(word in lower for word in _PHONE_WORDS) else ():
        digits = "".join(_DIGIT.findall(found[1]))
        if _is_national(digits, found[1]) and not ("." in found[1] and is_versioned(text, found.start(1))):
            yield Finding(start=found.start(1), end=found.end(1), type="PHONE", value=digits)


def _phone(found: re.Match[str], value: str) -> Finding:
    return Finding(start=found.start(), end=found.end(), type="PHONE", value=value)


def _is_international(digits: str, written: str) -> bool:
    code = _COUNTRY.match(digits)
    if code is None or _THOUSANDS.match(written):
        return False
    least, most = _LENGTHS.get(code[0], (8, 15))
    return least <= len(digits) <= most and not (code[0] == "1" and digits[1] in "01")


def _is_national(digits: str, written: str) -> bool:
    """After a word for telephones: a trunk zero or brackets, groups that are no thousands, or nine digits and more."""
    if written[0] in "0(" or "-" in written:
        return True
    groups = re.split(r"[ .]", written)
    if len(groups) > 1:
        return not all(len(group) == 3 for group in groups[1:]) or len(digits) >= 9
    return len(digits) >= 9


_SSN = re.compile(r"[0-8](?<![\w-].)(?!(?<=0)00|(?<=6)66)\d\d-(?!00)\d\d-(?!0000)\d{4}(?![\w-])")
_SPOKEN_SSN = re.compile(
    r"(?:\bssn?#?|\bsocial(?: security)?)[ .:#=\"']{0,4}(?:(?:no|number|num|is)\b[ .:#=\"']{0,4}){0,3}"
    r"((?!000|666|9)\d{3}[ -]?(?!00)\d\d[ -]?(?!0000)\d{4})(?![\w-])",
    re.IGNORECASE,
)
"""The words, then a number in any spacing."""


def social_security(text: str) -> Iterator[Finding]:
    for found in _SSN.finditer(text):
        if not is_numbered(text, found.start()):
            yield Finding(start=found.start(), end=found.end(), type="SSN", value=found[0].replace("-", ""))
    lower = text.lower()
    for found in _SPOKEN_SSN.finditer(text) if "ss" in lower or "social" in lower else ():
        yield Finding(start=found.start(1), end=found.end(1), type="SSN", value="".join(_DIGIT.findall(found[1])))
