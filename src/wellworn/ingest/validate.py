"""Outside input, checked once: everything past this module is known to be well-formed.

Knows the limits and what each message should say: the value that is wrong, and the remedy. Changes nothing anywhere.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

from wellworn.core.clock import EPOCH
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, ScopeError, UnknownKind
from wellworn.core.scope import LAYERS, MAX_NAME_CHARS, Layer, Partition, Scope
from wellworn.core.values import (
    KINDS,
    LINK_TYPES,
    STATES,
    Entry,
    Kind,
    LinkType,
    Progress,
    State,
    Trust,
    altered,
    unwatched,
)

MAX_TEXT_BYTES = 1_000_000
MAX_QUERY_CHARS = 20_000
MAX_TAGS = 64
MAX_METADATA_BYTES = 64_000
WAIT_S = 30.0
"""For work in the background, where the caller says only that it waits."""
MAX_K = 10_000
MAX_LISTED = 1_000_000
JOB_STATES = ("queued", "running", "done", "dead")
CALL_GROUPS = ("tenant", "purpose", "model", "day")

TimeLike = datetime | date | str | None
T = TypeVar("T")


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


def refuse_unknown(call: str, given: Collection[str], *known: Collection[str]) -> None:
    """Refuse keywords that a call does not take, and name the nearest one that it does."""
    names = [name for some in known for name in some]
    for name in given:
        if name not in names:
            from difflib import get_close_matches

            near = get_close_matches(str(name), names, n=1)
            raise InvalidInput(str(name), f"{call} takes no such argument", f"did you mean {near[0]}?" if near else "")


def drafts_of(items: Iterable[str | Mapping[str, Any] | Draft], common: Mapping[str, Any]) -> list[Draft]:
    """Items of `remember_many` as drafts; `common` fills what a text or mapping leaves open."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InvalidInput("items", f"is one {type(items).__name__}", "give a list of them, or call remember")
    return [_draft_of(number, item, common) for number, item in enumerate(items)]


def _draft_of(number: int, item: object, common: Mapping[str, Any]) -> Draft:
    if isinstance(item, Draft):
        if common:
            problem = f"is a Draft, which says all itself, but {', '.join(sorted(common))} is given too"
            raise InvalidInput(f"items[{number}]", problem)
        return item
    if isinstance(item, str):
        item = {"text": item}
    elif not isinstance(item, Mapping):
        raise InvalidInput(f"items[{number}]", f"is a {type(item).__name__}", "use a text, a mapping or a Draft")
    keywords = {**common, **item}
    if not keywords.keys() <= _LEFT_OUT.keys() or "text" not in keywords:
        unknown = sorted(map(str, keywords.keys() - _LEFT_OUT.keys()))
        problem = f"has unknown keys {unknown}" if unknown else "has no 'text'"
        raise InvalidInput(f"items[{number}]", problem, f"keys are {', '.join(sorted(_LEFT_OUT))}")
    return altered(_NEW_DRAFT, **keywords)


def of_item(error: InvalidInput, number: int, total: int) -> InvalidInput:
    """The error with its place among several items."""
    return error if total == 1 else type(error)(f"items[{number}].{error.field}", error.problem, error.remedy)


def check(draft: Draft, scope: Scope, now: datetime) -> Entry:
    """The draft as an entry without id, hash and token count, or one error that names the first bad value."""
    given = vars(draft)
    values: dict[str, Any] = {"metadata": {}, "tags": [], "turn_refs": []}  # of the caller's fields, by name
    for name, checked in CHECKS.items():
        if given[name] is not _LEFT_OUT[name]:
            values[name] = checked(given[name])
    at, valid_to = values.get("at") or now, values.get("valid_to")
    # A turn dated ahead of the clock is still recallable at once; a fact may begin later on purpose.
    valid_from = values.get("valid_from") or min(at, now)
    refuse_backwards(valid_from, valid_to)
    values |= {"at": at, "valid_from": valid_from, "evidence": values.get("evidence") or ""}
    home = scope.home(checked_layer(draft.layer))
    return altered(_NEW_ENTRY, partition=home, created_at=now, updated_at=now, **values)


def refuse_backwards(valid_from: datetime, valid_to: datetime | None) -> None:
    if valid_to is not None and valid_to <= valid_from:
        raise InvalidInput("valid_to", f"{valid_to.isoformat()} is not after valid_from {valid_from.isoformat()}")


# -- values of any kind ------------------------------------------------------------------------------------------------


def shown(value: object) -> str:
    """A value for a message, cut to a length a person reads."""
    try:
        text = repr(value)
    except Exception as error:  # a number too long to print, or someone's own __repr__
        return f"a {type(value).__name__} ({type(error).__name__})"
    return text if len(text) <= 60 else f"{text[:57]}…"


def _one_of(
    name: str, choices: Sequence[str], what: str, error: type[InvalidInput] = InvalidInput
) -> Callable[[object], Any]:  # one of the choices
    def checked(value: object) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise error(name, f"{shown(value)} is not {what}", f"use one of {', '.join(choices)}")
        return value

    return checked


def _listed(name: str, values: object, what: str, remedy: str = "give a list") -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(name, f"{shown(values)} is not a list of {what}", remedy)
    listed = [*islice(values, MAX_LISTED + 1)]
    if len(listed) > MAX_LISTED:
        raise InvalidInput(name, f"holds more than {MAX_LISTED:,} {what}", "give them in parts")
    return listed


def _pairs(name: str, values: object, what: str, remedy: str) -> list[tuple[Any, Any]]:
    listed = _listed(name, values, name, remedy)
    for one in listed:
        if not isinstance(one, tuple | list) or len(one) != 2:
            raise InvalidInput(name, f"{shown(one)} is not {what}", remedy)
    return [(first, second) for first, second in listed]


def _number(name: str, value: object, most: float, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:  # NaN is neither
        raise InvalidInput(name, f"{shown(value)} is not {what}")
    return float(value)


def checked_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(name, f"{shown(value)} is neither true nor false")
    return value


def checked_count(name: str, value: object, *, least: int = 0, most: int = 2**31) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(name, f"{shown(value)} is not a whole number from {least} to {most:,}")
    return value


def checked_progress(progress: object) -> Progress:
    """What is told how far a call has come; for None, nobody."""
    if progress is not None and not callable(progress):
        raise InvalidInput("progress", f"{shown(progress)} cannot be called", "give a function of done and total")
    return unwatched if progress is None else cast("Progress", progress)


def checked_path(name: str, path: object) -> Path:
    """A path that the file system can look at; whether there is something is not asked here."""
    if not isinstance(path, str | os.PathLike) or not isinstance(given := os.fspath(path), str):
        raise InvalidInput(name, f"{shown(path)} is not a path", "give a text or a Path")
    found = Path(_readable(name, given, blank=False))
    try:
        found.exists()
    except OSError as error:
        raise InvalidInput(name, f"{shown(path)}: {error.strerror or error}", "give another path") from None
    return found


def checked_fraction(name: str, value: object) -> float:
    return _number(name, value, 1, "a number from 0 to 1")


def checked_seconds(name: str, value: object) -> float:
    return _number(name, value, sys.float_info.max, "a number of seconds from 0")


def checked_wait(value: object) -> float:
    """Seconds to wait for work in the background; True is `WAIT_S`."""
    return WAIT_S * value if isinstance(value, bool) else checked_seconds("wait", value)


def as_time(name: str, value: TimeLike) -> datetime | None:
    """The moment in UTC, or None; a time without a zone is UTC. Anything unreadable is an error that shows it."""
    if value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            remedy = "use ISO 8601, as in 2026-05-01T09:30"
            raise InvalidInput(name, f"{text[:40]!r} is not a time", remedy) from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise InvalidInput(name, f"must be a time, not {type(value).__name__}", "use a datetime or ISO 8601 text")
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(name, f"{value!r} lies outside the calendar in UTC") from None


# -- texts -------------------------------------------------------------------------------------------------------------


def _readable(name: str, text: object, *, blank: bool = True) -> str:
    """Text that every encoder and store takes."""
    if not isinstance(text, str):
        raise InvalidInput(name, f"must be text, not {type(text).__name__}")
    nul = text.find("\x00")
    if nul >= 0:
        raise InvalidInput(name, f"has a NUL character at position {nul}", "remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = f"has a lone surrogate at position {error.start}"
        raise InvalidInput(name, problem, "decode the source as UTF-8") from None
    if not blank and not text.strip():
        raise InvalidInput(name, "is empty")
    return text


def checked_text(name: str, text: object) -> str:
    """Text that can be stored, searched and exported as it is."""
    value = _readable(name, text, blank=False)
    size = len(value.encode())
    if size > MAX_TEXT_BYTES:
        problem = f"has {size:,} bytes, the limit is {MAX_TEXT_BYTES:,}"
        raise InvalidInput(name, problem, "split it, or store a summary")
    return value


def checked_line(name: str, text: object, *, blank: bool = True) -> str:
    value = _readable(name, text, blank=blank)
    if len(value) > MAX_NAME_CHARS:
        raise InvalidInput(name, f"has {len(value)} characters", f"use at most {MAX_NAME_CHARS}")
    return value


def checked_query(query: object) -> str:
    """A question; anything readable will do, query syntax of any engine has no meaning here."""
    value = _readable("query", query, blank=False)
    if len(value) > MAX_QUERY_CHARS:
        raise InvalidInput("query", f"has {len(value):,} characters", f"use at most {MAX_QUERY_CHARS:,}")
    return value


def checked_session_id(value: object) -> str:
    return checked_line("session_id", value, blank=False)


def checked_id(value: object) -> str:
    """An entry's id as text; whether there is such an entry is for the store to say."""
    return checked_line("id", value)


def checked_ids(values: object, name: str = "ids") -> list[str]:
    """Ids in the order given, without repeats."""
    return list(dict.fromkeys(checked_id(value) for value in _listed(name, values, name)))


def checked_turns(turns: object) -> list[tuple[str, str]]:
    """What was said, each a role and a text."""
    return _pairs("turns", turns, "a role and a text", "as in [('user', 'I moved to Bergen.')]")


def checked_pairs(pairs: object) -> list[tuple[str, list[str]]]:
    """Queries, each with the ids of its right entries."""
    given = _pairs("pairs", pairs, "a query with ids", "as in [['query', ['id']]]")
    return [(checked_query(query), checked_ids(ids)) for query, ids in given]


def checked_tags(tags: object) -> list[str]:
    """Tags in the order given, without repeats."""
    listed = _listed("tags", tags, "texts", "as in ['rust']")
    found = list(dict.fromkeys(checked_line("tags", tag).strip() for tag in listed))
    if "" in found:
        raise InvalidInput("tags", "holds an empty tag")
    if len(found) > MAX_TAGS:
        raise InvalidInput("tags", f"holds {len(found)} tags", f"use at most {MAX_TAGS}")
    return found


# -- what only we know -------------------------------------------------------------------------------------------------


def checked_scope(scope: object) -> Scope:
    if not isinstance(scope, Scope):
        problem = f"must be a Scope, not {type(scope).__name__}"
        raise ScopeError("scope", problem, "as in Scope(tenant='acme', user='ada')")
    return scope


def scope_of_user(user: object, tenant: str, layers: Mapping[str, str]) -> Scope:
    """The scope of `for_user`, which names somebody."""
    refuse_unknown("for_user", layers, LAYERS)
    if user is None:  # to a scope this is one without a user
        raise ScopeError("user", "must be text, not NoneType", "name somebody, as in for_user('ada')")
    return Scope(tenant=tenant, user=user, **layers)  # type: ignore[arg-type]  # Scope checks it


def checked_layer(layer: object) -> str | None:
    if layer is not None and not isinstance(layer, str):
        raise ScopeError("layer", f"must be text, not {type(layer).__name__}")
    return layer


def checked_k(k: object, name: str = "k") -> int:
    return checked_count(name, k, least=1, most=MAX_K)


checked_kind: Callable[[object], Kind] = _one_of("kind", KINDS, "a kind", UnknownKind)
checked_state: Callable[[object], State] = _one_of("state", STATES, "a state")
checked_link_type: Callable[[object], LinkType] = _one_of("type", LINK_TYPES, "a link type")
checked_trust: Callable[[object], Trust] = _one_of("trust", ("trusted", "untrusted"), "a trust level")
checked_job_state: Callable[[object], str] = _one_of("state", JOB_STATES, "a state of jobs")
_checked_group = _one_of("by", CALL_GROUPS, "known")


def checked_groups(values: object) -> list[str]:
    """What model calls are summed by."""
    return [_checked_group(value) for value in _listed("by", values, "names", f"any of {', '.join(CALL_GROUPS)}")]


def checked_turn_refs(refs: object) -> list[int]:
    return [checked_count("turn_refs", ref, most=2**31 - 1) for ref in _listed("turn_refs", refs, "turn numbers")]


def checked_places(cited: object) -> tuple[int, ...]:
    """Places in the hits of a recall, without repeats; they count from 0."""
    places = _listed("cited", cited, "places", "as in [0, 2]")
    return tuple(dict.fromkeys(checked_count("cited", place) for place in places))


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


def _with(checked: Callable[[str, Any], T], name: str) -> Callable[[Any], T]:
    return lambda value: checked(name, value)


def _optional(checked: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else checked(value)


CHECKS: dict[str, Callable[[Any], Any]] = {
    "text": _with(checked_text, "text"),
    "kind": checked_kind,
    "title": _with(checked_line, "title"),
    "tags": checked_tags,
    "session_id": _optional(checked_session_id),
    "turn_refs": checked_turn_refs,
    "evidence": _optional(_with(checked_text, "evidence")),
    "source": _with(checked_line, "source"),
    "speaker": _optional(_with(checked_line, "speaker")),
    "confidence": _with(checked_fraction, "confidence"),
    "trust": checked_trust,
    "at": _with(as_time, "at"),
    "valid_from": _with(as_time, "valid_from"),
    "valid_to": _with(as_time, "valid_to"),
    "metadata": checked_metadata,
}
"""The check of every field that a caller gives of an entry."""
_LEFT_OUT: dict[str, Any] = {one.name: one.default for one in fields(Draft)}
"""What a draft has where the caller says nothing; it is right, and the same in a new entry."""
_NEW_DRAFT = Draft(text="")
_NEW_ENTRY = Entry(
    id="",
    partition=Partition(tenant="", layer="user", layer_id=""),
    kind="note",
    text="",
    at=EPOCH,
    created_at=EPOCH,
    updated_at=EPOCH,
    valid_from=EPOCH,
)
