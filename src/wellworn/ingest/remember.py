"""Writing memories: scrub → chunk → dedup → embed → link → one atomic write a batch.

Everything slow or refusable happens before the transaction: checking, chunking, analysis, embedding. Inside it only
rows are written. Knows the store and the embedder as ports.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from wellworn.core.clock import Clock, NewId, aware
from wellworn.core.errors import InvalidInput
from wellworn.core.tokens import count_tokens
from wellworn.core.values import Entry, Link, Partition, Progress, Scope, filled
from wellworn.ingest.chunk import chunk
from wellworn.ingest.hashing import hash_of, thread_of
from wellworn.ingest.link import links_for
from wellworn.ingest.scrub import Scrubber, ScrubberSpec, Scrubbing, choose_scrubbing, scrubbed_json, texts_in
from wellworn.ingest.terms import embedding_text, record_of
from wellworn.ingest.validate import (
    MAX_TAGS,
    Checked,
    Draft,
    check,
    checked_line,
    checked_metadata,
    checked_tags,
    checked_text,
)
from wellworn.models.port import Embedder, check_served
from wellworn.store.port import Event, NewEntry, Store, Tx

BATCH_ENTRIES = 512
REPEAT_CONFIDENCE_STEP = 0.05
MAX_LEARNED_CONFIDENCE = 0.95


class Writer:
    """Turns drafts into stored entries."""

    def __init__(
        self, store: Store, embedder: Embedder | None, *, scrubber: ScrubberSpec, clock: Clock, new_id: NewId
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = aware(clock)
        self._scrubbing = choose_scrubbing(scrubber, store, clock=self._clock)
        self._new_id = new_id

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def new_id(self) -> NewId:
        return self._new_id

    @property
    def scrubbing(self) -> Scrubbing:
        return self._scrubbing

    def remember(self, drafts: Sequence[Draft], *, scope: Scope, progress: Progress | None = None) -> list[str]:
        """Store the drafts and return the ids of their entries in order; nothing is stored if any draft is bad."""
        now = self._clock()
        if len(drafts) > 1 and self._scrubbing.on:
            self._scrubbing.expect(scope.home(), _texts_of(drafts))
        checked = [
            self._checked(number, draft, scope, now, alone=len(drafts) == 1) for number, draft in enumerate(drafts)
        ]
        entries = [entry for draft in checked for entry in self.entries_of(draft, now)]
        batches = [entries[start : start + BATCH_ENTRIES] for start in range(0, len(entries), BATCH_ENTRIES)]
        tell = progress or _say_nothing
        tell(0, len(entries))
        # All are embedded before the first is stored: a provider that fails leaves nothing half done.
        records = [self.records_of(batch) for batch in batches]
        ids: list[str] = []
        for prepared in records:
            with self.transact() as tx:
                ids += [keep(tx, record, now) for record in prepared]
            tell(len(ids), len(entries))
        return ids

    def _checked(self, number: int, draft: Draft, scope: Scope, now: datetime, *, alone: bool) -> Checked:
        try:
            return self.scrub(check(draft, scope, now))
        except InvalidInput as error:
            if alone:
                raise
            raise type(error)(f"items[{number}].{error.field}", error.problem, error.remedy) from None

    @contextmanager
    def transact(self) -> Iterator[Tx]:
        """A transaction on a store whose vectors are still this embedder's: it may have been re-embedded meanwhile."""
        with self._store.transact() as tx:
            served = tx.model()
            check_served(self._embedder, None if served is None else served.key)
            yield tx
            self._scrubbing.settle(tx)

    def scrub(self, draft: Checked) -> Checked:
        """The draft after the scrub hook: no other code sees the text before it."""
        if not self._scrubbing.on:
            return draft
        scrub = self._scrubbing.stored(draft.partition)
        return replace(
            draft,
            text=checked_text("text", scrub(draft.text)),
            evidence=None if draft.evidence is None else checked_text("evidence", scrub(draft.evidence)),
            title=checked_line("title", scrub(draft.title)) if draft.title else "",
            tags=checked_tags([scrub(tag) for tag in draft.tags]),
            source=checked_line("source", scrub(draft.source)) if draft.source else "",
            speaker=None if draft.speaker is None else checked_line("speaker", scrub(draft.speaker)),
            metadata=checked_metadata(scrubbed_json(draft.metadata, scrub)),
        )

    def under(self, scrubbing: Scrubbing) -> Writer:
        """A writer that scrubs otherwise, over the same store and caches."""
        other = copy.copy(self)
        other._scrubbing = scrubbing
        return other

    def scrubber(self, partition: Partition) -> Scrubber:
        """For a text that is to be stored there."""
        return self._scrubbing.stored(partition)

    def entries_of(self, draft: Checked, now: datetime) -> list[Entry]:
        """One entry, or one per chunk of a long text."""
        chunks = chunk(draft.text)
        if len(chunks) == 1:
            return [self.entry_of(draft, now)]
        thread = thread_of("text", self._new_id())
        return [
            self.entry_of(
                replace(draft, text=piece.text, evidence=draft.evidence or piece.own),
                now,
                thread=thread,
                position=number,
            )
            for number, piece in enumerate(chunks)
        ]

    def entry_of(
        self, draft: Checked, now: datetime, *, thread: int | None = None, position: int | None = None
    ) -> Entry:
        """The draft as an entry with its own id, hash and token count."""
        text, kind, session_id, turn_refs = draft.text, draft.kind, draft.session_id, draft.turn_refs
        return filled(
            Entry,
            id=self._new_id(),
            partition=draft.partition,
            kind=kind,
            text=text,
            title=draft.title,
            tags=draft.tags,
            evidence=draft.evidence or text,
            source=draft.source,
            speaker=draft.speaker,
            session_id=session_id,
            turn_refs=turn_refs,
            thread=thread,
            position=position,
            confidence=draft.confidence,
            trust=draft.trust,
            state="active",
            repeats=0,
            usage_count=0,
            success_count=0,
            failure_count=0,
            token_count=count_tokens(text),
            at=draft.at,
            created_at=now,
            updated_at=now,
            valid_from=draft.valid_from,
            valid_to=draft.valid_to,
            metadata=draft.metadata,
            content_hash=hash_of(text, kind=kind, session_id=session_id, turn_refs=turn_refs),
        )

    def records_of(self, entries: Sequence[Entry]) -> list[NewEntry]:
        """Entries with their index records and vectors, embedded in one batch."""
        vectors = None
        if self._embedder is not None:
            vectors = self._embedder.embed([embedding_text(entry) for entry in entries])
        return [
            NewEntry(entry=entry, index=record_of(entry), vector=None if vectors is None else vectors[number])
            for number, entry in enumerate(entries)
        ]


def _texts_of(drafts: Sequence[Draft]) -> Iterator[str]:
    for draft in drafts:
        yield from texts_in([draft.text, draft.title, draft.evidence, draft.metadata])


def _say_nothing(done: int, total: int) -> None:
    pass


def keep(tx: Tx, record: NewEntry, now: datetime) -> str:
    """Write a record with its links and audit event; a text that is there already is strengthened instead."""
    entry = record.entry
    same = tx.find_same(entry.partition, entry.content_hash)
    ended = same if same is not None and same.valid_to is not None and same.valid_to <= entry.valid_from else None
    if ended is not None:  # said again after it had ceased to hold: a new spell, not a repeat
        tx.update(replace(ended, state="superseded", updated_at=max(now, ended.updated_at)), change="superseded")
        same = None
    if same is not None:
        stronger = strengthened(same, entry, now)
        if stronger.tags == same.tags:
            tx.update(stronger, change=None)
        else:  # tags are words that can be found, so the index is new; the vector is of the same text
            tx.update(stronger, change=None, index=record_of(stronger), vector=record.vector)
        tx.audit(Event(at=now, tenant=entry.tenant, action="repeat", entry_id=same.id))
        return same.id
    links = links_for(tx, record)
    tx.add(record)
    tx.add_links(links)
    if ended is not None:
        tx.add_links([Link(source=entry.id, target=ended.id, type="supersedes", created_at=now)])
    tx.audit(Event(at=now, tenant=entry.tenant, action="remember", entry_id=entry.id))
    return entry.id


def strengthened(entry: Entry, again: Entry, now: datetime) -> Entry:
    """An entry that was said once more: surer, counted, with the new tags added to its own."""
    alike = embedding_text(entry) == embedding_text(again)  # else the vector at hand would be of another text
    surer = max(entry.confidence, min(MAX_LEARNED_CONFIDENCE, round(entry.confidence + REPEAT_CONFIDENCE_STEP, 6)))
    return replace(
        entry,
        repeats=entry.repeats + 1,
        confidence=surer,
        updated_at=max(now, entry.updated_at),
        tags=list(dict.fromkeys([*entry.tags, *again.tags]))[:MAX_TAGS] if alike else entry.tags,
    )
