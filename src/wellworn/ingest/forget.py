"""Forgetting for good, with a receipt: rows, index, vectors, links, versions, memory, caches and, asked for, turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Protocol

from wellworn.core.clock import Clock, aware
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import Entry, Partition, Receipt, Scope
from wellworn.ingest.copies import Copies, copies_of, cut, ids_on
from wellworn.ingest.elsewhere import drop_elsewhere
from wellworn.ingest.validate import checked_flag, checked_ids, checked_layer, checked_session_id
from wellworn.store.port import Event, Removed, Selection, Store, Tx

_PAGE = 500
ITEMS = ("strategy", "guardrail")
"""Kinds of entries that can have been shared."""
_ITEMS = Selection(kinds=ITEMS)


class Caches(Protocol):
    """Whatever keeps something of entries in memory."""

    def forget(self, partitions: Sequence[Partition]) -> int:
        """Drop what is held of these partitions; returns how many entries that was."""
        ...


class Forgetter:
    """Removes entries of a scope and never anything of another."""

    def __init__(
        self, store: Store, caches: Caches, *, clock: Clock, before: Callable[[Tx], Callable[[], None]] | None = None
    ) -> None:
        """`before` is called in the transaction, so that what is on its way to the store is forgotten too; what it
        returns is called when that is committed."""
        self._store = store
        self._caches = caches
        self._clock = aware(clock)
        self._before = before

    def forget(
        self,
        *,
        scope: Scope,
        ids: Sequence[str] | None,
        session_id: str | None,
        everything: bool,
        layer: str | None,
        turns: bool | None,
    ) -> Receipt:
        """Exactly one of `ids`, `session_id` and `everything` says what goes."""
        everything = checked_flag("everything", everything)
        turns = None if turns is None else checked_flag("turns", turns)
        if sum([ids is not None, session_id is not None, everything]) != 1:
            raise InvalidInput("forget", "says not exactly what to forget", "give one of ids, session_id, everything")
        if everything and turns is False:
            raise InvalidInput("turns", "cannot be kept when everything goes", "forget by ids or session_id instead")
        home = scope.home(checked_layer(layer))
        partitions = scope.partitions() if ids is not None else [home]
        with self._store.transact() as tx:
            committed = self._before(tx) if self._before is not None else None
            now = self._clock()
            if ids is not None:
                removed, copied = self._by_ids(tx, partitions, checked_ids(ids), bool(turns), now)
            elif session_id is not None:
                removed, copied = self._by_session(tx, home, checked_session_id(session_id), turns is not False, now)
            else:
                own = [(home, id) for page in ids_on(self._store, home, _ITEMS) for id in page]
                copied = self._copies(tx, own, now)
                removed = [drop_elsewhere(tx, self._store, home, None), tx.drop_partition(home)]
            total = added([*removed, *copied.values()])
            if total != Removed():
                tx.audit(
                    Event(
                        at=now,
                        tenant=scope.tenant,
                        action="forget",
                        detail={name: n for name, n in _numbers(total).items() if n},
                    )
                )
        if committed is not None:
            committed()
        if total == Removed():
            return Receipt(at=now, partitions=partitions, kept=self._kept(scope, partitions))
        touched = [*dict.fromkeys([*partitions, *copied])]
        cached = self._caches.forget(touched)
        scrubbed = self._store.scrub()
        return Receipt(
            **_numbers(total),
            ids=total.ids,
            cached=cached,
            at=now,
            copies=sum(part.entries for part in copied.values()),
            partitions=touched,
            scrubbed=scrubbed,
            kept=self._kept(scope, partitions),
        )

    def _copies(self, tx: Tx, going: Sequence[tuple[Partition, str]], now: datetime) -> dict[Partition, Removed]:
        """Copies that were shared of these, removed: what is erased is erased wherever it went."""
        copies = copies_of(self._store, going) if going else Copies(go={}, stay=[])
        for copy in copies.stay:
            cut(tx, copy, now)
        return {partition: tx.remove(partition, Selection(ids=ids)) for partition, ids in copies.go.items()}

    def _by_ids(
        self, tx: Tx, partitions: Sequence[Partition], ids: list[str], turns: bool, now: datetime
    ) -> tuple[list[Removed], dict[Partition, Removed]]:
        found = tx.get(partitions, ids)
        missing = [entry_id for entry_id in ids if entry_id not in found]
        if missing:
            raise NotFound("entry", str(missing[0]), "nothing was forgotten")
        removed: list[Removed] = []
        items = [(entry.partition, id) for id, entry in found.items() if entry.kind in ITEMS]
        copied = self._copies(tx, items, now)
        found = {id: entry for id, entry in found.items() if not any(id in part.ids for part in copied.values())}
        for partition in dict.fromkeys(entry.partition for entry in found.values()):
            here = [entry_id for entry_id, entry in found.items() if entry.partition == partition]
            if turns:
                removed.append(tx.remove_turns(partition, entry_ids=here))
            removed.append(tx.remove(partition, Selection(ids=here)))
        return removed, copied

    def _by_session(
        self, tx: Tx, partition: Partition, session_id: str, turns: bool, now: datetime
    ) -> tuple[list[Removed], dict[Partition, Removed]]:
        """Everything of a session, and the memories of other sessions that its words were merged into: they hold them,
        in their text, their evidence or an older version."""
        derived = self._derived_from(tx, partition, session_id)
        own = [id for page in ids_on(self._store, partition, replace(_ITEMS, session_id=session_id)) for id in page]
        copied = self._copies(tx, [(partition, id) for id in [*own, *derived]], now)
        removed = [tx.remove(partition, Selection(session_id=session_id))]
        if derived:
            removed.append(tx.remove(partition, Selection(ids=derived)))
        if turns:
            removed.append(drop_elsewhere(tx, self._store, partition, session_id))
            removed.append(tx.remove_turns(partition, session_id=session_id))
        return removed, copied

    def _derived_from(self, tx: Tx, partition: Partition, session_id: str) -> list[str]:
        """Entries of other sessions that were derived from turns of this one."""
        found: list[str] = []
        after, page = 0, self._page(partition, session_id, 0)
        while page:
            here = {entry.id for _, entry in page}
            sources = {
                link.source
                for link in self._store.links(sorted(here))
                if link.type == "derived_from" and link.target in here and link.source not in here
            }
            found += [
                id for id, entry in tx.get([partition], sorted(sources)).items() if entry.session_id != session_id
            ]
            after = page[-1][0]
            page = self._page(partition, session_id, after)
        return list(dict.fromkeys(found))

    def _page(self, partition: Partition, session_id: str, after: int) -> list[tuple[int, Entry]]:
        return self._store.select([partition], Selection(session_id=session_id), after=after, limit=_PAGE)

    def _kept(self, scope: Scope, emptied: Sequence[Partition]) -> dict[str, int]:
        """What other layers of the scope still hold, and raw turns left on the ones touched."""
        kept: dict[str, int] = {
            partition.layer: n
            for partition in scope.partitions()
            if partition not in emptied and (n := self._store.counts([partition])["entries"])
        }
        turns = self._store.counts(emptied)["turns"]
        return {**kept, "turns": turns} if turns else kept


def added(parts: Sequence[Removed]) -> Removed:
    """The sum of several removals."""
    total = Removed()
    numbers = {name: sum(getattr(part, name) for part in parts) for name in _numbers(total)}
    return Removed(ids=[entry_id for part in parts for entry_id in part.ids], **numbers)


def _numbers(removed: Removed) -> dict[str, int]:
    return {f.name: getattr(removed, f.name) for f in fields(removed) if f.name != "ids"}
