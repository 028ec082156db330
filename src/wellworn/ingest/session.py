"""A dialogue as it happens: each turn is kept verbatim, and as an episode entry that can be recalled at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.hashes import thread_of
from wellworn.core.lazy import regex
from wellworn.core.spans import span
from wellworn.core.values import Entry, Job, Partition, Scope, Turn, altered
from wellworn.ingest.outdate import replace_older
from wellworn.ingest.remember import Writer, keep
from wellworn.ingest.terms import content_hash, content_words, terms
from wellworn.ingest.utterance import ASSISTANT_ROLES, telling_words
from wellworn.ingest.validate import Draft, TimeLike, checked_line, checked_session_id, checked_turns, checked_wait
from wellworn.store.port import NewEntry, Store, StoreReader, Tx

MINUTE = timedelta(minutes=1)
REMEMBERED_TURNS = 4
REPEATED_CONFIDENCE = 0.5
ID_THERE = "id_there"
"""The key of the metadata that holds the id of a turn or memory in the system it comes from."""
OFFSET = "utc_offset_minutes"
"""The key of a turn's metadata that holds the offset of the time it was said at, if that was given with one."""
GENERIC_ROLES = frozenset({"user", "human", "assistant", "ai", "system", "tool", "function", "model"})
_NAME_LIKE = regex(r"[^\W\d_]{2,}(?:[ '’.-][^\W\d_]+){0,3}")


class Watch(Protocol):
    """Notified of a session's turns and its end, in the transaction that writes them, so that work is queued with it."""

    def added(self, tx: Tx, partition: Partition, session_id: str, turns: int) -> bool:
        """The session has this many turns now; whether that queued any work."""
        ...

    def ended(self, tx: Tx, partition: Partition, session_id: str) -> str | None:
        """The key of the job that the end starts; None when there is nothing left to do."""
        ...

    def committed(self) -> None:
        """What was written is durable."""
        ...

    def job(self, partition: Partition, key: str, *, wait_s: float) -> Job | None:
        """The job as it stands when it is done, or when the time is up; None when it was forgotten meanwhile."""
        ...


class TurnWriter:
    """Writes turns of one session: an exchange of several is prepared first and stored in one transaction."""

    def __init__(self, writer: Writer, *, scope: Scope, session_id: str, watch: Watch | None) -> None:
        self._writer = writer
        self._scope = scope
        self._partition = scope.home()
        self._session_id = session_id
        self._watch = watch
        self._heard: deque[frozenset[int]] = deque(maxlen=REMEMBERED_TURNS)
        """The terms of what people said last."""

    def draft(self, role: str, text: str, *, speaker: str | None = None, **said: Any) -> Draft:  # fields of a Draft
        """What someone said, as a draft; its source is the role."""
        role = checked_line("role", role)
        if not role.strip():
            raise InvalidInput("role", "is empty", "use 'user', 'assistant' or a name")
        speaker = speaker or self._speaker(role)
        return Draft(text=text, kind="episode", session_id=self._session_id, speaker=speaker, source=role, **said)

    def _speaker(self, role: str) -> str | None:
        """Who speaks in this role: a name given as role, or the scope's user when its id reads like a name."""
        if role.strip().lower() not in GENERIC_ROLES:
            return role
        return name_of(self._scope.user) if role.strip().lower() in ("user", "human") else None

    def ready(self, drafts: Sequence[Draft]) -> list[NewEntry]:
        """Checked, scrubbed and embedded in one batch; `write` stores them and numbers the turns."""
        thread = thread_of("session", self._session_id)
        drafts = [_with_offset(draft) for draft in drafts]
        entries = [self._writer.entry(draft, self._scope, self._writer.clock(), thread=thread) for draft in drafts]
        entries = [self._weighed(entry) for entry in entries]
        return self._writer.records_of(entries)  # neither index nor vector depends on the turn's number

    def _weighed(self, entry: Entry) -> Entry:
        """An assistant that only repeats what it was told adds nothing: such a turn counts as unsure."""
        if entry.source.strip().lower() not in ASSISTANT_ROLES:
            self._heard.append(frozenset(terms(entry.text)))
            return entry
        said = {term for word in telling_words(content_words(entry.text)) for term in terms(word)}
        repeats = bool(said) and said <= frozenset().union(*self._heard)
        return altered(entry, confidence=min(entry.confidence, REPEATED_CONFIDENCE)) if repeats else entry

    def write(
        self, records: Sequence[NewEntry], *, also: Callable[[Tx, list[Entry]], None] | None = None
    ) -> list[Entry]:
        """Store the turns as entries with their numbers, and what `also` writes; all or none."""
        written, queued = [], False
        with span("remember") as note:
            replaced = self._writer.replaced_by(records)
            with self._writer.transact(tenant=self._partition.tenant) as tx:
                from_there = any(ID_THERE in record.entry.metadata for record in records)
                known = known_there(tx, self._partition, self._session_id) if from_there else frozenset()
                for record, olds in zip(records, replaced, strict=True):
                    if record.entry.metadata.get(ID_THERE) in known:
                        continue  # someone wrote it meanwhile
                    entry = self._numbered(tx, record)
                    written.append(entry)
                    if olds:
                        replace_older(tx, olds, entry, entry.created_at)
                    turns = entry.turn_refs[0] + 1
                    if self._watch is not None and self._watch.added(tx, self._partition, self._session_id, turns):
                        queued = True
                if also is not None:
                    also(tx, written)
            if self._watch is not None and queued:
                self._watch.committed()
            note(session=self._session_id, entries=len(written), first=written[0].id if written else None)
        return written

    def _numbered(self, tx: Tx, record: NewEntry) -> Entry:
        """Write one turn under the session's next number."""
        entry, now = record.entry, record.entry.created_at
        head = tx.session(self._partition, self._session_id)
        number = 0 if head is None else head.turns
        numbered = replace(entry, turn_refs=[number], position=number)
        entry = replace(numbered, content_hash=content_hash(numbered))
        entry = replace(entry, id=keep(tx, replace(record, entry=entry), now))
        turn = Turn(
            session_id=self._session_id,
            number=number,
            role=entry.source,
            text=entry.text,
            at=entry.at,
            speaker=entry.speaker,
            entry_id=entry.id,
        )
        tx.add_turn(self._partition, turn, touched_at=now)
        return entry


class Session:
    """One dialogue of a scope. Made by `Memory.session`; adding a turn is durable when `add` returns."""

    def __init__(
        self, writer: Writer, store: Store, *, scope: Scope, session_id: str, watch: Watch | None = None
    ) -> None:
        self.id = checked_session_id(session_id)
        self.writer = TurnWriter(writer, scope=scope, session_id=self.id, watch=watch)
        self._memory_writer = writer
        self._store = store
        self._watch = watch
        self._partition = scope.home()

    def add(
        self,
        role: str,
        text: str,
        *,
        at: TimeLike = None,
        speaker: str | None = None,
        trust: str = "trusted",
        tags: Sequence[str] = (),
    ) -> str:
        """Add a turn and return the id of its episode entry, whose `turn_refs` hold the turn's number.

        `role` is `user`, `assistant`, … or the speaker's own name. Turns count from 0. `at` is when it was said.
        """
        draft = self.writer.draft(role, text, at=at, speaker=speaker, trust=trust, tags=tags)
        return self.writer.write(self.writer.ready([draft]))[0].id

    def add_turns(self, turns: Sequence[tuple[str, str]], *, tags: Sequence[str] = ()) -> list[Entry]:
        """Add several turns, each a role and a text, in one durable write. Returns their episode entries."""
        drafts = [self.writer.draft(role, text, tags=tags) for role, text in checked_turns(turns)]
        return self.writer.write(self.writer.ready(drafts)) if drafts else []

    def end(self, *, wait: float | bool = 0.0) -> Job | None:
        """End the session: what was said becomes memories, in the background. Returns the job, or None if there is
        nothing left to read.

        The job is durable when this returns. `wait` gives it that many seconds to finish first, True half a minute. A turn added later
        opens the session again.
        """
        seconds = checked_wait(wait)
        with span("session_end") as note:
            with self._memory_writer.transact(tenant=self._partition.tenant) as tx:
                if tx.session(self._partition, self.id) is None:
                    raise NotFound("session", self.id, "add a turn first")
                tx.mark_session(self._partition, self.id, ended_at=self._memory_writer.clock())
                key = None if self._watch is None else self._watch.ended(tx, self._partition, self.id)
            job = None
            if self._watch is not None and key is not None:
                self._watch.committed()
                job = self._watch.job(self._partition, key, wait_s=seconds)
            note(session=self.id, job=None if job is None else job.id)
        return job

    def turns(self) -> list[Turn]:
        """Every turn so far, verbatim, in order."""
        return self._store.turns(self._partition, self.id)


def _with_offset(draft: Draft) -> Draft:
    """The draft with the offset of its time in its metadata: "today" is a day of whoever says it."""
    try:
        said = datetime.fromisoformat(draft.at.strip()) if isinstance(draft.at, str) else draft.at
    except ValueError:  # the check of the draft says so
        return draft
    offset = said.utcoffset() if isinstance(said, datetime) else None
    return replace(draft, metadata={**(draft.metadata or {}), OFFSET: offset // MINUTE}) if offset else draft


def said_at(turn: Entry) -> datetime:
    """When a turn was said, in the time of whoever said it if that is known."""
    minutes = turn.metadata.get(OFFSET)
    if not isinstance(minutes, int) or abs(minutes) >= 24 * 60:  # anybody may edit it
        return turn.at
    try:
        return turn.at.astimezone(timezone(minutes * MINUTE))
    except OverflowError:  # in the first or the last year
        return turn.at


def name_of(user: str | None) -> str | None:
    """The id of a user when it reads like a name; "me" (who the command line remembers for) and roles are none."""
    return user if user and _NAME_LIKE.fullmatch(user) and user.lower() not in (*GENERIC_ROLES, "me") else None


def missing_turns(session: Session, store: Store, partition: Partition, drafts: Mapping[str, Draft]) -> list[Draft]:
    """Those turns of another system, each under its id there, that a session of the partition does not have.

    `session.writer` makes drafts, and writes what this returns, unless someone else has written it by then.
    """
    known = known_there(store, partition, session.id)
    return [
        replace(draft, metadata={**(draft.metadata or {}), ID_THERE: id_there})
        for id_there, draft in drafts.items()
        if id_there not in known
    ]


def known_there(store: StoreReader, partition: Partition, session_id: str) -> frozenset[object]:
    """The ids of a session's turns in the system they come from."""
    said = [turn.entry_id for turn in store.turns(partition, session_id) if turn.entry_id]
    return frozenset(entry.metadata.get(ID_THERE) for entry in store.get([partition], said).values()) - {None}
