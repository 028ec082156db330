"""Backups, encryption at rest and files with broken pages: nothing is lost that can be read, nothing is readable that
must not be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from wellworn.core.errors import InvalidInput, StoreError, TransferError, WrongKey
from wellworn.memory import Memory
from wellworn.ops.backup import check, list_backups, name_of, restore
from wellworn.ops.doctor import rescue
from wellworn.store.sqlite import SqliteStore
from wellworn.store.sqlite.driver import encrypt_file, key_of

from .conftest import ADA, EVE, fill

KEY = "correct horse battery staple"
PLANTED = "Zwölfuhrläuten planted text"


def opened(path: Path, key: str | None = None) -> Memory:
    return Memory(path, embedder="hash", background=False, durability="normal", key=key)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    with opened(tmp_path / "memory.db") as memory:
        fill(memory)
    return tmp_path / "memory.db"


def made_by(memory: Memory, folder: Path | None = None, **options: Any) -> Path:
    """The file of a new backup."""
    made = memory.admin.backup(folder, **options).made
    assert made is not None
    return Path(made.path)


@pytest.fixture
def backup(filled: Path) -> Path:
    with opened(filled) as memory:
        return made_by(memory)


def texts(path: Path, key: str | None = None) -> list[str]:
    """What Eve has in a file that must be whole."""
    with opened(path, key) as memory:
        assert memory.verify()
        return [entry.text for entry in memory.entries(scope=EVE, limit=200)]


# -- backups -----------------------------------------------------------------------------------------------------


def test_a_backup_of_a_store_in_use_restores_to_the_same(filled: Path, tmp_path: Path) -> None:
    with opened(filled) as memory:
        made = memory.admin.backup().made
        assert made is not None
        memory.remember("Later than the backup.", scope=EVE)
        assert [made] == list_backups(Path(f"{filled}.backups")) == [check(Path(made.path))]
        assert Path(made.path).stat().st_size < made.bytes
        assert Path(made.path).stat().st_mode & 0o077 == 0
    restore(Path(made.path), tmp_path / "restored.db")
    assert texts(tmp_path / "restored.db") == ["Eve keeps bees."]


def test_only_so_many_are_kept_and_none_is_made_too_early(filled: Path) -> None:
    with opened(filled) as memory:
        made = [memory.admin.backup(keep=2) for _ in range(4)]
        assert [one.kept for one in made] == [1, 2, 2, 2]
        assert memory.admin.backup(every=timedelta(days=1)).made is None
        assert memory.admin.backup(every=timedelta(microseconds=1)).made is not None
        with pytest.raises(InvalidInput, match="at least 1"):
            memory.admin.backup(keep=0)
    with pytest.raises(InvalidInput, match="not a file"):
        Memory(":memory:", embedder="hash").admin.backup()


def test_two_files_of_one_name_share_a_folder_and_keep_their_backups(tmp_path: Path) -> None:
    folder, made = tmp_path / "backups", dict[str, str]()
    for name in "ab":
        (tmp_path / name).mkdir()
        with opened(tmp_path / name / "memory.db") as memory:
            memory.remember(f"Said in {name}.", scope=ADA)
            made[name] = [str(made_by(memory, folder, keep=1)) for _ in range(2)][-1]
            assert memory.admin.backup(folder, keep=1, every=timedelta(days=1)).made is None
    assert {one.path for one in list_backups(folder)} == {*made.values()}
    with opened(tmp_path / "b" / "memory.db") as memory:
        memory.admin.erase(scope=ADA)
        done = memory.admin.backup(folder, keep=1)
    assert (done.removed, done.unsure) == ((made["b"],), (made["a"],))  # it may be of where b was before
    assert Path(made["a"]).exists()


def test_a_file_keeps_its_backups_when_it_is_moved_and_when_the_folder_changes(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(Path("memory.db")) as memory:
        memory.admin.backup()
        monkeypatch.chdir("/")
        memory.admin.erase(scope=EVE)
        assert len(memory.admin.backup().removed) == 1
    moved = tmp_path / "moved"
    moved.mkdir()
    for one in tmp_path.glob("memory.db*"):
        one.rename(moved / one.name)
    path = moved / "memory.db"
    (listed,) = list_backups(Path(f"{path}.backups"), path)
    with opened(path) as memory:
        assert memory.admin.backup(keep=1).removed == (listed.path,)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgres://ww@DB/app", "db-app"),
        ("postgresql://ww:pw@db:5432/app?pool_size=5", "db-app"),
        ("postgresql:///app?host=db", "db-app"),
        ("postgresql://db/app?schema=b", "db-app-b"),
        ("postgresql://ww@a:5433,b:5432/app", "a-5433-b-app"),
    ],
)
def test_backups_of_a_database_are_found_however_its_url_is_spelled(url: str, name: str) -> None:
    assert name_of(url) == name


@pytest.mark.parametrize("damage", ["cut", "flip", "header", "empty"])
def test_a_damaged_backup_is_never_restored(backup: Path, tmp_path: Path, damage: str) -> None:
    content = backup.read_bytes()
    middle = len(content) // 2
    damaged = {
        "cut": content[:middle],
        "flip": content[:middle] + bytes(one ^ 255 for one in content[middle:][:16]) + content[middle + 16 :],
        "header": b"{}" + content[2:],
        "empty": b"",
    }
    backup.write_bytes(damaged[damage])
    with pytest.raises(TransferError, match=r"\.backup"):
        check(backup)
    with pytest.raises(TransferError, match=r"\.backup"):
        restore(backup, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_restore_replaces_a_file_only_when_told_and_keeps_it(backup: Path, filled: Path) -> None:
    with opened(filled) as memory:
        memory.forget(everything=True, scope=EVE)
        with pytest.raises(StoreError, match="is open"):
            restore(backup, filled, force=True)
        memory.remember("It goes on.", scope=EVE)
    with pytest.raises(TransferError, match="--force"):
        restore(backup, filled)
    before = Path(f"{filled}.before-restore")
    assert restore(backup, filled, force=True)[1] == before
    assert restore(backup, filled, force=True)[1] == Path(f"{before}-2")
    assert (texts(filled), texts(before)) == (["Eve keeps bees."], ["It goes on."])


def test_what_fails_at_its_target_names_it(
    filled: Path, backup: Path, tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for target in (tmp_path / "none" / "m.db", tmp_path / "folder", tmp_path / "pipe"):
        with pytest.raises(TransferError, match=f"^cannot write {target}: "):
            restore(backup, target, force=True)
    with full_disk(60_000), pytest.raises(TransferError, match=f"^cannot write {tmp_path / 'new.db'}: "):
        restore(backup, tmp_path / "new.db")
    folder = tmp_path / "backups"
    with opened(filled) as memory, full_disk(60_000), pytest.raises(StoreError, match=f"^cannot back up to {folder}: "):
        memory.admin.backup(folder)
    assert list(folder.iterdir()) == []
    left = {"memory.db", "memory.db.backups", "backups", "folder", "pipe"}
    assert {one.name for one in tmp_path.iterdir()} == left


def test_a_kept_file_never_gets_the_log_of_another(filled: Path, backup: Path) -> None:
    filled.unlink()
    Path(f"{filled}-wal").write_bytes(b"of a file that is gone")
    assert restore(backup, filled)[1] is None
    assert Path(f"{filled}.before-restore-wal").exists()
    assert restore(backup, filled, force=True)[1] == Path(f"{filled}.before-restore-2")


CRASH = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
if sys.argv[2] == "-wal":
    db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA cache_size = 1")
db.execute("BEGIN IMMEDIATE")
db.execute("UPDATE entries SET text = 'overwritten ' || text || hex(randomblob(2000))")
if sys.argv[2] == "-wal":
    db.execute("COMMIT")
os._exit(0)
"""


@pytest.mark.parametrize("left", ["-journal", "-wal"])
def test_what_a_crash_left_beside_a_file_goes_with_it_not_into_the_restored_one(
    filled: Path, backup: Path, left: str
) -> None:
    with opened(filled) as memory:
        memory.remember_many([f"Fact number {n} about bees." for n in range(100)], scope=EVE)
    subprocess.run([sys.executable, "-c", CRASH, str(filled), left], check=True)
    assert Path(f"{filled}{left}").stat().st_size
    restore(backup, filled, force=True)
    kept = Path(f"{filled}.before-restore")
    assert {one.name for one in filled.parent.iterdir()} == {filled.name, f"{filled.name}.backups", kept.name}
    assert texts(filled) == ["Eve keeps bees."]
    with opened(kept) as memory:
        found = [entry.text for entry in memory.entries(scope=EVE, limit=200)]
    assert len(found) == 101
    assert all(text.startswith("overwritten") == (left == "-wal") for text in found)


# -- encryption --------------------------------------------------------------------------------------------------


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    pytest.importorskip("sqlcipher3", reason="the extra `encryption` is not installed")
    return tmp_path / "secret.db"


def test_no_byte_on_disk_tells_what_was_remembered(encrypted: Path, tmp_path: Path) -> None:
    with opened(encrypted, KEY) as memory:
        memory.remember(PLANTED, scope=ADA, metadata={"where": PLANTED}, tags=["plantedtag"])
        memory.session("planted-session", scope=ADA).add("user", PLANTED)
        memory.outcome(memory.recall(PLANTED, scope=ADA).id, cited=[0], scope=ADA)
        memory.admin.backup(tmp_path / "backups")
        with pytest.raises(InvalidInput, match="--plain"):
            memory.admin.export(tmp_path / "out.jsonl")
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {path.name for path in files} >= {"secret.db", "secret.db-wal"}
        for path in files:
            raw = path.read_bytes()
            assert b"planted" not in raw, path
            assert b"SQLite format" not in raw, path
            assert PLANTED.encode("utf-16-le") not in raw, path
        memory.admin.export(tmp_path / "out.jsonl", plain=True)
        assert "planted" in (tmp_path / "out.jsonl").read_text()
    with opened(encrypted, KEY) as memory:
        assert memory.recall(PLANTED, scope=ADA).hits
        assert memory.verify()


def test_a_wrong_or_missing_key_is_one_clear_error(encrypted: Path, filled: Path) -> None:
    opened(encrypted, KEY).close()
    with pytest.raises(WrongKey, match="the key does not open"):
        opened(encrypted, "another passphrase")
    with pytest.raises(StoreError, match="give its key"):
        opened(encrypted)
    with pytest.raises(WrongKey, match="is not encrypted"):
        opened(filled, KEY)
    with pytest.raises(InvalidInput, match="fewer than 8"):
        opened(encrypted, "short")
    opened(encrypted, KEY).close()


def test_a_key_may_stand_in_a_file_the_environment_or_a_function(
    encrypted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(encrypted, KEY).close()
    (tmp_path / "key").write_text(f"{KEY}\n")
    for key in (tmp_path / "key", lambda: KEY, KEY.encode()):
        SqliteStore(encrypted, key=key).close()
    with pytest.raises(InvalidInput, match="cannot be read"):
        SqliteStore(encrypted, key=tmp_path / "none")
    monkeypatch.setenv("WELLWORN_KEY_FILE", str(tmp_path / "key"))
    opened(encrypted).close()
    monkeypatch.setenv("WELLWORN_KEY", "not the right one")
    with pytest.raises(WrongKey):
        opened(encrypted)


def test_a_key_is_changed_and_a_plain_file_encrypted(
    encrypted: Path, filled: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    with opened(encrypted, KEY) as memory:
        memory.remember(PLANTED, scope=EVE)
    store = SqliteStore(encrypted, key=KEY)
    with full_disk(60_000), pytest.raises(StoreError, match=f"^the key of '{encrypted}' could not be changed"):
        store.rekey("ab" * 32)
    store.close()
    assert texts(encrypted, KEY) == [PLANTED]
    SqliteStore(encrypted, key=KEY).rekey("ab" * 32)
    with pytest.raises(WrongKey):
        opened(encrypted, KEY)
    assert texts(encrypted, "ab" * 32) == [PLANTED]
    secret = key_of(KEY)
    assert secret is not None
    encrypt_file(filled, secret)
    assert b"bees" not in filled.read_bytes()
    assert texts(filled, KEY) == ["Eve keeps bees."]


def test_a_backup_of_an_encrypted_store_needs_its_key(encrypted: Path, tmp_path: Path) -> None:
    with opened(encrypted, KEY) as memory:
        memory.remember(PLANTED, scope=EVE)
        made = made_by(memory)
    for key in (None, "cd" * 32):
        with pytest.raises(WrongKey, match=f"^{made} is encrypted: give its key"):
            check(made, open_store=partial(SqliteStore, key=key))
    assert restore(made, tmp_path / "again.db")[0].encrypted
    assert texts(tmp_path / "again.db", KEY) == [PLANTED]


# -- broken pages ------------------------------------------------------------------------------------------------


def test_a_file_with_broken_pages_is_copied_and_exported(filled: Path, tmp_path: Path) -> None:
    with opened(filled) as memory:
        memory.remember_many([f"Fact number {n} about bees." for n in range(300)], scope=EVE)
    content = bytearray(filled.read_bytes())
    page = content.index(b"Fact number 150") // 4096 * 4096
    content[page : page + 64] = bytes(64)
    filled.write_bytes(content)
    with opened(filled) as memory:
        assert {flaw.check for flaw in memory.verify().flaws} & {"pages", "readable"}
        written = memory.admin.export(tmp_path / "out.jsonl")
        assert written.unreadable
        assert written.entries > 250
    salvaged, kept = rescue(filled)
    assert kept.exists()
    assert salvaged.rows["entries"] > 250
    with opened(filled) as memory:
        memory.admin.repair()
        assert not [flaw for flaw in memory.verify().flaws if flaw.check in ("pages", "readable")]
        assert memory.recall("bees", scope=EVE).hits
