"""Values to plain JSON data and back, by their type hints: the one converter.

`to_plain` gives dicts, lists, strings and numbers; times become ISO 8601. `from_plain` checks what it is given and
raises `ValueError` with the place of the problem, so that each edge can say which file or record was wrong.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def to_plain(value: Any) -> Any:  # any dataclass, or a container of them
    """Plain data, ready for `json.dumps`."""
    return msgspec.to_builtins(value)


def from_plain(type_: type[T], data: Any, *, strict: bool = True) -> T:  # any JSON value
    """The value of this type that the data describes; unknown fields are ignored, missing ones take their default."""
    try:
        return msgspec.convert(data, type_, strict=strict)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
