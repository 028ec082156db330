"""Every operation, killed or out of disk at many points: nothing is lost, nothing forgotten is readable, it goes on."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crash.operations import ADA, OPERATIONS, SECRET, SMALL, Operation, opened
from wellworn import Memory, WellwornError
from wellworn.store.port import Selection

pytestmark = [pytest.mark.crash, pytest.mark.slow]
EVENTS, BYTES = 12, 4
"""Points for each operation: at events, and within writes."""
Tally = Callable[[str, int], None]


class Forks:
    """A process that does each operation in a fork of its own: loading everything anew would take ten times as long."""

    def __init__(self) -> None:
        here = [str(Path(__file__).parent.parent), *sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "crash.operations"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, here))},
        )

    def run(self, name: str, folder: Path, *, at: int = 0, most: int | None = None, full: bool = False) -> Any:
        """How the operation ended: the signal, or how many events there were and what went wrong."""
        asked, told = self._process.stdin, self._process.stdout
        assert asked is not None
        assert told is not None
        print(json.dumps([name, str(folder), at, most, full]), file=asked, flush=True)
        assert select.select([told], [], [], 120)[0], f"{name} hangs"
        code, said = json.loads(told.readline())
        return json.loads(said) if code == 0 else signal.Signals(-code)

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    made = Forks()
    yield made
    made.close()


def texts_in(mem: Memory) -> list[str]:
    store = mem.engine.store
    return [entry.text for _, entry in store.select(store.partitions(), Selection(), limit=100_000)]


def whole(operation: Operation, folder: Path) -> Memory:
    """The memory, which opens with one of the settings and holds what it must."""
    for number, settings in enumerate(operation.opens, 1):
        try:
            mem = opened(folder, **settings)
            break
        except WellwornError:
            if number == len(operation.opens):
                raise
    missing = {*operation.kept} - {*texts_in(mem)}
    assert not missing, f"lost {missing}"
    return mem


def check_after(operation: Operation, folder: Path, wanted: list[str]) -> None:
    """Whole now; and after it was done again as if it had never been cut short."""
    with whole(operation, folder) as mem:
        flaws = {flaw.check for flaw in mem.engine.store.check()} - {"tags"}  # which `repair` is about
        assert flaws <= {"log"}  # it died while it opened or closed the file: a log is said to be there and is not
        if flaws:
            mem.engine.store.check(mend=True)
    operation.work(folder)
    with whole(operation, folder) as mem:
        assert sorted(texts_in(mem)) == wanted
        assert mem.verify().ok, str(mem.verify())
        mem.remember("Life goes on.", scope=ADA)
    if operation.forgets:
        left = [one.name for one in folder.glob("memory.db*") if one.is_file() and SECRET.encode() in one.read_bytes()]
        assert not left, f"leaked {left}"
    assert not [*folder.glob(".*.part")]


def points(most: int, count: int, seed: str) -> list[int]:
    """Numbers from 1 to `most`: the first, the last and some between."""
    dice = random.Random(seed)
    return sorted({1, most, *(dice.randint(1, most) for _ in range(count - 2))})


@pytest.fixture
def _in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, constant, number in SMALL:
        monkeypatch.setattr(module, constant, number)


@pytest.mark.usefixtures("_in_small_parts")
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_that_is_cut_short_loses_and_leaks_nothing(
    name: str, tmp_path: Path, forks: Forks, tally: Tally
) -> None:
    operation, prepared = OPERATIONS[name], tmp_path / "prepared"
    prepared.mkdir()
    operation.prepare(prepared)
    done = shutil.copytree(prepared, tmp_path / "done")
    before = max([0, *(one.stat().st_size for one in done.rglob("*") if one.is_file())])
    events, problem = forks.run(name, done)
    assert not problem
    with whole(operation, done) as mem:
        wanted = sorted(texts_in(mem))
    largest = max(before, *(one.stat().st_size for one in done.rglob("*") if one.is_file()))
    for number, at in enumerate(points(events, EVENTS, name)):
        folder = shutil.copytree(prepared, tmp_path / f"event{number}")
        ended = forks.run(name, folder, at=at)
        tally("`kill -9`", int(ended == signal.SIGKILL))
        check_after(operation, folder, wanted)
    for number, most in enumerate(points(largest, BYTES, f"{name} bytes")):
        for full in (False, True):
            folder = shutil.copytree(prepared, tmp_path / f"byte{number}{full}")
            ended = forks.run(name, folder, most=most, full=full)
            if full:
                assert ended[1] == "" or not ended[1].startswith("outside"), ended
                tally("disk full", int(bool(ended[1])))
            else:
                tally("killed inside a write", int(ended == signal.SIGXFSZ))
            check_after(operation, folder, wanted)
