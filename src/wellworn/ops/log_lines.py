"""The learning log in an export: recalls that were told of, their outcomes in order, and what tenants settled.

    {"type": "recall", "id": "…", "partition": {…}, "at": "…", "query": "…", "profile": "default", "level": "base",
     "shown": 5, "entries": ["<entry id>", …], "base": "<float32>", "names": ["…"], "features": "<float32, row by row>"}
    {"type": "outcome", "recall": "<recall id>", "kind": "cited", "value": {"entries": ["<entry id>"]}, "at": "…"}
    {"type": "tenant", "tenant": "…", "shares": false, "starts": {…}}

Rows are entry ids, since row numbers are a store's own; rows of entries that are gone, or not in the export, are left
out, as learning leaves them out. Learned states are not written: the log gives the same ones. What was told before a
reset teaches no more and stays behind, as do recalls that nobody told of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from wellworn.core.errors import InvalidInput, TransferError
from wellworn.core.values import Partition
from wellworn.ingest import validate
from wellworn.ingest.validate import checked_line
from wellworn.learning.policy import LEVELS
from wellworn.learning.state import SETTINGS, Tenant, dumps_tenant, loads_tenant
from wellworn.ops import plain
from wellworn.ops.plain import Fields, Plain
from wellworn.search.steps.lessons import FIELDS, lesson_of, plain_lesson
from wellworn.search.steps.lessons import KINDS as LESSONS
from wellworn.store.port import LoggedRecall, Selection, Store, Tx

PAGE = 500
KINDS = ("cited", "used", "ignored", "refined", "verdict", *LESSONS)


@dataclass(frozen=True, kw_only=True, eq=False)
class RecallLine:
    """A logged recall whose rows are named by entry ids instead of row numbers (its `nos` are empty)."""

    recall: LoggedRecall
    entries: list[str]

    def only(self, kept: Collection[str]) -> RecallLine:
        """Without the rows of other entries."""
        places = [place for place, entry_id in enumerate(self.entries) if entry_id in kept]
        recall = replace(
            self.recall,
            shown=sum(place < self.recall.shown for place in places),
            base=self.recall.base[places],
            features=self.recall.features[places],
        )
        return RecallLine(recall=recall, entries=[self.entries[place] for place in places])


@dataclass(frozen=True, kw_only=True)
class OutcomeLine:
    """An outcome of a recall; a citation names entries."""

    recall: str
    kind: str
    value: Plain
    at: datetime


# -- writing -----------------------------------------------------------------------------------------------------


def log_lines(store: Store, partitions: Sequence[Partition], ids: Collection[str]) -> Iterator[Plain]:
    """The log of these partitions as far as these entries are in it, tenant by tenant."""
    for tenant in dict.fromkeys(partition.tenant for partition in partitions):
        settled = loads_tenant(store.policy(tenant, None, profile=SETTINGS))
        if not settled.shares or settled.starts:
            yield {"type": "tenant", "tenant": tenant, "shares": settled.shares, "starts": settled.starts}
        yield from _told(store, tenant, frozenset(partitions), ids, settled.since)


def _told(
    store: Store, tenant: str, partitions: frozenset[Partition], ids: Collection[str], after: int
) -> Iterator[Plain]:
    written: set[str] = set()
    while page := store.outcomes(tenant, after=after, limit=PAGE):
        after = page[-1].no
        id_of = {no: entry.id for no, entry in store.read(sorted({no for o in page for no in o.recall.nos})).items()}
        for outcome in page:
            recall = outcome.recall
            rows = [id_of.get(no, "") for no in recall.nos]
            line = RecallLine(recall=recall, entries=rows).only(ids)
            if recall.partition not in partitions or not line.recall.shown:
                continue  # nothing of what was shown is left to learn about
            if recall.id not in written:
                written.add(recall.id)
                yield _plain_recall(line)
            value = dict(outcome.value)
            if outcome.kind == "cited":
                value = {"entries": [id_of[no] for no in value["nos"] if id_of.get(no) in ids]}
            elif outcome.kind == "refined" and not recall.query:
                value = {"query": ""}  # the words of the recall were forgotten
            at = plain.plain_time(outcome.at)
            yield {"type": "outcome", "recall": recall.id, "kind": outcome.kind, "value": value, "at": at}


def _plain_recall(line: RecallLine) -> Plain:
    recall = line.recall
    return {
        "type": "recall",
        "id": recall.id,
        "partition": plain.plain_partition(recall.partition),
        "at": plain.plain_time(recall.at),
        "query": recall.query,
        "profile": recall.profile,
        "level": recall.level,
        "shown": recall.shown,
        "entries": line.entries,
        "base": plain.plain_vector(recall.base),
        "names": recall.names,
        "features": plain.plain_vector(recall.features),
    }


# -- reading -----------------------------------------------------------------------------------------------------


def recall_of(fields: Fields) -> RecallLine:
    entries = fields.take("entries", _list_of(plain.checked_id))
    names = fields.take("names", _list_of(lambda name: checked_line("name", name)))
    rows, columns = len(entries), len(names)
    recall = LoggedRecall(
        id=fields.take("id", lambda value: checked_line("id", value)),
        partition=plain.partition_of(fields.nested("partition")),
        at=fields.take("at", plain.checked_time),
        query=fields.take("query", _checked_text),
        profile=fields.take("profile", lambda value: checked_line("profile", value)),
        level=fields.take("level", _checked_level),
        nos=[],
        shown=fields.take("shown", lambda value: _checked_shown(value, rows)),
        base=fields.take("base", lambda value: plain.floats_of(value, rows)),
        names=names,
        features=fields.take("features", lambda value: plain.floats_of(value, rows * columns)).reshape(rows, columns),
    )
    fields.done()
    return RecallLine(recall=recall, entries=entries)


def outcome_of(fields: Fields) -> OutcomeLine:
    kind = fields.take("kind", _one_of(KINDS))
    line = OutcomeLine(
        recall=fields.take("recall", lambda value: checked_line("recall", value)),
        kind=kind,
        value=_value_of(kind, fields.nested("value")),
        at=fields.take("at", plain.checked_time),
    )
    fields.done()
    return line


def _value_of(kind: str, fields: Fields) -> Plain:
    """What an outcome of this kind says."""
    if kind in LESSONS:
        given = {name: fields.take(name, lambda value: value) for name in FIELDS}
        fields.done()
        return plain_lesson(lesson_of(given))
    checks: dict[str, tuple[str, Callable[[Any], Any]]] = {  # any JSON value
        "cited": ("entries", _list_of(plain.checked_id)),
        "used": ("quality", lambda value: validate.checked_fraction("quality", value)),
        "refined": ("query", _checked_text),
        "verdict": ("success", lambda value: validate.checked_flag("success", value)),
    }
    value = {} if kind not in checks else {checks[kind][0]: fields.take(*checks[kind])}
    fields.done()
    return value


def tenant_of(fields: Fields) -> tuple[str, Tenant]:
    name = fields.take("tenant", lambda value: checked_line("tenant", value))
    tenant = Tenant(
        shares=fields.take("shares", lambda value: validate.checked_flag("shares", value)),
        starts=fields.take("starts", _checked_starts),
    )
    fields.done()
    return name, tenant


def _checked_shown(value: object, rows: int) -> int:
    shown = plain.checked_count(value)
    if shown > rows:
        raise InvalidInput("shown", f"{shown} is more than the {rows} entries")
    return shown


def _checked_level(value: object) -> str:
    return _one_of(LEVELS)(str(value).partition("+")[0])  # earlier releases appended how neighbours had changed places


def _checked_starts(value: object) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict) or not all(isinstance(state, dict) for state in value.values()):
        raise InvalidInput("starts", "is not an object of states by profile")
    return value


def _checked_text(value: object) -> str:
    return "" if value == "" else validate.checked_text("query", value)


def _one_of(known: tuple[str, ...]) -> Callable[[Any], str]:
    def check(value: object) -> str:
        if value not in known:
            raise InvalidInput("value", f"{value!r:.40} is not one of {', '.join(known)}")
        return str(value)

    return check


def _list_of(check: Callable[[Any], str]) -> Callable[[Any], list[str]]:
    def checked(value: object) -> list[str]:
        if not isinstance(value, list):
            raise InvalidInput("list", f"is a {type(value).__name__}")
        return [check(one) for one in value]

    return checked


# -- loading -----------------------------------------------------------------------------------------------------


def admit_log(
    store: Store, tx: Tx, recalls: Sequence[RecallLine], outcomes: Sequence[OutcomeLine], tenants: dict[str, Tenant]
) -> int:
    """Append what is not in the log yet, in order; returns how many outcomes were new. Their entries must be there."""
    no_of = _numbers(store, recalls)
    for line in recalls:
        there = tx.logged_recall(line.recall.id)
        if there is None:
            line = line.only(no_of)
            tx.add_recalls([replace(line.recall, nos=[no_of[entry_id] for entry_id in line.entries])])
        elif there.partition != line.recall.partition:
            raise TransferError(f"recall {line.recall.id} is in this store already, on another partition")
    added = 0
    for told in outcomes:
        value = told.value
        if told.kind == "cited":
            value = {"nos": [no_of[entry_id] for entry_id in value["entries"] if entry_id in no_of]}
        added += tx.add_outcome(told.recall, told.kind, value, told.at) is not None
    for tenant, given in tenants.items():
        _settle(tx, tenant, given)
    return added


def _settle(tx: Tx, tenant: str, given: Tenant) -> None:
    """An opt-out counts wherever it was made, and what was shared until now goes; pretraining fills gaps only."""
    here = loads_tenant(tx.policy(tenant, None, profile=SETTINGS))
    settled = replace(here, shares=here.shares and given.shares, starts=given.starts | here.starts)
    if settled.shares != here.shares:
        tx.drop_policies(tenant)
    if settled != here:
        tx.put_policy(tenant, None, dumps_tenant(settled), profile=SETTINGS)


def _numbers(store: Store, recalls: Sequence[RecallLine]) -> dict[str, int]:
    """Row numbers of all the entries."""
    ids = list(dict.fromkeys(entry_id for line in recalls for entry_id in line.entries))
    found: dict[str, int] = {}
    for first in range(0, len(ids), PAGE):
        some = ids[first : first + PAGE]
        partitions = list(dict.fromkeys(store.where(some).values()))
        if partitions:
            found |= {entry.id: no for no, entry in store.select(partitions, Selection(ids=some), limit=PAGE)}
    return found
