"""Text that every encoder accepts, that shows all it says, and no secret.

Python strings may hold lone surrogates (half a character, from a cut-off emoji or a careless decoder); tokenizers
and JSON encoders refuse them with an error of their own. Characters that nobody sees (escape sequences, directions,
zero-width and tag characters) can act on a terminal or speak to a model alone.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from wellworn.core.lazy import regex

HIDDEN = regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])|[\u200c\u200d]{2,}"
)
"""Characters that are not seen, without tab and line feed. Joiners count only where they join nothing: emoji and some
scripts need them."""


def well_formed(text: str) -> str:
    """The same text; surrogate pairs become their character and lone halves U+FFFD."""
    if text.isascii():  # a flag of the string object, so the common case costs nothing
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def visible(text: str) -> str:
    """The text with characters that nobody sees written out, as `\\x1b`, so that none of them acts."""
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(document: str) -> str:
    """The same of a JSON text, which stays one."""
    return HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], document)


def clean_text(text: str) -> str:
    """Return the text without NUL characters and lone surrogates, so that every store accepts it."""
    return well_formed(text).replace("\x00", "")


def counted(number: int, plural: str) -> str:
    """A number of things, as in "1 entry", "2 entries"."""
    noun = plural if number != 1 else f"{plural[:-3]}y" if plural.endswith("ies") else plural.removesuffix("s")
    return f"{number:,} {noun}"


def not_a_number(fault: Mapping[str, Any]) -> str:
    """What to say of a text that is no number, given one of pydantic's errors; nothing if it is another error."""
    wanted = {"int_parsing": "a whole number", "float_parsing": "a number"}.get(fault.get("type", ""))
    return f"{shortened(str(fault['input']), 40)!r} is not {wanted}" if wanted else ""


def one_line(text: str) -> str:
    """Text on one line, without NUL, lone surrogates or control characters."""
    kept = "".join(c if c.isprintable() or c.isspace() else " " for c in text if not "\ud800" <= c <= "\udfff")
    return " ".join(kept.split())


def shortened(text: str, chars: int) -> str:
    """Text on one line, cut at a word where it is longer; a word that is too long itself is cut."""
    line = one_line(text)
    if len(line) <= chars:
        return line
    cut = line[:chars].rpartition(" ")[0]
    return (cut if 2 * len(cut) >= chars else line[: chars - 1]).rstrip(" ,;:.→") + "…"


def without_password(location: str) -> str:
    """A location as it may be shown: a path as it is, a URL with stars for passwords."""
    if "://" not in location:
        return location
    shown = re.sub(r"(://[^:/?#@]*):.*@", r"\1:***@", location, flags=re.S)  # to the last @: it may hold one itself
    return re.sub(r"([?&][^=&]*password=)[^&]*", r"\1***", shown)


# -- token counts without a tokenizer ----------------------------------------------------------------------------------
#
# One stated estimate, the same everywhere: budgets, chunk sizes and `Entry.token_count` use it. It is deterministic and
# needs no model. For English it lies within about 15 % of the common byte-pair tokenizers; for scripts without spaces it
# counts characters.

# A run of Latin letters or digits costs one token per started group of six; any other visible character costs one.
_TOKEN = regex(r"[A-Za-z0-9\u00c0-\u024f]{1,6}|[^\sA-Za-z0-9\u00c0-\u024f]")
_ASCII = bytes(ord("a" if chr(code).isalnum() else " " if chr(code).isspace() else ".") for code in range(128)).ljust(
    256
)


def count_tokens(text: str) -> int:
    """About how many tokens a language model would see; at most one a character."""
    if not text.isascii():
        return len(_TOKEN.findall(text))
    # The same, sooner: groups of six, and what begins a shorter group.
    marked = b" " + text.encode().translate(_ASCII).replace(b"aaaaaa", b".")
    return marked.count(b".") + marked.count(b" a") + marked.count(b".a")


class _Folding(dict[int, str | None]):
    """What each character becomes. Other letters than before need a migration such as `fold_letters`."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        digit = unicodedata.decimal(char, None) if char < "\u1b00" else None
        accent = unicodedata.combining(char)
        dropped = accent == 7 or (accent and not "\u0900" <= char < "\u0f00")  # there vowels are marks, 7 is the nukta
        self[code] = folded = None if dropped else char if digit is None else str(digit)
        return folded


_FOLDING = _Folding(
    str.maketrans({"ß": "ss", "œ": "oe", "æ": "ae", "ـ": None} | dict(zip("łøđıة", "lodiه", strict=True)))
)


def fold(text: str) -> str:
    """Lower case without accents or typographic apostrophes."""
    decomposed = unicodedata.normalize("NFKD", text.lower().replace("’", "'"))
    return unicodedata.normalize("NFC", decomposed.translate(_FOLDING))
