"""Entries, links, turns, sessions and old versions as plain JSON values, and back with every value checked.

The one shape that both export formats share. Knows no file and no store. What can be computed from the rest
(`token_count`, `content_hash`) is written for readers and computed again when read, so that a changed text never
carries the hash of another.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

import numpy as np

from wellworn.core.errors import InvalidInput, TransferError
from wellworn.core.tokens import count_tokens
from wellworn.core.values import LAYERS, Entry, Layer, Link, Partition, Scope, Turn
from wellworn.ingest import validate
from wellworn.ingest.hashing import content_hash
from wellworn.ingest.validate import as_time
from wellworn.store.port import Replaced, SessionHead, Vector

T = TypeVar("T")
Plain = dict[str, Any]  # a JSON object

_REQUIRED: Final = object()
_MAX_INT = 2**63  # what a database row holds
_UNIT_TOLERANCE = 1e-3


class Fields:
    """The values of one JSON object, taken out one by one; what is missing, wrong or left over is an error.

    `where` opens every message: the line of a file, or its name. With `complete`, defaults are not used: a field
    that is absent is an error.
    """

    def __init__(self, values: object, where: str, *, complete: bool = True) -> None:
        if not isinstance(values, Mapping):
            raise TransferError(f"{where}: holds a {type(values).__name__} where named fields belong")
        self._left = dict(values)
        self._where = where
        self._complete = complete

    def take(self, key: str, check: Callable[[Any], T], default: Any = _REQUIRED) -> T:
        """The checked value of a field. A default is taken as it is."""
        if key not in self._left:
            if self._complete or default is _REQUIRED:
                raise TransferError(f"{self._where}: has no field {key!r}")
            return cast("T", default)  # the caller's own value, of the field's type
        try:
            return check(self._left.pop(key))
        except InvalidInput as error:
            remedy = f" ({error.remedy})" if error.remedy else ""
            raise TransferError(f"{self._where}: {key}: {error.problem}{remedy}") from error
        except RecursionError:
            raise TransferError(f"{self._where}: {key}: is nested too deeply") from None

    def nested(self, key: str) -> Fields:
        return Fields(self._left.pop(key, None), f"{self._where}: {key}", complete=self._complete)

    def done(self) -> None:
        """Call last: no field may be left over."""
        if self._left:
            unknown = ", ".join(sorted(str(key) for key in self._left)[:5])
            raise TransferError(f"{self._where}: has unknown fields: {unknown}")


# -- entries -----------------------------------------------------------------------------------------------------


def plain_entry(entry: Entry) -> Plain:
    """Every field of an entry, times as ISO 8601 in UTC."""
    return {
        "id": entry.id,
        "partition": plain_partition(entry.partition),
        "kind": entry.kind,
        "title": entry.title,
        "tags": list(entry.tags),
        "text": entry.text,
        "evidence": entry.evidence,
        "source": entry.source,
        "speaker": entry.speaker,
        "session_id": entry.session_id,
        "turn_refs": list(entry.turn_refs),
        "thread": entry.thread,
        "position": entry.position,
        "confidence": entry.confidence,
        "trust": entry.trust,
        "state": entry.state,
        "repeats": entry.repeats,
        "usage_count": entry.usage_count,
        "success_count": entry.success_count,
        "failure_count": entry.failure_count,
        "token_count": entry.token_count,
        "content_hash": entry.content_hash,
        "at": plain_time(entry.at),
        "created_at": plain_time(entry.created_at),
        "updated_at": plain_time(entry.updated_at),
        "valid_from": plain_time(entry.valid_from),
        "valid_to": plain_time(entry.valid_to) if entry.valid_to else None,
        "metadata": entry.metadata,
    }


def entry_of(fields: Fields) -> Entry:
    """The entry that `plain_entry` described; its token count and content hash are those of the text as it is."""
    fields.take("token_count", checked_count, 0)
    fields.take("content_hash", _checked_string, "")
    at = fields.take("at", checked_time)
    created_at = fields.take("created_at", checked_time, at)
    entry = Entry(
        id=fields.take("id", checked_id),
        partition=partition_of(fields.nested("partition")),
        kind=fields.take("kind", validate.checked_kind),
        text=fields.take("text", lambda value: validate.checked_text("text", value)),
        title=fields.take("title", _checked_line, ""),
        tags=fields.take("tags", validate.checked_tags, []),
        evidence=fields.take("evidence", _checked_evidence, ""),
        source=fields.take("source", _checked_line, "import"),
        speaker=fields.take("speaker", _or_none(_checked_line), None),
        session_id=fields.take("session_id", _or_none(validate.checked_session_id), None),
        turn_refs=fields.take("turn_refs", validate.checked_turn_refs, []),
        thread=fields.take("thread", _or_none(_checked_int), None),
        position=fields.take("position", _or_none(_checked_int), None),
        confidence=fields.take("confidence", lambda value: validate.checked_fraction("confidence", value), 0.8),
        trust=fields.take("trust", validate.checked_trust, "trusted"),
        state=fields.take("state", validate.checked_state, "active"),
        repeats=fields.take("repeats", checked_count, 0),
        usage_count=fields.take("usage_count", checked_count, 0),
        success_count=fields.take("success_count", checked_count, 0),
        failure_count=fields.take("failure_count", checked_count, 0),
        at=at,
        created_at=created_at,
        updated_at=fields.take("updated_at", checked_time, created_at),
        valid_from=fields.take("valid_from", checked_time, at),
        valid_to=fields.take("valid_to", _or_none(checked_time), None),
        metadata=fields.take("metadata", validate.checked_metadata, {}),
    )
    fields.done()
    return settled(entry)


def settled(entry: Entry) -> Entry:
    """The entry with the token count and content hash that belong to its text."""
    return replace(entry, token_count=count_tokens(entry.text), content_hash=content_hash(entry))


def plain_partition(partition: Partition) -> Plain:
    return {"tenant": partition.tenant, "layer": partition.layer, "layer_id": partition.layer_id}


def partition_of(fields: Fields) -> Partition:
    layer = fields.take("layer", _checked_layer)
    partition = Partition(
        tenant=fields.take("tenant", lambda value: Scope(tenant=value).tenant),
        layer=layer,
        layer_id=fields.take("layer_id", lambda value: Scope(tenant="-", **{layer: value}).home().layer_id),
    )
    fields.done()
    return partition


# -- what hangs on entries ---------------------------------------------------------------------------------------


def plain_link(link: Link) -> Plain:
    return {
        "source": link.source,
        "target": link.target,
        "type": link.type,
        "confidence": link.confidence,
        "automatic": link.automatic,
        "created_at": plain_time(link.created_at),
    }


def link_of(fields: Fields) -> Link:
    link = Link(
        source=fields.take("source", checked_id),
        target=fields.take("target", checked_id),
        type=fields.take("type", validate.checked_link_type),
        confidence=fields.take("confidence", lambda value: validate.checked_fraction("confidence", value), 1.0),
        automatic=fields.take("automatic", _checked_bool, False),
        created_at=fields.take("created_at", checked_time),
    )
    fields.done()
    return link


def plain_turn(partition: Partition, turn: Turn) -> Plain:
    return {
        "partition": plain_partition(partition),
        "session_id": turn.session_id,
        "number": turn.number,
        "role": turn.role,
        "text": turn.text,
        "at": plain_time(turn.at),
        "speaker": turn.speaker,
        "entry_id": turn.entry_id,
    }


def turn_of(fields: Fields) -> tuple[Partition, Turn]:
    partition = partition_of(fields.nested("partition"))
    turn = Turn(
        session_id=fields.take("session_id", validate.checked_session_id),
        number=fields.take("number", lambda value: validate.checked_turn_refs([value])[0]),
        role=fields.take("role", _checked_line),
        text=fields.take("text", lambda value: validate.checked_text("text", value)),
        at=fields.take("at", checked_time),
        speaker=fields.take("speaker", _or_none(_checked_line)),
        entry_id=fields.take("entry_id", _or_none(checked_id)),
    )
    fields.done()
    return partition, turn


def plain_session(head: SessionHead) -> Plain:
    """How far reflection on a session has come; its turns say the rest."""
    return {
        "partition": plain_partition(head.partition),
        "session_id": head.id,
        "turns": head.turns,
        "reflected": head.reflected,
        "touched_at": plain_time(head.touched_at),
        "ended_at": plain_time(head.ended_at) if head.ended_at else None,
    }


def session_of(fields: Fields) -> SessionHead:
    head = SessionHead(
        partition=partition_of(fields.nested("partition")),
        id=fields.take("session_id", validate.checked_session_id),
        turns=fields.take("turns", checked_count),
        reflected=fields.take("reflected", checked_count),
        touched_at=fields.take("touched_at", checked_time),
        ended_at=fields.take("ended_at", _or_none(checked_time)),
    )
    fields.done()
    return head


def plain_replaced(replaced: Replaced) -> Plain:
    return {
        "entry": plain_entry(replaced.entry),
        "change": replaced.change,
        "changed_at": plain_time(replaced.changed_at),
    }


def replaced_of(fields: Fields) -> Replaced:
    entry = entry_of(fields.nested("entry"))
    replaced = Replaced(
        entry=entry, change=fields.take("change", _checked_line), changed_at=fields.take("changed_at", checked_time)
    )
    fields.done()
    return replaced


def plain_vector(vector: Vector) -> str:
    """Little-endian float32 numbers as base64."""
    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode("ascii")


def floats_of(value: object, count: int) -> Vector:
    """So many numbers, as `plain_vector` wrote them."""
    try:
        data = base64.b64decode(_checked_string(value), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("vector", "is not base64") from None
    if len(data) != 4 * count:
        raise InvalidInput("vector", f"has {len(data)} bytes, {count} numbers take {4 * count}")
    return np.frombuffer(data, dtype="<f4").astype(np.float32)


def vector_of(value: object, width: int) -> Vector:
    """A vector of this width, finite and of length one or zero."""
    vector = floats_of(value, width)
    if not is_unit_or_zero(vector):
        raise InvalidInput("vector", "is neither of length one nor zero")
    return vector


def is_unit_or_zero(vector: Vector) -> bool:
    """Whether ranking can use it: finite, and of length one (to rounding) or all zero."""
    if not np.isfinite(vector).all():
        return False
    length = float(np.linalg.norm(vector))
    return length == 0 or abs(length - 1) < _UNIT_TOLERANCE


# -- single values -----------------------------------------------------------------------------------------------


def plain_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def checked_time(value: object) -> datetime:
    if not isinstance(value, str | datetime):
        raise InvalidInput("time", f"{value!r} is not ISO 8601 text")
    return cast("datetime", as_time("time", value))  # None only for None


def checked_id(value: object) -> str:
    """A UUID in its usual spelling, which is also safe as a file name."""
    try:
        if isinstance(value, str) and str(uuid.UUID(value)) == value:
            return value
    except ValueError:
        pass
    raise InvalidInput("id", f"{value!r:.80} is not a UUID")


def checked_count(value: object) -> int:
    number = _checked_int(value)
    if number < 0:
        raise InvalidInput("count", f"{number} is negative")
    return number


def _checked_int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -_MAX_INT <= value < _MAX_INT:
        raise InvalidInput("number", f"{value!r:.40} is not a whole number of 64 bits")
    return value


def _checked_bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput("flag", f"{value!r:.40} is neither true nor false")
    return value


def _checked_string(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput("text", f"must be text, not {type(value).__name__}")
    return value


def _checked_line(value: object) -> str:
    return validate.checked_line("text", value)


def _checked_evidence(value: object) -> str:
    return "" if value == "" else validate.checked_text("evidence", value)


def _checked_layer(value: object) -> Layer:
    for layer in LAYERS:
        if layer == value:
            return layer
    raise InvalidInput("layer", f"{value!r:.40} is not a layer", f"use one of {', '.join(LAYERS)}")


def _or_none(check: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else check(value)
