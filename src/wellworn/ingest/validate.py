"""Outside input, checked once: everything past this module is known to be well-formed.

Knows the limits and what each message should say. Changes nothing anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypedDict, cast

from wellworn.core.errors import InvalidInput, ScopeError, UnknownKind
from wellworn.core.values import (
    KINDS,
    LINK_TYPES,
    MAX_NAME_CHARS,
    STATES,
    Kind,
    Layer,
    LinkType,
    Partition,
    Scope,
    State,
    Trust,
)
from wellworn.ingest.times import TimeLike, as_time

MAX_TEXT_BYTES = 1_000_000
MAX_QUERY_CHARS = 20_000
MAX_TAGS = 64
MAX_METADATA_BYTES = 64_000
MAX_K = 10_000
JOB_STATES = ("queued", "running", "done", "dead")
CALL_GROUPS = ("tenant", "purpose", "model", "day")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A text to remember with everything said about it: the keywords of `Memory.remember`, unchecked."""

    text: str
    kind: str = "note"
    title: str = ""
    tags: Sequence[str] = ()
    layer: str | None = None
    session_id: str | None = None
    turn_refs: Sequence[int] = ()
    evidence: str | None = None
    source: str = "interaction"
    speaker: str | None = None
    confidence: float = 0.8
    trust: str = "trusted"
    at: TimeLike = None
    valid_from: TimeLike = None
    valid_to: TimeLike = None
    metadata: Mapping[str, Any] | None = None


class Details(TypedDict, total=False):
    """What `Memory.remember` can be told about a text, beside its kind."""

    title: str
    tags: Sequence[str]
    layer: Layer | None
    session_id: str | None
    turn_refs: Sequence[int]
    evidence: str | None
    """The verbatim source that the text rests on; the text itself when left out."""
    source: str
    speaker: str | None
    confidence: float
    trust: Trust
    at: TimeLike
    """When it happened; now when left out."""
    valid_from: TimeLike
    valid_to: TimeLike
    metadata: Mapping[str, Any] | None
    """Any JSON values of your own."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A draft whose every value is known to be good."""

    partition: Partition
    text: str
    kind: Kind
    title: str
    tags: list[str]
    session_id: str | None
    turn_refs: list[int]
    evidence: str | None
    source: str
    speaker: str | None
    confidence: float
    trust: Trust
    at: datetime
    valid_from: datetime
    valid_to: datetime | None
    metadata: dict[str, Any]


_DRAFT_FIELDS = frozenset(f.name for f in fields(Draft))


def drafts_of(items: Iterable[str | Mapping[str, Any] | Draft], common: Mapping[str, Any]) -> list[Draft]:
    """Items of `remember_many` as drafts; `common` fills what a text or mapping leaves open."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InvalidInput("items", f"is one {type(items).__name__}", "give a list of them, or call remember")
    return [_draft_of(number, item, common) for number, item in enumerate(items)]


def _draft_of(number: int, item: object, common: Mapping[str, Any]) -> Draft:
    if isinstance(item, Draft):
        if common:
            raise InvalidInput(
                f"items[{number}]", f"is a Draft, which says all itself, but {', '.join(sorted(common))} is given too"
            )
        return item
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, Mapping):
        raise InvalidInput(f"items[{number}]", f"is a {type(item).__name__}", "use a text, a mapping or a Draft")
    keywords = {**common, **item}
    unknown = sorted(str(key) for key in keywords if key not in _DRAFT_FIELDS)
    if unknown or "text" not in keywords:
        problem = f"has unknown keys {unknown}" if unknown else "has no 'text'"
        raise InvalidInput(f"items[{number}]", problem, f"keys are {', '.join(sorted(_DRAFT_FIELDS))}")
    return Draft(**keywords)


def check(draft: Draft, scope: Scope, now: datetime) -> Checked:
    """The draft as it will be stored, or one error that names the first bad value."""
    at = as_time("at", draft.at) or now
    # A turn dated ahead of the clock is still recallable at once; a fact may begin later on purpose.
    valid_from = as_time("valid_from", draft.valid_from) or min(at, now)
    valid_to = as_time("valid_to", draft.valid_to)
    if valid_to is not None and valid_to <= valid_from:
        raise InvalidInput("valid_to", f"{valid_to.isoformat()} is not after valid_from {valid_from.isoformat()}")
    return Checked(
        partition=scope.home(checked_layer(draft.layer)),
        text=checked_text("text", draft.text),
        kind=checked_kind(draft.kind),
        title=checked_line("title", draft.title),
        tags=checked_tags(draft.tags),
        session_id=checked_session_id(draft.session_id) if draft.session_id is not None else None,
        turn_refs=checked_turn_refs(draft.turn_refs),
        evidence=checked_text("evidence", draft.evidence) if draft.evidence is not None else None,
        source=checked_line("source", draft.source),
        speaker=checked_line("speaker", draft.speaker) if draft.speaker is not None else None,
        confidence=checked_fraction("confidence", draft.confidence),
        trust=checked_trust(draft.trust),
        at=at,
        valid_from=valid_from,
        valid_to=valid_to,
        metadata=checked_metadata({} if draft.metadata is None else draft.metadata),
    )


def checked_scope(scope: object) -> Scope:
    if not isinstance(scope, Scope):
        raise ScopeError(
            "scope", f"must be a Scope, not {type(scope).__name__}", "as in Scope(tenant='acme', user='ada')"
        )
    return scope


def checked_id(value: object) -> str:
    """An entry's id as text; whether there is such an entry is for the store to say."""
    return checked_line("id", value)


def checked_ids(values: object) -> list[str]:
    """Ids in the order given, without repeats."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput("ids", f"{values!r} is not a list of ids", "give a list")
    return list(dict.fromkeys(checked_id(value) for value in values))


def checked_flag(field_name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field_name, f"{value!r} is neither True nor False")
    return value


def checked_count(field_name: str, value: object, *, least: int = 0, most: int = 2**31) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(field_name, f"{_shown(value)} is not a whole number from {least} to {most:,}")
    return value


def checked_job_state(value: object) -> str:
    if value not in JOB_STATES:
        raise InvalidInput("state", f"{_shown(value)} is not a state of jobs", f"use one of {', '.join(JOB_STATES)}")
    return str(value)


def checked_groups(values: object) -> list[str]:
    """What model calls are added up by."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput("by", f"{_shown(values)} is not a list", f"any of {', '.join(CALL_GROUPS)}")
    found = [*values]
    for value in found:
        if value not in CALL_GROUPS:
            raise InvalidInput("by", f"{_shown(value)} is not known", f"any of {', '.join(CALL_GROUPS)}")
    return found


def checked_seconds(field_name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise InvalidInput(field_name, f"{_shown(value)} is not a number of seconds from 0")
    return float(value)


def _shown(value: object) -> str:
    """A value for a message, cut to a length a person reads."""
    try:
        text = repr(value)
    except Exception as error:  # a number too long to print, or someone's own __repr__
        return f"a {type(value).__name__} ({type(error).__name__})"
    return text if len(text) <= 60 else f"{text[:57]}…"


def checked_layer(layer: object) -> str | None:
    if layer is not None and not isinstance(layer, str):
        raise ScopeError("layer", f"must be text, not {type(layer).__name__}")
    return layer


def checked_text(field_name: str, text: object) -> str:
    """Text that can be stored, searched and exported as it is."""
    value = _clean_str(field_name, text)
    if not value.strip():
        raise InvalidInput(field_name, "is empty")
    size = len(value.encode())
    if size > MAX_TEXT_BYTES:
        raise InvalidInput(
            field_name, f"has {size:,} bytes, the limit is {MAX_TEXT_BYTES:,}", "split it, or store a summary"
        )
    return value


def checked_line(field_name: str, text: object) -> str:
    value = _clean_str(field_name, text)
    if len(value) > MAX_NAME_CHARS:
        raise InvalidInput(field_name, f"has {len(value)} characters", f"use at most {MAX_NAME_CHARS}")
    return value


def checked_session_id(value: object) -> str:
    session_id = checked_line("session_id", value)
    if not session_id.strip():
        raise InvalidInput("session_id", "is empty")
    return session_id


def checked_query(query: object) -> str:
    """A question; anything readable will do, query syntax of any engine has no meaning here."""
    value = _clean_str("query", query)
    if not value.strip():
        raise InvalidInput("query", "is empty")
    if len(value) > MAX_QUERY_CHARS:
        raise InvalidInput("query", f"has {len(value):,} characters", f"use at most {MAX_QUERY_CHARS:,}")
    return value


def checked_k(k: object) -> int:
    return checked_count("k", k, least=1, most=MAX_K)


def _clean_str(field_name: str, text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput(field_name, f"must be text, not {type(text).__name__}")
    nul = text.find("\x00")
    if nul >= 0:
        raise InvalidInput(field_name, f"has a NUL character at position {nul}", "remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            field_name, f"has a lone surrogate at position {error.start}", "decode the source as UTF-8"
        ) from None
    return text


def checked_kind(kind: object) -> Kind:
    if kind not in KINDS:
        raise UnknownKind("kind", f"{kind!r} is not a kind", f"use one of {', '.join(KINDS)}")
    return cast("Kind", kind)  # just checked against the same literal


def checked_state(state: object) -> State:
    if state not in STATES:
        raise InvalidInput("state", f"{state!r} is not a state", f"use one of {', '.join(STATES)}")
    return cast("State", state)  # just checked against the same literal


def checked_link_type(type_: object) -> LinkType:
    if type_ not in LINK_TYPES:
        raise InvalidInput("type", f"{type_!r} is not a link type", f"use one of {', '.join(LINK_TYPES)}")
    return cast("LinkType", type_)  # just checked against the same literal


def checked_trust(trust: object) -> Trust:
    if trust in ("trusted", "untrusted"):
        return trust
    raise InvalidInput("trust", f"{trust!r} is not a trust level", "use trusted or untrusted")


def checked_fraction(field_name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:  # not-a-number is neither
        raise InvalidInput(field_name, f"{_shown(value)} is not a number from 0 to 1")
    return float(value)


def checked_tags(tags: object) -> list[str]:
    """Tags in the order given, without repeats."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidInput("tags", f"{tags!r} is not a list of texts", "as in tags=['rust']")
    found = list(dict.fromkeys(checked_line("tags", tag).strip() for tag in tags))
    if "" in found:
        raise InvalidInput("tags", "holds an empty tag")
    if len(found) > MAX_TAGS:
        raise InvalidInput("tags", f"holds {len(found)} tags", f"use at most {MAX_TAGS}")
    return found


def checked_turn_refs(refs: object) -> list[int]:
    if isinstance(refs, str) or not isinstance(refs, Iterable):
        raise InvalidInput("turn_refs", f"{refs!r} is not a list of turn numbers")
    found = list(refs)
    for ref in found:
        if isinstance(ref, bool) or not isinstance(ref, int) or not 0 <= ref < 2**31:
            raise InvalidInput("turn_refs", f"{ref!r} is not a turn number", "turns count from 0")
    return found


def checked_metadata(metadata: object) -> dict[str, Any]:
    """A JSON object that survives a round trip."""
    if not isinstance(metadata, Mapping):
        raise InvalidInput("metadata", f"must be a mapping, not {type(metadata).__name__}")
    if not metadata:
        return {}
    if not all(isinstance(key, str) for key in metadata):
        raise InvalidInput("metadata", "has a key that is not text", "JSON objects have text keys")
    try:
        encoded = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
        encoded.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("metadata", f"is not plain JSON: {error}") from None
    if len(encoded) > MAX_METADATA_BYTES:
        raise InvalidInput("metadata", f"has {len(encoded):,} bytes", f"use at most {MAX_METADATA_BYTES:,}")
    return cast("dict[str, Any]", json.loads(encoded))  # a JSON object, as dumped above
