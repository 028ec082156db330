"""Takes a checked bundle into a store, in one transaction or not at all.

| an entry of the bundle                                    | becomes                                          |
|-----------------------------------------------------------|--------------------------------------------------|
| its id is new to the store                                | added as it is                                   |
| its id is on the same partition already                       | skipped; if it was edited by hand, changed       |
| its id is on another partition                                | `TransferError`; into a given scope: a new id    |
| its id is new, its words are on the partition already (hash)  | skipped; links and turns then name the one there |

Old versions come with added entries only. Turns that are there already are skipped; a different turn at the same
number is a `TransferError`. How far reflection has come is taken over with a session that is new. Vectors of the
store's own model are used as they are, others are made anew before the transaction begins. The learning log follows in
a transaction of its own, when its entries have their row numbers: what is in the log already is left as it is, so a
load that was cut short in between is made whole by another. Knows no file format.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from wellworn.core.clock import NewId
from wellworn.core.errors import TransferError
from wellworn.core.values import Entry, Partition, Progress, Scope
from wellworn.ingest.remember import Writer
from wellworn.ingest.terms import record_of
from wellworn.ops.bundle import Bundle, Loaded, cleaned, coherent, rehomed, renamed
from wellworn.ops.learning_log import admit_log
from wellworn.ops.lines import TurnLine
from wellworn.store.events import Event, audit
from wellworn.store.port import NewEntry, Replaced, Store, Tx

BATCH = 256
_LIVE = ("active", "flagged")


def admit(
    bundle: Bundle, store: Store, writer: Writer, *, scope: Scope | None = None, progress: Progress | None = None
) -> Loaded:
    """Write what is new in a coherent bundle; with a scope, nothing is written outside of it (`bundle.rehomed`)."""
    if scope is not None:
        bundle = coherent(rehomed(bundle, scope), where="brought into one scope")
    bundle = cleaned(bundle, writer.scrubbing)
    there = store.get(None, [entry.id for entry in bundle.entries])
    bundle = _with_free_ids(bundle, there, None if scope is None else writer.new_id)
    there = {entry.id: there[entry.id] for entry in bundle.entries if entry.id in there}
    wanted = [entry for entry in bundle.entries if entry.id not in there or _is_edit(bundle, entry, there)]
    records = _records(wanted, bundle, store, writer, progress)
    with store.transact() as tx:
        admission = _Admission(store, tx, bundle, there, records, writer.clock())
        loaded = admission.run()
        writer.scrubbing.settle(tx)
    bundle = renamed(bundle, admission.same)
    if bundle.recalls or bundle.tenants:
        with store.transact() as tx:
            outcomes = admit_log(store, tx, bundle.recalls, bundle.outcomes, bundle.tenants)
        loaded = replace(loaded, outcomes=outcomes)
    if progress is not None:
        progress(len(bundle.entries), len(bundle.entries))
    return loaded


def _with_free_ids(bundle: Bundle, there: dict[str, Entry], new_id: NewId | None) -> Bundle:
    """The bundle without ids that are taken on another partition; without a source of new ids that is an error."""
    taken = [entry.id for entry in bundle.entries if entry.id in there and there[entry.id].partition != entry.partition]
    if taken and new_id is None:
        raise TransferError(
            f"entry {taken[0]} is in this store already, on another partition; nothing was changed "
            "(load into a scope to give such entries new ids)"
        )
    return renamed(bundle, {entry_id: new_id() for entry_id in taken}) if new_id else bundle


def _is_edit(bundle: Bundle, entry: Entry, there: dict[str, Entry]) -> bool:
    """Whether the entry was changed in the export and not in the store; changed in both is an error."""
    present = there[entry.id]
    if entry.id not in bundle.edited or same_content(entry, present):
        return False
    if entry.updated_at != present.updated_at:
        raise TransferError(
            f"entry {entry.id} was changed in the export and, since then, in the store; nothing was changed "
            "(make the change with edit, or export again first)"
        )
    return True


def same_content(entry: Entry, other: Entry) -> bool:
    """Equal but for what the store itself keeps count of."""
    return _uncounted(entry, other) == other


def _uncounted(entry: Entry, present: Entry) -> Entry:
    """The entry with the counters and times of change that the store has for it."""
    return replace(
        entry,
        created_at=present.created_at,
        updated_at=present.updated_at,
        repeats=present.repeats,
        usage_count=present.usage_count,
        success_count=present.success_count,
        failure_count=present.failure_count,
    )


def _records(
    entries: Sequence[Entry], bundle: Bundle, store: Store, writer: Writer, progress: Progress | None
) -> dict[str, NewEntry]:
    """Index records for all of them, and vectors: the bundle's where they fit, else made in batches."""
    vectors = bundle.vectors if bundle.model is not None and bundle.model == store.model() else {}
    records = {
        entry.id: NewEntry(entry=entry, index=record_of(entry), vector=vectors[entry.id])
        for entry in entries
        if entry.id in vectors and entry.id not in bundle.edited
    }
    rest = [entry for entry in entries if entry.id not in records]
    for start in range(0, len(rest), BATCH):
        for record in writer.records_of(rest[start : start + BATCH]):
            records[record.entry.id] = record
        if progress is not None:
            progress(len(records), len(bundle.entries) + 1)
    return records


class _Admission:
    """One load inside its transaction."""

    def __init__(
        self, store: Store, tx: Tx, bundle: Bundle, there: dict[str, Entry], records: dict[str, NewEntry], now: datetime
    ) -> None:
        self._store = store
        self._tx = tx
        self._bundle = bundle
        self._there = there
        self._records = records
        self._now = now
        self._heads = {(head.partition, head.id): head for head in bundle.sessions}
        self._history: dict[str, list[Replaced]] = defaultdict(list)
        for old in bundle.replaced:
            self._history[old.entry.id].append(old)
        self._added: set[str] = set()
        self._edited: set[str] = set()
        self.same: dict[str, str] = {}
        """Entries of the bundle whose words the partition has already → the entry that has them."""

    def run(self) -> Loaded:
        for entry in self._bundle.entries:
            self._admit(entry)
        bundle = renamed(self._bundle, self.same)
        versions = [old for old in bundle.replaced if old.entry.id in self._added]
        loaded = Loaded(
            entries=len(self._added),
            skipped=len(self._bundle.entries) - len(self._added) - len(self._edited),
            edited=len(self._edited),
            links=self._tx.add_links(bundle.links),
            turns=self._add_turns(bundle.turns),
            versions=len(versions),
        )
        self._audit()
        return loaded

    def _admit(self, entry: Entry) -> None:
        if entry.id in self._there:
            if entry.id in self._records:
                self._edit(entry)
            return
        same = self._tx.find_same(entry.partition, entry.content_hash) if entry.state in _LIVE else None
        if same is not None:
            self.same[entry.id] = same.id
            return
        self._tx.add(replace(self._records[entry.id], history=self._history[entry.id]))
        self._added.add(entry.id)

    def _edit(self, entry: Entry) -> None:
        """Make the change that was made by hand, unless the store's entry changed in this very moment."""
        present = self._tx.get([entry.partition], [entry.id]).get(entry.id)
        if present is None or present.updated_at != entry.updated_at:
            raise TransferError(f"entry {entry.id} is being changed by someone else; nothing was loaded, try again")
        same = self._tx.find_same(entry.partition, entry.content_hash) if entry.state in _LIVE else None
        if same is not None and same.id != entry.id:
            raise TransferError(f"entry {entry.id} now says what entry {same.id} says already; nothing was changed")
        changed = replace(_uncounted(entry, present), updated_at=max(self._now, present.updated_at))
        record = self._records[entry.id]
        self._tx.update(changed, change="edited", index=record.index, vector=record.vector)
        self._edited.add(entry.id)

    def _add_turns(self, turns: Sequence[TurnLine]) -> int:
        by_session: dict[tuple[Partition, str], list[TurnLine]] = defaultdict(list)
        for turn in turns:
            by_session[turn.partition, turn.session_id].append(turn)
        return sum(map(self._add_session, by_session.values()))

    def _add_session(self, turns: Sequence[TurnLine]) -> int:
        partition, session_id = turns[0].partition, turns[0].session_id
        present = {turn.number: turn for turn in self._store.turns(partition, session_id)}
        new = [turn for turn in turns if turn.number not in present]
        for turn in turns:
            there = present.get(turn.number, turn)
            if (there.role, there.text, there.at) != (turn.role, turn.text, turn.at):
                raise TransferError(
                    f"session {session_id!r} is here already with another turn {turn.number}; nothing was changed "
                    "(load into a scope of its own)"
                )
        if not new:
            return 0
        head = None if present else self._heads.get((partition, session_id))
        for turn in new:
            self._tx.add_turn(partition, turn, touched_at=head.touched_at if head else self._now)
        if head is not None:
            self._tx.mark_session(partition, session_id, reflected=head.reflected, ended_at=head.ended_at)
        return len(new)

    def _audit(self) -> None:
        """One event a tenant: how many entries it was given."""
        entries = self._bundle.entries
        changed = self._added | self._edited
        added = Counter(entry.tenant for entry in entries if entry.id in changed)
        for tenant, count in sorted(added.items()):
            audit(self._tx, Event(at=self._now, tenant=tenant, action="load", detail={"entries": count}))
