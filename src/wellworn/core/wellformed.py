"""Text that every encoder accepts.

Python strings may hold lone surrogates (half a character, from a cut-off emoji or a careless decoder); tokenizers
and JSON encoders refuse them with an error of their own. Knows nothing about vectors.
"""

from __future__ import annotations


def well_formed(text: str) -> str:
    """The same text; surrogate pairs become their character and lone halves U+FFFD."""
    if text.isascii():  # a flag of the string object, so the common case costs nothing
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
