"""Vectors of sentences through re-embedding, export and import, a move, repair, and stores of an older release."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contract.postgres import Server
from language.test_parts import Reading
from wellworn import Memory, Scope
from wellworn.core.values import Entry
from wellworn.ops.doctor import repair, rescue, verify
from wellworn.ops.reembed import reembed
from wellworn.ops.transfer import move
from wellworn.store.port import Selection, Store
from wellworn.store.postgres import schema
from wellworn.store.sql.schema import PARTS
from wellworn.store.sqlite import SqliteStore
from wellworn.store.sqlite.schema import FIRST

from .conftest import ADA, fill, open_memory, open_store

SEVERAL = "I live in Oslo with my dog. My cat is called Momo and likes fish."
ADDED = [statement.split()[2] for statement in PARTS]


def parts_by_id(store: Store) -> dict[str, bytes]:
    ids = {no: entry.id for no, entry in store.select(None, Selection())}
    return {ids[no]: blob for no, blob in store.parts([*ids]).items()}


def made_of(store: Store, embedder: Any) -> dict[str, bytes]:
    """What an embedder makes of the entries that are there."""
    from wellworn.ingest.terms import embedding_text
    from wellworn.language.parts import embedded

    entries: list[Entry] = [entry for _, entry in store.select(None, Selection())]
    _, parts = embedded(embedder, [embedding_text(entry) for entry in entries])
    return {entry.id: blob for entry, blob in zip(entries, parts, strict=True) if blob is not None}


def harmed(store: Store, harm: str) -> None:
    with store.transact() as tx:
        tx._db.run(f"UPDATE index_records SET parts = {harm} WHERE parts IS NOT NULL")  # type: ignore[attr-defined]


class Counting(Reading):
    """Notes how many texts it reads."""

    texts = 0

    def read(self, texts: Sequence[str]) -> Any:
        self.texts += len(texts)
        return super().read(texts)


def test_re_embedding_makes_those_of_the_new_model(memory: Memory, store: Store) -> None:
    fill(memory)
    assert parts_by_id(store) == {}
    reembed(store, Reading(8))
    assert parts_by_id(store) == made_of(store, Reading(8)) != {}
    reembed(store, Reading(12))
    assert parts_by_id(store) == made_of(store, Reading(12))
    assert verify(store, Reading(12)).ok
    open_memory(store, Reading(12)).close()


def test_an_import_reads_the_sentences_and_keeps_the_vectors(tmp_path: Path) -> None:
    first, second = open_store(tmp_path), open_store(tmp_path, "second")
    fill(source := open_memory(first, Reading(16)))
    for vectors in (True, False):
        assert b"parts" not in _exported(source, tmp_path / f"{vectors}.jsonl", vectors=vectors)
    embedder = Counting(16)
    target = open_memory(second, embedder)
    target.admin.load(tmp_path / "True.jsonl")
    assert parts_by_id(second) == parts_by_id(first) == made_of(first, embedder) != {}
    assert 0 < len(parts_by_id(first)) < len(first.select(None, Selection()))
    assert embedder.texts == len(parts_by_id(first)) + len(first.select(None, Selection()))  # the others keep theirs
    without = Memory(open_store(tmp_path, "without"), embedder="hash:16", background=False)
    without.admin.load(tmp_path / "True.jsonl")
    assert parts_by_id(without.engine.store) == {}
    assert without.recall("office", scope=ADA)[0].sentence is None
    other = open_memory(open_store(tmp_path, "other"), Reading(16))
    other.admin.load(tmp_path / "False.jsonl")
    assert parts_by_id(other.engine.store) == parts_by_id(first)


def _exported(memory: Memory, path: Path, *, vectors: bool) -> bytes:
    memory.admin.export(path, vectors=vectors)
    return path.read_bytes()


def test_a_move_and_a_backup_take_them_along(tmp_path: Path, postgres_server: Server) -> None:
    here, embedder = open_store(tmp_path), Counting(16)
    fill(open_memory(here, Reading(16)))
    with Memory(postgres_server.url(), embedder=embedder, background=False) as there:
        engine = there.engine
        move(here, engine.store, engine.writer, relearn=engine.learner.relearn, clock=engine.clock)
        assert (parts_by_id(engine.store), embedder.texts) == (parts_by_id(here), 0)
        engine.store.copy_to(tmp_path / "copy.db")  # type: ignore[attr-defined]
        with closing(SqliteStore(tmp_path / "copy.db")) as copy:
            assert parts_by_id(copy) == parts_by_id(here) != {}
        assert there.verify().ok


@pytest.mark.parametrize(("harm", "noticed"), [("x'00ff'", True), ("zeroblob(56)", True), ("NULL", False)])
def test_repair_makes_anew_what_is_damaged_or_missing(tmp_path: Path, harm: str, noticed: bool) -> None:
    store = open_store(tmp_path)
    open_memory(store, Reading(16)).remember(SEVERAL, scope=ADA)
    sound = parts_by_id(store)
    assert sound
    harmed(store, harm)
    flaws = verify(store, Reading(16)).flaws
    assert [(flaw.check, flaw.repairable) for flaw in flaws] == [("vector", True)] * noticed
    assert verify(store, None).flaws == [flaw.__class__(**{**vars(flaw), "repairable": False}) for flaw in flaws]
    assert repair(store, Reading(16)).ok
    assert parts_by_id(store) == sound


def test_a_file_of_an_older_release_gets_the_columns(tmp_path: Path) -> None:
    path = _of_older_release(tmp_path)
    with closing(SqliteStore(path)) as store:
        assert store.check() == []
        assert parts_by_id(store) == {}
        assert len(store.select(None, Selection())) == 1
        memory = open_memory(store, Reading(16))
        memory.remember("I have a boat in the harbour. It is red and rather old.", scope=ADA)
        assert len(parts_by_id(store)) == 1
        assert repair(store, Reading(16)).ok
        assert parts_by_id(store) == made_of(store, Reading(16))
        assert memory.recall("What is my cat called?", scope=ADA)[0].text == SEVERAL


def test_a_broken_file_of_an_older_release_is_rescued(tmp_path: Path) -> None:
    path = _of_older_release(tmp_path)
    salvaged, _ = rescue(path)
    assert (salvaged.rows["entries"], salvaged.rows["index_records"], salvaged.lost) == (1, 1, {})


def _of_older_release(folder: Path) -> Path:
    store = open_store(folder)
    open_memory(store, Reading(16)).remember(SEVERAL, scope=ADA)
    store.close()
    path = folder / "memory.db"
    with closing(sqlite3.connect(path)) as db:
        for table in ADDED:
            db.execute(f"ALTER TABLE {table} DROP COLUMN parts")
        db.execute(f"PRAGMA user_version = {FIRST}")
    return path


def test_a_database_of_an_older_release_gets_the_columns(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:2])  # the columns are the second
    url = postgres_server.url()
    with Memory(url, embedder=Reading(16), background=False) as memory:
        memory.remember(SEVERAL, scope=Scope(user="ada"))
        store: Any = memory.engine.store
        with store.transact() as tx:
            for table in ADDED:
                tx._db.run(f"ALTER TABLE {table} DROP COLUMN parts")
            tx._db.run("DELETE FROM versions WHERE no > 1")
    with Memory(url, embedder=Reading(16), background=False) as memory:
        store = memory.engine.store
        assert parts_by_id(store) == {}
        assert repair(store, Reading(16)).ok
        assert parts_by_id(store) == made_of(store, Reading(16)) != {}
