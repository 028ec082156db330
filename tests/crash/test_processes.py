"""Many processes at once on one file, and processes that die in the middle of a write."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from crash.children import ADA, EMBEDDER, open_and_close_for_ever, race, write_batches, write_for_ever
from wellworn import Memory, Scope
from wellworn.ingest.remember import BATCH_ENTRIES
from wellworn.store.sqlite.connection import Connections

pytestmark = [pytest.mark.crash, pytest.mark.slow]
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["crash.children", "wellworn.memory"])


@contextmanager
def child(target: Callable[..., None], *args: Any) -> Iterator[tuple[Any, Connection]]:
    """A process and the end of the pipe on which it tells; it is gone when the block ends."""
    listening, telling = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=target, args=(*args, telling))
    process.start()
    telling.close()
    try:
        yield process, listening
    finally:
        if process.is_alive():
            process.kill()
        process.join(300)
        listening.close()


def heard(listening: Connection) -> Iterator[Any]:
    """Everything that was told to the end."""
    while True:
        try:
            yield listening.recv()
        except (EOFError, OSError):
            return


def listen_until(listening: Connection, deadline: float) -> list[Any]:
    told = []
    while (left := deadline - time.monotonic()) > 0:
        if listening.poll(left):
            try:
                told.append(listening.recv())
            except EOFError:
                break
    return told


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_a_writer_killed_25_times_loses_nothing_it_had_acknowledged(
    tmp_path: Path, durability: str, tally: Callable[[str, int], None]
) -> None:
    dice = random.Random(durability)
    path = tmp_path / "memory.db"
    kept: dict[str, str] = {}
    changing: dict[str, str] = {}
    going: set[str] = set()
    gone: set[str] = set()
    kills = 0
    for life in range(25):
        with child(write_for_ever, path, durability, f"life{life}") as (process, listening):
            if life % 4:
                told = [listening.recv() for _ in range(dice.randint(1, 12)) if listening.poll(60)]
            else:  # it dies while it opens the file, or before, or soon after
                told = listen_until(listening, time.monotonic() + dice.uniform(0.0, 1.0))
            process.kill()
            kills += 1
            told += heard(listening)
        for what, entry_id, text in told:
            if what == "kept":
                kept[entry_id] = text
                changing.pop(entry_id, None)
            elif what == "changing":
                changing[entry_id] = text
            else:
                (going if what == "going" else gone).add(entry_id)
        if life % 8 == 7 or life == 24:
            with Memory.open(path, embedder=EMBEDDER) as mem:
                assert str(mem.verify()).startswith("no flaws")
    assert kills == 25
    tally("`kill -9`", kills)
    assert len(kept) > 25
    with Memory.open(path, embedder=EMBEDDER) as mem:
        found = mem.engine.store.get(ADA.partitions(), list(kept))
        for entry_id, text in kept.items():
            if entry_id in gone:
                assert entry_id not in found
            elif entry_id not in going or entry_id in found:  # killed before the answer, it may be there or not
                assert found[entry_id].text in (text, changing.get(entry_id, text))
        turns = [
            turn for session in mem.sessions(scope=ADA) for turn in mem.session(scope=ADA, session_id=session).turns()
        ]
        assert {turn.entry_id for turn in turns} >= {i for i, text in kept.items() if " turn " in text}
        mem.remember("life goes on", scope=ADA)


@pytest.mark.parametrize("at_once", [1, 3])
def test_who_is_killed_while_it_opens_or_closes_leaves_a_whole_file(
    tmp_path: Path, at_once: int, tally: Callable[[str, int], None]
) -> None:
    dice, path = random.Random(at_once), tmp_path / "memory.db"
    for _ in range(20):
        with ExitStack() as stack:
            children = [stack.enter_context(child(open_and_close_for_ever, path)) for _ in range(at_once)]
            assert children[0][1].poll(60)
            time.sleep(dice.uniform(0.0, 0.05))
            for process, _ in children:
                process.kill()
            tally("`kill -9`", at_once)
        connections = Connections(path, durability="full")
        missing = connections.log_missing
        connections.close()
        assert not missing
        assert [one.name for one in tmp_path.iterdir()] == ["memory.db"]


def test_batches_of_a_killed_remember_many_are_whole(tmp_path: Path, tally: Callable[[str, int], None]) -> None:
    dice = random.Random(5)
    path = tmp_path / "memory.db"
    count = 3 * BATCH_ENTRIES + 100
    seen = set()
    with Memory.open(path, embedder=EMBEDDER) as mem:
        for life in range(8):
            name = f"life{life}"
            with child(write_batches, path, name, count) as (process, listening):
                told: list[int] = []
                while max(told, default=-1) < life % 4 * BATCH_ENTRIES and listening.poll(60):
                    told.append(listening.recv())
                told += listen_until(listening, time.monotonic() + dice.uniform(0.0, 0.2))
                process.kill()
                told += heard(listening)
            there = mem.admin.stats(scope=Scope(tenant="acme", user=name)).entries
            assert there >= max(told, default=0)
            assert there == count or there % BATCH_ENTRIES == 0
            seen.add(there)
        assert len(seen) > 1  # not always before, not always after
        tally("`kill -9`", 8)
        assert str(mem.verify()).startswith("no flaws")


def test_eight_processes_that_make_and_write_one_file_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    start = PROCESSES.Barrier(8)
    count = 12
    pipes, processes = [], []
    for number in range(8):
        listening, telling = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=race, args=(path, number, count, start, telling))
        process.start()
        telling.close()
        pipes.append(listening)
        processes.append(process)
    answers: list[Any] = [pipe.recv() if pipe.poll(120) else "no answer" for pipe in pipes]
    for process in processes:
        process.join(300)
    assert [answer for answer in answers if isinstance(answer, str)] == []
    ids = [entry_id for answer in answers for entry_id, _ in answer]
    assert len(set(ids)) == 8 * count * 3
    with Memory.open(path, embedder=EMBEDDER) as mem:
        for user in ("ada", *(f"u{n}" for n in range(8))):
            scope = Scope(tenant="acme", user=user)
            wanted = {entry_id for answer in answers for entry_id, owner in answer if owner == user}
            assert {entry.id for entry in mem.entries(scope=scope, limit=10_000)} == wanted
        turns = mem.session(scope=ADA, session_id="shared").turns()
        assert [turn.number for turn in turns] == list(range(8 * count))
        assert str(mem.verify()).startswith("no flaws")


def test_many_processes_that_only_open_a_new_file_at_once_all_succeed(tmp_path: Path) -> None:
    for attempt in range(3):
        start = PROCESSES.Barrier(8)
        path = tmp_path / f"{attempt}.db"
        pipes = []
        for number in range(8):
            listening, telling = PROCESSES.Pipe(duplex=False)
            PROCESSES.Process(target=race, args=(path, number, 0, start, telling)).start()
            telling.close()
            pipes.append(listening)
        assert [pipe.recv() if pipe.poll(60) else "no answer" for pipe in pipes] == [[]] * 8
