"""The labelled corpus, made from hand-written values, frames and negatives.

Cards, account numbers and keys are drawn with a seed, with right check digits. `BREAK` parts fake keys in the files, so
that scanners for secrets leave them alone. Every third case of a type is held out.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import random
import string
from dataclasses import dataclass
from typing import Any

from ingest.pii_corpus import values
from ingest.pii_corpus.negatives import negatives

BREAK = "‖"
Row = dict[str, Any]  # as YAML has it
IBAN_FORMS = {
    "DE": "dddddddddddddddddd",
    "FR": "dddddddddddddddddddddwd"[:23],
    "GB": "wwwwdddddddddddddd",
    "NL": "wwwwdddddddddd",
    "ES": "dddddddddddddddddddd",
    "IT": "wdddddddddddddddddddddd",
    "CH": "ddddddddddddddddd",
    "AT": "dddddddddddddddd",
    "BE": "dddddddddddd",
    "PL": "d" * 24,
    "NO": "d" * 11,
    "SE": "d" * 20,
    "DK": "d" * 14,
    "PT": "d" * 21,
    "MT": "wwwwddddd" + "d" * 18,
    "SA": "d" * 20,
    "AE": "d" * 19,
    "BR": "d" * 23 + "ww",
    "TR": "d" * 22,
    "IE": "wwww" + "d" * 14,
}
CARDS = [
    ("4", 16),
    ("51", 16),
    ("5555", 16),
    ("34", 15),
    ("37", 15),
    ("6011", 16),
    ("3530", 16),
    ("36", 14),
    ("2221", 16),
    ("4", 13),
    ("622126", 16),
    ("65", 16),
    ("2720", 16),
    ("4", 19),
    ("2204", 16),
]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A text with what must be found in it, as (type, value); nothing for a hard negative, whose kind is told."""

    text: str
    find: tuple[tuple[str, str], ...]
    kind: str


def load(name: str) -> list[Case]:
    """`seen`, from which the rules were written, or `held`, which was not looked at until they were."""
    rows = [row for group in _groups() for number, row in enumerate(group) if (number % 3 == 2) == (name == "held")]
    return [
        Case(
            text=row["text"].replace(BREAK, ""),
            find=tuple((type_, value.replace(BREAK, "")) for type_, value in row.get("find", [])),
            kind=row["kind"],
        )
        for row in rows
    ]


@functools.cache
def _groups() -> tuple[list[Row], list[Row]]:
    """Texts with something to find, and texts without."""
    dice = random.Random(20251115)
    positives = [
        *_framed("EMAIL", values.EMAILS, dice),
        *_framed("PHONE", values.PHONES, dice),
        *_spoken("PHONE", values.SPOKEN_PHONES, values.SPOKEN_PHONE_VALUES),
        *_framed("SSN", values.SSNS, dice),
        *_spoken("SSN", values.SPOKEN_SSNS, values.SPOKEN_SSN_VALUES),
        *_framed("CARD", _cards(dice), dice),
        *_framed("IBAN", _ibans(dice), dice),
        *_framed("IP", values.IPS, dice),
        *_keys(dice),
        *_jwts(dice),
        *_private_keys(dice),
        *_urls(dice),
        *({"kind": "MIXED", "text": text, "find": [[*one] for one in find]} for text, find in values.MIXED),
    ]
    return positives, [{"kind": kind, "text": text} for kind, text in negatives()]


def _framed(type_: str, found: list[str], dice: random.Random, *, times: int = 1) -> list[Row]:
    frames = values.FRAMES[type_]
    rows = []
    for number, value in enumerate(found * times):
        frame = frames[(number * 7 + dice.randrange(3)) % len(frames)]
        rows.append({"kind": type_, "text": frame.format(value), "find": [[type_, value]]})
    return rows


def _spoken(type_: str, texts: list[str], found: list[str]) -> list[Row]:
    return [
        {"kind": type_, "text": f"{text} today", "find": [[type_, value]]}
        for text, value in zip(texts, found, strict=True)
    ]


def _cards(dice: random.Random) -> list[str]:
    found = []
    for number, (prefix, length) in enumerate(CARDS * 2):
        digits = prefix + "".join(dice.choices(string.digits, k=length - 1 - len(prefix)))
        digits += next(str(last) for last in range(10) if _luhn(digits + str(last)))
        found.append(_grouped(digits, " -"[number % 2]) if number % 3 and length in (14, 15, 16) else digits)
    return found


def _grouped(digits: str, mark: str) -> str:
    sizes = {15: (4, 6, 5), 14: (4, 6, 4), 16: (4, 4, 4, 4)}[len(digits)]
    ends = list(itertools.accumulate(sizes))
    return mark.join(digits[end - size : end] for size, end in zip(sizes, ends, strict=True))


def _luhn(digits: str) -> bool:
    total = sum(int(d) for d in digits[-1::-2]) + sum(sum(divmod(2 * int(d), 10)) for d in digits[-2::-2])
    return total % 10 == 0


def _ibans(dice: random.Random) -> list[str]:
    found = []
    for number, (country, form) in enumerate([*IBAN_FORMS.items()] * 2):
        body = "".join(dice.choice(string.digits if c == "d" else string.ascii_uppercase) for c in form)
        plain = "".join(str(int(c, 36)) for c in body + country + "00")
        iban = f"{country}{98 - int(plain) % 97:02d}{body}"
        found.append(iban if number % 2 else " ".join(iban[at : at + 4] for at in range(0, len(iban), 4)))
    return [*found[:-1], found[-1].lower()]


def _drawn(dice: random.Random, length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(dice.choices(letters, k=length))


def _keys(dice: random.Random) -> list[Row]:
    wide = string.ascii_letters + string.digits + "-_"
    upper = string.ascii_uppercase + "234567"
    made = []
    for _ in range(4):
        d = dice
        made += [
            f"s{BREAK}k-{_drawn(d, 20)}T3Blbk{BREAK}FJ{_drawn(d, 20)}",
            f"s{BREAK}k-proj-{_drawn(d, 74, wide)}{_drawn(d, 1)}",
            f"s{BREAK}k-svcacct-{_drawn(d, 60, wide)}{_drawn(d, 1)}",
            f"s{BREAK}k-ant-api03-{_drawn(d, 92, wide)}A{_drawn(d, 1)}",
            f"gh{BREAK}p_{_drawn(d, 36)}",
            f"gh{BREAK}s_{_drawn(d, 36)}",
            f"github{BREAK}_pat_{_drawn(d, 22)}_{_drawn(d, 59)}",
            f"xo{BREAK}xb-{_drawn(d, 11, string.digits)}-{_drawn(d, 12, string.digits)}-{_drawn(d, 24)}",
            f"xo{BREAK}xp-{_drawn(d, 11, string.digits)}-{_drawn(d, 32, '0123456789abcdef')}",
            f"xa{BREAK}pp-1-A{_drawn(d, 10, upper)}-{_drawn(d, 13, string.digits)}-{_drawn(d, 64, '0123456789abcdef')}",
            f"AI{BREAK}za{_drawn(d, 34, wide)}{_drawn(d, 1)}",
            f"AK{BREAK}IA{_drawn(d, 16, upper)}",
            f"AS{BREAK}IA{_drawn(d, 16, upper)}",
            f"GOC{BREAK}SPX-{_drawn(d, 27, wide)}{_drawn(d, 1)}",
        ]
    rows = _framed("SECRET", made, dice)
    for _ in range(4):
        secret = _drawn(dice, 20) + BREAK + _drawn(dice, 18, string.ascii_letters + "/+") + _drawn(dice, 2)
        text = dice.choice(["aws_secret_access_key = {}", "AWS_SECRET_ACCESS_KEY={}", '"SecretAccessKey": "{}"'])
        rows.append({"text": text.format(secret), "find": [["SECRET", secret]]})
    return [{"kind": "API_KEY", "text": row["text"], "find": [["API_KEY", row["find"][0][1]]]} for row in rows]


def _jwts(dice: random.Random) -> list[Row]:
    found = []
    for number in range(15):
        parts = [
            {"alg": dice.choice(["HS256", "RS256", "ES256"]), "typ": "JWT"},
            {"sub": str(number), "exp": 1e9 + number},
        ]
        coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        found.append(".".join([coded[0][:2] + BREAK + coded[0][2:], coded[1], _drawn(dice, 43)]))
    return [{**row, "kind": "JWT", "find": [["JWT", row["find"][0][1]]]} for row in _framed("SECRET", found, dice)]


def _private_keys(dice: random.Random) -> list[Row]:
    rows = []
    for number in range(15):
        kind = ["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA "][number % 6]
        line = "\\n" if number % 5 == 4 else "\n"
        body = line.join(_drawn(dice, 64, string.ascii_letters + string.digits + "+/") for _ in range(3 + number % 3))
        block = f"-----BEGIN {kind}PRI{BREAK}VATE KEY-----{line}{body}==" + (
            "" if number == 7 else f"{line}-----END {kind}PRI{BREAK}VATE KEY-----"
        )
        text = ["{}", "key.pem:\n{}\n", "my key\n\n{}\n\nplease keep it", '{{"pem": "{}"}}'][number % 4].format(block)
        rows.append({"kind": "PRIVATE_KEY", "text": text, "find": [["PRIVATE_KEY", block]]})
    return rows


def _urls(dice: random.Random) -> list[Row]:
    frames = values.FRAMES["URL_SECRET"]
    return [
        {"kind": "URL_SECRET", "text": dice.choice(frames).format(url.format(value)), "find": [["URL_SECRET", value]]}
        for url, value in values.URL_SECRETS
    ]
