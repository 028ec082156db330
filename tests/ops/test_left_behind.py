"""What a killed export leaves is removed by whoever opens the store next, exports or erases; what lives is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from contract.postgres import Server
from wellworn import Memory, Scope
from wellworn.ops.retention import receipt_holds

ADA = Scope(user="ada")
WORD = "marzipan"
EXPORT = f"""
import os, signal, sys
from pathlib import Path
from wellworn import Memory

def killed(done, total):
    os.kill(os.getpid(), signal.SIGKILL)

def waiting(done, total):
    print(flush=True)
    sys.stdin.readline()

location, goal, how = sys.argv[1:]
os.chdir(Path(goal).parent)
with Memory(location, embedder="hash", background=False) as memory:
    ada = memory.for_user("ada")
    ada.remember_many([f"Box {{n}} of {WORD}. " + f"Layer {{n}} is sweet. " * 60 for n in range(40)])
    memory.admin.export(Path(goal).name, progress=killed if how == "killed" else waiting)
"""


def exporting(location: object, goal: Path, how: str) -> subprocess.Popen[str]:
    """A process that fills a memory and exports it; it is killed in the middle, or waits there for a line."""
    goal.parent.mkdir(exist_ok=True)
    program = [sys.executable, "-c", EXPORT, str(location), str(goal), how]
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def killed(location: object, goal: Path) -> None:
    process = exporting(location, goal, "killed")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert holding(goal.parent), "the test is of something"


def holding(folder: Path) -> list[Path]:
    """Unfinished files, and files with the word, anywhere below."""
    found = [one for one in folder.rglob("*") if one.name.endswith(".part")]
    return found + [one for one in folder.rglob("*") if one.is_file() and WORD.encode() in one.read_bytes()]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files lie, also those of the processes that are started."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def opens(path: Path) -> None:
    Memory(path, embedder="hash", background=False).close()


def exports(path: Path) -> None:
    with Memory(path, embedder="hash", background=False) as memory:
        memory.admin.export(path.parent / "other.jsonl")
    (path.parent / "other.jsonl").unlink()


@pytest.mark.parametrize("name", ["everything.jsonl", "notes"])
@pytest.mark.parametrize("does", [opens, exports])
def test_what_a_killed_export_left_elsewhere_goes(tmp_path: Path, name: str, does: Callable[[Path], None]) -> None:
    path, goal = tmp_path / "store" / "memory.db", tmp_path / "usb" / name
    path.parent.mkdir()
    killed(path, goal)
    does(path)
    assert holding(goal.parent) == []
    assert [*path.parent.glob(".*")] == []


@pytest.mark.parametrize("name", ["everything.jsonl", "notes"])
def test_erasure_removes_it_while_the_memory_stays_open(tmp_path: Path, temporary: Path, name: str) -> None:
    path, goal = tmp_path / "store" / "memory.db", tmp_path / "usb" / name
    path.parent.mkdir()
    with Memory(path, embedder="hash", background=False) as memory:
        killed(path, goal)
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        for place in (
            temporary / f".wellworn.{dead.pid}-x.part",
            Path(f"{path}.backups", f".memory.{dead.pid}-x.part"),
        ):
            place.mkdir(parents=True)  # of a load and of a backup
            (place / "part").write_text(WORD)
        signed = memory.admin.erase(scope=ADA)
        assert receipt_holds(signed, store=memory.engine.store)
        assert signed.receipt["scrubbed"]
        assert holding(tmp_path) == []


@pytest.mark.parametrize("name", ["everything.jsonl", "notes"])
@pytest.mark.parametrize("sees_it", [True, False])
def test_an_export_under_way_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sees_it: bool
) -> None:
    """Also that of a process of another container, whose number nobody has here."""
    path, goal = tmp_path / "store" / "memory.db", tmp_path / "usb" / name
    path.parent.mkdir()
    process = exporting(path, goal, "waits")
    assert process.stdout is not None
    assert process.stdout.readline() == "\n"
    if not sees_it:
        monkeypatch.setattr("wellworn.ops.files.process_runs", lambda pid: False)
    exports(path)
    with Memory(path, embedder="hash", background=False) as memory:
        memory.admin.export(tmp_path / "usb" / f"other-{name}")
        memory.admin.erase(scope=ADA)
    process.communicate("\n" * 100)
    assert process.returncode == 0
    with Memory(tmp_path / "second.db", embedder="hash", background=False) as second:
        assert second.admin.load(goal).entries >= 40
    assert not [one for one in tmp_path.rglob("*") if one.name.endswith(".part")]


def test_an_export_of_this_process_is_left_alone(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="hash", background=False) as memory:
        memory.remember("Ada makes marzipan.", scope=ADA)
        written = memory.admin.export(
            tmp_path / "all.jsonl", progress=lambda done, total: opens(tmp_path / "memory.db")
        )
        assert written.entries == 1
    assert not [*tmp_path.glob(".*")]


def test_a_process_before_us_may_have_had_our_number(tmp_path: Path) -> None:
    """As in a container, where numbers begin anew."""
    left = tmp_path / "usb" / f".all.jsonl.{os.getpid()}-0123456789abcdef-x.part"
    left.parent.mkdir()
    left.write_text(WORD)
    (tmp_path / f".memory.db.{os.getpid()}-0123456789abcdef-x.part").symlink_to(left)
    opens(tmp_path / "memory.db")
    assert holding(tmp_path) == []


def test_a_note_leads_to_unfinished_files_of_its_own_name_only(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    kept = [tmp_path / "letters.txt", tmp_path / f".letters.{dead.pid}-y.part", tmp_path / f".gone.{dead.pid}-x.part"]
    for one in kept[:2]:
        one.write_text("Dear Ada")
    for number, one in enumerate(kept):
        (tmp_path / f".memory.db.{dead.pid}-{'xx'[:number] or 'z'}.part").symlink_to(one)
    opens(tmp_path / "memory.db")
    assert [one.exists() for one in kept] == [True, True, False]
    assert not [one for one in tmp_path.iterdir() if one.is_symlink()]


def test_a_memory_in_a_database_notes_its_exports_among_the_temporary_files(
    tmp_path: Path, postgres_server: Server
) -> None:
    url, goal = postgres_server.url(), tmp_path / "usb" / "everything.jsonl"
    killed(url, goal)
    with Memory(url, embedder="hash", background=False):
        assert holding(tmp_path) == []
