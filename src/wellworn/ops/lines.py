"""Values of a store as plain JSON data for both export formats, and back with every value checked.

Data is converted by the types of its fields; a table says what else must be true of a field. What is missing, wrong or
left over is a `TransferError` that says where. What can be computed from the rest (`token_count`, `content_hash`) is
written for readers and computed again when read, so that a changed text never carries the hash of another. Knows no
file and no store.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, TransferError
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.tokens import count_tokens
from wellworn.core.values import Entry, Link, Partition, Scope, Turn
from wellworn.ingest.hashing import content_hash
from wellworn.ingest.validate import CHECKS, as_time, checked_count, checked_line, checked_session_id
from wellworn.store.port import EmbeddingModel, Replaced, SessionHead, Vector

T = TypeVar("T")
Plain = dict[str, Any]  # a JSON object
Check = Callable[[Any], Any]

_TIMES = frozenset({"at", "created_at", "updated_at", "valid_from", "valid_to", "changed_at", "touched_at", "ended_at"})
_NESTED: dict[str, type[Any]] = {"partition": Partition, "entry": Entry, "link": Link, "model": EmbeddingModel}
_MAX_INT = 2**63  # what a database row holds
_UNIT_TOLERANCE = 1e-3
MAX_WIDTH = 65_536


@dataclass(frozen=True, kw_only=True)
class TurnLine(Turn):
    """A turn with the partition that its session is in."""

    partition: Partition


def value_of(type_: type[T], data: object, where: str, *, complete: bool = True) -> T:
    """The value that plain data describes. With `complete`, a field that is absent is an error, else it has its default."""
    with placed(where):
        return checked(from_plain(type_, _prepared(type_, data, complete)))


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Bad values inside the block are a `TransferError` that says where they are."""
    try:
        yield
    except InvalidInput as error:
        raise TransferError(f"{where}: {error}") from error
    except ValueError as error:
        raise TransferError(f"{where}: {error}") from None
    except RecursionError:
        raise TransferError(f"{where}: is nested too deeply") from None


def _prepared(type_: type[Any], data: object, complete: bool) -> Plain:
    """The data with exactly the fields of a type, and with its times read."""
    if not isinstance(data, Mapping):
        raise ValueError(f"holds a {type(data).__name__} where named fields belong")
    values: Plain = {("partition" if key == "shelf" else key): value for key, value in data.items()}  # up to version 2
    names = [f.name for f in fields(type_)]
    unknown = sorted(str(key) for key in values.keys() - set(names))
    missing = [name for name in names if name not in values] if complete else []
    if unknown or missing:
        raise ValueError(f"has unknown fields: {', '.join(unknown[:5])}" if unknown else f"has no field {missing[0]!r}")
    for name in _TIMES & values.keys():
        values[name] = as_time(name, values[name])
    for name in _NESTED.keys() & values.keys():
        if values[name] is not None:
            values[name] = _prepared(_NESTED[name], values[name], complete)
    return values


def checked(value: T) -> T:
    """The value as the table below wants its fields; of an entry also the computed ones."""
    rules = RULES.get(type(value), {})
    given = {name: getattr(value, name) for name in rules}
    made: T = replace(value, **{name: rules[name](each) for name, each in given.items()})  # type: ignore[type-var]
    return settled(made) if isinstance(made, Entry) else made  # type: ignore[return-value]  # an entry stays one


def settled(entry: Entry) -> Entry:
    """The entry with the token count and content hash that belong to its text."""
    return replace(entry, token_count=count_tokens(entry.text), content_hash=content_hash(entry))


def plain_session(head: SessionHead) -> Plain:
    values: Plain = to_plain(head)
    return {"session_id" if name == "id" else name: value for name, value in values.items()}


def session_of(data: Mapping[str, Any], where: str) -> SessionHead:
    names = {"session_id": "id"}
    return value_of(SessionHead, {names.get(key, key): value for key, value in data.items()}, where)


def plain_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


# -- numbers -----------------------------------------------------------------------------------------------------------


def float_bytes(numbers: Vector) -> bytes:
    """Little-endian float32 numbers, which become base64 in a line."""
    return np.ascontiguousarray(numbers, dtype="<f4").tobytes()


def floats_of(data: bytes, count: int) -> Vector:
    if len(data) != 4 * count:
        raise InvalidInput("vector", f"has {len(data)} bytes, {count} numbers take {4 * count}")
    return np.frombuffer(data, dtype="<f4").astype(np.float32)


def vector_of(value: object, width: int) -> Vector:
    """A vector of this width from its line, finite and of length one or zero."""
    vector = floats_of(from_plain(bytes, value), width)
    if not is_unit_or_zero(vector):
        raise InvalidInput("vector", "is neither of length one nor zero")
    return vector


def is_unit_or_zero(vector: Vector) -> bool:
    """Whether ranking can use it: finite, and of length one (to rounding) or all zero."""
    if not np.isfinite(vector).all():
        return False
    length = float(np.linalg.norm(vector))
    return length == 0 or abs(length - 1) < _UNIT_TOLERANCE


# -- what must be true of fields, beyond their types -------------------------------------------------------------------


def checked_id(value: object) -> str:
    """A UUID in its usual spelling, which is also safe as a file name."""
    try:
        if isinstance(value, str) and str(uuid.UUID(value)) == value:
            return value
    except ValueError:
        pass
    raise InvalidInput("id", f"{value!r:.80} is not a UUID")


def checked_partition(partition: Partition) -> Partition:
    return Scope(tenant=partition.tenant, **{partition.layer: partition.layer_id}).home()


def _row_int(value: int) -> int:
    return checked_count("number", value, least=-_MAX_INT, most=_MAX_INT - 1)


def _count(value: int) -> int:
    return checked_count("number", value, most=_MAX_INT - 1)


def line(name: str) -> Check:
    return lambda value: checked_line(name, value)


def or_none(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def or_empty(check: Check) -> Check:
    return lambda value: "" if value == "" else check(value)


_FROM_CALLERS = ("text", "title", "tags", "source", "speaker", "session_id", "turn_refs", "confidence", "metadata")
_COUNTERS = ("repeats", "usage_count", "success_count", "failure_count")
RULES: dict[type[Any], dict[str, Check]] = {
    Entry: {
        **{name: CHECKS[name] for name in _FROM_CALLERS},
        **dict.fromkeys(_COUNTERS, _count),
        "id": checked_id,
        "partition": checked_partition,
        "evidence": or_empty(CHECKS["evidence"]),
        "thread": or_none(_row_int),
        "position": or_none(_row_int),
    },
    Link: {"source": checked_id, "target": checked_id, "confidence": CHECKS["confidence"]},
    TurnLine: {
        "partition": checked_partition,
        "session_id": checked_session_id,
        "number": lambda value: CHECKS["turn_refs"]([value])[0],
        "role": line("role"),
        "text": CHECKS["text"],
        "speaker": CHECKS["speaker"],
        "entry_id": or_none(checked_id),
    },
    SessionHead: {"partition": checked_partition, "id": checked_session_id, "turns": _count, "reflected": _count},
    Replaced: {"entry": checked, "change": line("change")},
    EmbeddingModel: {
        "name": line("name"),
        "width": lambda value: checked_count("width", value, least=1, most=MAX_WIDTH),
    },
}
"""By type and field. Other modules add the rules of their own lines."""
