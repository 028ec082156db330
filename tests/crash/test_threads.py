"""Threads that recall while others write and forget: no error, nothing stale."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wellworn import Memory, Scope, StoreError
from wellworn.store.port import Delta

ADA = Scope(tenant="acme", user="ada")
ROUNDS = 8


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    """Threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db", embedder="hash:16", durability="normal") as memory:
        yield memory


def run_together(*works: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


def test_recalls_while_others_write_and_forget(mem: Memory) -> None:
    mem.remember_many([f"old bee {n}" for n in range(100)], scope=ADA)
    writing = threading.Event()

    def write(name: str) -> Callable[[], None]:
        def work() -> None:
            session = mem.session(scope=ADA, session_id=name)
            for n in range(ROUNDS):
                (entry_id,) = mem.remember(f"bee of {name} number {n}", scope=ADA, tags=["bee", name])
                assert entry_id in [h.entry.id for h in mem.recall(f"bee of {name} number {n}", scope=ADA, k=200)]
                session.add("user", f"turn {n} of {name}")
                mem.edit(entry_id, scope=ADA, text=f"edited {name} number {n}")
                texts = {h.entry.id: h.entry.text for h in mem.recall(f"edited {name} number {n}", scope=ADA, k=500)}
                assert texts[entry_id] == f"edited {name} number {n}"
                if n % 2:
                    mem.forget(ids=[entry_id], scope=ADA)
                    assert entry_id not in [h.entry.id for h in mem.recall(f"{name} number {n}", scope=ADA, k=500)]
            if name == "a":
                writing.set()

        return work

    def read() -> None:
        while not writing.is_set():
            for options in ({}, {"tags": "bee"}, {"session_id": "a"}, {"kind": "episode"}):
                hits = mem.recall("bee number", scope=ADA, k=20, **options).hits  # type: ignore[arg-type]
                assert len({hit.entry.id for hit in hits}) == len(hits)
                assert all(hit.entry.partition == ADA.partitions()[0] for hit in hits)

    run_together(write("a"), write("b"), read, read, read)
    assert str(mem.verify()).startswith("no flaws")
    assert mem.admin.stats(scope=ADA).entries == 100 + 2 * (2 * ROUNDS - ROUNDS // 2)


def test_a_person_forgotten_while_others_look_is_never_seen_again(mem: Memory) -> None:
    stop = threading.Event()
    forgotten: set[str] = set()

    def come_and_go() -> None:
        try:
            for n in range(15):
                ids = mem.remember_many([f"bee {n} {m}" for m in range(10)], scope=ADA)
                mem.recall("bee", scope=ADA)
                mem.forget(everything=True, scope=ADA)
                forgotten.update(ids)
        finally:
            stop.set()

    def look() -> None:
        while not stop.is_set():
            before = set(forgotten)
            assert before.isdisjoint(hit.entry.id for hit in mem.recall("bee", scope=ADA, k=50))

    run_together(come_and_go, look, look)
    assert mem.recall("bee", scope=ADA).hits == []
    assert mem.verify().ok


def test_a_forget_in_the_middle_of_a_recall_leaves_nothing_in_the_cache(mem: Memory) -> None:
    """The recall has read the text when the forget empties the cache, and must not put it back afterwards."""
    (entry_id,) = mem.remember("zqxmarker bee", scope=ADA)
    store_read = mem.engine.store.read_linked
    thread = threading.Thread(target=mem.forget, kwargs={"ids": [entry_id], "scope": ADA})

    def read_and_meanwhile_forget(nos):  # type: ignore[no-untyped-def]
        found = store_read(nos)
        mem.engine.store.read_linked = store_read  # type: ignore[method-assign]
        thread.start()
        while (
            store_read(nos) and thread.is_alive()
        ):  # then it may have to wait until nobody looks at the index any more
            pass
        return found

    mem.engine.store.read_linked = read_and_meanwhile_forget  # type: ignore[method-assign]
    mem.recall("bee", scope=ADA)
    thread.join(300)
    assert mem.recall("bee", scope=ADA).hits == []
    assert len(mem.engine.searcher.ram.entries) == 0


def test_closing_while_others_work_ends_in_clean_errors(mem: Memory) -> None:
    from wellworn.core.errors import StoreClosed

    mem.remember_many([f"bee {n}" for n in range(50)], scope=ADA)
    begun = threading.Barrier(4)

    def work(call: Callable[[int], object]) -> Callable[[], None]:
        def loop() -> None:
            begun.wait(300)
            try:
                for n in range(100_000):
                    call(n)
            except StoreClosed:
                return
            raise AssertionError("it was never closed")

        return loop

    def close() -> None:
        begun.wait(300)
        for _ in range(20):
            mem.admin.stats(scope=ADA)
        mem.close()

    run_together(
        work(lambda n: mem.recall("bee", scope=ADA)),
        work(lambda n: mem.remember(f"new {n}", scope=ADA)),
        work(lambda n: mem.admin.stats(scope=ADA)),
        close,
    )


def test_a_partition_whose_reading_fails_half_way_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.db"
    with Memory.open(path, embedder="hash:16") as memory:
        memory.remember_many([f"bee {n}" for n in range(50)], scope=ADA)
    with Memory.open(path, embedder="hash:16") as memory:
        delta = memory.engine.store.delta

        def fails(partition_no: int, since: int, *, after: int = 0, **more: Any) -> Delta:
            if after:
                raise StoreError("the disk is gone")
            return delta(partition_no, since, after=after, **more)

        with monkeypatch.context() as patched:
            patched.setattr(memory.engine.store, "delta", fails)
            with pytest.raises(StoreError, match="the disk is gone"):
                memory.recall("bee", scope=ADA)
        assert len(memory.recall("bee", scope=ADA, k=50)) == 50
