"""Where a machine is and what opens it: IP addresses, passwords and tokens inside URLs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from recollect.ingest.pii.finding import Finding
from recollect.ingest.pii.near import is_versioned

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_V4 = re.compile(rf"\d(?<![\w.-].)(?<!\d:.)(?:(?<=[12])\d\d|(?<=[1-9])\d)?(?:\.{_OCTET}){{3}}(?![\w-]|\.\w)")
_V6 = re.compile(
    r"(?<![\w:.])(?=[0-9a-f]{0,4}:)[0-9a-f:]{4,39}(?:\d{1,3}(?:\.\d{1,3}){3})?(?:%\w{1,16})?(?![\w:]|\.\d)", re.I
)
_USUAL_V6 = re.compile(r"(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89a-f][0-9a-f]|ff[0-9a-f]{2}|64:ff9b|::ffff:\d)", re.I)
"""How addresses in use begin: global, private, link-local, multicast, mapped. `abc::def` is a name in a program."""


_EVERYBODY = ("127.", "0.", "255.", *(f"{above}." for above in range(256, 300)))
"""First numbers of loopback, "any" and net masks; and what is none."""


def addresses(text: str) -> Iterator[Finding]:
    """Addresses of machines; loopback, "any" and net masks are the same for everybody and stay."""
    for found in _V4.finditer(text):
        if not found[0].startswith(_EVERYBODY) and not is_versioned(text, found.start()):
            yield Finding(start=found.start(), end=found.end(), type="IP", value=found[0])
    for found in _V6.finditer(text) if "::" in text or text.count(":") >= 7 else ():
        written = found[0] if "%" in found[0] else found[0].rstrip(":")
        value = _v6(written if written.count(":") > 1 else found[0])
        if value is not None:
            yield Finding(start=found.start(), end=found.start() + len(written), type="IP", value=value)


def _v6(written: str) -> str | None:
    address, _, zone = written.partition("%")
    if address.count(":") < 2 or not _USUAL_V6.match(address):
        return None
    try:
        return str(ipaddress.IPv6Address(address)) + (f"%{zone}" if zone else "")
    except ValueError:
        return None


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
        yield Finding(start=found.start(1), end=found.end(1), type="URL_SECRET", value=found[1])
    for found in _PARAMETER.finditer(text) if "=" in text else ():
        value = found[2].rstrip(".,!?")
        if _is_secret(found[1], value):
            yield Finding(start=found.start(2), end=found.start(2) + len(value), type="URL_SECRET", value=value)


def _is_secret(name: str, value: str) -> bool:
    if len(value) < 4 or _STAND_IN.fullmatch(value):
        return False
    if _SURE.fullmatch(name):
        return True
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return _PERHAPS.fullmatch(name) is not None and len(value) >= 10 and mixed
