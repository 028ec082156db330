"""Token counts without a tokenizer: one stated estimate, the same everywhere.

Budgets, chunk sizes and `Entry.token_count` all use it. It is deterministic and needs no model; for English it lies
within about 15 % of the common byte-pair tokenizers, and for scripts without spaces it counts characters.
"""

from __future__ import annotations

from wellworn.core.lazy import regex

# A run of Latin letters or digits costs one token per started group of six; any other visible character costs one.
_TOKEN = regex(r"[A-Za-z0-9\u00c0-\u024f]{1,6}|[^\sA-Za-z0-9\u00c0-\u024f]")
_ASCII = bytes(ord("a" if chr(code).isalnum() else " " if chr(code).isspace() else ".") for code in range(128)).ljust(
    256
)
_RUNS = [b"a" * length for length in (6, 5, 4, 3, 2, 1)]


def count_tokens(text: str) -> int:
    """About how many tokens a language model would see; at most one a character."""
    if not text.isascii():
        return len(_TOKEN.findall(text))
    marked = text.encode().translate(_ASCII)  # the same in a third of the time
    for run in _RUNS:
        marked = marked.replace(run, b".")
    return marked.count(b".")
