"""JSON values as text and back, exactly: what is read is equal to what was put, type for type.

Knows nothing about entries. What JSON has no word for (a number that is not finite, a key that is not text, bytes)
is refused instead of being changed on the way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from wellworn.core.errors import InvalidInput
from wellworn.ingest.validate import MAX_TEXT_BYTES

MAX_VALUE_BYTES = MAX_TEXT_BYTES


def encode(value: Mapping[str, Any]) -> str:
    """The value as JSON that any text column can hold."""
    if not isinstance(value, Mapping):
        raise InvalidInput("value", f"must be a mapping, not {type(value).__name__}", "as in {'text': …}")
    try:
        _check_keys(value)
        text = _dumped(dict(value))
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            "value", f"is not plain JSON: {error}", "use texts, finite numbers, lists, mappings"
        ) from None
    size = len(text.encode())
    if size > MAX_VALUE_BYTES:
        raise InvalidInput("value", f"has {size:,} bytes as JSON, the limit is {MAX_VALUE_BYTES:,}", "split it")
    return text


def decode(text: str) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(text))  # `encode` writes nothing but objects


def scrubbed(value: Any, scrub: Callable[[str], str]) -> Any:  # any JSON value, here and there
    """The value with every text in it passed through; keys stay."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {key: scrubbed(one, scrub) for key, one in value.items()}
    return [scrubbed(one, scrub) for one in value] if isinstance(value, list | tuple) else value


def _dumped(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character: JSON can spell it, UTF-8 cannot
        return json.dumps(value, allow_nan=False, separators=(",", ":"), default=_plain)
    return text


def _plain(value: object) -> Any:
    """A mapping of another make as a dict; anything else is refused."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no place in it")


def _check_keys(value: object) -> None:
    """JSON would turn a key that is a number into text without a word."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            if not isinstance(key, str):
                raise InvalidInput("value", f"has the key {key!r:.60}, which is not text", "JSON keys are texts")
            _check_keys(one)
    elif isinstance(value, list | tuple):
        for one in value:
            _check_keys(one)
