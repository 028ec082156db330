"""The file itself: copied, deleted, replaced, foreign, private, read-only."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from wellworn import Memory, Scope, StoreBusy, StoreClosed, StoreCorrupt, StoreError
from wellworn.core.locks import process_runs
from wellworn.ops.backup import restore
from wellworn.ops.doctor import rescue
from wellworn.store.port import Selection
from wellworn.store.sqlite import SqliteStore, connection, driver, log

ADA = Scope(user="ada")
KEY = "ab" * 32


def remembered(path: Path, text: str = "The harbour opens at six.") -> Memory:
    memory = Memory(path, embedder="hash", background=False)
    memory.remember(text, scope=ADA)
    return memory


def header(path: Path) -> bytes:
    """The bytes that say whether the file has a log. Read by a process of its own: see `connection`."""
    return subprocess.run(["head", "-c", "20", path], capture_output=True, check=True).stdout[18:]


def test_a_closed_file_is_one_file_also_when_nobody_closed_it(tmp_path: Path) -> None:
    remembered(tmp_path / "a.db").close()
    program = "import sys; from wellworn import Memory; m = Memory(sys.argv[1], embedder='hash'); m.for_user('a').remember('x')"
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "b.db")], check=True)
    for name in ("a.db", "b.db"):
        assert header(tmp_path / name) == b"\x01\x01"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "b.db"]


def test_a_file_that_was_copied_without_its_log_says_so_until_that_is_accepted(tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with remembered(tmp_path / "a.db") as memory:
        subprocess.run(["cp", tmp_path / "a.db", copy], check=True)
        assert memory.verify().ok
    for _ in range(2):
        with Memory(copy, embedder="hash", background=False) as memory:
            assert [flaw.check for flaw in memory.verify().flaws] == ["log"]
            assert "-wal" in memory.verify().flaws[0].problem
    with Memory(copy, embedder="hash", background=False) as memory:
        assert [flaw.check for flaw in memory.admin.repair().mended] == ["log"]
    with Memory(copy, embedder="hash", background=False) as memory:
        assert memory.verify().ok


def test_threads_open_the_same_file_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks at a file beside SQLite would drop the locks of a thread that has just opened it."""
    path, opened, look_at = tmp_path / "a.db", threading.Event(), log.look_at
    threads: list[threading.Thread] = []

    def second() -> None:
        with remembered(path):
            opened.set()

    def slowly(path: Path, secret: bytes | None) -> bool:
        if not threads:
            threads.append(threading.Thread(target=second))
            threads[0].start()
            assert not opened.wait(0.5)
        return look_at(path, secret)

    monkeypatch.setattr(connection, "look_at", slowly)
    with remembered(path):
        assert opened.wait(300)
        threads[0].join(300)
    assert header(path) == b"\x01\x01"


def test_a_killed_process_leaves_its_log_and_nothing_is_missing(tmp_path: Path) -> None:
    program = (
        "import os, sys; from wellworn import Memory; m = Memory(sys.argv[1], embedder='hash'); "
        "m.for_user('ada').remember('The pilot boards at noon.'); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.db")], check=False)
    with Memory(tmp_path / "a.db", embedder="hash", background=False) as memory:
        assert memory.verify().ok
        assert len(memory.entries(scope=ADA)) == 1


@pytest.mark.parametrize("harm", ["deleted", "replaced"])
def test_a_file_that_is_gone_or_another_is_noticed_before_a_write_is_acknowledged(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "a.db"
    with remembered(path) as memory:
        if harm == "replaced":
            remembered(tmp_path / "b.db").close()
            os.replace(tmp_path / "b.db", path)
        else:
            path.unlink()
        for _ in range(2):
            with pytest.raises(StoreError, match="deleted or replaced"):
                memory.remember("This would be lost.", scope=ADA)


def foreign_tables(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE birds (name TEXT)")
    db.close()


def foreign_log(path: Path) -> None:
    """Left open with its log, as by a program that was killed."""
    program = (
        "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "db.execute('PRAGMA journal_mode = WAL'); db.execute('CREATE TABLE birds (name TEXT)'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)


@pytest.mark.parametrize("make", [foreign_tables, foreign_log, lambda path: path.write_bytes(b"no database " * 500)])
def test_a_foreign_file_is_refused_and_left_byte_for_byte(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "birds.db"
    make(path)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir() if not one.name.endswith("-shm")}
    with pytest.raises(StoreCorrupt):
        Memory(path, embedder="hash")
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir() if not one.name.endswith("-shm")} == before


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(StoreError, match="not a file"):
            Memory(path, embedder="hash")


def test_new_files_are_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with remembered(tmp_path / "a.db") as memory:
            memory.admin.export(tmp_path / "out.jsonl")
            memory.admin.export(tmp_path / "folder")
            modes = {one.name: one.stat().st_mode & 0o077 for one in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert {"a.db", "a.db-wal", "a.db-shm", "out.jsonl", "folder"} <= modes.keys()
    assert set(modes.values()) == {0}


def test_what_a_killed_export_left_behind_is_removed_by_the_next(tmp_path: Path) -> None:
    program = (
        "import os, sys; from wellworn import Memory; m = Memory(sys.argv[1], embedder='hash'); "
        "m.for_user('ada').remember('x'); m.admin.export(sys.argv[2], progress=lambda done, total: os._exit(1))"
    )
    for name in ("out.jsonl", "folder"):
        out = str(tmp_path / name)
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.db"), out], check=False)
        assert [*tmp_path.glob(".*.part")]
        with Memory(tmp_path / "a.db", embedder="hash", background=False) as memory:
            memory.admin.export(out)
        assert [*tmp_path.glob(".*.part")] == []


@pytest.mark.parametrize("work", ["move", "use a temporary store"])
def test_what_a_killed_process_left_among_the_temporary_files_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    program = """
import os, sys
from wellworn import Memory
from wellworn.ops.transfer import move
source, target = (Memory(path, embedder='hash') for path in sys.argv[1:])
source.for_user('ada').remember('x')
if sys.argv[1] == ':memory:':
    os._exit(1)
parts = target.engine
move(source.engine.store, parts.store, parts.writer, clock=parts.clock, relearn=parts.learner.relearn, progress=lambda done, total: os._exit(1))
"""
    source = ":memory:" if work != "move" else str(tmp_path / "a.db")
    left = {**os.environ, "TMPDIR": str(temporary)}
    subprocess.run([sys.executable, "-c", program, source, str(tmp_path / "b.db")], env=left, check=False)
    assert [*temporary.iterdir()]
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with remembered(tmp_path / "c.db") as memory:
        memory.admin.backup()
    assert [*temporary.iterdir()] == []


def test_a_name_with_a_number_that_no_process_has_hinders_no_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with remembered(tmp_path / "m.db") as memory:
        memory.admin.backup()
        others = [tmp_path / ".wellworn.99999999999999999999-x.part"]
        others.append(tmp_path / "m.db.backups" / ".m.99999999999999999999999-x.part")
        for other in others:
            other.touch()
        assert memory.admin.backup().made
    assert all(other.exists() for other in others)
    assert not process_runs(2**40)


def test_nothing_is_sent_to_a_process_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the signal 0 is the one that ends a process."""
    monkeypatch.delattr("os.kill")
    monkeypatch.setattr("sys.platform", "win32")
    assert process_runs(os.getpid())


def test_a_file_that_cannot_be_changed_opens_for_reading() -> None:
    """As a user without rights, in a child, because root may write everywhere."""
    folder = Path(tempfile.mkdtemp(prefix="wellworn-test-"))
    path = folder / "a.db"
    remembered(path).close()
    path.chmod(0o444)
    folder.chmod(0o555)
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            with Memory(path, embedder="hash", background=False) as memory:
                assert memory.recall("harbour", scope=ADA).hits
                assert memory.verify().ok
                with pytest.raises(StoreError, match="can only be read"):
                    memory.remember("The pilot boards at noon.", scope=ADA)
        except BaseException as error:
            print(f"child: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    folder_left = os.waitpid(child, 0)[1]
    folder.chmod(0o755)
    assert (folder_left, [one.name for one in folder.iterdir()]) == (0, ["a.db"])
    path.unlink()
    folder.rmdir()


def test_a_file_that_was_renamed_while_open_is_whole_and_says_what_may_have_happened(tmp_path: Path) -> None:
    """SQLite does not turn the log of a renamed file off."""
    memory = remembered(tmp_path / "a.db")
    (tmp_path / "a.db").rename(tmp_path / "b.db")
    memory.close()
    with Memory(tmp_path / "b.db", embedder="hash", background=False) as memory:
        assert memory.recall("harbour", scope=ADA).hits
        assert "or renamed while open" in memory.verify().flaws[0].problem


@pytest.mark.parametrize("key", [None, KEY])
def test_a_file_on_a_full_disk_opens_for_reading(
    tmp_path: Path, full_disk: Callable[[], AbstractContextManager[None]], key: str | None
) -> None:
    if key:
        pytest.importorskip("sqlcipher3", reason="the extra `encryption` is not installed")
    path = tmp_path / "a.db"
    with Memory(path, embedder="hash", background=False, key=key) as memory:
        memory.remember("The harbour opens at six.", scope=ADA)
    with full_disk(), Memory(path, embedder="hash", background=False, key=key) as memory:
        assert memory.recall("harbour", scope=ADA).hits
        assert memory.verify().ok
        with pytest.raises(StoreError, match="can only be read; check the disk"):
            memory.remember("The pilot boards at noon.", scope=ADA)
    with Memory(path, embedder="hash", background=False, key=key) as memory:
        memory.remember("The pilot boards at noon.", scope=ADA)
        assert memory.verify().ok
    assert [one.name for one in tmp_path.iterdir()] == ["a.db"]


def test_a_link_is_followed_once_and_stays_a_link(tmp_path: Path) -> None:
    pytest.importorskip("sqlcipher3", reason="the extra `encryption` is not installed")
    real, link = tmp_path / "data" / "a.db", tmp_path / "links" / "b.db"
    for one in (real, link):
        one.parent.mkdir()
    link.symlink_to(real)
    with remembered(link) as memory:
        assert {one.name for one in real.parent.iterdir()} == {"a.db", "a.db-wal", "a.db-shm"}
        made = memory.admin.backup(tmp_path / "backups").made
        memory.remember("The pilot boards at noon.", scope=ADA)
    assert made is not None
    assert [one.name for one in link.parent.iterdir()] == ["b.db"]
    rescue(link)
    restore(Path(made.path), link, force=True)
    with Memory(real, embedder="hash", background=False) as memory:
        assert len(memory.entries(scope=ADA)) == 1
    driver.encrypt_file(link, KEY.encode())
    assert link.is_symlink()
    assert b"harbour" not in real.read_bytes()


def test_a_relative_path_means_the_same_file_after_a_change_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        remembered(Path("m.db"), f"Said in {name}.").close()
    monkeypatch.chdir(tmp_path / "a")
    with Memory("m.db", embedder="hash", background=False) as memory:
        monkeypatch.chdir(tmp_path / "b")
        store = memory.engine.store
        memory.remember("Said later in a.", scope=ADA)
        with store.snapshot(), store.snapshot() as reader:  # more connections than there were
            assert {entry.text for _, entry in reader.select(None, Selection())} == {"Said in a.", "Said later in a."}
        made = memory.admin.backup().made
    assert made is not None
    assert Path(made.path).parent == tmp_path / "a" / "m.db.backups"
    assert header(tmp_path / "a" / "m.db") == b"\x01\x01"
    assert [one.name for one in (tmp_path / "b").iterdir()] == ["m.db"]


HALF_MADE = """
import os, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 1")
db.execute("BEGIN IMMEDIATE")
db.execute("CREATE TABLE filler (x)")
db.execute("INSERT INTO filler VALUES (zeroblob(1000000))")
print("spilled", flush=True)
if sys.argv[2] == "dies":
    os._exit(0)
time.sleep(0.5)
db.execute("ROLLBACK")
"""


@pytest.mark.parametrize("end", ["dies", "goes on"])
def test_a_file_that_another_process_has_half_made_opens(tmp_path: Path, end: str) -> None:
    """Torn pages are on the disk: only SQLite's locks and its journal say that they do not count."""
    path = tmp_path / "a.db"
    with subprocess.Popen([sys.executable, "-c", HALF_MADE, str(path), end], stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"spilled\n"
        if end == "dies":
            other.wait(300)
        assert path.stat().st_size, "half of the file is there"
        with remembered(path) as memory:
            assert memory.verify().ok


# -- several processes that close, or make, one file -----------------------------------------------------------------


def test_a_mark_that_was_left_excuses_a_missing_log_once(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.db", tmp_path / "kept"
    with remembered(path):
        subprocess.run(["cp", path, kept], check=True)
    (tmp_path / f"a.db{log.SWITCHING}").touch()
    for whole in (True, False):
        shutil.copy(kept, path)
        with Memory(path, embedder="hash", background=False) as memory:
            assert memory.verify().ok == whole
    assert {one.name for one in tmp_path.iterdir()} == {"a.db", "kept"}


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    pytest.importorskip("sqlcipher3", reason="the extra `encryption` is not installed")
    return tmp_path / "secret.db"


def test_the_salt_is_read_once_before_sqlite_locks_the_file(encrypted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing a file drops every lock that the process has on it."""
    first = SqliteStore(encrypted, key=KEY)
    for module in (connection, driver):
        monkeypatch.delattr(module, "salt_of")
    second = SqliteStore(encrypted, key=KEY)
    with first.snapshot(), first.snapshot(), second.snapshot():
        assert first.partitions() == []
    with pytest.raises(StoreBusy, match="is open elsewhere: close that first; its key stays"):
        first.rekey("cd" * 32)
    assert second.partitions() == first.partitions() == []
    second.close()
    end_log = log.end_log

    def read_meanwhile(db: sqlite3.Connection, path: Path) -> bool:
        with pytest.raises(StoreBusy, match="is being changed"):
            first.partitions()
        return end_log(db, path)

    monkeypatch.setattr(connection, "end_log", read_meanwhile)
    first.rekey("cd" * 32)


@pytest.mark.parametrize("secret", [None, KEY], ids=["plain", "encrypted"])
def test_a_moment_ends_with_what_another_process_commits(tmp_path: Path, secret: str | None) -> None:
    path = tmp_path / "shared.db"
    program = f"""
import sys
from wellworn import Memory
with Memory(sys.argv[1], key={secret!r}, embedder="hash", background=False) as memory:
    memory.for_user("ada").remember("She lives in Oslo.")
"""
    with closing(SqliteStore(path, key=secret)) as store:
        before = store.moment()
        assert store.moment() == before
        subprocess.run([sys.executable, "-c", program, path], check=True)
        assert store.moment() != before
        assert len(store.partitions()) == 1


def test_a_moment_of_a_closed_file_is_an_error(encrypted: Path) -> None:
    store = SqliteStore(encrypted, key=KEY)
    before = store.moment()
    store.rekey("cd" * 32)
    with pytest.raises(StoreClosed):
        store.moment()
    with closing(SqliteStore(encrypted, key="cd" * 32)) as again:
        assert again.moment() != before


def test_two_processes_may_make_one_encrypted_file(encrypted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    salt_of, made = driver.salt_of, list[int]()
    program = (
        f"import sys; from wellworn.store.sqlite import SqliteStore; SqliteStore(sys.argv[1], key={KEY!r}).close()"
    )

    def slowly(path: Path) -> bytes:
        salt = salt_of(path)
        if not made:
            made.append(subprocess.run([sys.executable, "-c", program, str(path)], check=True).returncode)
        return salt

    monkeypatch.setattr(connection, "salt_of", slowly)
    with Memory(encrypted, embedder="hash", background=False, key=KEY) as memory:
        memory.remember("The pilot boards at noon.", scope=ADA)
    with Memory(encrypted, embedder="hash", background=False, key=KEY) as memory:
        assert len(memory.entries(scope=ADA)) == 1
