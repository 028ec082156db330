"""Take over what another system remembers: readers yield records, one writer stores them under stable ids.

Nothing is stored twice: a memory has an id that follows from its id there, a turn carries it. So an import can be
stopped and run again, and a later export brings only what is new or changed. A record that cannot be stored is skipped,
and the report says why.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from datetime import datetime

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.values import MAX_NAME_CHARS, Entry, Partition, Progress, Scope, altered
from wellworn.core.wellformed import clean_text
from wellworn.ingest.change import Changer
from wellworn.ingest.chunk import STEP, chunk
from wellworn.ingest.remember import Writer, keep
from wellworn.ingest.session import ID_THERE, Session, missing_turns
from wellworn.ingest.terms import thread_of
from wellworn.ingest.validate import Draft, check
from wellworn.ops.there import Record, Skipped, ThereDialogue, ThereMemory
from wellworn.store.port import Store

BATCH = 256
MOST_PROBLEMS = 20
_DIGEST = "digest_there"
"""The key of the metadata that tells whether a memory has changed there since it was imported."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import did, or would do (`dry_run`)."""

    source: str
    dry_run: bool
    memories: int = 0
    """Entries that were added."""
    changed: int = 0
    """Entries whose text had changed there."""
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

    def run(self, records: Sequence[Record], *, owner: str | None, progress: Progress) -> Imported:
        """Import the records, those of one owner if one is named. Every batch is durable before the next begins."""
        wanted = self._of_owner(records, owner)
        for start in range(0, len(wanted), BATCH):
            batch = wanted[start : start + BATCH]
            self._remember([record for record in batch if isinstance(record, ThereMemory)])
            for number, record in enumerate(batch, start=start + 1):
                if isinstance(record, ThereDialogue):
                    self._add(record)
                elif isinstance(record, Skipped):
                    self._skip(record.where, record.why)
                progress(number, len(wanted))
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

    def _skip(self, where: str, why: str) -> None:
        self._skipped[why] += 1
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(f"{where}: {why}")

    # -- memories ------------------------------------------------------------------------------------------------

    def _remember(self, records: Iterable[ThereMemory]) -> None:
        now = self._writer.clock()
        entries: dict[str, Entry] = {}
        for record in records:
            try:
                entries.update((entry.id, entry) for entry in self._entries_of(record, now))
            except InvalidInput as error:
                self._skip(record.id, f"{error.field}: {error.problem}")
        here = self._store.get([self._home], [*entries])
        same, home = self._store.find_same, self._home  # the words may be here already, from elsewhere
        new = [one for one in entries.values() if one.id not in here and same(home, one.content_hash) is None]
        self._counts["known"] += len(entries) - len(new)
        for entry in here.values():
            self._follow(entry, entries[entry.id])
        self._counts["memories"] += len(new)
        if new and not self._dry_run:
            ready = self._writer.records_of(new)
            with self._writer.transact() as tx:
                for one in ready:
                    keep(tx, one, now)

    def _follow(self, here: Entry, there: Entry) -> None:
        """Edit a memory that has changed there since it was imported. A change made here only stays."""
        if here.metadata.get(_DIGEST) == there.metadata[_DIGEST] or here.state == "pruned":
            return
        self._counts["known"] -= 1
        self._counts["changed"] += 1
        if not self._dry_run:
            changes = {"text": there.text, "evidence": there.evidence, "metadata": there.metadata}
            try:
                self._changer.edit(here.id, scope=self._scope, changes=changes)
            except InvalidInput as error:  # another entry says so already
                self._counts["changed"] -= 1
                self._skip(str(here.metadata.get(ID_THERE)), f"{error.field}: {error.problem}"[:80])

    def _entries_of(self, record: ThereMemory, now: datetime) -> list[Entry]:
        """One entry, or one per piece of a long text, with ids that follow from the id there."""
        draft = replace(record.draft, text=clean_text(record.draft.text), source=self._source)
        if not draft.text.strip():
            raise InvalidInput("text", "is empty")
        pieces = chunk(check(draft, self._scope, now).text)
        entries = []
        for number, piece in enumerate(pieces):
            more = {**(draft.metadata or {}), ID_THERE: record.id, _DIGEST: _digest(piece.own)}
            title = STEP.join(part for part in (draft.title, piece.heading) if part)[:MAX_NAME_CHARS]
            one = replace(draft, text=piece.text, title=title, evidence=piece.own, metadata=more)
            place = {} if len(pieces) == 1 else {"thread": thread_of(self._source, record.id), "position": number}
            entry = self._writer.entry(one, self._scope, now, **place)
            entries.append(altered(entry, id=_stable_id(self._home, self._source, record.id, number)))
        return entries

    # -- dialogues -----------------------------------------------------------------------------------------------

    def _add(self, dialogue: ThereDialogue) -> None:
        session, now = self._session(f"{self._source}:{dialogue.id}"[:MAX_NAME_CHARS]), self._writer.clock()
        drafts: dict[str, Draft] = {}
        for turn in dialogue.turns:
            try:
                draft = session.writer.draft(turn.role, clean_text(turn.text), at=turn.at)
                check(draft, self._scope, now)
                drafts[turn.id] = draft
            except InvalidInput as error:
                self._skip(f"{dialogue.id}/{turn.id}", f"{error.field}: {error.problem}")
        new = missing_turns(session, self._store, self._home, drafts)
        self._counts["known"] += len(drafts) - len(new)
        self._counts["turns"] += len(new)
        self._counts["sessions"] += bool(new)
        if new and not self._dry_run:
            session.writer.write(session.writer.ready(new))
            session.end()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _stable_id(partition: Partition, source: str, id_there: str, number: int) -> str:
    name = "\x1f".join((partition.tenant, partition.layer, partition.layer_id, source, id_there, str(number)))
    digest = hashlib.blake2b(name.encode(), digest_size=16, person=b"wellworn import").digest()
    return str(uuid.UUID(bytes=digest, version=5))
