"""What opens services: API keys by their makers' forms, private-key blocks, signed web tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wellworn.ingest.pii.finding import Finding

_KEY = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"sk-ant-[\w-]{24,256}"  # Anthropic
    r"|sk-(?:proj|svcacct|admin|None|or-v1)-[\w-]{24,256}"  # OpenAI since 2024, OpenRouter
    r"|sk-[A-Za-z0-9]{32,128}"  # OpenAI before
    r"|gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{40,128}|glpat-[\w-]{20,64}"
    r"|xox[abceoprs]-[A-Za-z0-9-]{16,256}|xapp-\d-[A-Za-z0-9-]{24,256}"  # Slack
    r"|AIza[\w-]{35}|ya29\.[\w-]{24,512}|GOCSPX-[\w-]{24,64}"  # Google
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"  # AWS
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,128}|hf_[A-Za-z]{34}|npm_[A-Za-z0-9]{36}|SG\.[\w-]{22}\.[\w-]{43}"
    r")(?![A-Za-z0-9])"
)
_HOOK = re.compile(r"hooks\.slack\.com/services/(T[A-Z0-9]{6,16}/B[A-Z0-9]{6,16}/[A-Za-z0-9]{16,64})")
_AWS_SECRET = re.compile(r"secret_?access_?key[\"']?\s{0,4}[:=]\s{0,4}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])", re.I)
_BEARER = re.compile(r"[Bb]earer\s{1,4}([A-Za-z0-9._~+/-]{20,2048}=*)")
_BASIC = re.compile(r"[Bb]asic\s{1,4}([A-Za-z0-9+/]{20,2048}=*)(?![\w.-])")

_AFTER_WORDS = (("hooks.slack", _HOOK), ("key", _AWS_SECRET), ("bearer", _BEARER), ("basic", _BASIC))
_KEY_MARKS = (
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "xapp-",
    "AIza",
    "ya29.",
    "GOCSPX-",
    "AKIA",
    "ASIA",
    "ABIA",
    "ACCA",
    "k_live_",
    "k_test_",
    "hf_",
    "npm_",
    "SG.",
)


def api_keys(text: str) -> Iterator[Finding]:
    for found in _KEY.finditer(text) if any(mark in text for mark in _KEY_MARKS) else ():
        yield Finding(found.start(), found.end(), "API_KEY", found[0])
    lower = text.lower()
    for mark, form in _AFTER_WORDS:
        for found in form.finditer(text) if mark in lower else ():
            yield Finding(found.start(1), found.end(1), "API_KEY", found[1])


_JWT = re.compile(r"(?<![\w-])eyJ[\w-]{6,4096}\.eyJ[\w-]{2,65536}\.[\w-]*(?:\.[\w-]+){0,2}")


def web_tokens(text: str) -> Iterator[Finding]:
    for found in _JWT.finditer(text) if "eyJ" in text else ():
        yield Finding(found.start(), found.end(), "JWT", found[0])


_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(r"(?:\s|\\[nr])*(?:[A-Za-z0-9+/=]{16,}(?:\s|\\[nr])*)*[A-Za-z0-9+/=]*")


def private_keys(text: str) -> Iterator[Finding]:
    """From BEGIN to END; where END is missing, as far as it looks like a key. Each part is read once: linear."""
    begins = [*_BEGIN.finditer(text)] if "PRIVATE KEY" in text else []
    for number, begin in enumerate(begins):
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        end = _END.search(text, begin.end(), limit)
        body = _BODY.match(text, begin.end(), limit)
        stop = end.end() if end else body.end() if body else begin.end()
        stop = begin.start() + len(text[begin.start() : stop].rstrip())
        yield Finding(begin.start(), stop, "PRIVATE_KEY", text[begin.start() : stop])
