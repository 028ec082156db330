"""Take over what another system remembers: readers yield records, one writer stores them under stable ids.

Nothing is stored twice: a memory has an id that follows from its id there and from what it says, a turn carries its id
there. So an import can be stopped and run again, and a later export brings only what is new or changed; what it replaces
goes. A record that cannot be stored is skipped, and the report says why.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.hashes import thread_of
from wellworn.core.plain import to_plain
from wellworn.core.values import MAX_NAME_CHARS, Entry, Partition, Progress, Scope, altered
from wellworn.core.wellformed import clean_text
from wellworn.ingest.chunk import STEP, chunk
from wellworn.ingest.outdate import INSTANT
from wellworn.ingest.remember import Writer, keep_all
from wellworn.ingest.session import ID_THERE, Session, missing_turns
from wellworn.ingest.terms import text_hash
from wellworn.ingest.validate import Draft, TimeLike, as_time, check
from wellworn.ops.bundle import LIVE
from wellworn.ops.there import Record, Skipped, ThereDialogue, ThereMemory, ThereTurn
from wellworn.store.events import Event, audit
from wellworn.store.port import Selection, Store

BATCH = 256
MOST_PROBLEMS = 20
FOLLOWED = ("tags", "at", "valid_from", "valid_to", "metadata")
"""What is another memory if it changes there, beside words and title."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import did, or would do (`dry_run`)."""

    source: str
    dry_run: bool
    memories: int = 0
    """Entries that were added."""
    changed: int = 0
    """Entries that were removed, because they have changed there, or are gone from a text."""
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
        *,
        source: str,
        scope: Scope,
        session: Callable[[str], Session],
        dry_run: bool,
    ) -> None:
        self._store, self._writer = store, writer
        self._source, self._scope, self._home = source, scope, scope.home()
        self._session, self._dry_run = session, dry_run
        self._counts: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._problems: list[str] = []
        self._said: dict[str, Entry | None] = {}
        """Who says words now, by their hash, where this import has changed it, or in a dry run would have."""

    def run(self, records: Sequence[Record], *, owner: str | None, progress: Progress) -> Imported:
        """Import the records, those of one owner if one is named. Every batch is durable before the next begins."""
        wanted, now = _once(self._of_owner(records, owner)), self._writer.clock()
        there: dict[str, list[Entry]] = {}
        for memory in (one for one in wanted if isinstance(one, ThereMemory)):
            try:
                there[memory.id] = self._entries_of(memory, now)
            except InvalidInput as error:
                self._skip(memory.id, f"{error.field}: {error.problem}")
        self._remove_changed(there)
        for start in range(0, len(wanted), BATCH):
            batch = wanted[start : start + BATCH]
            self._remember([entry for one in batch if isinstance(one, ThereMemory) for entry in there.get(one.id, ())])
            for done, record in enumerate(batch, start + 1):
                if isinstance(record, ThereDialogue):
                    self._add(record)
                elif isinstance(record, Skipped):
                    self._skip(record.where, record.why)
                progress(done, len(wanted))
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
            raise InvalidInput(
                "owner", f"the export is of {len(owners)} owners: {named}", "name one of them: owner=…, --owner"
            )
        if owner is not None and owner not in owners:
            known = ", ".join(repr(name) for name in [*owners][:8]) or "none"
            raise InvalidInput("owner", f"{owner!r} owns nothing in this export", f"owners are {known}")
        return [one for one in records if owner is None or isinstance(one, Skipped) or one.owner in (None, owner)]

    def _session_id(self, id_there: str) -> str:
        return clean_text(f"{self._source}:{id_there}")[:MAX_NAME_CHARS]

    def _skip(self, where: str, why: str) -> None:
        self._skipped[why] += 1
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(f"{where}: {why}")

    # -- memories ------------------------------------------------------------------------------------------------

    def _remove_changed(self, there: Mapping[str, Sequence[Entry]]) -> None:
        """Remove what says something else there by now: before anything is added, since its words may have moved."""
        ids = {id_there: {entry.id for entry in entries} for id_there, entries in there.items()}
        rows = (row for page in self._store.pages([self._home]) for row in page)
        taken = (entry for _, entry in rows if entry.source == self._source)
        gone = [entry for entry in taken if entry.id not in ids.get(str(entry.metadata.get(ID_THERE)), {entry.id})]
        self._counts["changed"] = len(gone)
        self._said = {entry.content_hash: None for entry in gone if entry.state in LIVE}
        for start in range(0, 0 if self._dry_run else len(gone), BATCH):
            batch = [entry.id for entry in gone[start : start + BATCH]]
            with self._writer.transact() as tx:
                tx.remove(self._home, Selection(ids=batch))
                event = Event(at=self._writer.clock(), tenant=self._home.tenant, action="forget")
                audit(tx, replace(event, detail={"entries": len(batch)}))

    def _remember(self, entries: Sequence[Entry]) -> None:
        """Store those that are not here."""
        here = self._store.get([self._home], [entry.id for entry in entries])
        new = [entry for entry in entries if entry.id not in here and not self._is_said(entry)]
        self._counts.update(known=len(entries) - len(new), memories=len(new))
        if new and not self._dry_run:
            ready, now = self._writer.records_of(new), self._writer.clock()
            with self._writer.transact() as tx:
                keep_all(tx, ready, now)

    def _is_said(self, entry: Entry) -> bool:
        """Whether the same words are here from elsewhere, and have not ceased to hold before; if not, they are now."""
        words = entry.content_hash
        same = self._said[words] if words in self._said else self._store.find_same(self._home, words)
        if same is not None and (same.valid_to is None or same.valid_to > entry.valid_from):
            return True
        self._said[words] = entry
        return False

    def _entries_of(self, record: ThereMemory, now: datetime) -> list[Entry]:
        """One entry, or one per piece of a long text, with ids that follow from the id there."""
        draft = replace(record.draft, text=clean_text(record.draft.text), source=self._source)
        if not draft.text.strip():
            raise InvalidInput("text", "is empty")
        end, began = as_time("valid_to", draft.valid_to), as_time("valid_from", draft.valid_from or draft.at) or now
        if end is not None and end <= began:  # it no longer holds, whenever it began
            draft = replace(draft, valid_from=max(end, datetime(1, 1, 2, tzinfo=UTC)) - INSTANT)
        pieces = chunk(check(draft, self._scope, now).text)
        about = to_plain([getattr(record.draft, name) for name in FOLLOWED])
        entries = []
        for number, piece in enumerate(pieces):
            title = STEP.join(part for part in (draft.title, piece.heading) if part)[:MAX_NAME_CHARS]
            more = {**(draft.metadata or {}), ID_THERE: record.id}
            one = replace(draft, text=piece.text, title=title, evidence=piece.own, metadata=more)
            place = {} if len(pieces) == 1 else {"thread": thread_of(self._source, record.id), "position": number}
            entry = self._writer.entry(one, self._scope, now, **place)
            named = (self._source, record.id, number, piece.own, title, about)
            entries.append(altered(entry, id=_stable_id(self._home, json.dumps(named, sort_keys=True, default=str))))
        return entries

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


def _stable_id(partition: Partition, named: str) -> str:
    name = "\x1f".join((partition.tenant, partition.layer, partition.layer_id, named))
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16, person=b"wellworn import").digest()
    return str(uuid.UUID(bytes=digest, version=5))
