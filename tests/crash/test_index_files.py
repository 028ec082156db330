"""Index files that are damaged, stale, raced for or left by a killed process: that costs time and nothing else."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from contract.builders import analyze
from contract.few import few
from search.embedders import WORDS, WordsEmbedder
from wellworn import Memory, Scope
from wellworn.search import mapped
from wellworn.search.partition import PartitionIndex

pytestmark = pytest.mark.crash
ADA, BEN = Scope(tenant="t", user="ada"), Scope(tenant="t", user="ben")
SECRETS = ["The zeppelin is at walnut cedar walnut.", "The aardvark is at tram lantern."]
POINTS: list[tuple[Any, str]] = [
    *((mapped, name) for name in ("_read", "_write", "_write_header", "_erase_rows")),
    *((mapped.IndexFiles, name) for name in ("_keep_token", "_token")),
    *((Path, name) for name in ("rename", "replace", "mkdir")),
    (PartitionIndex, "of"),
]
"""Where a process is killed or another one comes between, before and after the call."""


def opened(path: Path) -> Memory:
    return Memory.open(path, embedder=WordsEmbedder(), learning="off", background=False, durability="normal")


def recalled(memory: Memory, scope: Scope = ADA) -> list[Any]:
    return [
        [(hit.entry.text, round(hit.score, 3)) for hit in memory.recall(query, scope=scope, k=20)]
        for query in ("violin and tram", "the ferry", "walnut cedar", "zeppelin", "aardvark")
    ]


def recalled_without(path: Path) -> list[Any]:
    """What a copy of a closed database without files recalls."""
    copy = path.with_name("copy.db")
    shutil.copyfile(path, copy)
    with opened(copy) as plain, patch.object(mapped, "LEAST_ROWS", 10**9):
        found = recalled(plain)
    copy.unlink()
    return found


def files_of(path: Path) -> list[Path]:
    folder = path.with_name(f"{path.name}-index")
    return sorted(folder.iterdir()) if folder.is_dir() else []


def left_of(path: Path, text: str) -> list[str]:
    """What of a text is in the files."""
    wanted = {"vector": WordsEmbedder().embed([text])[0].tobytes(), "term": analyze(text.split()[1]).terms.tobytes()}
    there = b"".join(file.read_bytes() for file in files_of(path) if file.is_file())
    return [name for name, found in wanted.items() if found in there]


def id_of(memory: Memory, text: str) -> str:
    return next(entry.id for entry in memory.entries(scope=ADA, limit=500) if entry.text == text)


def forget(memory: Memory, text: str) -> None:
    memory.forget(ids=[id_of(memory, text)], scope=ADA)


def grow(memory: Memory, words: str = "ferry cedar") -> None:
    """So many more that the file is written again."""
    memory.remember_many([f"{words} {n}" for n in range(30)], scope=ADA)
    recalled(memory)


@pytest.fixture(autouse=True)
def _every_partition_has_a_file() -> Iterator[None]:
    with patch.object(mapped, "LEAST_ROWS", 1):
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return prepared(tmp_path / "memory.db")


def prepared(path: Path) -> Path:
    with opened(path) as memory:
        memory.remember_many([*(f"{word} {n}" for n in range(5) for word in WORDS), *SECRETS], scope=ADA)
        session = memory.session(scope=ADA, session_id="monday")
        for word in WORDS:
            session.add("user", f"I like the {word}.")
        recalled(memory)
    assert [left_of(path, text) for text in SECRETS] == 2 * [["vector", "term"]]
    return path


def at(point: tuple[Any, str], when: str, act: Callable[[], None]) -> Any:
    """Act once, before or after the next call."""
    owner, name = point
    before, left = getattr(owner, name), [act]

    def called(*args: Any, **given: Any) -> Any:
        if when == "before" and left:
            left.pop()()
        result = before(*args, **given)
        if when == "after" and left:
            left.pop()()
        return result

    return patch.object(owner, name, called)


# -- damage ------------------------------------------------------------------------------------------------------------


def flip(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 0x5A
    file.write_bytes(data)


def put_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "something").touch()


def put_link(file: Path) -> None:
    file.symlink_to(file.rename(file.parent.with_name("elsewhere")))


def put_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def put_file_for_folder(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.touch()


DAMAGE: dict[str, Callable[[Path], None]] = {
    **{f"header-{place}": partial(flip, place=place) for place in (0, 8, 100, 900)},
    **{f"cut-{size}": partial(os.truncate, length=size) for size in (0, 100, 8192, 20_000)},
    "folder": put_folder,
    "link": put_link,
    "pipe": put_pipe,
    "file for folder": put_file_for_folder,
}


@pytest.mark.parametrize(
    ("damage", "mapped_before"),
    few([*((n, False) for n in DAMAGE), *((n, True) for n in DAMAGE if not n.startswith(("cut", "header")))], 6),
)
def test_a_damaged_file_is_as_none(path: Path, damage: str, mapped_before: bool) -> None:
    expected = recalled_without(path)
    if mapped_before:
        with opened(path) as memory:
            recalled(memory)
            DAMAGE[damage](files_of(path)[0])
            forget(memory, SECRETS[0])
        assert not left_of(path, SECRETS[0])
        expected = recalled_without(path)
    else:
        DAMAGE[damage](files_of(path)[0])
    for _ in range(2):
        with opened(path) as memory:
            assert recalled(memory) == expected
    with opened(path) as memory:
        forget(memory, SECRETS[1])
        assert not left_of(path, SECRETS[1])


@pytest.mark.slow
def test_a_damaged_array_is_found_and_a_damaged_vector_does_no_harm(path: Path) -> None:
    expected = recalled_without(path)
    (file,) = files_of(path)
    database, whole = path.read_bytes(), file.read_bytes()
    layout = json.loads(whole[8:8192])
    secret = np.frombuffer(whole, np.int64, layout["size"], layout["arrays"]["no"][0]).argsort()[40]
    assert left_of(path, SECRETS[0])
    for name, (offset, kind, shape) in layout["arrays"].items():
        for place in {0, int(secret) * np.dtype(kind).itemsize} if shape[0] > secret else {0}:
            for load in (True, False):
                path.write_bytes(database)
                file.write_bytes(whole)
                flip(file, offset + place)
                with opened(path) as memory:
                    if load:
                        found = recalled(memory)
                        assert found == expected if name != "vectors" else found[3][0][0] == SECRETS[0], name
                    forget(memory, SECRETS[0])
                    assert "term" not in left_of(path, SECRETS[0]), (name, place)


# -- other stores, other folders -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("then", ["grow", "forget", "everything"])
def test_an_older_database_beside_a_newer_file(path: Path, then: str) -> None:
    older = path.with_name("older.db")
    shutil.copyfile(path, older)
    expected = recalled_without(path)
    with opened(path) as memory:
        if then == "grow":
            grow(memory, "walnut cedar")
        elif then == "forget":
            forget(memory, SECRETS[0])
        else:
            memory.forget(everything=True, scope=ADA)
            grow(memory, "walnut cedar")
    older.replace(path)
    with opened(path) as memory:
        assert recalled(memory) == expected
        grow(memory, "tram lantern")
        expected = recalled(memory)
    assert recalled_without(path) == expected


def test_files_of_a_database_that_was_moved_away_are_deleted(path: Path) -> None:
    expected = recalled_without(path)
    moved = path.rename(path.with_name("moved.db"))
    with opened(path) as memory:
        assert not files_of(path)
        memory.remember("violin", scope=BEN)
    with opened(moved) as memory:
        assert recalled(memory) == expected


def test_a_folder_that_is_a_link_or_of_someone_else_is_left_alone(path: Path) -> None:
    expected, folder = recalled_without(path), path.with_name("memory.db-index")
    target = folder.rename(path.with_name("precious"))
    (target / ("ab" * 16)).write_text("not ours")
    (target / "letter.txt").write_text("not ours")
    before = sorted(target.iterdir())
    folder.symlink_to(target)
    with opened(path) as memory:
        assert recalled(memory) == expected
        grow(memory)
    assert sorted(target.iterdir()) == before
    folder.unlink()
    target.rename(folder)
    with opened(path):
        assert (folder / "letter.txt").exists()
        assert not (folder / ("ab" * 16)).exists()
    if os.geteuid() == 0:
        (folder / ("ab" * 16)).write_text("theirs")
        before = sorted(folder.iterdir())
        os.chown(folder, 4711, 4711)
        with opened(path) as memory:
            grow(memory)
        assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("what", ["save", "erase"])
def test_a_full_disk(path: Path, what: str) -> None:
    with opened(path) as memory:
        recalled(memory)
        with patch.object(os, "fsync", side_effect=OSError(errno.ENOSPC, "no space left")):
            grow(memory) if what == "save" else forget(memory, SECRETS[0])
        assert not [file for file in files_of(path) if file.suffix]
        forget(memory, SECRETS[1])
        assert not left_of(path, SECRETS[1])
        assert what == "save" or not left_of(path, SECRETS[0])
        found = recalled(memory)
    assert found == recalled_without(path)


def test_terms_of_entries_that_are_forgotten_one_by_one_do_not_stay(path: Path) -> None:
    with opened(path) as memory:
        texts = [f"the qqx{n}x{n * 7919} one" for n in range(40)]
        memory.remember_many([*texts, *(f"violin {n} tram" for n in range(300))], scope=ADA)
        recalled(memory)
        for text in np.random.default_rng(1).permutation(texts)[:30].tolist():
            assert left_of(path, text) == ["vector", "term"] or "term" in left_of(path, text)
            forget(memory, text)
            assert "term" not in left_of(path, text), text


# -- several at once ---------------------------------------------------------------------------------------------------


def _forget_all(memory: Memory) -> None:
    memory.forget(everything=True, scope=ADA)


ACTS: dict[str, Callable[[Memory], None]] = {
    "forget": lambda memory: forget(memory, SECRETS[1]),
    "grow": lambda memory: grow(memory, "walnut cedar"),
    "everything": _forget_all,
}


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("doing", ["save", "erase", "load"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_another_comes_between(path: Path, act: str, doing: str, when: str) -> None:
    """Two memories on one file, of which the second acts in the midst of what the first does with the file."""
    for number, point in enumerate(POINTS):
        place = path.with_name(f"{number}") / "memory.db"
        shutil.copytree(path.parent, place.parent, ignore=lambda _, names: [n for n in names if n.isdigit()])
        with opened(place) as first, opened(place) as second:
            recalled(second)
            if doing != "load":
                recalled(first)
            reached: list[list[str]] = []
            with at(point, when, partial(_interrupt, act, second, place, reached)):
                if doing == "save":
                    grow(first)
                elif doing == "erase":
                    forget(first, SECRETS[0])
                else:
                    recalled(first)
            if act != "grow" and reached:
                assert reached == [[]], point
                assert not left_of(place, SECRETS[1]), point
            if doing == "erase":
                assert not left_of(place, SECRETS[0]), point
            found = recalled(first)
            assert recalled(second) == found, point
        assert recalled_without(place) == found, point
        with opened(place) as memory:
            assert recalled(memory) == found, point
        shutil.rmtree(place.parent)


def _interrupt(act: str, memory: Memory, place: Path, reached: list[list[str]]) -> None:
    """Act, and say what is left of the second secret."""
    ACTS[act](memory)
    reached.append(left_of(place, SECRETS[1]))


def answer(path: Path, asked: Connection) -> None:
    """Another process: recall, or forget what it is told."""
    with patch.object(mapped, "LEAST_ROWS", 1), opened(path) as memory:
        while (what := asked.recv()) is not None:
            if what:
                forget(memory, what)
            asked.send(recalled(memory))


@pytest.mark.slow
def test_two_processes_of_which_each_forgets(path: Path) -> None:
    processes = multiprocessing.get_context("spawn")
    here, there = processes.Pipe()
    other = processes.Process(target=answer, args=(path, there))
    other.start()
    there.close()

    def ask(what: str) -> Any:
        here.send(what)
        assert here.poll(300), "the other process hangs"
        return here.recv()

    try:
        with opened(path) as memory:
            assert ask("") == recalled(memory)
            forget(memory, SECRETS[0])
            assert not left_of(path, SECRETS[0])
            assert ask("") == recalled(memory)
            assert SECRETS[0] not in str(ask(""))
            found = ask(SECRETS[1])
            assert not left_of(path, SECRETS[1])
            assert recalled(memory) == found
            assert SECRETS[1] not in str(found)
            forget(memory, "I like the tram.")
            assert ask("") == recalled(memory)
            here.send(None)
            other.join(300)
            found = recalled(memory)
    finally:
        if other.is_alive():
            other.kill()
        other.join(300)
        here.close()
    assert other.exitcode == 0
    assert recalled_without(path) == found


# -- killed ------------------------------------------------------------------------------------------------------------


def do(doing: str, memory: Memory) -> None:
    if doing == "save":
        grow(memory)
    elif doing == "everything":
        _forget_all(memory)
    else:
        forget(memory, SECRETS[0])


def die_everywhere(source: Path, folder: Path) -> None:
    """Do everything once for every point, each time in a process that kills itself there; say how each ended."""
    for doing in ("save", "forget", "everything"):
        for number, point in enumerate(POINTS):
            for when in ("before", "after"):
                place = folder / f"{doing}-{number}-{when}"
                shutil.copytree(source, place)
                child = os.fork()
                if not child:
                    with ExitStack() as stack:
                        stack.enter_context(patch.object(mapped, "LEAST_ROWS", 1))
                        memory = stack.enter_context(opened(place / "memory.db"))
                        recalled(memory)
                        stack.enter_context(at(point, when, lambda: os.kill(os.getpid(), signal.SIGKILL)))
                        do(doing, memory)
                    os._exit(0)
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                print(json.dumps([place.name, code]), flush=True)


@pytest.mark.slow
def test_a_killed_process_leaves_nothing_but_work(path: Path, tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "killed"
    source.mkdir()
    shutil.copyfile(path, source / path.name)
    shutil.copytree(path.with_name("memory.db-index"), source / "memory.db-index")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, sys.path)])}
    run = [sys.executable, "-m", "crash.test_index_files", str(source), str(folder)]
    said = subprocess.run(run, env=env, stdout=subprocess.PIPE, timeout=300, check=True).stdout
    ended = dict(json.loads(line) for line in said.splitlines())
    assert {*ended.values()} == {0, -signal.SIGKILL}
    for name in ended:
        place = folder / name / "memory.db"
        with opened(place) as memory:
            assert not [file for file in files_of(place) if file.suffix], name
            kept = [entry.text for entry in memory.entries(scope=ADA, limit=500)]
            for text in SECRETS:
                assert text in kept or not left_of(place, text), name
            found = recalled(memory)
        assert recalled_without(place) == found, name


if __name__ == "__main__":
    die_everywhere(Path(sys.argv[1]), Path(sys.argv[2]))
