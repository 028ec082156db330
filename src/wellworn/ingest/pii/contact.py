"""How a person is reached or known to the state: e-mail addresses, telephone numbers, US social security numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wellworn.ingest.pii.finding import Finding
from wellworn.ingest.pii.near import is_numbered, is_versioned

_AT = re.compile(r"(?<![\s@:,;])(?:@|%40)(?=\w)")
_LOCAL_BACKWARDS = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}")
_DOMAIN_FORM = r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(xn--[a-z0-9-]{2,59}|[^\W\d_]{2,24})(?![\w@])"
_DOMAIN = re.compile(_DOMAIN_FORM, re.I)
_PLAIN = re.compile(rf"[A-Za-z0-9](?<![\w.!#$%&'*+/=?^`{{|}}~-].)([\w.+-]{{0,63}}+)@(?i:{_DOMAIN_FORM})")
"""Nearly all of them: nothing in the local part that may belong around it. Its first letter is before the group."""
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
    """Read forwards where every `@` is in a plain address; else each `@` is looked at from both sides. Either way the
    time is linear in the text."""
    ats = text.count("@")
    plain = [*_PLAIN.finditer(text)] if ats and "%40" not in text else []
    if ats and len(plain) == ats:
        return _read_forwards(text, plain)
    return _read_from_the_middle(text) if ats or "%40" in text else iter(())


def _read_forwards(text: str, found: list[re.Match[str]]) -> Iterator[Finding]:
    for one in found:
        start, end = one.span()
        if one[2].lower() not in _NOT_TOP_LEVEL and not _is_remote(text, start, text[start] + one[1], end):
            yield Finding(start, end, "EMAIL", one[0].lower())


def _read_from_the_middle(text: str) -> Iterator[Finding]:
    for at in _AT.finditer(text):
        place, after = at.span()
        domain = _DOMAIN.match(text, after)
        if domain is None or domain[1].lower() in _NOT_TOP_LEVEL:
            continue
        name = _name(text[max(0, place - 64) : place][::-1])
        if name and not _is_remote(text, place - len(name), name, domain.end()):
            yield Finding(place - len(name), domain.end(), "EMAIL", f"{name}@{domain[0]}".lower())


def _name(backwards: str) -> str:
    """The local part before an `@`, signs that more often belong around it left out; empty when there is none."""
    local = _LOCAL_BACKWARDS.match(backwards)
    run = local[0][::-1] if local else ""
    for mark in ("=", "/", "|", "?", "{", "`", "'"):  # `user=ada@…`, `?u=ada@…`, `'ada@…'`; but o'brien
        if mark != "'" or run.startswith("'"):
            run = run.rpartition(mark)[2]
    return run.lstrip(_OPENING)


def _is_remote(text: str, start: int, name: str, end: int) -> bool:
    """`git@host:repo`, `scheme://user@host`: a login on a machine."""
    return text.startswith("://", start - 3 if start > 3 else 0) or (
        name in _VERSION_CONTROL and text[end : end + 1] in (":", "/")
    )


# A class first and the look behind it second: so the engine skips to the few places where a number can begin.
_PLUS = re.compile(
    r"[+0](?<![\w+].)(?:(?<=\+)|(?<!\d[ .-].)0(?=[1-9]))\d{1,3}(?:[ .()/-]{0,2}\d){5,14}(?!\d)(?!-?[A-Za-z_])"
)
_AMERICAN = re.compile(
    r"[(2-9](?<![\w.+-].)(?:(?<=\()[2-9]\d\d\) ?|(?<!\()\d\d([ .-]))[2-9]\d\d(?(1)\1|[ .-])\d{4}(?![\w-]|\.\d)"
)
_FRENCH = re.compile(r"0(?<![\w.+-].)[1-9]([ .-])\d\d\1\d\d\1\d\d\1\d\d(?![\w-]|[ .]\d)")
_SPOKEN = re.compile(
    r"[tTpPmMcChHfFwWsSſrRdDтТ電电手טه☎](?:(?<=[тТ電电手טه☎])|(?<!\w.))(?i:(?:(?<=t)(?:el|él|elephone|elefon\w{0,12}|"
    r"éléphone|eléfono|elefone|elefono|elefoon|ext)|(?<=p)(?:hone|uhelin|ortable)|(?<=m)(?:obile|obil|óvil)|"
    r"(?<=c)(?:ell|ellulare|elular|all)|(?<=h)andy\w{0,12}|(?<=f)ax|(?<=w)hatsapp|(?<=s)ms|(?<=d)ial|"
    r"(?<=r)(?:ufnummer|ing|each (?:me|us|him|her|them)))\b|(?<=т)(?:ел|елефон)|(?<=電)話\w{0,4}|(?<=电)话|(?<=手)机|"
    r"(?<=ט)לפון|(?<=ه)اتف|(?<=☎))"
    r"(?i:(?: (?:me|us|him|her|number|nummer|no|nr|phone|on|at|is|the|to|mi|my|el|es|שלי)\b){0,4}[ .:#=()\"'-]{0,5}?"
    r"(?<![\w+-])(\(?\d(?:(?: / |[ .()/-]{0,2})\d){6,13})(?![\w-]|[.,]\d))"
)
"""A word for telephones, then a number."""
_PHONE_WORDS = (
    "tel",
    "tél",
    "phone",
    "puhelin",
    "mob",
    "móvil",
    "portable",
    "cel",
    "handy",
    "fax",
    "whatsapp",
    "sms",
    "rufnummer",
    "call",
    "ring",
    "dial",
    "text",
    "reach",
    "тел",
    "電話",
    "电话",
    "手机",
    "טלפון",
    "هاتف",
    "☎",
)
"""Without one of these there is none of them: looked for first, because it takes a tenth of the time."""
_INTERNATIONAL = re.compile(
    r"1[2-9]\d{9}|7\d{10}|33\d{9}|91\d{10}|(?:44|86)\d{9,11}|"
    r"(?:2[07]|3[0-2469]|4[0135-9]|5[1-8]|6[0-6]|8[124]|9[02-58])\d{6,13}|"
    r"(?:2[1-689]|3[578]|42|5[09]|6[789]|8[0578]|9[679])\d{6,13}"
)
"""A country's code, and as many digits as its numbers have: known of some, eight to fifteen in all of the others."""
_THOUSANDS = re.compile(r"\+\d{1,3}(?:\.\d{3})+$")


def phones(text: str) -> Iterator[Finding]:
    """International numbers by their form; national ones by a form that nothing else has, or by the word before."""
    last = -1  # where the number before ends: one right after it has no words before it
    for found in _PLUS.finditer(text):
        start, end = found.span()
        written = found[0]
        digits = _digits(written[2:] if written.startswith("00") else written)
        if _INTERNATIONAL.fullmatch(digits) and not ("." in written and _THOUSANDS.match(written)):
            if start - last == 1 or not is_numbered(text, start):
                yield Finding(start, end, "PHONE", "+" + digits)
            last = end
    for form in (_AMERICAN, _FRENCH):
        last = -1
        for found in form.finditer(text):
            start, end = found.span()
            if start - last == 1 or not (is_numbered(text, start) or is_versioned(text, start)):
                yield Finding(start, end, "PHONE", _digits(found[0]))
            last = end
    lower = text.lower()
    for found in _SPOKEN.finditer(text) if any(word in lower for word in _PHONE_WORDS) else ():
        digits = _digits(found[1])
        if _is_national(digits, found[1]) and not ("." in found[1] and is_versioned(text, found.start(1))):
            yield Finding(found.start(1), found.end(1), "PHONE", digits)


def _digits(written: str) -> str:
    """The digits of a number, and nothing of what it is written with: all of it is ASCII by now, see `reading`."""
    return written.encode("ascii").translate(None, b" .()/+-").decode("ascii")


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
    last = -1
    for found in _SSN.finditer(text):
        start, end = found.span()
        if start - last == 1 or not is_numbered(text, start):
            yield Finding(start, end, "SSN", found[0].replace("-", ""))
        last = end
    lower = text.lower()
    for found in _SPOKEN_SSN.finditer(text) if "ss" in lower or "social" in lower else ():
        yield Finding(found.start(1), found.end(1), "SSN", _digits(found[1]))
