"""A memory moves between SQLite and Postgres and back: everything arrives, and a move that was cut short is finished."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Cli
from contract.builders import NOON, make_partition, make_record, put
from contract.few import few
from contract.postgres import Server
from wellworn import Memory
from wellworn.core.errors import InvalidInput, TransferError
from wellworn.ops.backup import list_backups, restore
from wellworn.ops.transfer import move
from wellworn.search.profiles import PROFILES
from wellworn.server.keys import create_key, revoke_key
from wellworn.store.port import RecordFilter

FACTS = [f"Ada keeps fact number {n} about thing {n * 7}." for n in range(30)]


def lived(location: str | Path, key: bytes | None = None) -> Memory:
    """A memory with a bit of everything."""
    mem = Memory(location, embedder="hash", background=False, key=key)
    ada = mem.for_user("ada")
    ids = [ada.remember(fact)[0] for fact in FACTS]
    ada.edit(ids[0], text="Ada keeps a changed fact.")
    ada.link(ids[1], ids[2], "supports")
    session = ada.session("monday")
    session.add("user", "I live in Oslo.")
    session.add("user", "I moved to Bergen last week.")
    ada.outcome(ada.recall("fact number 3").id, cited=[1])
    mem.for_user("bo", tenant="other").remember("Bo likes tea.")
    put(mem.engine.store, make_record("t", body={"a": 1}), make_record("", kind="event", state="seen"))
    return mem


def last_row(mem: Memory) -> int:
    store = mem.engine.store
    return max(no for page in store.pages(store.partitions()) for no, _ in page)


def brought(source: Memory, target: Memory) -> Any:
    engine = target.engine
    return move(source.engine.store, engine.store, engine.writer, relearn=engine.learner.relearn, clock=engine.clock)


def recalled(mem: Memory) -> list[Any]:
    found = [mem.for_user("ada").recall(query) for query in ("Where do I live?", "fact number 12")]
    return [[(hit.entry.id, hit.text) for hit in recall] for recall in found]


@pytest.mark.parametrize("key", few([b"k" * 32, None], 1))
def test_a_database_is_backed_up_into_a_file(tmp_path: Path, postgres_server: Server, key: bytes | None) -> None:
    folder, restored = tmp_path / "backups", tmp_path / "restored.db"
    with lived(postgres_server.url(), key=key) as there:
        lost = there.for_user("ada").remember("Ada will forget this.")
        gone = last_row(there)
        there.for_user("ada").forget(lost)
        there.for_user("ada").learning.relearn()
        first = there.admin.backup(folder)
        there.for_user("bo", tenant="other").admin.erase()
        done = there.admin.backup(folder, keep=7)
        assert first.made is not None
        assert (done.removed, done.kept) == ((first.made.path,), 1)  # an erasure reaches older backups
        assert list_backups(folder, there.engine.store.location) == [done.made]
        assert done.made is not None
        assert restore(Path(done.made.path), restored)[0].encrypted == (key is not None)
        with Memory(restored, embedder="hash", background=False, key=key) as here:
            assert here.engine.store.records(RecordFilter()) == there.engine.store.records(RecordFilter())
            assert here.verify().ok
            assert recalled(here) == recalled(there)
            assert here.for_user("ada").learning.status() == there.for_user("ada").learning.status()
            here.for_user("ada").remember("Ada has a new parrot.")
            assert last_row(here) > gone  # the number of a row that is gone is not used again


def test_a_memory_goes_to_postgres_and_back(tmp_path: Path, postgres_server: Server) -> None:
    url = postgres_server.url()
    with (
        lived(tmp_path / "here.db") as here,
        Memory(url, embedder="hash") as there,
        Memory(tmp_path / "back.db", embedder="hash") as back,
    ):
        first, second = brought(here, there), brought(there, back)
        assert first.sha256 == second.sha256
        assert (first.entries, first.versions, first.lines) == (second.entries, second.versions, second.lines)
        assert recalled(here) == recalled(there) == recalled(back)
        for mem in (there, back):
            kept = mem.engine.store.record(make_partition(), "task", "t")
            assert kept is not None
            assert kept.body == {"a": 1}
            assert len(mem.engine.store.records(RecordFilter(kinds=["event"], states=["seen"]))) == 1
            assert mem.verify().ok
        again = brought(here, there)
        assert (again.entries, again.records, again.sha256) == (0, 0, first.sha256)


@pytest.mark.slow
def test_a_move_that_was_cut_short_is_finished(
    tmp_path: Path, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cut(Exception):
        pass

    monkeypatch.setattr("wellworn.ops.bundle.SLICE", 10)
    monkeypatch.setattr("wellworn.ops.transfer.PAGE", 10)
    with lived(tmp_path / "here.db") as here, Memory(postgres_server.url(), embedder="hash") as there:
        store, transact, left = there.engine.store, there.engine.store.transact, [0]

        def cut(**how: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                raise Cut
            return transact(**how)

        monkeypatch.setattr(store, "transact", cut)
        cuts = 0
        for after in range(1, 60):
            left[0] = after
            try:
                brought(here, there)
                break
            except Cut:
                cuts += 1
        assert 3 < cuts < 59
        assert recalled(here) == recalled(there)
        assert len(store.records(RecordFilter(kinds=["event"], states=["seen"]))) == 1


def test_the_command_moves_a_file(tmp_path: Path, postgres_server: Server) -> None:
    cli, url = Cli(tmp_path / "memory.db"), postgres_server.url()
    cli("remember", FACTS[0])
    key = tmp_path / "key"
    key.write_text("a long passphrase")
    moved = cli("move", f"sqlite:{tmp_path / 'memory.db'}", url, "--new-key-file", str(key), "--json")
    assert (moved.code, moved.json["entries"]) == (0, 1)
    assert FACTS[0] in cli("--db", url, "list", env={"WELLWORN_KEY_FILE": str(key)}).out
    assert "is encrypted" in cli("--db", url, "list").err
    missing = cli("move", str(tmp_path / "nothing.db"), url)
    assert (missing.code, "no file" in missing.err) == (2, True)


def test_a_target_that_holds_anything_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "here.db"
    (tmp_path / "link.db").symlink_to(path)
    with lived(tmp_path / "lived.db") as source, Memory(tmp_path / "other.db", embedder="hash") as other:
        other.for_user("ada").remember(FACTS[3])  # another entry with the same words
        with pytest.raises(TransferError, match="empty"):
            brought(source, other)
    with Memory(tmp_path / "there.db", embedder="hash") as there:
        with Memory(path, embedder="hash", background=False) as here:
            put(here.engine.store, make_record("first"))
            assert [brought(here, there).records for _ in range(2)] == [1, 0]
            with (
                Memory(tmp_path / "link.db", embedder="hash", background=False) as same,
                pytest.raises(InvalidInput, match="itself"),
            ):
                brought(here, same)
        path.unlink()
        with Memory(path, embedder="hash", background=False) as here:
            put(here.engine.store, make_record("second"))
            with pytest.raises(TransferError, match="empty"):
                brought(here, there)
        assert there.engine.store.record(make_partition(), "task", "second") is None


def test_a_move_brings_back_neither_what_was_forgotten_nor_a_key(tmp_path: Path) -> None:
    with lived(tmp_path / "here.db") as here, Memory(tmp_path / "there.db", embedder="hash", background=False) as there:
        store, other = here.engine.store, there.engine.store
        key, _ = create_key(store, tenant="default", role="reader", now=NOON)
        brought(here, there)
        revoke_key(other, key.id, now=NOON + timedelta(hours=1))
        with pytest.raises(TransferError, match="holds 2 lines or records that"):  # the key and its event
            brought(here, there)
        for mem in (here, there):
            mem.for_user("ada").forget([mem.for_user("ada").entries(limit=1 if mem is here else 2)[-1].id])
        for source, target in ((here, there), (there, here)):
            with pytest.raises(TransferError, match="move into a store that is empty"):
                brought(source, target)


def test_what_was_learned_arrives_under_every_profile(tmp_path: Path) -> None:
    other = replace(PROFILES["default"], name="other")
    lived(tmp_path / "a.db").close()
    with Memory(tmp_path / "a.db", embedder="hash", background=False, profile=other) as source:
        ada = source.for_user("ada")
        ada.outcome(ada.recall("fact number 4").id, cited=[1])
        states = ada.learning.export()
        with Memory(tmp_path / "b.db", embedder="hash", background=False) as target:
            brought(source, target)
            brought(source, target)  # and again
            assert target.for_user("ada").learning.status().outcomes == 1
    with Memory(tmp_path / "b.db", embedder="hash", background=False, profile=other) as target:
        assert target.for_user("ada").learning.export()["person"] == states["person"] is not None
