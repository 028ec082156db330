"""Forgetting for good, with a receipt: rows, index, vectors, links, versions, memory, caches and, on request, turns.

Two things lie in other partitions and go too: copies that sharing made of an entry, and records that tell of a
session, such as an agent's task in a user's session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from wellworn.core.clock import Clock, aware
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import LAYERS, READ_BY_MODEL, Entry, Partition, Receipt, Scope
from wellworn.ingest.outdate import hold_without, replaced_by
from wellworn.ingest.validate import checked_flag, checked_ids, checked_layer, checked_session_id
from wellworn.store.events import Event, audit
from wellworn.store.port import Record, RecordFilter, Removed, Selection, Store, Tx

SHARE = "share"
"""The kind of record, beside an original, that tells of one copy; it stays when the copy is taken back."""
SHARED = "shared"
"""The key of a copy's metadata that tells where it comes from."""
SHAREABLE = ("strategy", "guardrail")
"""Kinds of entries that can have been shared."""
ELSEWHERE = "elsewhere"
"""The kind of record, beside a session, that points at a record of another partition."""
RECALL, JOB = "recall", "job"
"""Kinds of records that a receipt counts by themselves."""
_UNCOUNTED = ("outcome", "policy", "spent")
"""Kinds that a receipt does not count: they belong to a recall, or are sums."""
_NUMBERS = ("entries", "index_records", "vectors", "links", "versions", "turns", "sessions")
MOST_AT_ONCE = 2_000
"""Entries that are removed in one transaction; more are hidden first and then removed in slices."""
MOST_COMPARED = 200
"""Forgotten texts that are looked for within longer queries."""


class Forgetter:
    """Removes entries of a scope and never anything of another."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        caches: Callable[[Sequence[Partition]], int],
        before: Callable[[Tx], Callable[[], None]],
        cut: Callable[[Tx, Partition, Sequence[str]], int],
    ) -> None:
        """`caches` drops what is held in memory of partitions and returns how many entries that was. `before` is called in
        the transaction, so that what is on its way to the store is forgotten too; what it returns is called after the
        commit. `cut` is called with the sessions that lost some of their turns; it returns how many jobs it dropped."""
        self._store = store
        self._clock = aware(clock)
        self._caches = caches
        self._before = before
        self._cut = cut

    def forget(
        self,
        *,
        scope: Scope,
        ids: Sequence[str] | None,
        session_id: str | None,
        everything: bool,
        layer: str | None,
        turns: bool | None,
        expired: bool = False,
    ) -> Receipt:
        """Exactly one of `ids`, `session_id` and `everything` says what goes.

        What these entries had replaced holds again, unless they only `expired`.
        """
        everything = checked_flag("everything", everything)
        turns = None if turns is None else checked_flag("turns", turns)
        if sum([ids is not None, session_id is not None, everything]) != 1:
            raise InvalidInput("forget", "says not exactly what to forget", "give one of ids, session_id, everything")
        if everything and turns is False:
            raise InvalidInput("turns", "cannot be kept when everything goes", "forget by ids or session_id instead")
        home = scope.home(checked_layer(layer))
        partitions = scope.partitions() if ids is not None else [home]
        with self._store.transact() as tx:
            committed = self._before(tx)
            now, hidden = self._clock(), None
            if ids is not None:
                removed, copied = self._by_ids(tx, partitions, checked_ids(ids), bool(turns), now, expired=expired)
            elif session_id is not None:
                removed, copied = self._by_session(tx, home, checked_session_id(session_id), turns is not False, now)
            else:
                shareable = [entry.id for entry in self._entries(home, Selection(kinds=SHAREABLE))]
                copied = self._remove_copies(tx, [home], shareable, now)
                removed, hidden = self._whole(tx, home)
            parts = [*removed, *copied.values()]
            counted = _counted(parts)
            if any(counted.values()):
                event = Event(at=now, tenant=scope.tenant, action="forget")
                audit(tx, replace(event, detail={name: number for name, number in counted.items() if number}))
        committed()
        if hidden is not None:  # nobody sees it any more
            rest = self._store.clear_hidden(hidden)
            parts.append(replace(rest, entries=0))
            counted = _counted(parts)
        if not any(counted.values()):
            return Receipt(at=now, partitions=partitions, kept=self._kept(scope, partitions))
        touched = [*dict.fromkeys([*partitions, *copied])]
        return Receipt(
            **counted,
            ids=[entry_id for part in parts for entry_id in part.ids],
            cached=self._caches(touched),
            at=now,
            copies=sum(part.entries for part in copied.values()),
            partitions=touched,
            scrubbed=self._store.scrub(),
            kept=self._kept(scope, partitions),
        )

    def _whole(self, tx: Tx, home: Partition) -> tuple[list[Removed], int | None]:
        """Remove a partition here; or hide a large one, to be removed in slices: its number is returned then."""
        elsewhere = drop_elsewhere(tx, self._store, home, None)
        (head,) = tx.heads([home])
        if head is None or len(tx.rows(Selection(), partition_no=head.partition_no)) <= MOST_AT_ONCE:
            return [elsewhere, tx.drop_partition(home)], None
        number, ids = tx.hide_partition(home)
        return [elsewhere, Removed(ids=ids, entries=len(ids))], number

    def _by_ids(
        self, tx: Tx, partitions: Sequence[Partition], ids: list[str], turns: bool, now: datetime, *, expired: bool
    ) -> tuple[list[Removed], dict[Partition, Removed]]:
        ids = [*dict.fromkeys([*ids, *_drawn_from(tx, partitions, ids)])]
        if turns and not expired:
            ids = [*dict.fromkeys([*ids, *_said_in(tx, partitions, ids)])]
        found = tx.get(partitions, ids)
        missing = [entry_id for entry_id in ids if entry_id not in found]
        if missing:
            raise NotFound("entry", str(missing[0]), "nothing was forgotten")
        texts = [entry.text for entry in found.values()]
        replaced = {} if expired else replaced_by(tx, {*ids})
        removed: list[Removed] = []
        shareable = [id for id, entry in found.items() if entry.kind in SHAREABLE]
        copied = self._remove_copies(tx, partitions, shareable, now)
        gone = {id for part in copied.values() for id in part.ids}
        found = {id: entry for id, entry in found.items() if id not in gone}
        for partition in dict.fromkeys(entry.partition for entry in found.values()):
            here = [id for id, entry in found.items() if entry.partition == partition]
            removed.append(self._remove(tx, partition, Selection(ids=here), turns))
        hold_without(tx, replaced, now)
        removed.append(_blank_queries(tx, partitions, texts))
        return removed, copied

    def _by_session(
        self, tx: Tx, partition: Partition, session_id: str, turns: bool, now: datetime
    ) -> tuple[list[Removed], dict[Partition, Removed]]:
        """Everything of a session, and the memories of other sessions that its words were merged into: they hold them,
        in their text, their evidence or an older version."""
        selection = Selection(session_id=session_id)
        entries = self._entries(partition, selection)
        here = {entry.id for entry in entries}
        links = tx.links(sorted(here), types=["derived_from"])
        sources = {link.source for link in links if link.target in here} - here
        derived = [*tx.get([partition], sorted(sources))]
        replaced = replaced_by(tx, {*here, *derived})
        own = [entry.id for entry in entries if entry.kind in SHAREABLE]
        copied = self._remove_copies(tx, [partition], [*own, *derived], now)
        removed = [drop_elsewhere(tx, self._store, partition, session_id)] if turns else []
        removed.append(self._remove(tx, partition, selection, turns))
        if derived:
            removed.append(tx.remove(partition, Selection(ids=derived)))
        hold_without(tx, replaced, now)
        removed.append(_blank_queries(tx, [partition], [entry.text for entry in entries]))
        return removed, copied

    def _remove(self, tx: Tx, partition: Partition, selection: Selection, turns: bool) -> Removed:
        removed = tx.remove(partition, selection, turns=turns)
        if removed.cut:
            dropped = self._cut(tx, partition, removed.cut)
            removed = replace(removed, records=Counter(removed.records) + Counter({JOB: dropped}))
        return removed

    def _remove_copies(
        self, tx: Tx, partitions: Sequence[Partition], ids: Sequence[str], now: datetime
    ) -> dict[Partition, Removed]:
        """Remove copies that were shared of these, in other partitions of the tenant.

        A copy that others have shared in the same words stays for them, without a trace of the one that goes.
        """
        go, stay = copies_of(self._store, partitions, ids) if ids else ({}, [])
        for copy in stay:
            metadata = {key: value for key, value in copy.metadata.items() if key not in (SHARED, "origin")}
            metadata[SHARED] = {"cut": True}
            changed = replace(copy, metadata=metadata, evidence="", updated_at=max(now, copy.updated_at))
            tx.update(changed, change=None)
        return {other: tx.remove(other, Selection(ids=copies)) for other, copies in go.items()}

    def _entries(self, partition: Partition, selection: Selection) -> list[Entry]:
        return [entry for page in self._store.pages([partition], selection) for _, entry in page]

    def _kept(self, scope: Scope, emptied: Sequence[Partition]) -> dict[str, int]:
        """What other layers of the scope still hold, and raw turns left in the partitions touched."""
        kept: dict[str, int] = {
            partition.layer: number
            for partition in scope.partitions()
            if partition not in emptied and (number := self._store.counts([partition], only=["entries"])["entries"])
        }
        turns = self._store.counts(emptied, only=["turns"])["turns"]
        return {**kept, "turns": turns} if turns else kept


def _blank_queries(tx: Tx, partitions: Sequence[Partition], texts: Sequence[str]) -> Removed:
    """Blank the queries of logged recalls that hold a forgotten text, or are a part of one: an agent's loop asks with
    what a person says before that is stored."""
    said = [" ".join(text.lower().split()) for text in texts]
    whole, blanked = "\n".join(said), 0
    for partition in partitions if said else ():
        for record in tx.records(RecordFilter(partition=partition, kinds=[RECALL])):
            asked = " ".join(str(record.body.get("query", "")).lower().split())
            if asked and (asked in whole or any(text in asked for text in said[:MOST_COMPARED])):
                tx.put_records([replace(record, body={}, rows=())])
                blanked += 1
    return Removed(records={RECALL: blanked} if blanked else {})


def _counted(parts: Sequence[Removed]) -> dict[str, int]:
    """The numbers of a receipt, from several removals."""
    counted = {name: sum(getattr(part, name) for part in parts) for name in _NUMBERS}
    kinds = sum((Counter(part.records) for part in parts), Counter[str]())
    rest = sum(number for kind, number in kinds.items() if kind not in (RECALL, JOB, *_UNCOUNTED))
    return {**counted, "recalls": kinds[RECALL], "jobs": kinds[JOB], "records": rest}


def _drawn_from(tx: Tx, partitions: Sequence[Partition], ids: Sequence[str]) -> list[str]:
    """Memories that a model wrote with words of these memories, not of turns."""
    notes = {id for id, entry in tx.get(partitions, ids).items() if entry.kind != "episode"}
    links = tx.links(sorted(notes), types=["derived_from"]) if notes else []
    drawn = tx.get(partitions, sorted({link.source for link in links if link.target in notes}))
    return [id for id, entry in drawn.items() if entry.source == READ_BY_MODEL]


def _said_in(tx: Tx, partitions: Sequence[Partition], ids: Sequence[str]) -> list[str]:
    """The episodes of the turns that these memories rest on."""
    own = {*ids}
    targets = {link.target for link in tx.links(ids, types=["derived_from"]) if link.source in own}
    return [id for id, entry in tx.get(partitions, sorted(targets)).items() if entry.kind == "episode"]


def copies_of(
    store: Store, partitions: Sequence[Partition], ids: Sequence[str]
) -> tuple[dict[Partition, list[str]], list[Entry]]:
    """Copies of entries that go: ids by partition of those that go too, and those that others have shared as well.

    A copy is found by a link (`derived_from`) and by a record beside the original: links outlive an export, records a
    revocation. Copies of copies are found too. Call it inside the transaction that removes the originals.
    """
    gone, wave = set(ids), set(ids)
    go: dict[str, Entry] = {}
    stay: dict[str, Entry] = {}
    listed = _shares(store, partitions)
    while wave:
        made = {copy for original, copy in listed if original in wave}
        made |= {one.source for one in store.links(sorted(wave)) if one.type == "derived_from" and one.target in wave}
        there = store.get(None, sorted(made - gone)).values()
        found = [one for one in there if one.tenant == partitions[0].tenant and SHARED in one.metadata]
        for entry in found:
            (stay if _has_other_origin(store, entry.id, gone) else go)[entry.id] = entry
        wave = {entry.id for entry in found if entry.id in go}
        gone |= wave
        listed += _shares(store, dict.fromkeys(entry.partition for entry in found))
    by_partition: dict[Partition, list[str]] = {}
    for entry in go.values():
        by_partition.setdefault(entry.partition, []).append(entry.id)
    return by_partition, [entry for id, entry in stay.items() if id not in go]


def _shares(store: Store, partitions: Iterable[Partition]) -> list[tuple[str, str]]:
    """Original and copy of everything that was shared from these partitions."""
    return [
        (share.body["id"], share.body["copy"])
        for partition in partitions
        for share in store.records(RecordFilter(partition=partition, kinds=[SHARE]))
    ]


def _has_other_origin(store: Store, copy_id: str, gone: set[str]) -> bool:
    """Whether it was also copied from an entry that stays."""
    return any(
        link.type == "derived_from" and link.source == copy_id and link.target not in gone
        for link in store.links([copy_id])
    )


def point_at(tx: Tx, home: Partition, record: Record) -> None:
    """Write down beside a session that a record of another partition tells of it, so that it goes with the session."""
    layer, layer_id = record.home.layer, record.home.layer_id
    body = {"layer": layer, "layer_id": layer_id, "kind": record.kind, "key": record.key}
    key = f"{record.kind}:{record.key}"
    tx.put_records([replace(record, partition=home, kind=ELSEWHERE, key=key, body=body, state="", names=())])


def drop_elsewhere(tx: Tx, store: Store, home: Partition, session_id: str | None) -> Removed:
    """Drop records of other partitions that tell of this session, or of any session here."""
    dropped: Counter[str] = Counter()
    for pointer in store.records(RecordFilter(partition=home, kinds=[ELSEWHERE])):
        if session_id in (None, pointer.session):
            layer = next(one for one in LAYERS if one == pointer.body["layer"])
            partition = Partition(tenant=home.tenant, layer=layer, layer_id=pointer.body["layer_id"])
            dropped[pointer.body["kind"]] += tx.drop_records(
                RecordFilter(partition=partition, kinds=[pointer.body["kind"]], keys=[pointer.body["key"]])
            )
    return Removed(records=dropped)
