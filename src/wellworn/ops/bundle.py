"""What an export carries, and taking it into a store. Knows no file format.

| an entry of the bundle                                       | becomes                                          |
|--------------------------------------------------------------|--------------------------------------------------|
| its id is new to the store                                   | added as it is                                   |
| its id is on the same partition already                      | skipped                                          |
| its id is on another partition                               | `TransferError`; into a given scope: a new id    |
| it is not of the given scope, others are (`rehomed`)         | skipped                                          |
| its id is new, its words are on the partition already (hash) | skipped; links and turns then name the one there |

Old versions come with added entries only. Turns that are there already are skipped; a different turn at the same
number is a `TransferError`. How far reflection has come is taken over with a session that is new. Vectors of the
store's own model are used as they are, others are made anew before anything is written. So are those of sentences, which an
export does not have. Up to `SLICE` rows are written in one transaction or not at all, more in several. The learning log
follows in a transaction of its own, when its entries have their row numbers: what is in the log already is left as it is, so
a load that was cut short in between is made whole by another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from itertools import islice

from wellworn.core.clock import NewId
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import TransferError
from wellworn.core.values import Entry, Link, Partition, Progress, Scope, altered, unwatched
from wellworn.ingest.remember import Writer, scrubbed_entry
from wellworn.ingest.scrub import Scrubber, Scrubbing
from wellworn.ingest.terms import embedding_text, record_of
from wellworn.language.parts import has_several
from wellworn.ops.lines import OutcomeLine, RecallLine, TenantLine, TurnLine, admit_log, settled
from wellworn.store.events import Event, audit
from wellworn.store.port import EmbeddingModel, NewEntry, Replaced, SessionHead, Store, Tx, Vector

BATCH = 256
SLICE = 1_000
"""Rows that are written in one transaction."""
LIVE = ("active", "flagged")
"""States of entries of which no two have the same words."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What an export wrote, and where."""

    path: str
    format: str
    entries: int
    links: int = 0
    turns: int = 0
    versions: int = 0
    outcomes: int = 0
    bytes: int = 0
    unreadable: int = 0
    """Rows of a damaged store that could not be read, or not loaded again, and were left out."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What a load added; `skipped` entries were there already, or are of others than the scope, which `problems` tells;
    it also names each file of a folder that could not be read, and each entry that stayed as it is here although the
    folder says otherwise."""

    entries: int = 0
    skipped: int = 0
    links: int = 0
    turns: int = 0
    versions: int = 0
    outcomes: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """Everything that was read from an export, every value checked, nothing written yet."""

    model: EmbeddingModel | None = None
    entries: list[Entry] = field(default_factory=list)
    vectors: dict[str, Vector] = field(default_factory=dict)
    """By entry id; made by `model`."""
    parts: Mapping[str, bytes] | None = None
    """The vectors of sentences by entry id, if a store gave them: an export has none."""
    links: list[Link] = field(default_factory=list)
    turns: list[TurnLine] = field(default_factory=list)
    sessions: list[SessionHead] = field(default_factory=list)
    """How far reflection on them has come; not in the oldest exports."""
    replaced: list[Replaced] = field(default_factory=list)
    """Older states of the entries, oldest first."""
    recalls: list[RecallLine] = field(default_factory=list)
    outcomes: list[OutcomeLine] = field(default_factory=list)
    """In the order they were told."""
    tenants: list[TenantLine] = field(default_factory=list)


def coherent(bundle: Bundle, *, where: str) -> Bundle:
    """The bundle, if its parts fit together: ids once, links, turns and old versions of entries that are in it."""
    for problem in _misfits(bundle):
        raise TransferError(f"{where}: {problem}")
    return bundle


def _misfits(bundle: Bundle) -> Iterator[str]:
    home: dict[str, Partition] = {}
    for entry in bundle.entries:
        if entry.id in home:
            yield f"entry {entry.id} is there twice"
        if entry.valid_to is not None and entry.valid_to <= entry.valid_from:
            yield f"entry {entry.id} has a valid_to that is not after its valid_from"
        home[entry.id] = entry.partition
    for old in bundle.replaced:
        if home.get(old.entry.id) != old.entry.partition:
            yield f"an old version is of entry {old.entry.id}, which is not here, or on another partition"
    for link in bundle.links:
        source, target = home.get(link.source), home.get(link.target)
        if link.source == link.target:
            yield f"entry {link.source} is linked to itself"
        if source is None or target is None:
            yield f"link {link.source} {link.type} {link.target} names an entry that is not here"
        elif source.tenant != target.tenant:
            yield f"link {link.source} {link.type} {link.target} leads from one tenant to another"
    yield from _session_misfits(bundle, home)
    yield from _log_misfits(bundle, home)


def _session_misfits(bundle: Bundle, home: dict[str, Partition]) -> Iterator[str]:
    turns: dict[tuple[Partition, str], int] = {}
    for turn in bundle.turns:
        session = (turn.partition, turn.session_id)
        if turn.number < turns.get(session, 0):
            yield f"turn {turn.number} of session {turn.session_id!r} is there twice or out of order"
        if turn.entry_id is not None and home.get(turn.entry_id) != turn.partition:
            yield f"turn {turn.number} of session {turn.session_id!r} names an entry that is not here"
        turns[session] = turn.number + 1
    for head in bundle.sessions:
        if turns.get((head.partition, head.id)) != head.turns or head.reflected > head.turns:
            yield f"session {head.id!r} has not the turns that its line speaks of"


def _log_misfits(bundle: Bundle, home: dict[str, Partition]) -> Iterator[str]:
    shown: dict[str, set[str]] = {}
    for recall in bundle.recalls:
        if recall.id in shown:
            yield f"recall {recall.id} is there twice"
        shown[recall.id] = set(recall.entries[: recall.shown])
        for entry_id in recall.entries:
            partition = home.get(entry_id)
            if partition is None or partition.tenant != recall.partition.tenant:
                yield f"recall {recall.id} names entry {entry_id}, which is not here, or of another tenant"
    for outcome in bundle.outcomes:
        if outcome.recall not in shown or not shown[outcome.recall].issuperset(outcome.value.get("entries", ())):
            yield f"an outcome is of recall {outcome.recall}, which is not here or did not show what is cited"


def rehomed(bundle: Bundle, scope: Scope) -> Bundle:
    """What a scope takes of it: what is on partitions that the scope sees, or all of one other owner, then at its home.

    A scope without a layer sees its tenant. Several others and nothing of the scope is an error. What was learned elsewhere
    is not this scope's: its log stays out, and so do the settings of tenants.
    """
    held = dict.fromkeys(one.partition for lines in (bundle.entries, bundle.turns) for one in lines)
    seen = frozenset(scope.partitions()) or frozenset(one for one in held if one.tenant == scope.tenant)
    places = {one: one for one in held if one in seen} or dict.fromkeys(held, scope.home())
    if len(places) > 1 and not seen.issuperset(places):
        raise TransferError(
            f"the entries are of {len(held)} owners, and none of them is this scope: {_owners(held)}; nothing was changed "
            "(load into the scope of one of them, or without a scope to bring each back to its owner)"
        )
    ids = {entry.id for entry in bundle.entries if entry.partition in places}
    recalls = [one for one in bundle.recalls if one.partition in seen and ids.issuperset(one.entries)]
    known = {recall.id for recall in recalls}
    return replace(
        bundle,
        entries=[replace(one, partition=places[one.partition]) for one in bundle.entries if one.id in ids],
        links=[link for link in bundle.links if link.source in ids and link.target in ids],
        turns=[replace(one, partition=places[one.partition]) for one in bundle.turns if one.partition in places],
        sessions=[replace(one, partition=places[one.partition]) for one in bundle.sessions if one.partition in places],
        replaced=[
            replace(old, entry=replace(old.entry, partition=places[old.entry.partition]))
            for old in bundle.replaced
            if old.entry.id in ids
        ],
        recalls=recalls,
        outcomes=[outcome for outcome in bundle.outcomes if outcome.recall in known],
        tenants=[],
    )


def _owners(partitions: Iterable[Partition], most: int = 3) -> str:
    """The first few of them by name."""
    named = [f"{one.layer} {one.layer_id!r} (tenant {one.tenant!r})" for one in partitions]
    return ", ".join(named[:most]) + (", …" if len(named) > most else "")


def renamed(bundle: Bundle, new_ids: dict[str, str]) -> Bundle:
    """The same with other ids wherever the old ones stood; links that would then join an entry to itself are gone."""

    def name(entry_id: str) -> str:
        return new_ids.get(entry_id, entry_id)

    def cited(outcome: OutcomeLine) -> OutcomeLine:
        return replace(outcome, value={"entries": [*map(name, outcome.value["entries"])]})

    links = [replace(link, source=name(link.source), target=name(link.target)) for link in bundle.links]
    return replace(
        bundle,
        entries=[replace(entry, id=name(entry.id)) for entry in bundle.entries],
        vectors={name(entry_id): vector for entry_id, vector in bundle.vectors.items()},
        links=[link for link in links if link.source != link.target],
        turns=[replace(turn, entry_id=name(turn.entry_id) if turn.entry_id else None) for turn in bundle.turns],
        replaced=[replace(old, entry=replace(old.entry, id=name(old.entry.id))) for old in bundle.replaced],
        recalls=[replace(recall, entries=[*map(name, recall.entries)]) for recall in bundle.recalls],
        outcomes=[cited(outcome) if outcome.kind == "cited" else outcome for outcome in bundle.outcomes],
    )


def cleaned(bundle: Bundle, scrubbing: Scrubbing) -> Bundle:
    """The bundle with every text scrubbed; vectors of texts that changed are left out, to be made anew."""
    if not scrubbing.on:
        return bundle

    def turn(one: TurnLine) -> TurnLine:
        scrub = scrubbing.stored(one.partition)
        speaker = None if one.speaker is None else scrub(one.speaker)
        return replace(one, text=scrub(one.text), role=scrub(one.role), speaker=speaker)

    entries = [_scrubbed(entry, scrubbing.stored(entry.partition)) for entry in bundle.entries]
    changed = {new.id for old, new in zip(bundle.entries, entries, strict=True) if new != old}
    return replace(
        bundle,
        entries=entries,
        vectors={entry_id: vector for entry_id, vector in bundle.vectors.items() if entry_id not in changed},
        turns=[turn(one) for one in bundle.turns],
        replaced=[
            replace(old, entry=_scrubbed(old.entry, scrubbing.stored(old.entry.partition))) for old in bundle.replaced
        ],
        recalls=[replace(one, query=scrubbing.asked(one.partition)(one.query)) for one in bundle.recalls],
    )


def _scrubbed(entry: Entry, scrub: Scrubber) -> Entry:
    clean = scrubbed_entry(entry, scrub)
    return entry if clean == entry else settled(clean)


# -- taking it in -------------------------------------------------------------------------------------------------


def admit(
    bundle: Bundle, store: Store, writer: Writer, *, scope: Scope | None = None, progress: Progress = unwatched
) -> Loaded:
    """Write what is new in a coherent bundle; with a scope, nothing is written outside of it (`bundle.rehomed`).

    More than `SLICE` rows are written in several transactions, after everything was checked. A load that is cut short
    leaves whole entries, and loading the same file again adds the rest.
    """
    given = bundle
    if scope is not None:
        bundle = rehomed(bundle, scope)
    ours = {entry.id for entry in bundle.entries}
    others = [entry for entry in given.entries if entry.id not in ours]
    bundle = cleaned(bundle, writer.scrubbing)
    there = store.get(None, [entry.id for entry in bundle.entries])
    bundle = _with_free_ids(bundle, there, None if scope is None else writer.new_id)
    wanted = [entry for entry in bundle.entries if entry.id not in there]
    records = _records(wanted, bundle, store, writer, progress)
    admission = _Admission(store, bundle, records, writer.clock())
    work, whole = admission.work(), False
    while not whole:  # others can write between two slices
        with writer.transact() as tx:
            admission.tx = tx
            whole = sum(1 for _ in islice(work, SLICE)) < SLICE
    loaded = admission.loaded()
    if others:
        owners = _owners(dict.fromkeys(entry.partition for entry in others))
        left_out = f"{len(others)} of {len(given.entries)} entries were left out, not being of this scope: {owners}"
        loaded = replace(loaded, skipped=loaded.skipped + len(others), problems=(left_out,))
    bundle = renamed(bundle, admission.same)
    if bundle.recalls or bundle.tenants:
        with store.transact() as tx:
            outcomes = admit_log(store, tx, bundle.recalls, bundle.outcomes, bundle.tenants)
        loaded = replace(loaded, outcomes=outcomes)
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


def _records(
    entries: Sequence[Entry], bundle: Bundle, store: Store, writer: Writer, progress: Progress
) -> dict[str, NewEntry]:
    """Index records for all of them, and vectors: the bundle's where they fit, else made in batches.

    Where texts have several sentences and the embedder reads these, they are read for them; the vector stays the bundle's.
    """
    same = bundle.model is not None and bundle.model == store.model() and writer.fits(store)
    vectors = bundle.vectors if same else {}
    parts = bundle.parts or {}
    reads = writer.reads_sentences and bundle.parts is None
    records = {
        entry.id: NewEntry(entry=entry, index=record_of(entry), vector=vectors[entry.id], parts=parts.get(entry.id))
        for entry in entries
        if entry.id in vectors and not (reads and has_several(embedding_text(entry)))
    }
    rest = [entry for entry in entries if entry.id not in records]
    for start in range(0, len(rest), BATCH):
        for record in writer.records_of(rest[start : start + BATCH]):
            records[record.entry.id] = altered(record, vector=vectors.get(record.entry.id, record.vector))
        progress(len(records), len(bundle.entries) + 1)
    return records


class _Admission:
    """One load, in the transactions that `tx` is set to."""

    tx: Tx

    def __init__(self, store: Store, bundle: Bundle, records: dict[str, NewEntry], now: datetime) -> None:
        self._store, self._bundle, self._now = store, bundle, now
        self._records = records
        """Of the entries whose ids are new."""
        self._heads = {(head.partition, head.id): head for head in bundle.sessions}
        self._history: dict[str, list[Replaced]] = defaultdict(list)
        for old in bundle.replaced:
            self._history[old.entry.id].append(old)
        self._added: set[str] = set()
        self.same: dict[str, str] = {}
        """Entries of the bundle whose words the partition has already → the entry that has them."""
        self._links = self._turns = 0
        for turns in self._sessions(bundle.turns):  # before anything is written
            self._new_turns(turns)

    def work(self) -> Iterator[None]:
        """Everything there is to write, step by step."""
        for entry in self._bundle.entries:
            self._admit(entry)
            yield
        bundle = renamed(self._bundle, self.same)
        for link in bundle.links:
            self._links += self.tx.add_links([link])
            yield
        for turns in self._sessions(bundle.turns):
            self._turns += self._add_session(turns)
            yield
        self._audit()

    def loaded(self) -> Loaded:
        return Loaded(
            entries=len(self._added),
            skipped=len(self._bundle.entries) - len(self._added),
            links=self._links,
            turns=self._turns,
            versions=sum(old.entry.id in self._added for old in renamed(self._bundle, self.same).replaced),
        )

    def _admit(self, entry: Entry) -> None:
        if entry.id not in self._records:
            return
        same = self.tx.find_same(entry.partition, entry.content_hash) if entry.state in LIVE else None
        if same is not None:
            self.same[entry.id] = same.id
        else:
            self.tx.add(replace(self._records[entry.id], history=self._history[entry.id]))
            self._added.add(entry.id)

    def _sessions(self, turns: Sequence[TurnLine]) -> Iterable[list[TurnLine]]:
        """The turns of each session."""
        by_session: dict[tuple[Partition, str], list[TurnLine]] = defaultdict(list)
        for turn in turns:
            by_session[turn.partition, turn.session_id].append(turn)
        return by_session.values()

    def _new_turns(self, turns: Sequence[TurnLine]) -> tuple[list[TurnLine], bool]:
        """Those turns of a session that are not here, and whether the session is; another turn here is an error."""
        session_id = turns[0].session_id
        present = {turn.number: turn for turn in self._store.turns(turns[0].partition, session_id)}
        for turn in turns:
            there = present.get(turn.number, turn)
            if (there.role, there.text, there.at) != (turn.role, turn.text, turn.at):
                raise TransferError(
                    f"session {session_id!r} is here already with another turn {turn.number}; nothing was changed "
                    "(load into a scope of its own)"
                )
        return [turn for turn in turns if turn.number not in present], bool(present)

    def _add_session(self, turns: Sequence[TurnLine]) -> int:
        partition, session_id = turns[0].partition, turns[0].session_id
        new, present = self._new_turns(turns)
        if not new:
            return 0
        head = None if present else self._heads.get((partition, session_id))
        for turn in new:
            self.tx.add_turn(partition, turn, touched_at=head.touched_at if head else self._now)
        if head is not None:
            self.tx.mark_session(partition, session_id, reflected=head.reflected, ended_at=head.ended_at)
        return len(new)

    def _audit(self) -> None:
        """One event a tenant: how many entries it was given."""
        added = Counter(entry.tenant for entry in self._bundle.entries if entry.id in self._added)
        for tenant, count in sorted(added.items()):
            audit(self.tx, Event(at=self._now, tenant=tenant, action="load", detail={"entries": count}))
