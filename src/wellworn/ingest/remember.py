"""Writing memories: check → scrub → chunk → embed → deduplicate → link → one atomic write per batch.

Everything slow or refusable happens before the transaction; inside it only rows are read and written. Links to
existing entries are drawn by these rules, bounded in a bank of any size:

| condition                       | link         | at most |
|---------------------------------|--------------|---------|
| same session                    | `context_of` | 2       |
| at least two shared tags        | `related_to` | 3       |
| less than five minutes apart    | `follows`    | 1       |
| nearly identical text           | `similar_to` | 3       |
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from wellworn.core.clock import Clock, NewId, aware
from wellworn.core.errors import InvalidInput
from wellworn.core.hashes import thread_of
from wellworn.core.scope import MAX_NAME_CHARS, Partition, Scope
from wellworn.core.spans import span
from wellworn.core.values import Entry, Link, LinkType, Progress, altered, filled, unwatched
from wellworn.core.wellformed import count_tokens
from wellworn.ingest.chunk import STEP, chunk, is_short
from wellworn.ingest.forget import SHAREABLE
from wellworn.ingest.outdate import replace_older
from wellworn.ingest.replaces import SURE
from wellworn.ingest.scrub import Scrubber, ScrubberSpec, Scrubbing, choose_scrubbing, scrubbed_json
from wellworn.ingest.terms import embedding_text, hash_of, record_of, records_of, text_hash
from wellworn.ingest.validate import CHECKS, MAX_TAGS, Draft, check, of_item
from wellworn.language.parts import embedded, reader_of
from wellworn.models.port import Embedder, fits
from wellworn.store.events import Event, audit
from wellworn.store.port import EmbeddingModel, Neighbour, NewEntry, Store, StoreReader, Tx, Vector

BATCH_ENTRIES = 512
MOST_COMPARED = 64
"""Texts given at once up to which each is compared with what it may replace: more are an import."""
REPEAT_CONFIDENCE_STEP = 0.05
MAX_LEARNED_CONFIDENCE = 0.95
MAX_CONTEXT, MAX_RELATED, MAX_SIMILAR = 2, 3, 3
SHARED_TAGS = 2
FOLLOWS_WITHIN = timedelta(minutes=5)
SIMILAR_JACCARD = 0.8
_WORDED = ("text", "evidence", "title", "tags", "source", "speaker", "metadata")
"""The fields of an entry that hold words of a caller."""
Rivals = Sequence[tuple[Entry, float]]
FindReplaced = Callable[[Partition, Sequence[NewEntry]], Sequence[Rivals]]
"""For each record the entries of the partition that it may replace, each with the probability of that."""


class Writer:
    """Turns drafts into stored entries."""

    def __init__(
        self, store: Store, embedder: Embedder | None, *, scrubber: ScrubberSpec, clock: Clock, new_id: NewId
    ) -> None:
        self.clock = aware(clock)
        self.new_id = new_id
        self.scrubbing = choose_scrubbing(scrubber, store, clock=self.clock)
        self._store = store
        self._embedder = embedder
        self.find_replaced: FindReplaced | None = None
        """Set once search is there; None: nothing is compared with what is stored."""

    @property
    def reads_sentences(self) -> bool:
        """Whether what it writes has the vectors of its sentences."""
        return reader_of(self._embedder) is not None

    def fits(self, reader: StoreReader) -> bool:
        """Whether vectors that serve are of its embedder."""
        served = reader.model()
        return fits(self._embedder, None if served is None else served.key)

    def under(self, scrubbing: Scrubbing) -> Writer:
        """A writer with another scrubbing, over the same store and caches."""
        other = copy.copy(self)
        other.scrubbing = scrubbing
        return other

    def remember(self, drafts: Sequence[Draft], *, scope: Scope, progress: Progress = unwatched) -> list[str]:
        """Store the drafts and return the ids of their entries in order; nothing is stored if any draft is bad."""
        ids: list[str] = []
        with span("remember") as note:
            now = self.clock()
            entries = [
                entry
                for number, draft in enumerate(drafts)
                for entry in self._chunked(self._checked(number, draft, scope, now, len(drafts)))
            ]
            progress(0, len(entries))
            # All are embedded before the first is stored: a provider that fails leaves nothing half done.
            batches = [entries[start : start + BATCH_ENTRIES] for start in range(0, len(entries), BATCH_ENTRIES)]
            for prepared in [self.records_of(batch) for batch in batches]:
                replaced = self.replaced_by(prepared) if len(entries) <= MOST_COMPARED else []
                with self.transact(tenant=scope.tenant) as tx:
                    ids += _keep_replacing(tx, prepared, replaced, now) if replaced else keep_all(tx, prepared, now)
                progress(len(ids), len(entries))
            note(texts=len(drafts), entries=len(ids), first=ids[0] if ids else None)
        return ids

    def _checked(self, number: int, draft: Draft, scope: Scope, now: datetime, total: int) -> Entry:
        try:
            return self._scrubbed(check(draft, scope, now))
        except InvalidInput as error:
            raise of_item(error, number, total) from None

    def _scrubbed(self, entry: Entry) -> Entry:
        """The entry after the scrub hook: no other code sees the text before it."""
        return scrubbed_entry(entry, self.scrubbing.stored(entry.partition)) if self.scrubbing.on else entry

    def _chunked(self, entry: Entry) -> list[Entry]:
        """One entry, or one per chunk of a long text."""
        if is_short(entry.text) or len(chunks := chunk(entry.text)) == 1:
            return [self._finished(entry)]
        thread = thread_of("text", self.new_id())
        return [
            self._finished(
                altered(entry, title=STEP.join(filter(None, (entry.title, piece.heading)))[:MAX_NAME_CHARS]),
                text=piece.text,
                evidence=entry.evidence or piece.own,
                thread=thread,
                position=number,
            )
            for number, piece in enumerate(chunks)
        ]

    def entry(self, draft: Draft, scope: Scope, now: datetime, **given: Any) -> Entry:  # any field of it
        """The draft as one entry, checked and scrubbed; `given` are fields that a draft does not have."""
        return self._finished(self._scrubbed(check(draft, scope, now)), **given)

    def _finished(self, entry: Entry, **given: Any) -> Entry:  # any field of it
        """With an id of its own, its hash and its token count."""
        text = given.get("text", entry.text)
        given["evidence"] = given.get("evidence", entry.evidence) or text
        session_id, turn_refs = given.get("session_id", entry.session_id), given.get("turn_refs", entry.turn_refs)
        content = hash_of(text, kind=given.get("kind", entry.kind), session_id=session_id, turn_refs=turn_refs)
        return altered(entry, id=self.new_id(), token_count=count_tokens(text), content_hash=content, **given)

    def records_of(self, entries: Sequence[Entry]) -> list[NewEntry]:
        """Entries with their index records and vectors, embedded in one batch."""
        vectors: Sequence[Vector | None] = [None] * len(entries)
        parts: Sequence[bytes | None] = [None] * len(entries)
        if self._embedder is not None:
            vectors, parts = embedded(self._embedder, [embedding_text(entry) for entry in entries])
        every = zip(entries, records_of(entries), vectors, parts, strict=True)
        return [filled(NewEntry, entry=e, index=i, vector=v, parts=p, history=()) for e, i, v, p in every]

    def replaced_by(self, records: Sequence[NewEntry]) -> list[Rivals]:
        """For each record the stored entries that it may replace. Reads only; `replace_older` writes it down."""
        if self.find_replaced is None:
            return [()] * len(records)
        found: dict[str, Rivals] = {}
        for partition in dict.fromkeys(record.entry.partition for record in records):
            own = [record for record in records if record.entry.partition == partition]
            olds = self.find_replaced(partition, own)
            found.update((record.entry.id, old) for record, old in zip(own, olds, strict=True))
        return [found[record.entry.id] for record in records]

    @contextmanager
    def transact(self, *, tenant: str | None = None) -> Iterator[Tx]:
        """A transaction on a store whose vectors are still this embedder's, or will be: it may have been re-embedded
        meanwhile."""
        with self._store.transact(tenant=tenant) as tx:
            if self._embedder is not None and not self.fits(tx):
                tx.beside = EmbeddingModel(name=self._embedder.name, width=self._embedder.width)
            yield tx
            self.scrubbing.settle(tx)


def scrubbed_entry(entry: Entry, scrub: Scrubber) -> Entry:
    return altered(entry, **scrubbed_values({name: getattr(entry, name) for name in _WORDED}, scrub))


def scrubbed_values(values: Mapping[str, Any], scrub: Scrubber) -> dict[str, Any]:  # any field of an entry
    """The values after the scrub hook, checked once more where it may have changed them."""
    return {
        name: CHECKS[name](scrubbed_json(value, scrub)) if name in _WORDED and value else value
        for name, value in values.items()
    }


def keep(tx: Tx, record: NewEntry, now: datetime) -> str:
    """Write a record with its links and audit event; a text that is there already is strengthened instead."""
    return keep_all(tx, [record], now)[0]


def keep_all(tx: Tx, records: Sequence[NewEntry], now: datetime) -> list[str]:
    """`keep` for many in order. Links and audit events are written at the end, together."""
    links: list[Link] = []
    events: list[Event] = []
    ids: list[str] = []
    if len(records) > 1:
        tx.expect(records)
    for record in records:
        entry = record.entry
        same = tx.find_same(entry.partition, entry.content_hash)
        ended = same if same is not None and same.valid_to is not None and same.valid_to <= entry.valid_from else None
        if same is not None and ended is None:
            _strengthen(tx, same, record, now)
            ids.append(same.id)
            events.append(filled(Event, at=now, tenant=entry.tenant, action="repeat", entry_id=same.id, detail={}))
            continue
        if ended is not None:  # said again after it had ceased to hold: a new period, not a repeat
            tx.update(replace(ended, state="superseded", updated_at=max(now, ended.updated_at)), change="superseded")
        links += links_for(tx, record)
        tx.add(record)
        if ended is not None:
            links.append(Link(source=entry.id, target=ended.id, type="supersedes", created_at=now))
        ids.append(entry.id)
        events.append(filled(Event, at=now, tenant=entry.tenant, action="remember", entry_id=entry.id, detail={}))
    tx.add_links(links)
    audit(tx, *events)
    return ids


def _keep_replacing(tx: Tx, records: Sequence[NewEntry], replaced: Sequence[Rivals], now: datetime) -> list[str]:
    """`keep_all`, and record what each replaces before a later one is compared with it."""
    ids: list[str] = []
    while len(ids) < len(records):
        start = len(ids)
        sure = (n for n in range(start, len(records)) if any(chance >= SURE for _, chance in replaced[n]))
        end = next(sure, len(records) - 1) + 1
        ids += keep_all(tx, records[start:end], now)
        for number in range(start, end):
            if replaced[number] and ids[number] == records[number].entry.id:
                replace_older(tx, replaced[number], records[number].entry, now)
    return ids


def _strengthen(tx: Tx, same: Entry, record: NewEntry, now: datetime) -> None:
    stronger = strengthened(same, record.entry, now)
    told = any(
        getattr(stronger, name) != getattr(same, name) for name in ("trust", "valid_from", "valid_to", "metadata")
    )
    change = "edited" if told else None  # what was only counted is no other state
    if stronger.tags == same.tags:
        tx.update(stronger, change=change)
    else:  # tags are words that can be found, so the index is new; the vector is of the same text
        tx.update(stronger, change=change, index=record_of(stronger), vector=record.vector, parts=record.parts)


def strengthened(entry: Entry, again: Entry, now: datetime) -> Entry:
    """An entry that was said once more: counted, with the new tags added to its own; surer, and with what else was told
    about the same words, unless only the first one is trusted."""
    alike = embedding_text(entry) == embedding_text(again)  # else the vector at hand would be of another text
    stronger = replace(
        entry,
        repeats=entry.repeats + 1,
        updated_at=max(now, entry.updated_at),
        tags=list(dict.fromkeys([*entry.tags, *again.tags]))[:MAX_TAGS] if alike else entry.tags,
    )
    if entry.trust == "trusted" != again.trust:
        return stronger
    stronger = replace(stronger, confidence=surer(entry.confidence))
    read_again = again.turn_refs and (again.session_id, again.turn_refs) == (entry.session_id, entry.turn_refs)
    if read_again or text_hash(entry.text) != text_hash(again.text):
        return stronger
    ends, metadata = [end for end in (entry.valid_to, again.valid_to) if end is not None], entry.metadata
    if entry.kind not in SHAREABLE:  # else it tells of its origin, which is not that of another
        with suppress(InvalidInput):  # both together are too large
            metadata = CHECKS["metadata"](again.metadata | entry.metadata)
    return replace(
        stronger,
        trust=again.trust,
        valid_from=min(entry.valid_from, again.valid_from),
        valid_to=max(ends) if len(ends) == 2 else None,
        metadata=metadata,
    )


def surer(confidence: float) -> float:
    """The confidence in what was said once more."""
    return max(confidence, min(MAX_LEARNED_CONFIDENCE, round(confidence + REPEAT_CONFIDENCE_STEP, 6)))


def links_for(tx: Tx, record: NewEntry) -> Iterator[Link]:
    """The automatic links of an entry that is about to be added, strongest rule first."""
    entry = record.entry
    partition, near = entry.partition, record.index.near
    latest = next(iter(tx.neighbours(partition)), None)
    if latest is None:
        return

    def link(to: Neighbour, type_: LinkType, confidence: float = 1.0, *, back: bool = False) -> Link:
        source, target = (to.id, entry.id) if back else (entry.id, to.id)
        return filled(
            Link,
            source=source,
            target=target,
            type=type_,
            confidence=confidence,
            automatic=True,
            created_at=entry.created_at,
        )

    if entry.session_id:
        before = tx.neighbours(partition, session_id=entry.session_id, limit=MAX_CONTEXT)
        yield from (link(to, "context_of") for to in before)
    if len(entry.tags) >= SHARED_TAGS:
        related = tx.neighbours(partition, tags=entry.tags, shared=SHARED_TAGS, limit=MAX_RELATED)
        yield from (link(to, "related_to") for to in related)
    similar = tx.neighbours(partition, near=near, limit=MAX_SIMILAR) if near != (0, 0) else []
    terms = set(record.index.terms.tolist()) if similar else set()
    for to in similar:
        alike = jaccard(terms, to.index.terms.tolist()) if to.index is not None else 0.0
        if alike >= SIMILAR_JACCARD:
            yield link(to, "similar_to", round(alike, 4))
    if abs(entry.at - latest.at) < FOLLOWS_WITHIN:
        yield link(latest, "follows", back=entry.at < latest.at)  # what happened later follows what happened earlier


def jaccard(a: set[int], b: Sequence[int]) -> float:
    """Shared terms over all terms of two texts."""
    shared = len(a.intersection(b))  # a dozen terms: quicker than sorting arrays
    return shared / max(1, len(a) + len(b) - shared)
