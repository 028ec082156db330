"""Where a machine is and what opens it: IP addresses, passwords and tokens inside URLs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wellworn.ingest.pii.finding import Finding
from wellworn.ingest.pii.near import is_versioned

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_V4 = re.compile(rf"\d(?<![\w.-].)(?<!\d:.)(?:(?<=[12])\d\d|(?<=[1-9])\d)?(?:\.{_OCTET}){{3}}(?![\w-]|\.\w)")
_V6 = re.compile(
    r"[0-9A-Fa-f:](?<![\w:.].)(?:(?<=:):|[0-9A-Fa-f]{0,3}:)[0-9A-Fa-f:]{0,37}(?:\d{1,3}(?:\.\d{1,3}){3})?"
    r"(?:%\w{1,16})?(?![\w:]|\.\d)"
)
_USUAL_V6 = re.compile(r"(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89a-f][0-9a-f]|ff[0-9a-f]{2}|64:ff9b|::ffff:\d)", re.I)
"""How addresses in use begin: global, private, link-local, multicast, mapped. `abc::def` is a name in a program."""


_EMBEDDED = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_ZEROS = re.compile(r"(?<![0-9a-f])0(?::0)+(?![0-9a-f])")
_EVERYBODY = ("127.", "0.", "255.", *(f"{above}." for above in range(256, 300)))
"""First numbers of loopback, "any" and net masks; and what is none."""


def addresses(text: str) -> Iterator[Finding]:
    """Addresses of machines; loopback, "any" and net masks are the same for everybody and stay."""
    last = -1  # where the one before ends: one right after it has no words before it
    for found in _V4.finditer(text):
        start, end = found.span()
        if not found[0].startswith(_EVERYBODY) and (start - last == 1 or not is_versioned(text, start)):
            yield Finding(start, end, "IP", found[0])
        last = end
    for found in _V6.finditer(text) if "::" in text or text.count(":") >= 7 else ():
        for written in dict.fromkeys((found[0], found[0].rstrip(":"))):  # a colon after it, or two at its end
            value = _v6(written)
            if value is not None:
                yield Finding(found.start(), found.start() + len(written), "IP", value)
                break


def _v6(written: str) -> str | None:
    """An address in one form, however it is written; None when it is none."""
    address, _, zone = written.partition("%")
    if not _USUAL_V6.match(address):
        return None
    groups = _groups(address.lower())
    if groups is None:
        return None
    shortest = _shortest(groups)
    return f"{shortest}%{zone}" if zone else shortest


def _groups(address: str) -> list[str] | None:
    """The eight groups, without leading zeros. Written out, because `ipaddress` takes ten times as long."""
    if "." in address:
        address, _, v4 = address.rpartition(":")
        if not _EMBEDDED.fullmatch(v4):
            return None
        high, low, lower, lowest = map(int, v4.split("."))
        address = f"{address}:{high << 8 | low:x}:{lower << 8 | lowest:x}"
    head, gap, tail = address.partition("::")
    groups = head.split(":") if head else []
    if gap:
        after = tail.split(":") if tail else []
        groups += ["0"] * (8 - len(groups) - len(after)) + after if len(groups) + len(after) < 8 else []
    if len(groups) != 8 or not all(0 < len(group) < 5 for group in groups):
        return None
    return [group.lstrip("0") or "0" for group in groups]


def _shortest(groups: list[str]) -> str:
    """As RFC 5952 writes it: the first longest run of two zero groups or more left out."""
    written = ":".join(groups)
    run = max(_ZEROS.findall(written), key=len, default="")
    if not run:
        return written
    head, _, tail = (f":{written}:").partition(f":{run}:")
    return f"{head[1:]}::{tail[:-1]}"


_USERINFO = re.compile(r"://[^\s/:@\[\]\"'<>]{0,128}:([^\s/@\[\]\"'<>]{1,256})@(?=[\w\[])")
_PARAMETER = re.compile(r"[?&;]([\w.-]{1,64})=([^\s&;#\"'<>\[\](){}`$|\\]{4,2048})")
_SURE = re.compile(
    r"(?:.*[_.-])?(?:token|secret|password|passwd|pwd|api[_-]?key|apikey|signature|credential|access[_-]?key|jwt)", re.I
)
_PERHAPS = re.compile(
    r"(?:.*[_.-])?(?:key|code|auth|authorization|session|session[_-]?id|sessionid|sid|sig|otp|hash)", re.I
)
_STAND_IN = re.compile(
    r"(?:your|my|the|some)?[_-]?(?:[a-z]+[_-])*(?:token|key|secret|password|here)|x+|\*+|\.+|none|null", re.I
)


def url_secrets(text: str) -> Iterator[Finding]:
    """What a URL gives away: the password before its host, and parameters named like secrets."""
    for found in _USERINFO.finditer(text) if "://" in text else ():
        yield Finding(found.start(1), found.end(1), "URL_SECRET", found[1])
    for found in _PARAMETER.finditer(text) if "=" in text else ():
        value = found[2].rstrip(".,!?")
        if _is_secret(found[1], value):
            yield Finding(found.start(2), found.start(2) + len(value), "URL_SECRET", value)


def _is_secret(name: str, value: str) -> bool:
    if len(value) < 4 or _STAND_IN.fullmatch(value):
        return False
    if _SURE.fullmatch(name):
        return True
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return _PERHAPS.fullmatch(name) is not None and len(value) >= 10 and mixed
