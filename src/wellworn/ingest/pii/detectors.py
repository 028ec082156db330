"""The rules that find personal data and secrets, one detector for each type, in one table at the end.

A detector reads a text in plain form (see `find`) and yields what it finds. Each takes time in proportion to the text,
whatever the text. Half of the judgement is in the words before a number: an order number is not a telephone number.
"""

from __future__ import annotations

import ipaddress
import re
import string
from collections.abc import Callable, Iterator

from wellworn.ingest.pii.named import named_secrets, url_secrets
from wellworn.ingest.pii.secrets import Finding, api_keys, private_keys, web_tokens

Finder = Callable[[str], Iterator[Finding]]


def _words(words: str) -> str:
    """A pattern of alternatives, each read backwards."""
    return "|".join(word[::-1].replace("_", " ") for word in words.split())


# -- words before a number, read backwards from it, so that most texts say no with their first character ---------------

REACH = 28
"""How many characters before a number are read."""
_THINGS = _words(
    """order orders invoice ticket case part sku serial ref reference rma tracking lot item isbn issn ean upc gtin
    barcode imei doi zip plz vin catalogue catalog po purchase_order commande pedido factura patent rfc"""
)
_COMPOUNDS = _words("bestell rechnung auftrag")  # German goes on: Bestellnummer, Rechnungsnr.
_NUMBER = _words("no nr number num id code")
_VERSIONS = _words(
    """v ver version release revision rev build firmware chapter section sec table figure fig step clause oid kapitel
    abschnitt whatsapp"""
)
_NUMBERED = re.compile(
    rf"\n?[ .:#=-]*+(?=[\d_]*+[^\W\d_])(?:(?:{_NUMBER})?[ .:#=-]*+"
    rf"(?:{_THINGS})\b|(?:{_NUMBER})?[ .:#=-]*+\w*(?:{_COMPOUNDS})\b)"
)
_VERSIONED = re.compile(rf"\n?[ .:]*+(?:(?:{_VERSIONS})\b|§|/[a-z]|=[=<>~^])")
_RELEASED = re.compile(
    r"\b(?:v?ersions?|releases?d?|upgrad\w+|updat\w+|downgrad\w+|bump\w*|patch\w*|tag\w*|changelog|sdk|app|driver)\b"
)
_PRODUCT = re.compile(r"(?:^|[\s(\"'`])([a-z][a-z+#]{2,})[ -]$")
_SMALL = re.compile(r"(?!10\.)(?:[0-3]?\d\.){3}[0-3]?\d(?!\d)")
_MACHINES = re.compile(
    r"\b(?:ips?|ipv4|hosts?|hostname|(?:name|web)?servers?|address(?:es)?|addr|ping|ssh|dns|resolver|login|clients?|peers?|node|"
    r"gateway|router|port|proxy|route|via|from|has|have|and|with|the|for|allow|deny|block|trace\w*|dig|nslookup|printer|\w+ed|\w+ing)\b|[@/]"
)


def _is_numbered(text: str, place: int) -> bool:
    """An order, a ticket, an ISBN: a number that somebody gave to a thing."""
    return _NUMBERED.match(text[max(0, place - REACH) : place].lower()[::-1]) is not None


def _is_versioned(text: str, place: int) -> bool:
    """A version, or a place in a document."""
    return _VERSIONED.match(text[max(0, place - REACH) : place].lower()[::-1]) is not None


def _is_released(text: str, place: int) -> bool:
    """A version by the words around it, or small numbers after the name of a product; unless machines are named."""
    before, after = text[max(0, place - REACH) : place].lower(), text[place : place + REACH].lower()
    if text[place : place + 3].isdigit() or text.startswith("10.", place):
        return False
    if _RELEASED.search(before + after):
        return not re.search(
            r"\b(?:ip|hosts?|servers?|address|ping|ssh|dns|login|clients?|peer|gateway|port|proxy)\b|[@/]", before
        )
    small, product = _SMALL.match(after), _PRODUCT.search(before)
    if small is None or (product is not None and _MACHINES.fullmatch(product[1])):
        return False
    return product is not None or (small[0].endswith(".0.0") and after[small.end() : small.end() + 1] != "/")


def _not_after(form: re.Pattern[str], text: str, *refused: Callable[[str, int], bool]) -> Iterator[re.Match[str]]:
    """Matches without such words before them; one right behind another has no words before it."""
    last = -1
    for found in form.finditer(text):
        if found.start() - last == 1 or not any(says(text, found.start()) for says in refused):
            yield found
        last = found.end()


def _digits(written: str) -> str:
    """The digits of a number, which is ASCII in plain form."""
    return written.encode("ascii").translate(None, b" .()/+-").decode("ascii")


# -- e-mail addresses: each `@` is looked at from both sides -----------------------------------------------------------

_AT = re.compile(r"(?<![\s@:,;])(?:@|%40)(?=\w)")
_LOCAL_BACKWARDS = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}")
_DOMAIN = re.compile(
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(xn--[a-z0-9-]{2,59}|[^\W\d_]{2,24})(?![\w@])", re.IGNORECASE
)
_NOT_TOP_LEVEL = frozenset(
    """
    png jpg jpeg gif svg webp ico pdf txt md py js ts css html json yaml yml tgz gz zip tar so dll exe whl jar log
    service timer socket target mount slice device local localdomain internal lan home localhost mean sum
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
"""What ends names of files, units of a system and machines at home."""
_OPENING = "'`!#$%&*+/=?^{|}~.-"


def emails(text: str) -> Iterator[Finding]:
    for at in _AT.finditer(text) if "@" in text or "%40" in text else ():
        place, after = at.span()
        domain = _DOMAIN.match(text, after)
        if domain is None or domain[1].lower() in _NOT_TOP_LEVEL:
            continue
        name = _local_part(text[max(0, place - 64) : place][::-1])
        if name and not _is_login(text, place - len(name), name, domain.end()):
            yield Finding(place - len(name), domain.end(), "EMAIL", f"{name}@{domain[0]}".lower())


def _local_part(backwards: str) -> str:
    """What stands before an `@`, without signs that more often belong around it; empty when there is nothing."""
    local = _LOCAL_BACKWARDS.match(backwards)
    run = local[0][::-1] if local else ""
    for mark in ("=", "/", "|", "?", "{", "`", "'"):  # `user=ada@…`, `?u=ada@…`, `'ada@…'`; but o'brien
        if mark != "'" or run.startswith("'"):
            run = run.rpartition(mark)[2]
    return run.lstrip(_OPENING)


def _is_login(text: str, start: int, name: str, end: int) -> bool:
    """`git@host:repo`, `scheme://user@host`: a login on a machine."""
    scheme = text.startswith("://", start - 3 if start > 3 else 0)
    return scheme or (name in ("git", "hg", "svn") and text[end : end + 1] in (":", "/"))


# -- payment cards by brand and check digit, bank accounts by country, length and checksum -----------------------------

_CARD = re.compile(
    r"[2-6](?<![\w.].)(?:\d{12,18}|\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{3}([ -])\d{6}\2\d{4,5})"
    r"(?!\w|-\d|\.\d)"
)
_BRANDS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|"
    r"(?:6011|65\d\d|64[4-9]\d)\d{12}|3(?:6\d|8\d|0[0-5])\d{11}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|220[0-4]\d{12}"
)
"""Visa, Mastercard, American Express, Discover, Diners, JCB, UnionPay, Mir: first digits and length."""
_IBAN = re.compile(r"[A-Za-z](?<![A-Za-z0-9].)[A-Za-z]\d\d")
"""How one begins: read no further, as the next may begin before this one would end."""
_IBAN_COUNTRIES = """
15 NO · 16 BE · 18 DK FI FO GL NL SD · 19 MK SI · 20 AT BA EE KZ LT LU MN XK · 21 CH HR LI LV
22 BG BH CR DE GB GE IE ME RS VA · 23 AE GI IL IQ OM SO TL · 24 AD CZ DZ ES MD PK RO SA SE SK TN VG · 25 LY PT ST
26 IS TR · 27 BI DJ FR GR IT MC MR SM · 28 AL AZ BY CY DO GT HU LB NI PL SV · 29 BR EG PS QA UA
30 JO KW MU YE · 31 MT SC · 32 LC · 33 RU
"""
_IBAN_FORMS = {
    country: re.compile(rf"(?:[ -]?[A-Za-z0-9]){{{length}}}")
    for length, *countries in (part.split() for line in _IBAN_COUNTRIES.split("\n") for part in line.split("·") if part)
    for country in countries
}
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")
_ALNUM = {char: str(value) for value, char in enumerate(string.digits + string.ascii_uppercase)}


def cards(text: str) -> Iterator[Finding]:
    for found in _not_after(_CARD, text, _is_numbered):
        digits = _digits(found[0])
        if _BRANDS.fullmatch(digits) and luhn(digits):
            yield Finding(found.start(), found.end(), "CARD", digits)


def accounts(text: str) -> Iterator[Finding]:
    for found in _IBAN.finditer(text):
        form = _IBAN_FORMS.get(found[0][:2].upper())
        number = None if form is None else form.match(text, found.start())
        if number is None or text[number.end() : number.end() + 1].isalnum():  # too short, or it goes on
            continue
        iban = number[0].replace(" ", "").replace("-", "").upper()
        if iban_checks(iban):
            yield Finding(number.start(), number.end(), "IBAN", iban)


def luhn(digits: str) -> bool:
    """Whether the last digit checks the others: every second one from the right doubled, digit sums added, mod 10."""
    signs = digits.encode("ascii")
    total = sum(signs[-1::-2]) + sum(signs[-2::-2].translate(_DOUBLED))
    return (total - ord("0") * len(signs)) % 10 == 0


def iban_checks(iban: str) -> bool:
    """ISO 7064 mod 97-10: country and check digits moved to the end, letters as 10 … 35, the remainder is 1."""
    try:
        return int("".join([_ALNUM[char] for char in iban[4:] + iban[:4]])) % 97 == 1
    except KeyError:
        return False


# -- US social security numbers ----------------------------------------------------------------------------------------

_SSN = re.compile(r"[0-8](?<![\w-].)(?!(?<=0)00|(?<=6)66)\d\d-(?!00)\d\d-(?!0000)\d{4}(?![\w-])")
_SPOKEN_SSN = re.compile(
    r"(?:\bssn?#?|\bsocial(?: security)?)[ .:#=\"']{0,4}(?:(?:no|number|num|is)\b[ .:#=\"']{0,4}){0,3}"
    r"((?!000|666|9)\d{3}[ -]?(?!00)\d\d[ -]?(?!0000)\d{4})(?![\w-])",
    re.IGNORECASE,
)
"""The words, then a number in any spacing."""


def social_security(text: str) -> Iterator[Finding]:
    for found in _not_after(_SSN, text, _is_numbered):
        yield Finding(found.start(), found.end(), "SSN", _digits(found[0]))
    lower = text.lower()
    for found in _SPOKEN_SSN.finditer(text) if "ss" in lower or "social" in lower else ():
        yield Finding(found.start(1), found.end(1), "SSN", _digits(found[1]))


# -- IP addresses; loopback, "any" and net masks are the same for everybody and stay ------------------------------------

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_V4 = re.compile(rf"\d(?<![\w.-].)(?<!\d:.)(?:(?<=[12])\d\d|(?<=[1-9])\d)?(?:\.{_OCTET}){{3}}(?![\w-]|\.\w)")
_V6 = re.compile(
    r"[0-9A-Fa-f:](?<![\w:.].)(?:(?<=:):|[0-9A-Fa-f]{0,3}:)[0-9A-Fa-f:]{0,37}(?:\d{1,3}(?:\.\d{1,3}){3})?"
    r"(?:%\w{1,16})?(?![\w:]|\.\d)"
)
_USUAL_V6 = re.compile(r"(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89a-f][0-9a-f]|ff[0-9a-f]{2}|64:ff9b|::ffff:\d)", re.I)
"""How addresses in use begin: global, private, link-local, multicast, mapped. `abc::def` is a name in a program."""
_EVERYBODY = ("127.", "0.", "255.", *(f"{above}." for above in range(256, 300)))
"""First numbers of loopback, "any" and net masks; and what is none."""


def addresses(text: str) -> Iterator[Finding]:
    for found in _not_after(_V4, text, _is_versioned, _is_released):
        if not found[0].startswith(_EVERYBODY):
            yield Finding(found.start(), found.end(), "IP", found[0])
    for found in _V6.finditer(text) if "::" in text or text.count(":") >= 7 else ():
        for written in dict.fromkeys((found[0], found[0].rstrip(":"))):  # a colon after it, or two at its end
            value = _v6(written)
            if value is not None:
                yield Finding(found.start(), found.start() + len(written), "IP", value)
                break


def _v6(written: str) -> str | None:
    """An address in one form, however it is written; None when it is none."""
    if not _USUAL_V6.match(written):
        return None
    try:
        return str(ipaddress.IPv6Address(written))
    except ValueError:
        return None


# -- telephone numbers: international ones by their form, national ones by a form of their own or the word before -------

# A class first and the look behind it second: so the engine skips to the few places where a number can begin.
_PLUS = re.compile(
    r"[+0](?<![\w+].)(?:(?<=\+)|(?<!\d[ .-].)0(?=[1-9]))\d{1,3}(?:[ .()/-]{0,2}\d){5,14}(?!\d)(?!-?[A-Za-z_])"
)
_AMERICAN = re.compile(
    r"[(2-9](?<![\w.+-].)(?:(?<=\()[2-9]\d\d\) ?|(?<!\()\d\d([ .-]))[2-9]\d\d(?(1)\1|[ .-])\d{4}(?![\w-]|\.\d)"
)
_BRACKETED = re.compile(r"\((?<!\w.)0\d{1,4}\)[ -]?\d{3,4}[ -]?\d{3,5}(?![\w-]|[ .]\d)")
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
_PHONE_WORDS = """
tel tél phone puhelin mob móvil portable cel handy fax whatsapp sms rufnummer call ring dial text reach
тел 電話 电话 手机 טלפון هاتف ☎
""".split()  # noqa: SIM905  a list of words reads better
"""Without one of these there is none of them: looked for first, because it takes a tenth of the time."""
_INTERNATIONAL = re.compile(
    r"1[2-9]\d{9}|7\d{10}|33\d{9}|91\d{10}|(?:44|86)\d{9,11}|"
    r"(?:2[07]|3[0-2469]|4[0135-9]|5[1-8]|6[0-6]|8[124]|9[02-58])\d{6,13}|"
    r"(?:2[1-689]|3[578]|42|5[09]|6[789]|8[0578]|9[679])\d{6,13}"
)
"""A country's code, and as many digits as its numbers have: known of some, eight to fifteen in all of the others."""
_THOUSANDS = re.compile(r"\+\d{1,3}(?:\.\d{3})+$")


def phones(text: str) -> Iterator[Finding]:
    for found in _not_after(_PLUS, text, _is_numbered):
        written = found[0]
        digits = _digits(written[2:] if written.startswith("00") else written)
        if _INTERNATIONAL.fullmatch(digits) and not ("." in written and _THOUSANDS.match(written)):
            yield Finding(found.start(), found.end(), "PHONE", "+" + digits)
    for form in (_AMERICAN, _FRENCH, _BRACKETED):
        for found in _not_after(form, text, _is_numbered, _is_versioned):
            yield Finding(found.start(), found.end(), "PHONE", _digits(found[0]))
    lower = text.lower()
    for found in _SPOKEN.finditer(text) if any(word in lower for word in _PHONE_WORDS) else ():
        digits = _digits(found[1])
        if _is_national(digits, found[1]) and not ("." in found[1] and _is_versioned(text, found.start(1))):
            yield Finding(found.start(1), found.end(1), "PHONE", digits)


def _is_national(digits: str, written: str) -> bool:
    """After a word for telephones: a trunk zero or brackets, groups that are no thousands, or nine digits and more."""
    groups = re.split(r"[ .]", written)
    odd_groups = any(len(group) != 3 for group in groups[1:])
    return written[0] in "0(" or "-" in written or odd_groups or len(digits) >= 9


DETECTORS: dict[str, Finder] = {
    "PRIVATE_KEY": private_keys,
    "JWT": web_tokens,
    "API_KEY": api_keys,
    "URL_SECRET": url_secrets,
    "SECRET": named_secrets,
    "EMAIL": emails,
    "IBAN": accounts,
    "CARD": cards,
    "SSN": social_security,
    "IP": addresses,
    "PHONE": phones,
}
"""The built-in types, the surest first: where two findings overlap, the earlier type stays."""
TYPES = tuple(DETECTORS)
