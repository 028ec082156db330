"""Several threads, tasks, objects and processes on one store; a loop that is never held up; a process that dies."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from wellworn import Memory
from wellworn.integrations.langgraph_store import WellwornStore
from wellworn.integrations.vectorstore import WellwornVectorStore

NS = ("users", "ada")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db", embedder="hash:16", durability="normal") as memory:
        yield memory


def test_threads_that_put_delete_and_search_lose_nothing(memory: Memory) -> None:
    store = WellwornStore(memory, tenant="acme")
    long = {"text": "tea and rain. " * 200}

    def work(worker: int) -> None:
        for n in range(12):
            store.put((*NS, str(worker)), f"k{n}", {"text": f"tea number {n}", "worker": worker})
            store.put(NS, "shared", long if n % 2 else {"text": "short"})
            found = store.search((*NS, str(worker)), query="tea", limit=50)
            assert len(found) == n + 1, "a thread sees its own writes"
            store.put(NS, f"gone{worker}", {"n": n})
            store.delete(NS, f"gone{worker}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(store.search(NS, limit=100)) == 4 * 12 + 1
    assert memory.verify().ok


async def test_tasks_share_one_store(memory: Memory) -> None:
    store = WellwornStore(memory, tenant="acme")
    await asyncio.gather(*(store.aput(NS, f"k{n}", {"text": f"tea {n}"}) for n in range(30)))
    found = await asyncio.gather(*(store.asearch(NS, query=f"tea {n}", limit=1) for n in range(10)))
    assert [item.key for (item,) in found] == [f"k{n}" for n in range(10)]
    await asyncio.gather(*(store.adelete(NS, f"k{n}") for n in range(30)))
    assert await store.asearch(NS) == await store.alist_namespaces() == []


class SlowEmbedder:
    """Takes its time, and says on which threads it was asked."""

    name, width = "test:slow", 4

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def embed(self, texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        self.threads.add(threading.current_thread().name)
        time.sleep(0.15)
        return np.full((len(texts), 4), 0.5, dtype=np.float32)

    def embed_query(self, text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        row: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = self.embed([text])[0]
        return row


async def test_the_event_loop_is_never_held_up() -> None:
    embedder = SlowEmbedder()
    memory = await asyncio.to_thread(Memory.open, ":memory:", embedder=embedder)
    store, vectors = WellwornStore(memory, tenant="acme"), WellwornVectorStore(memory)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    for call in (
        store.aput(NS, "k", {"text": "tea"}),
        store.asearch(NS, query="tea"),
        store.aget(NS, "k"),
        vectors.aadd_texts(["tea"], ids=["1"]),
        vectors.asimilarity_search("tea"),
        vectors.amax_marginal_relevance_search("tea"),
        vectors.asimilarity_search_with_relevance_scores("tea"),
        vectors.adelete(["1"]),
    ):
        await call
    ticking.cancel()
    assert threading.main_thread().name not in embedder.threads
    assert ticks >= 20, "more than a second of embedding went by beside the loop"
    memory.close()


def test_two_objects_on_one_file_see_each_others_items(memory: Memory, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "memory.db", embedder="hash:16") as second:
        one, two = WellwornStore(memory, tenant="acme"), WellwornStore(second, tenant="acme")
        one.put(NS, "k", {"text": "tea"})
        assert [item.key for item in two.search(NS, query="tea")] == ["k"]
        two.put(NS, "k", {"text": "rain"})
        assert [item.value for item in one.search(NS, query="tea")] == [{"text": "rain"}]
        two.delete(NS, "k")
        assert one.search(NS, query="tea") == one.list_namespaces() == []
        one.put(NS, "k", {"text": "again"})
        assert [item.value for item in two.search(NS, query="again")] == [{"text": "again"}]


@pytest.mark.crash
def test_what_was_acknowledged_survives_the_death_of_the_process(tmp_path: Path) -> None:
    code = """
        import os, signal, sys
        from wellworn import Memory
        from wellworn.integrations.langgraph_store import WellwornStore
        store = WellwornStore(Memory.open(sys.argv[1], embedder="hash:16"), tenant="acme")
        for n in range(10_000):
            store.put(("a", str(n % 3)), str(n), {"n": n, "text": "tea and rain. " * (n % 300)})
            print(n, flush=True)
            if n == 25:
                os.kill(os.getpid(), signal.SIGKILL)
    """
    path = tmp_path / "memory.db"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -9, done.stderr
    acknowledged = [int(line) for line in done.stdout.split()]
    with Memory.open(path, embedder="hash:16") as memory:
        store = WellwornStore(memory, tenant="acme")
        found = store.search(("a",), limit=100)
        assert sorted(item.value["n"] for item in found) == acknowledged == list(range(26))
        assert memory.verify().ok
