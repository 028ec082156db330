"""Take over what another system remembers: readers yield records, one writer stores them under stable ids.

Nothing is stored twice: a memory has an id that follows from its id there, a turn carries it. So an import can be
stopped and run again, and a later export brings only what is new or changed. A record that cannot be stored is skipped,
and the report says why.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from itertools import chain, count, islice
from typing import Any

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.hashes import thread_of
from wellworn.core.values import MAX_NAME_CHARS, Entry, Partition, Progress, Scope, altered
from wellworn.core.wellformed import clean_text
from wellworn.ingest.change import Changer
from wellworn.ingest.chunk import STEP, chunk
from wellworn.ingest.outdate import INSTANT
from wellworn.ingest.remember import Writer, keep
from wellworn.ingest.session import ID_THERE, Session, known_there, missing_turns
from wellworn.ingest.terms import text_hash
from wellworn.ingest.validate import Draft, TimeLike, as_time, check
from wellworn.ops.bundle import LIVE
from wellworn.ops.there import Record, Skipped, ThereDialogue, ThereMemory, ThereTurn
from wellworn.store.events import Event, audit
from wellworn.store.port import Selection, Store

BATCH = 256
MOST_PROBLEMS = 20
_DIGEST = "digest_there"
"""The key of the metadata that tells what of a memory has changed there since it was imported."""
_GO_WITH = {"text": "evidence", "at": "valid_from"}
_Change = tuple[Entry, Entry, dict[str, Any]]
"""A memory here and as it is there, and the fields to change."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import did, or would do (`dry_run`)."""

    source: str
    dry_run: bool
    memories: int = 0
    """Entries that were added."""
    changed: int = 0
    """Entries that had changed there, and pieces of texts that are gone there."""
    sessions: int = 0
    turns: int = 0
    known: int = 0
    """Memories and turns that were here already."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Why records were left out, and how many."""
    problems: tuple[str, ...] = ()
    """The first of them by name."""


class Importer:
    """Writes the records of one source into one scope."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        changer: Changer,
        *,
        source: str,
        scope: Scope,
        session: Callable[[str], Session],
        dry_run: bool,
    ) -> None:
        self._store, self._writer, self._changer = store, writer, changer
        self._source, self._scope, self._home = source, scope, scope.home()
        self._session, self._dry_run = session, dry_run
        self._counts: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._problems: list[str] = []
        self._said: dict[str, Entry | None] = {}
        """Who says words now, by their hash, where this import has changed it; in a dry run, would have."""

    def run(self, records: Sequence[Record], *, owner: str | None, progress: Progress) -> Imported:
        """Import the records, those of one owner if one is named. Every batch is durable before the next begins."""
        wanted = _once(self._as_here(self._of_owner(records, owner)))
        batches = [wanted[start : start + BATCH] for start in range(0, len(wanted), BATCH)]
        changes: list[_Change] = []
        new = [self._compare([one for one in batch if isinstance(one, ThereMemory)], changes) for batch in batches]
        self._edit_all(changes)  # before anything is added: words that go there may have come elsewhere
        done = 0
        for batch, added in zip(batches, new, strict=True):
            self._remember(added)
            for record in batch:
                if isinstance(record, ThereDialogue):
                    self._add(record)
                elif isinstance(record, Skipped):
                    self._skip(record.where, record.why)
                progress(done := done + 1, len(wanted))
        return Imported(
            source=self._source,
            dry_run=self._dry_run,
            skipped=dict(self._skipped.most_common()),
            problems=tuple(self._problems),
            **self._counts,
        )

    def _of_owner(self, records: Sequence[Record], owner: str | None) -> list[Record]:
        """People must not be mixed up: of an export with several, one is imported at a time."""
        owners = Counter(record.owner for record in records if not isinstance(record, Skipped) and record.owner)
        if owner is None and len(owners) > 1:
            named = ", ".join(repr(name) for name, _ in owners.most_common(8))
            raise InvalidInput("owner", f"the export is of {len(owners)} owners: {named}", "name one of them")
        if owner is not None and owner not in owners:
            known = ", ".join(repr(name) for name in [*owners][:8]) or "none"
            raise InvalidInput("owner", f"{owner!r} owns nothing in this export", f"owners are {known}")
        return [one for one in records if owner is None or isinstance(one, Skipped) or one.owner in (None, owner)]

    def _as_here(self, records: Sequence[Record]) -> Sequence[Record]:
        """The records under the id that their agent has here: a newer file of it may begin later. An owner has one."""
        for one in records:
            if isinstance(one, ThereDialogue) and one.silent and (id := self._agent_here(one, records)) != one.id:
                return [_renamed(more, one.id, id) for more in records]
        return records

    def _agent_here(self, one: ThereDialogue, records: Sequence[Record]) -> str:
        """The id under which some of it was said, or else, where nothing was said, that under which a block of it is."""
        said = {name: known_there(self._store, self._home, name) for name in self._sessions_like(one.silent)}
        if said.get(self._session_id(one.id)):
            return one.id
        timed = {id for id, turn in _turns(one) if turn.at} or {id for id, _ in _turns(one)[:1]}
        for name, known in said.items():
            if timed & known:
                return name.removeprefix(self._session_id(""))
        memories = [more for more in records if isinstance(more, ThereMemory) and more.draft.title]
        blocks = [next(self._ids(one.silent + more.id.removeprefix(one.id))) for more in memories]
        silent = not said.get(self._session_id(one.silent)) and self._store.get([self._home], blocks)
        return one.silent if silent else one.id

    def _sessions_like(self, agent: str) -> list[str]:
        """The sessions of the agents that have the name of this one."""
        begin = self._session_id(agent.partition("-")[0])
        return [head.id for head in self._store.sessions(self._home) if head.id.startswith(begin)]

    def _session_id(self, id_there: str) -> str:
        return clean_text(f"{self._source}:{id_there}")[:MAX_NAME_CHARS]

    def _skip(self, where: str, why: str) -> None:
        self._skipped[why] += 1
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(f"{where}: {why}")

    # -- memories ------------------------------------------------------------------------------------------------

    def _compare(self, records: Iterable[ThereMemory], changes: list[_Change]) -> list[Entry]:
        """Entries that are not here. Those that have changed there are added to `changes`, those that are gone there are
        removed."""
        now = self._writer.clock()
        there: dict[str, list[Entry]] = {}
        for record in records:
            try:
                there[record.id] = self._entries_of(record, now)
            except InvalidInput as error:
                self._skip(record.id, f"{error.field}: {error.problem}")
        found = self._store.get([self._home], [entry.id for entries in there.values() for entry in entries])
        new: list[Entry] = []
        for id_there, entries in there.items():
            ids = self._ids(id_there)
            here = {id: found[id] for id in islice(ids, len(entries)) if id in found}
            if len(entries) > 1 or any(one.thread is not None for one in here.values()):
                while more := self._store.get([self._home], [*islice(ids, BATCH)]):
                    here |= more
            placed = _placed(entries, here, self._ids(id_there))
            gone = here.keys() - {entry.id for entry in placed}
            self._counts["changed"] += len(gone)
            self._remove([here[id] for id in gone])
            both = [(here[entry.id], entry) for entry in placed if entry.id in here]
            changes += ((one, entry, fields) for one, entry in both if (fields := self._changed(one, entry)))
            kept = {entry.content_hash for entry in placed if entry.id in here}
            added = [entry for entry in placed if entry.id not in here and entry.content_hash not in kept]
            self._counts["known"] += len(placed) - len(added)
            new += added
        return new

    def _remember(self, entries: Sequence[Entry]) -> None:
        """Store those whose words are not here."""
        new = [entry for entry in entries if not self._is_said(entry)]
        self._counts.update(known=len(entries) - len(new), memories=len(new))
        self._keep(new)

    def _keep(self, entries: Sequence[Entry]) -> None:
        if entries and not self._dry_run:
            ready, now = self._writer.records_of(entries), self._writer.clock()
            with self._writer.transact() as tx:
                for one in ready:
                    keep(tx, one, now)

    def _remove(self, entries: Sequence[Entry]) -> None:
        self._leave(*entries)
        if entries and not self._dry_run:
            with self._writer.transact() as tx:
                tx.remove(self._home, Selection(ids=[entry.id for entry in entries]))
                event = Event(at=self._writer.clock(), tenant=self._home.tenant, action="forget")
                audit(tx, replace(event, detail={"entries": len(entries)}))

    def _leave(self, *entries: Entry) -> None:
        """Note that these words are here no longer."""
        self._said.update({entry.content_hash: None for entry in entries if entry.state in LIVE})

    def _is_said(self, entry: Entry) -> bool:
        """Whether the same words are here from elsewhere, and have not ceased to hold before; if not, they are now."""
        same = self._who_says(entry.content_hash)
        if same is not None and (same.valid_to is None or same.valid_to > entry.valid_from):
            return True
        self._said[entry.content_hash] = entry
        return False

    def _who_says(self, words: str) -> Entry | None:
        return self._said[words] if words in self._said else self._store.find_same(self._home, words)

    def _changed(self, here: Entry, there: Entry) -> dict[str, Any]:
        """The fields of a memory that has changed there since it was imported. A change made here only stays."""
        before, after = self._digests_of(here), there.metadata[_DIGEST]
        changed = _differing(before, after)
        if here.state == "pruned" or not (changed or _is_moved(here, there)):
            return {}
        with_them = {_GO_WITH[name] for name in changed & _GO_WITH.keys()}
        fields = {name: getattr(there, name) for name in changed | with_them}
        return fields | {"metadata": here.metadata | (there.metadata if "metadata" in changed else {_DIGEST: after})}

    def _edit_all(self, changes: Iterable[_Change]) -> None:
        """Edit each memory after the one that has the words it gets, and those of a ring at once."""
        waiting = {one[0].content_hash if one[0].state in LIVE else one[0].id: one for one in changes}
        while waiting:
            row, words = dict[str, _Change](), next(iter(waiting))
            while words in waiting:
                row[words] = here, there, fields = waiting.pop(words)
                words = there.content_hash if "text" in fields and there.content_hash != here.content_hash else ""
            start = [*row].index(words) if words in row else len(row)
            self._exchange([*row.values()][start:])
            for one in reversed([*row.values()][:start]):
                self._edit(*one)

    def _exchange(self, ring: Sequence[_Change]) -> None:
        """Edit memories that get the words of one another."""
        self._counts.update(known=-len(ring), changed=len(ring))
        after = [self._after(*one) for one in ring]
        self._said.update({entry.content_hash: entry for entry in after})
        if ring and not self._dry_run:
            ready = self._writer.records_of(after)
            with self._writer.transact() as tx:
                for here, _, _ in ring:  # no two may have the same words meanwhile
                    tx.update(altered(here, content_hash=f"moving {here.id}"), change=None, before=here)
                for (here, _, _), new in zip(ring, ready, strict=True):
                    tx.update(new.entry, change="edited", index=new.index, vector=new.vector, before=here)
                    event = Event(at=new.entry.updated_at, tenant=here.tenant, action="edit", entry_id=here.id)
                    audit(tx, replace(event, detail={"fields": "text"}))

    def _after(self, here: Entry, there: Entry, fields: Mapping[str, Any]) -> Entry:
        """A memory here with its new words and place."""
        more = {name: getattr(there, name) for name in ("thread", "position", "content_hash", "token_count")}
        return altered(here, **fields, **more, updated_at=self._writer.clock())

    def _edit(self, here: Entry, there: Entry, fields: Mapping[str, Any]) -> None:
        words = there.content_hash if "text" in fields and here.state in LIVE else here.content_hash
        if words != here.content_hash and self._who_says(words):
            if _differing(_digests(here), self._digests_of(here)):
                why = "was changed here, and another memory has its new words"
                self._skip(str(here.metadata.get(ID_THERE)), why)
            else:
                self._counts.update(known=-1, changed=1)
                self._remove([here])
                after = self._after(here, there, fields)
                self._keep([after] if not self._is_said(after) else [])
            return
        self._counts.update(known=-1, changed=1)
        if not self._dry_run:
            try:
                edited = self._changer.edit(here.id, scope=self._scope, changes=fields)
            except InvalidInput as error:  # another entry says so already
                self._counts["changed"] -= 1
                self._skip(str(here.metadata.get(ID_THERE)), f"{error.field}: {error.problem}"[:80])
                return
            if _is_moved(here, there):
                (new,) = self._writer.records_of([altered(edited, thread=there.thread, position=there.position)])
                with self._writer.transact() as tx:
                    tx.update(new.entry, change=None, index=new.index, vector=new.vector)
        if here.state in LIVE:
            self._leave(here)
            self._said[(there if "text" in fields else here).content_hash] = altered(here, **fields)

    def _digests_of(self, here: Entry) -> dict[str, str]:
        """What the last import wrote down of a memory; where its metadata were replaced here, as it was imported first."""
        left = here.metadata.get(_DIGEST)
        if isinstance(left, dict):
            return left
        versions = self._store.replaced(here.id)
        return _digests(versions[0].entry if versions else here)

    def _entries_of(self, record: ThereMemory, now: datetime) -> list[Entry]:
        """One entry, or one per piece of a long text, with ids that follow from the id there."""
        draft = replace(record.draft, text=clean_text(record.draft.text), source=self._source)
        if not draft.text.strip():
            raise InvalidInput("text", "is empty")
        end, began = as_time("valid_to", draft.valid_to), as_time("valid_from", draft.valid_from or draft.at) or now
        if end is not None and end <= began:
            # It no longer holds, whenever it began.
            draft = replace(draft, valid_from=max(end, datetime(1, 1, 2, tzinfo=UTC)) - INSTANT)
        unsaid = {name for name in ("at", "valid_from") if getattr(draft, name) is None}
        pieces = chunk(check(draft, self._scope, now).text)
        entries = []
        for number, (piece, id) in enumerate(zip(pieces, self._ids(record.id), strict=False)):
            title = STEP.join(part for part in (draft.title, piece.heading) if part)[:MAX_NAME_CHARS]
            more = {**(draft.metadata or {}), ID_THERE: record.id}
            one = replace(draft, text=piece.text, title=title, evidence=piece.own, metadata=more)
            place = {} if len(pieces) == 1 else {"thread": thread_of(self._source, record.id), "position": number}
            entry = self._writer.entry(one, self._scope, now, **place)
            digests = {name: digest for name, digest in _digests(entry).items() if name not in unsaid}
            entries.append(altered(entry, id=id, metadata={**entry.metadata, _DIGEST: digests}))
        return entries

    def _ids(self, id_there: str) -> Iterator[str]:
        """The ids of a memory's pieces."""
        return (_stable_id(self._home, self._source, id_there, number) for number in count())

    # -- dialogues -----------------------------------------------------------------------------------------------

    def _add(self, dialogue: ThereDialogue) -> None:
        session, now = self._session(self._session_id(dialogue.id)), self._writer.clock()
        drafts: dict[str, Draft] = {}
        when, before = dict[object, TimeLike](), dialogue.at
        for id, turn in _turns(dialogue):
            try:
                draft = session.writer.draft(turn.role, clean_text(turn.text), speaker=turn.speaker, at=turn.at)
                check(draft, self._scope, now)
                drafts[id] = draft
                when[id] = before = turn.at or before
            except InvalidInput as error:
                self._skip(f"{dialogue.id}/{id}", f"{error.field}: {error.problem}")
        new = missing_turns(session, self._store, self._home, drafts)
        self._counts["known"] += len(drafts) - len(new)
        self._counts["turns"] += len(new)
        self._counts["sessions"] += bool(new)
        if new and not self._dry_run:
            dated = [replace(draft, at=when[(draft.metadata or {})[ID_THERE]]) for draft in new]
            session.writer.write(session.writer.ready(dated))
        head = self._store.session(self._home, session.id)
        if head is not None and head.ended_at is None and not self._dry_run:
            session.end()


def _once(records: Sequence[Record]) -> list[Record]:
    """The records; of memories with the same id the last one."""
    last = {one.id: one for one in records if isinstance(one, ThereMemory)}
    return [
        Skipped(where=one.id, why="a later record has the same id")
        if isinstance(one, ThereMemory) and last[one.id] is not one
        else one
        for one in records
    ]


def _turns(dialogue: ThereDialogue) -> list[tuple[str, ThereTurn]]:
    """The turns of a dialogue, each under its id there, or one that follows from its words."""
    times: Counter[str] = Counter()
    turns = []
    for turn in dialogue.turns:
        words = text_hash(f"{turn.at} {turn.role} {turn.text}")
        times[words] += 1
        turns.append((turn.id or f"{words}/{times[words]}", turn))
    return turns


def _renamed(record: Record, agent: str, other: str) -> Record:
    """A record under the id of another agent, if it is of this one."""
    if isinstance(record, Skipped) or not record.id.startswith(agent):
        return record
    return replace(record, id=other + record.id.removeprefix(agent))


def _is_moved(here: Entry, there: Entry) -> bool:
    return (here.thread, here.position) != (there.thread, there.position)


def _placed(entries: Sequence[Entry], here: Mapping[str, Entry], ids: Iterator[str]) -> list[Entry]:
    """Pieces of a text under the ids they have here: the first stays the first, others are where the same words are, or
    take the place of words that are gone there."""
    first, words = entries[0].id, [text_hash(entry.evidence) for entry in entries]
    where = {text_hash(one.evidence): id for id, one in here.items() if id != first}
    kept = [first, *(where.pop(said, None) for said in words[1:])]
    spare = [id for said, id in where.items() if said != words[0]]
    free = chain(spare, (id for id in ids if id not in here and id != first))
    return [altered(entry, id=id or next(free)) for entry, id in zip(entries, kept, strict=True)]


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _digests(entry: Entry) -> dict[str, str]:
    """Of each field that is followed, unless it is empty."""
    values = {name: getattr(entry, name) for name in ("text", "title", "tags", "at", "valid_from", "valid_to")}
    values["metadata"] = {key: one for key, one in entry.metadata.items() if key not in (ID_THERE, _DIGEST)}
    return {name: _digest(json.dumps(one, sort_keys=True, default=str)) for name, one in values.items() if one}


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """The fields with other digests. Times that have none after are those of the import."""
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return changed - ({"at", "valid_from"} - after.keys())


def _stable_id(partition: Partition, source: str, id_there: str, number: int) -> str:
    name = "\x1f".join((partition.tenant, partition.layer, partition.layer_id, source, id_there, str(number)))
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16, person=b"wellworn import").digest()
    return str(uuid.UUID(bytes=digest, version=5))
