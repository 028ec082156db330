"""Values of a store as plain JSON data for both export formats, and back with every value checked.

Data is converted by the types of its fields; a table says what else must be true of a field. What is missing, wrong or
left over is a `TransferError` that says where. What can be computed from the rest (`token_count`, `content_hash`) is
written for readers and computed again when read, so that a changed text never carries the hash of another. Knows no
file.

The learning log is recalls with outcomes, their outcomes in order, and the settings of tenants:

    {"type": "recall", "id": "…", "partition": {…}, "at": "…", "query": "…", "profile": "default", "level": "base",
     "shown": 5, "entries": ["<entry id>", …], "base": "<float32>", "names": ["…"], "features": "<float32, row by row>"}
    {"type": "outcome", "recall": "<recall id>", "kind": "cited", "value": {"entries": ["<entry id>"]}, "at": "…"}
    {"type": "tenant", "tenant": "…", "shares": false, "starts": {…}}

Rows are entry ids, since row numbers are a store's own; rows of entries that are gone, or not in the export, are left
out, as learning leaves them out. Learned states are not written: the log gives the same ones. Outcomes from before a
reset teach nothing any more and stay behind, as do recalls without outcomes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, TransferError
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import Entry, Link, Partition, Turn
from wellworn.core.wellformed import count_tokens
from wellworn.ingest import validate
from wellworn.ingest.terms import content_hash
from wellworn.learning import records
from wellworn.learning.policy import LEVELS, SETTINGS, Tenant, dumps_tenant, loads_tenant
from wellworn.store.port import EmbeddingModel, Replaced, Selection, SessionHead, Store, StoreReader, Tx, Vector

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
    renamed = {"shelf": "partition"}  # up to version 2
    if type_ is SessionHead:
        renamed["session_id"] = "id"  # up to version 2, too
    values: Plain = {renamed.get(key) or key: value for key, value in data.items()}
    names = [f.name for f in fields(type_)]
    unknown = sorted(str(key) for key in values.keys() - set(names))
    missing = [name for name in names if name not in values] if complete else []
    if unknown or missing:
        raise ValueError(f"has unknown fields: {', '.join(unknown[:5])}" if unknown else f"has no field {missing[0]!r}")
    for name in _TIMES & values.keys():
        values[name] = validate.as_time(name, values[name])
    for name in _NESTED.keys() & values.keys():
        if values[name] is not None:
            values[name] = _prepared(_NESTED[name], values[name], complete)
    return values


def checked(value: T) -> T:
    """The value as the tables below want its fields, and all of it."""
    rules = RULES.get(type(value), {})
    given = {name: getattr(value, name) for name in rules}
    made: T = replace(value, **{name: rules[name](each) for name, each in given.items()})  # type: ignore[type-var]
    whole: T = WHOLE[type(value)](made) if type(value) in WHOLE else made
    return whole


def settled(entry: Entry) -> Entry:
    """The entry with the token count and content hash that belong to its text."""
    return replace(entry, token_count=count_tokens(entry.text), content_hash=content_hash(entry))


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
    length = float(np.linalg.norm(vector.astype(np.float64)))
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
    return partition.scope.home()


def _row_int(value: int) -> int:
    return validate.checked_count("number", value, least=-_MAX_INT, most=_MAX_INT - 1)


def _count(value: int) -> int:
    return validate.checked_count("number", value, most=_MAX_INT - 1)


def line(name: str) -> Check:
    return lambda value: validate.checked_line(name, value)


def or_none(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def or_empty(check: Check) -> Check:
    return lambda value: "" if value == "" else check(value)


_FROM_CALLERS = ("text", "title", "tags", "source", "speaker", "session_id", "turn_refs", "confidence", "metadata")
_COUNTERS = ("repeats", "usage_count", "success_count", "failure_count")
RULES: dict[type[Any], dict[str, Check]] = {
    Entry: {
        **{name: validate.CHECKS[name] for name in _FROM_CALLERS},
        **dict.fromkeys(_COUNTERS, _count),
        "id": checked_id,
        "partition": checked_partition,
        "evidence": or_empty(validate.CHECKS["evidence"]),
        "thread": or_none(_row_int),
        "position": or_none(_row_int),
    },
    Link: {"source": checked_id, "target": checked_id, "confidence": validate.CHECKS["confidence"]},
    TurnLine: {
        "partition": checked_partition,
        "session_id": validate.checked_session_id,
        "number": lambda value: validate.CHECKS["turn_refs"]([value])[0],
        "role": line("role"),
        "text": validate.CHECKS["text"],
        "speaker": validate.CHECKS["speaker"],
        "entry_id": or_none(checked_id),
    },
    SessionHead: {
        "partition": checked_partition,
        "id": validate.checked_session_id,
        "turns": _count,
        "reflected": _count,
    },
    Replaced: {"entry": checked, "change": line("change")},
    EmbeddingModel: {
        "name": line("name"),
        "width": lambda value: validate.checked_count("width", value, least=1, most=MAX_WIDTH),
    },
}
"""By type and field. Other modules add the rules of their own lines."""
WHOLE: dict[type[Any], Check] = {Entry: settled}
"""By type, what is checked or computed when each field is right."""


# -- the learning log --------------------------------------------------------------------------------------------------

PAGE = 500
OLD_KINDS = ("searched", "inferred")
"""What release 0.1 logged about searches: neither written nor taken over."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RecallLine:
    """A logged recall whose rows are named by entry ids instead of row numbers, and its numbers as bytes."""

    id: str
    partition: Partition
    at: datetime
    query: str
    profile: str
    level: str
    shown: int
    entries: list[str]
    base: bytes
    names: list[str]
    features: bytes

    def logged(self, no_of: dict[str, int]) -> records.LoggedRecall:
        """As the store logs it, without the rows of entries that have no number."""
        places = [place for place, entry_id in enumerate(self.entries) if entry_id in no_of]
        rows, columns = len(self.entries), len(self.names)
        return records.LoggedRecall(
            **_in_common(self),
            nos=[no_of[self.entries[place]] for place in places],
            shown=sum(place < self.shown for place in places),
            base=floats_of(self.base, rows)[places],
            features=floats_of(self.features, rows * columns).reshape(rows, columns)[places],
        )


def _in_common(recall: RecallLine | records.LoggedRecall) -> dict[str, Any]:
    """What a line and the log say alike."""
    names = ("id", "partition", "at", "query", "profile", "level", "names")
    return {name: getattr(recall, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class OutcomeLine:
    """An outcome of a recall; a citation names entries."""

    recall: str
    kind: str
    value: Plain
    at: datetime


@dataclass(frozen=True, kw_only=True)
class TenantLine:
    """What a tenant settled about learning."""

    tenant: str
    shares: bool
    starts: dict[str, dict[str, Any]]


def _ids(values: list[Any]) -> list[str]:
    return [checked_id(value) for value in values]


def _level(value: str) -> str:
    level = value.partition("+")[0]  # earlier releases appended how neighbours had changed places
    if level not in LEVELS:
        raise InvalidInput("level", f"{value!r:.40} is not one of {', '.join(LEVELS)}")
    return level


RULES[RecallLine] = {
    "id": line("id"),
    "partition": checked_partition,
    "query": or_empty(validate.CHECKS["text"]),
    "profile": line("profile"),
    "level": _level,
    "entries": _ids,
    "names": lambda names: [line("name")(name) for name in names],
}
RULES[OutcomeLine] = {"recall": line("recall")}
RULES[TenantLine] = {"tenant": line("tenant")}
_SAYS: dict[str, dict[str, Check]] = {
    "cited": {"entries": _ids},
    "used": {"quality": lambda value: validate.checked_fraction("quality", value)},
    "ignored": {},
    "refined": {"query": lambda _: ""},  # older releases kept its words
    "verdict": {"success": lambda value: validate.checked_flag("success", value)},
}
"""What an outcome of each kind says."""


def _fitting(recall: RecallLine) -> RecallLine:
    """The line, if its numbers are as many as its rows."""
    if not 0 <= recall.shown <= len(recall.entries):
        raise InvalidInput("shown", f"{recall.shown} of {len(recall.entries)} entries")
    recall.logged({})
    return recall


def _told(outcome: OutcomeLine) -> OutcomeLine:
    """The line, if it says what its kind can say."""
    says = _SAYS.get(outcome.kind)
    if says is None or outcome.value.keys() != says.keys():
        raise InvalidInput("value", f"{outcome.value!r:.60} is not what an outcome {outcome.kind!r:.40} says")
    return replace(outcome, value={name: check(outcome.value[name]) for name, check in says.items()})


WHOLE |= {RecallLine: _fitting, OutcomeLine: _told}


def log_lines(store: StoreReader, partitions: Sequence[Partition], ids: Collection[str]) -> Iterator[Plain]:
    """The log of these partitions as far as these entries are in it, tenant by tenant."""
    for tenant in dict.fromkeys(partition.tenant for partition in partitions):
        settings = loads_tenant(records.stored_policy(store, tenant, None, profile=SETTINGS))
        if not settings.shares or settings.starts:
            yield {"type": "tenant", "tenant": tenant, "shares": settings.shares, "starts": settings.starts}
        yield from _outcomes(store, tenant, frozenset(partitions), ids, settings.since)


def _outcomes(
    store: StoreReader, tenant: str, partitions: frozenset[Partition], ids: Collection[str], after: int
) -> Iterator[Plain]:
    written: set[str] = set()
    found = records.outcomes(store, tenant, after=after)
    while page := [*islice(found, PAGE)]:
        entries = store.read(sorted({no for outcome in page for no in outcome.recall.nos}))
        id_of = {no: entry.id for no, entry in entries.items() if entry.id in ids}
        for outcome in page:
            recall = outcome.recall
            shown = sum(no in id_of for no in recall.nos[: recall.shown])
            if recall.partition not in partitions or not shown or outcome.kind in OLD_KINDS:
                continue  # nothing of what was shown is left to learn about
            if recall.id not in written:
                written.add(recall.id)
                yield {"type": "recall", **to_plain(_recall_line(recall, id_of, shown))}
            value = dict(outcome.value)
            if outcome.kind == "cited":
                value = {"entries": [id_of[no] for no in value["nos"] if no in id_of]}
            elif outcome.kind == "refined":
                value = {"query": ""}
            told = OutcomeLine(recall=recall.id, kind=outcome.kind, value=value, at=outcome.at)
            yield {"type": "outcome", **to_plain(told)}


def _recall_line(recall: records.LoggedRecall, id_of: dict[int, str], shown: int) -> RecallLine:
    places = [place for place, no in enumerate(recall.nos) if no in id_of]
    return RecallLine(
        **_in_common(recall) | {"level": recall.level.partition("+")[0]},  # as `_level` reads it
        shown=shown,
        entries=[id_of[recall.nos[place]] for place in places],
        base=float_bytes(recall.base[places]),
        features=float_bytes(recall.features[places]),
    )


def admit_log(
    store: Store, tx: Tx, recalls: Sequence[RecallLine], outcomes: Sequence[OutcomeLine], tenants: Sequence[TenantLine]
) -> int:
    """Append what is not in the log yet, in order; returns how many outcomes were new. Their entries must be there."""
    ids = list(dict.fromkeys(entry_id for recall in recalls for entry_id in recall.entries))
    no_of = {entry.id: no for no, entry in store.select(None, Selection(ids=ids))}
    partition_of = {recall.id: recall.partition for recall in recalls}
    for recall in recalls:
        there = records.logged_recall(tx, recall.id)
        if there is None:
            records.add_recalls(tx, [recall.logged(no_of)])
        elif there.partition != recall.partition:
            raise TransferError(f"recall {recall.id} is in this store already, on another partition")
    added = 0
    for outcome in outcomes:
        value = outcome.value
        if outcome.kind == "cited":
            value = {"nos": [no_of[entry_id] for entry_id in value["entries"] if entry_id in no_of]}
        partition = partition_of[outcome.recall]
        added += records.add_outcome(tx, outcome.recall, partition, outcome.kind, value, outcome.at) is not None
    for given in tenants:
        _settle(tx, given.tenant, Tenant(shares=given.shares, starts=given.starts))
    return added


def _settle(tx: Tx, tenant: str, given: Tenant) -> None:
    """An opt-out counts wherever it was made, and what was shared until now goes; pretraining fills gaps only."""
    here = loads_tenant(records.stored_policy(tx, tenant, None, profile=SETTINGS))
    settings = replace(here, shares=here.shares and given.shares, starts=given.starts | here.starts)
    if settings.shares != here.shares:
        records.drop_policies(tx, tenant)
    if settings != here:
        records.put_policy(tx, tenant, None, dumps_tenant(settings), profile=SETTINGS)
