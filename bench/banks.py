"""Filled memory files, made once per size and kept in a temporary folder; every measurement that writes gets a copy.

`sessions` holds dialogues of 20 turns, so that rows have neighbours; `notes` holds single texts. Turns are written
many to a transaction through wellworn's own `Writer` and `keep`: one commit per turn would make filling the slow part.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import numpy as np

import wellworn
from bench import corpus
from bench.corpus import WIDTH, Corpus, Matrix, unit_vectors
from wellworn import Memory, Scope
from wellworn.core.clock import TimeOrderedIds, system_clock
from wellworn.core.values import Entry, Turn
from wellworn.ingest.hashing import content_hash, thread_of
from wellworn.ingest.remember import Writer, keep
from wellworn.ingest.scrub import keep_all
from wellworn.ingest.validate import Draft, check
from wellworn.models.static import StaticEmbedder
from wellworn.ops.reembed import adopt_model
from wellworn.store.sqlite import SqliteStore

Variant = Literal["sessions", "notes"]
VARIANTS: tuple[Variant, ...] = ("sessions", "notes")

SCOPE = Scope(tenant="bench", user="ada")
TURNS_PER_SESSION = 20
TURNS_PER_WRITE = 1_000
STARTED = datetime(2026, 1, 1, tzinfo=UTC)
SEED = 7


class SeededEmbedder:
    """Random unit vectors at no cost worth counting. Questions get one too, or that of the static embedder."""

    def __init__(self, seed: int = SEED, *, static_queries: bool = False) -> None:
        self._pool = unit_vectors(4096, seed)
        self._next = 0
        self._static = StaticEmbedder() if static_queries else None

    @property
    def name(self) -> str:
        return "bench:seeded"

    @property
    def width(self) -> int:
        return WIDTH

    def embed(self, texts: Sequence[str]) -> Matrix:
        places = np.arange(self._next, self._next + len(texts)) % len(self._pool)
        self._next += len(texts)
        return self._pool[places]

    def embed_query(self, text: str) -> Matrix:
        return self.embed([text])[0] if self._static is None else self._static.embed_query(text)


@dataclass(frozen=True, kw_only=True)
class Banks:
    """Where filled files are kept, and the folder of this run for copies."""

    kept: Path
    scratch: Path

    @classmethod
    def beside(cls, scratch: Path) -> Banks:
        kept = Path(tempfile.gettempdir()) / "wellworn-bench"
        kept.mkdir(exist_ok=True)
        return cls(kept=kept, scratch=scratch)

    def path(self, variant: Variant, size: int) -> Path:
        """A file with that many entries, filled now if it is not there. Only to be read."""
        path = self.kept / f"{variant}-{size}-{_fingerprint()}.db"
        if not path.exists():
            new = self.scratch / f"new-{path.name}"
            (_fill_sessions if variant == "sessions" else _fill_notes)(new, size)
            shutil.move(new, path)
        return path

    def copy(self, variant: Variant, size: int, name: str) -> Path:
        """A file of one's own to write to."""
        path = self.scratch / f"{name}-{variant}-{size}.db"
        shutil.copyfile(self.path(variant, size), path)
        return path


def open_memory(path: Path, *, durability: str = "full", static_queries: bool = False) -> Memory:
    return Memory.open(path, embedder=SeededEmbedder(static_queries=static_queries), durability=durability)


def _fingerprint() -> str:
    """Of the code that decides what a file holds: other tables, analysis or texts, another file."""
    package = Path(wellworn.__file__).parent
    files = (package / "stores/sqlite/schema.py", package / "ingest/terms.py", Path(corpus.__file__))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def _fill_notes(path: Path, size: int) -> None:
    with open_memory(path, durability="normal") as memory:
        memory.remember_many(Corpus(SEED).texts(size), scope=SCOPE)


def _fill_sessions(path: Path, size: int) -> None:
    store, embedder = SqliteStore(path, durability="normal"), SeededEmbedder()
    adopt_model(store, embedder)
    writer = Writer(store, embedder, scrubber=keep_all, clock=system_clock, new_id=TimeOrderedIds())
    texts = Corpus(SEED).texts(size)
    for start in range(0, size, TURNS_PER_WRITE):
        entries = [
            _turn(writer, start + place, text) for place, text in enumerate(texts[start : start + TURNS_PER_WRITE])
        ]
        records = writer.records_of(entries)
        with store.transact() as tx:
            for record in records:
                entry = record.entry
                number = tx.open_session(entry.partition, str(entry.session_id), entry.at)
                keep(tx, record, entry.created_at)
                tx.add_turn(
                    entry.partition,
                    Turn(
                        session_id=str(entry.session_id),
                        number=number,
                        role="user",
                        text=entry.text,
                        at=entry.at,
                        speaker=entry.speaker,
                        entry_id=entry.id,
                    ),
                )
    store.close()


def _turn(writer: Writer, number: int, text: str) -> Entry:
    """The entry that `Session.add` would write for this turn."""
    session, turn = divmod(number, TURNS_PER_SESSION)
    session_id = f"session {session}"
    at = STARTED + timedelta(minutes=30 * session, seconds=40 * turn)
    draft = Draft(
        text=text,
        kind="episode",
        session_id=session_id,
        turn_refs=[turn],
        at=at,
        speaker="Ada" if turn % 2 else "Grace",
        source="user",
    )
    entry = writer.entry_of(check(draft, SCOPE, at), at, thread=thread_of("session", session_id), position=turn)
    return replace(entry, content_hash=content_hash(entry))
