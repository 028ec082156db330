"""The learning log in an export: recalls with outcomes, their outcomes in order, and the settings of tenants.

    {"type": "recall", "id": "…", "partition": {…}, "at": "…", "query": "…", "profile": "default", "level": "base",
     "shown": 5, "entries": ["<entry id>", …], "base": "<float32>", "names": ["…"], "features": "<float32, row by row>"}
    {"type": "outcome", "recall": "<recall id>", "kind": "cited", "value": {"entries": ["<entry id>"]}, "at": "…"}
    {"type": "tenant", "tenant": "…", "shares": false, "starts": {…}}

Rows are entry ids, since row numbers are a store's own; rows of entries that are gone, or not in the export, are left
out, as learning leaves them out. Learned states are not written: the log gives the same ones. Outcomes from before a
reset teach nothing any more and stay behind, as do recalls without outcomes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, TransferError
from wellworn.core.plain import to_plain
from wellworn.core.values import Partition
from wellworn.ingest.validate import CHECKS, checked_flag, checked_fraction
from wellworn.learning.policy import LEVELS
from wellworn.learning.records import (
    LoggedRecall,
    add_outcome,
    add_recalls,
    drop_policies,
    logged_recall,
    outcomes,
    put_policy,
    stored_policy,
)
from wellworn.learning.state import SETTINGS, Tenant, dumps_tenant, loads_tenant
from wellworn.ops.lines import (
    RULES,
    Check,
    Plain,
    checked_id,
    checked_partition,
    float_bytes,
    floats_of,
    line,
    or_empty,
)
from wellworn.store.port import Selection, Store, StoreReader, Tx

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

    def logged(self, no_of: dict[str, int]) -> LoggedRecall:
        """As the store logs it, without the rows of entries that have no number."""
        places = [place for place, entry_id in enumerate(self.entries) if entry_id in no_of]
        rows, columns = len(self.entries), len(self.names)
        return LoggedRecall(
            id=self.id,
            partition=self.partition,
            at=self.at,
            query=self.query,
            profile=self.profile,
            level=self.level,
            nos=[no_of[self.entries[place]] for place in places],
            shown=sum(place < self.shown for place in places),
            base=floats_of(self.base, rows)[places],
            names=self.names,
            features=floats_of(self.features, rows * columns).reshape(rows, columns)[places],
        )


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
    "query": or_empty(CHECKS["text"]),
    "profile": line("profile"),
    "level": _level,
    "entries": _ids,
    "names": lambda names: [line("name")(name) for name in names],
}
RULES[OutcomeLine] = {"recall": line("recall")}
RULES[TenantLine] = {"tenant": line("tenant")}
_SAYS: dict[str, dict[str, Check]] = {
    "cited": {"entries": _ids},
    "used": {"quality": lambda value: checked_fraction("quality", value)},
    "ignored": {},
    "refined": {"query": or_empty(CHECKS["text"])},
    "verdict": {"success": lambda value: checked_flag("success", value)},
}
"""What an outcome of each kind says."""


def check_recall(recall: RecallLine) -> RecallLine:
    """The line, if its numbers are as many as its rows."""
    if not 0 <= recall.shown <= len(recall.entries):
        raise InvalidInput("shown", f"{recall.shown} of {len(recall.entries)} entries")
    recall.logged({})
    return recall


def check_outcome(outcome: OutcomeLine) -> OutcomeLine:
    """The line, if it says what its kind can say."""
    says = _SAYS.get(outcome.kind)
    if says is None or outcome.value.keys() != says.keys():
        raise InvalidInput("value", f"{outcome.value!r:.60} is not what an outcome {outcome.kind!r:.40} says")
    return replace(outcome, value={name: check(outcome.value[name]) for name, check in says.items()})


def log_lines(store: StoreReader, partitions: Sequence[Partition], ids: Collection[str]) -> Iterator[Plain]:
    """The log of these partitions as far as these entries are in it, tenant by tenant."""
    for tenant in dict.fromkeys(partition.tenant for partition in partitions):
        settings = loads_tenant(stored_policy(store, tenant, None, profile=SETTINGS))
        if not settings.shares or settings.starts:
            yield {"type": "tenant", "tenant": tenant, "shares": settings.shares, "starts": settings.starts}
        yield from _outcomes(store, tenant, frozenset(partitions), ids, settings.since)


def _outcomes(
    store: StoreReader, tenant: str, partitions: frozenset[Partition], ids: Collection[str], after: int
) -> Iterator[Plain]:
    written: set[str] = set()
    while page := outcomes(store, tenant, after=after, limit=PAGE):
        after = page[-1].no
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
            elif outcome.kind == "refined" and not recall.query:
                value = {"query": ""}  # the words of the recall were forgotten
            told = OutcomeLine(recall=recall.id, kind=outcome.kind, value=value, at=outcome.at)
            yield {"type": "outcome", **to_plain(told)}


def _recall_line(recall: LoggedRecall, id_of: dict[int, str], shown: int) -> RecallLine:
    places = [place for place, no in enumerate(recall.nos) if no in id_of]
    return RecallLine(
        id=recall.id,
        partition=recall.partition,
        at=recall.at,
        query=recall.query,
        profile=recall.profile,
        level=recall.level,
        shown=shown,
        entries=[id_of[recall.nos[place]] for place in places],
        base=float_bytes(recall.base[places]),
        names=list(recall.names),
        features=float_bytes(recall.features[places]),
    )


def admit_log(
    store: Store, tx: Tx, recalls: Sequence[RecallLine], outcomes: Sequence[OutcomeLine], tenants: Sequence[TenantLine]
) -> int:
    """Append what is not in the log yet, in order; returns how many outcomes were new. Their entries must be there."""
    no_of = _numbers(store, recalls)
    partition_of = {recall.id: recall.partition for recall in recalls}
    for recall in recalls:
        there = logged_recall(tx, recall.id)
        if there is None:
            add_recalls(tx, [recall.logged(no_of)])
        elif there.partition != recall.partition:
            raise TransferError(f"recall {recall.id} is in this store already, on another partition")
    added = 0
    for outcome in outcomes:
        value = outcome.value
        if outcome.kind == "cited":
            value = {"nos": [no_of[entry_id] for entry_id in value["entries"] if entry_id in no_of]}
        partition = partition_of[outcome.recall]
        added += add_outcome(tx, outcome.recall, partition, outcome.kind, value, outcome.at) is not None
    for given in tenants:
        _settle(tx, given.tenant, Tenant(shares=given.shares, starts=given.starts))
    return added


def _settle(tx: Tx, tenant: str, given: Tenant) -> None:
    """An opt-out counts wherever it was made, and what was shared until now goes; pretraining fills gaps only."""
    here = loads_tenant(stored_policy(tx, tenant, None, profile=SETTINGS))
    settings = replace(here, shares=here.shares and given.shares, starts=given.starts | here.starts)
    if settings.shares != here.shares:
        drop_policies(tx, tenant)
    if settings != here:
        put_policy(tx, tenant, None, dumps_tenant(settings), profile=SETTINGS)


def _numbers(store: Store, recalls: Sequence[RecallLine]) -> dict[str, int]:
    """Row numbers of all the entries."""
    ids = list(dict.fromkeys(entry_id for recall in recalls for entry_id in recall.entries))
    return {entry.id: no for no, entry in store.select(None, Selection(ids=ids))}
