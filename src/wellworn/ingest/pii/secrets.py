"""What opens something: keys of services, private keys, web tokens, and passwords that a name or a command gives away.

Three general means: the forms in `key_forms.txt`; text that looks random near a word for keys; a value that follows a
name such as `password`, in code, in a command or in a sentence. Every search looks at a bounded stretch of the text
around a mark, so the time grows with the text alone.
"""

from __future__ import annotations

import functools
import itertools
import re
import string
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple


class Finding(NamedTuple):
    """A span of a text. A tuple, because a log may hold a hundred thousand. `value` is the same for every way to
    write the same thing: placeholders are numbered by it."""

    start: int
    end: int
    type: str
    value: str


def patterns(name: str) -> list[tuple[str, re.Pattern[str]]]:
    """The patterns of a data file, with what each line calls them; names in braces are parts of later ones."""
    parts: dict[str, str] = {}
    found = []
    for line in files(__package__).joinpath(name).read_text("utf-8").splitlines():
        label, _, form = line.partition(" ")
        for part, text in parts.items():
            form = form.replace(part, text)
        if label.startswith("{"):
            parts[label] = form
        elif label != "#":
            found.append((label, re.compile(form)))
    return found


def _spans(form: re.Pattern[str], text: str, type_: str, group: int = 1) -> Iterator[Finding]:
    for found in form.finditer(text):
        yield Finding(found.start(group), found.end(group), type_, found[group])


# -- private keys and web tokens ---------------------------------------------------------------------------------------

_JWT = re.compile(r"(?<![\w-])(eyJ[\w-]{6,4096}\.eyJ[\w-]{2,65536}\.[\w-]*(?:\.[\w-]+){0,2})")
_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(r"(?:\s|\\[nr])*(?:[A-Za-z0-9+/=]{16,}(?:\s|\\[nr])*)*[A-Za-z0-9+/=]*")


def web_tokens(text: str) -> Iterator[Finding]:
    yield from _spans(_JWT, text, "JWT") if "eyJ" in text else ()


def private_keys(text: str) -> Iterator[Finding]:
    """From BEGIN to END; where END is missing, as far as it looks like a key. Each part is read once: linear."""
    begins = [*_BEGIN.finditer(text)] if "PRIVATE KEY" in text else []
    for number, begin in enumerate(begins):
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        end = _END.search(text, begin.end(), limit) or _BODY.match(text, begin.end(), limit)
        key = text[begin.start() : end.end() if end else begin.end()].rstrip()
        yield Finding(begin.start(), begin.start() + len(key), "PRIVATE_KEY", key)


# -- keys of services --------------------------------------------------------------------------------------------------

_RUN = re.compile(
    r"(?<![\w-])(?:1//)?(?:[A-Za-z0-9-]{1,10}\.){0,2}[A-Za-z0-9_~-]{12,}(?:[.~+/%][A-Za-z0-9_+/~%-]{3,})*"
    r"(?:={1,2}(?:_[\w/+-]{16,}|(?![\w=]))|=[A-F0-9]{8}\b)?"
)
"""A stretch that could be a key."""
_PLACED = re.compile(
    r"hooks\.slack\.com/services/(T\w{6,16}/B\w{6,16}/\w{16,64})|webhooks/\d{16,22}/([\w-]{40,100})|"
    r"(?<!\w)(\d{8,10}:[\w-]{35}|AAAA[\w-]{7}:[\w-]{140})(?![\w-])|(access_token\$\w{7,10}\$\w{16}\$\w{32})|"
    r"(?<!\w)(\d{12,18}\|[\w-]{24,28})(?![\w-])|"
    r"(?i:authorization)[\"']?\s{0,2}[:=]\s{0,2}\\?[\"']?(?:[A-Za-z]{3,12} {1,2})?([A-Za-z0-9._~+/=-]{8,2048})|"
    r"(?i:bearer)\s{1,4}([A-Za-z0-9._~+/-]{16,2048}=*)|(?i:basic)\s{1,4}([A-Za-z0-9+/]{20,2048}=*)(?![\w.-])"
)
"""Keys that are known by what stands before them."""
_NEAR = re.compile(
    r"(?i:api|access|auth|secret|private|bearer|deploy|license|service|encryption|signing)[ _-]?keys?\b|"
    r"(?i:tokens?|secrets?|credentials?|passw\w+|bearer|pat)\b|(?i:key)\b|AKIA|ASIA"
)
_ELSE = re.compile(
    r"(?i:\b(?:commit|sha\d*|md5|hash|digest|checksum|fingerprint|uuid|guid|id|ids|image|integrity|public|primary|foreign|"
    r"partition|idempotency|cache|sort|etag|revision|branch|build|trace|span|request|object|page|next|ssh-\w+)\b|base64,)"
)
"""Words that say what a random stretch is instead."""
_HEX = re.compile(r"[0-9a-f]+(?:-[0-9a-f]+)*|[0-9A-F]+(?:-[0-9A-F]+)*")
_BASE64 = string.ascii_letters + string.digits + "+/"
NEAR = 48
"""How many characters before a stretch are read for such words."""


class KeyForms(NamedTuple):
    """What `key_forms.txt` holds: prefixes, the pattern of whole forms, and commands as (word, command, flag)."""

    prefixes: tuple[str, ...]
    whole: re.Pattern[str]
    commands: list[list[str]]


@functools.cache
def key_forms() -> KeyForms:
    parts = files(__package__).joinpath("key_forms.txt").read_text("utf-8").split("\n# ")
    prefixes, whole, commands = (part.splitlines()[1:] for part in parts[1:])
    words = sorted(" ".join(prefixes).split(), key=len, reverse=True)
    return KeyForms(tuple(words), re.compile("|".join(whole)), [line.split("\t") for line in commands])


def api_keys(text: str) -> Iterator[Finding]:
    prefixes, forms, _ = key_forms()
    for found in _RUN.finditer(text):
        run = found[0]
        if forms.fullmatch(run) or _is_key(run, prefixes):
            yield Finding(found.start(), found.end(), "API_KEY", run)
        elif len(run) >= 20 and _is_near_word(text, found.start(), run):
            before = text[max(0, found.start() - NEAR) : found.start()]
            start = found.start() - len(before) + len(before.rstrip(_BASE64))
            yield Finding(start, found.end(), "API_KEY", text[start : found.end()])
    for found in _PLACED.finditer(text):
        group = found.lastindex or 0
        if group < 3 or randomness(found[group]) > 0.1:
            yield Finding(found.start(group), found.end(group), "API_KEY", found[group])


def _is_key(run: str, prefixes: tuple[str, ...]) -> bool:
    if not run.startswith(prefixes):
        return False
    body = run[next(len(prefix) for prefix in prefixes if run.startswith(prefix)) :]
    return len(body) >= 16 and randomness(body) >= 0.2


def _is_near_word(text: str, start: int, run: str) -> bool:
    """Random, and a word for keys stands shortly before it, with no word for something else in between."""
    if randomness(run) < 0.28 or not any(char.isdigit() for char in run):
        return False
    before = text[max(0, start - NEAR) : start].rpartition("\n")[2]
    words = [*_NEAR.finditer(before)]
    if not words or _ELSE.search(before, words[-1].start() - 12 if words[-1].start() > 12 else 0):
        return False
    return not _HEX.fullmatch(run) or any(len(word[0]) > 3 for word in words)


def randomness(text: str) -> float:
    """The share of neighbours that words seldom have: a digit beside a letter, a capital after a letter.

    Random letters and digits have 0.3 and more, words joined in camel case 0.2, plain words 0.
    """
    signs = [char for char in text[:96] if char.isalnum()]
    mixed = any(char.islower() for char in signs)
    odd = 0
    for one, two in itertools.pairwise(signs):
        odd += one.isdigit() != two.isdigit() or (mixed and one.isalpha() and two.isupper())
    return odd / max(1, len(signs) - 1)
