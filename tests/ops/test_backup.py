"""Backups, encryption at rest and files with broken pages: nothing is lost that can be read, nothing is readable that
must not be."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from wellworn.core.errors import InvalidInput, StoreError, TransferError, WellwornError, WrongKey
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


# -- backups -----------------------------------------------------------------------------------------------------


def test_a_backup_of_a_store_in_use_restores_to_the_same(filled: Path, tmp_path: Path) -> None:
    with opened(filled) as memory:
        made = memory.admin.backup().made
        assert made is not None
        memory.remember("Later than the backup.", scope=ADA)
        (listed,) = list_backups(Path(f"{filled}.backups"))
        assert listed == made == check(Path(made.path))
        assert Path(made.path).stat().st_size < made.bytes
        assert Path(made.path).stat().st_mode & 0o077 == 0
    restore(Path(made.path), tmp_path / "restored.db")
    with opened(tmp_path / "restored.db") as memory:
        assert memory.verify()
        assert [entry.text for entry in memory.entries(scope=EVE)] == ["Eve keeps bees."]
        assert "Later than the backup." not in [entry.text for entry in memory.entries(scope=ADA)]


def test_only_so_many_are_kept_and_none_is_made_too_early(filled: Path) -> None:
    with opened(filled) as memory:
        made = [memory.admin.backup(keep=2) for _ in range(4)]
        assert [one.kept for one in made] == [1, 2, 2, 2]
        assert made[-1].made is not None
        assert memory.admin.backup(every=timedelta(days=1)).made is None
        assert memory.admin.backup(every=timedelta(microseconds=1)).made is not None
        with pytest.raises(InvalidInput, match="at least 1"):
            memory.admin.backup(keep=0)
    with pytest.raises(InvalidInput, match="not a file"):
        Memory(":memory:", embedder="hash").admin.backup()


def test_two_files_of_one_name_share_a_folder_and_keep_their_backups(tmp_path: Path) -> None:
    folder, day, made = tmp_path / "backups", timedelta(days=1), dict[str, str]()
    for name in "ab":
        (tmp_path / name).mkdir()
        with opened(tmp_path / name / "memory.db") as memory:
            memory.remember(f"Said in {name}.", scope=ADA)
            for _ in range(2):
                one = memory.admin.backup(folder, keep=1).made
                assert one is not None
                made[name] = one.path
            assert memory.admin.backup(folder, keep=1, every=day).made is None
    assert {one.path for one in list_backups(folder)} == {*made.values()}
    with opened(tmp_path / "a" / "memory.db") as memory:
        named = memory.admin.backup(folder, keep=9).made
        assert named is not None
    with opened(tmp_path / "b" / "memory.db") as memory:
        memory.admin.erase(scope=ADA)
        done = memory.admin.backup(folder, keep=1)
    assert done.removed == (made["b"],)
    assert {*done.unsure} == {made["a"], named.path}  # either may be of a or of where b was before
    assert Path(made["a"]).exists()


def test_a_change_of_the_folder_does_not_hide_older_backups(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(Path("memory.db")) as memory:
        memory.admin.backup()
        monkeypatch.chdir("/")
        memory.admin.erase(scope=EVE)
        assert len(memory.admin.backup().removed) == 1
    assert len(list_backups(tmp_path / "memory.db.backups")) == 1


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://db/app", "db-app"),
        ("postgres://ww@DB/app", "db-app"),
        ("postgresql://ww:pw@db:5432/app?pool_size=5", "db-app"),
        ("postgresql:///app?host=db", "db-app"),
        ("postgresql://db/app?schema=b", "db-app-b"),
        ("postgresql://ww@a:5433,b:5432/app", "a-5433-b-app"),
    ],
)
def test_backups_of_a_database_are_found_however_its_url_is_spelled(url: str, name: str) -> None:
    assert name_of(url) == name


def test_a_file_that_was_moved_with_its_backups_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with opened(tmp_path / "a" / "memory.db") as memory:
        memory.admin.backup()
    (tmp_path / "a").rename(tmp_path / "b")
    path = tmp_path / "b" / "memory.db"
    (listed,) = list_backups(Path(f"{path}.backups"), path)
    with opened(path) as memory:
        assert memory.admin.backup(keep=1).removed == (listed.path,)


@pytest.mark.parametrize("damage", ["cut", "flip", "header", "empty"])
def test_a_damaged_backup_is_never_restored(filled: Path, tmp_path: Path, damage: str) -> None:
    with opened(filled) as memory:
        made = memory.admin.backup().made
    assert made is not None
    content = Path(made.path).read_bytes()
    middle = len(content) // 2
    Path(made.path).write_bytes(
        {
            "cut": content[:middle],
            "flip": content[:middle] + bytes(one ^ 255 for one in content[middle:][:16]) + content[middle + 16 :],
            "header": b"{}" + content[2:],
            "empty": b"",
        }[damage]
    )
    with pytest.raises(TransferError, match=r"\.backup"):
        check(Path(made.path))
    with pytest.raises(TransferError, match=r"\.backup"):
        restore(Path(made.path), tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_restore_replaces_a_file_only_when_told_and_keeps_it(filled: Path) -> None:
    with opened(filled) as memory:
        made = memory.admin.backup().made
        memory.forget(everything=True, scope=EVE)
    assert made is not None
    with pytest.raises(TransferError, match="--force"):
        restore(Path(made.path), filled)
    assert restore(Path(made.path), filled, force=True)[1] == Path(f"{filled}.before-restore")
    assert restore(Path(made.path), filled, force=True)[1] == Path(f"{filled}.before-restore-2")
    with opened(filled) as memory:
        assert memory.entries(scope=EVE)
    with opened(Path(f"{filled}.before-restore")) as memory:
        assert not memory.entries(scope=EVE)


def test_a_restore_that_fails_at_its_target_names_it_and_not_the_backup(
    filled: Path, tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    with opened(filled) as memory:
        made = memory.admin.backup().made
    assert made is not None
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for target in (tmp_path / "none" / "m.db", tmp_path / "folder", tmp_path / "pipe"):
        with pytest.raises(TransferError, match=f"^cannot write {target}: "):
            restore(Path(made.path), target, force=True)
    with full_disk(60_000), pytest.raises(TransferError, match=f"^cannot write {tmp_path / 'new.db'}: "):
        restore(Path(made.path), tmp_path / "new.db")
    assert {one.name for one in tmp_path.iterdir()} == {"memory.db", "memory.db.backups", "folder", "pipe"}


def test_a_kept_file_never_gets_the_log_of_another(filled: Path) -> None:
    with opened(filled) as memory:
        made = memory.admin.backup().made
    assert made is not None
    filled.unlink()
    Path(f"{filled}-wal").write_bytes(b"of a file that is gone")
    assert restore(Path(made.path), filled)[1] is None
    assert Path(f"{filled}.before-restore-wal").exists()
    kept = restore(Path(made.path), filled, force=True)[1]
    assert kept == Path(f"{filled}.before-restore-2")


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
def test_what_a_crash_left_beside_a_file_goes_with_it_not_into_the_restored_one(filled: Path, left: str) -> None:
    with opened(filled) as memory:
        made = memory.admin.backup().made
        memory.remember_many([f"Fact number {n} about bees." for n in range(100)], scope=EVE)
    assert made is not None
    subprocess.run([sys.executable, "-c", CRASH, str(filled), left], check=True)
    assert Path(f"{filled}{left}").stat().st_size
    restore(Path(made.path), filled, force=True)
    assert {one.name for one in filled.parent.iterdir()} == {
        *("memory.db", "memory.db.backups", "memory.db.before-restore")
    }
    with opened(filled) as memory:
        assert memory.verify()
        assert [entry.text for entry in memory.entries(scope=EVE)] == ["Eve keeps bees."]
    with opened(Path(f"{filled}.before-restore")) as memory:
        texts = [entry.text for entry in memory.entries(scope=EVE, limit=200)]
        assert len(texts) == 101
        assert all(text.startswith("overwritten") == (left == "-wal") for text in texts)


def test_a_full_disk_is_named_with_the_folder_of_the_backup(
    filled: Path, tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    folder = tmp_path / "backups"
    with opened(filled) as memory, full_disk(60_000), pytest.raises(StoreError, match=f"^cannot back up to {folder}: "):
        memory.admin.backup(folder)
    assert list(folder.iterdir()) == []


def test_a_file_in_use_is_not_replaced(filled: Path) -> None:
    with opened(filled) as memory:
        made = memory.admin.backup().made
        assert made is not None
        with pytest.raises(StoreError, match="is open"):
            restore(Path(made.path), filled, force=True)
        memory.remember("It goes on.", scope=EVE)
    with opened(filled) as memory:
        assert len(memory.entries(scope=EVE)) == 2


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


def test_a_key_is_changed_and_a_plain_file_encrypted(encrypted: Path, filled: Path) -> None:
    with opened(encrypted, KEY) as memory:
        memory.remember(PLANTED, scope=ADA)
    store = SqliteStore(encrypted, key=KEY)
    store.rekey("ab" * 32)
    with pytest.raises(WrongKey):
        opened(encrypted, KEY)
    with opened(encrypted, "ab" * 32) as memory:
        assert [entry.text for entry in memory.entries(scope=ADA)] == [PLANTED]
    secret = key_of(KEY)
    assert secret is not None
    encrypt_file(filled, secret)
    assert b"bees" not in filled.read_bytes()
    with opened(filled, KEY) as memory:
        assert memory.verify()
        assert [entry.text for entry in memory.entries(scope=EVE)] == ["Eve keeps bees."]
        memory.remember("And it goes on.", scope=EVE)


def test_a_key_stays_when_the_disk_is_full(
    encrypted: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    with opened(encrypted, KEY) as memory:
        memory.remember(PLANTED, scope=ADA)
    store = SqliteStore(encrypted, key=KEY)
    with full_disk(60_000), pytest.raises(StoreError, match=f"^the key of '{encrypted}' could not be changed"):
        store.rekey("ab" * 32)
    store.close()
    with opened(encrypted, KEY) as memory:
        assert [entry.text for entry in memory.entries(scope=ADA)] == [PLANTED]
        assert memory.verify()


def test_a_backup_of_an_encrypted_store_needs_its_key(encrypted: Path, tmp_path: Path) -> None:
    with opened(encrypted, KEY) as memory:
        memory.remember(PLANTED, scope=ADA)
        made = memory.admin.backup().made
    assert made is not None
    assert made.encrypted
    for key in (None, "cd" * 32):
        with pytest.raises(WrongKey, match=f"^{made.path} is encrypted: give its key"):
            check(Path(made.path), open_store=partial(SqliteStore, key=key))
    restore(Path(made.path), tmp_path / "again.db")
    with opened(tmp_path / "again.db", KEY) as memory:
        assert [entry.text for entry in memory.entries(scope=ADA)] == [PLANTED]


# -- broken pages ------------------------------------------------------------------------------------------------


def flipped(path: Path, seed: int, flips: int, *, first: int = 0) -> None:
    chance, content = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(flips):
        content[chance.randrange(first, len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


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


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "flips"), [*((seed, 1) for seed in range(20)), (100, 50), (101, 500)])
def test_flipped_bytes_are_an_error_or_a_report_never_a_crash(filled: Path, seed: int, flips: int) -> None:
    flipped(filled, seed, flips)
    try:
        with opened(filled) as memory:
            memory.verify()
            memory.entries(scope=EVE)
            memory.recall("bees", scope=EVE)
    except WellwornError:
        pass
    rescue(filled)
    with opened(filled) as memory:
        memory.admin.repair()
        memory.admin.export(filled.with_suffix(".jsonl"))
