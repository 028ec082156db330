"""Index files and signs: what is recalled with them is what is recalled without, and nothing forgotten stays."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.builders import analyze
from search.embedders import WORDS, WordsEmbedder
from search.reference import Row
from wellworn import InvalidInput, Memory, Scope
from wellworn.search import mapped, partition
from wellworn.search.partition import PartitionIndex
from wellworn.store.port import Delta

SCOPE = Scope(tenant="t", user="ada")
QUERIES = ["violin and tram", "the ferry at the harbour", "ninety"]


@pytest.fixture(autouse=True)
def _every_partition_has_a_file() -> Iterator[None]:
    with patch.object(mapped, "LEAST_ROWS", 1), patch.object(partition, "LEAST_SIGNED", 48):
        yield


def opened(path: Path) -> Memory:
    return Memory.open(path, embedder=WordsEmbedder(), learning="off", background=False, durability="normal")


def recalled(memory: Memory) -> list[Any]:
    return [
        [(hit.entry.id, round(hit.score, 3)) for hit in memory.recall(query, scope=SCOPE, k=20)] for query in QUERIES
    ]


def recalled_without(path: Path, folder: Path) -> list[Any]:
    copy = folder / "copy.db"
    shutil.copyfile(path, copy)  # closed, it is one file
    with opened(copy) as plain, patch.object(partition, "LEAST_SIGNED", 10**9):
        found = recalled(plain)
    shutil.rmtree(folder / "copy.db-index", ignore_errors=True)
    copy.unlink()
    return found


def files_of(path: Path) -> list[Path]:
    folder = path.with_name(f"{path.name}-index")
    return sorted(folder.iterdir()) if folder.exists() else []


sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(sentence, min_size=1, max_size=4)),
    st.tuples(st.just("turn"), sentence),
    st.tuples(st.just("edit"), sentence),
    st.tuples(st.just("forget"), st.integers(0, 9)),
    st.tuples(st.just("everything"), st.none()),
    st.tuples(st.just("recall"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
    st.tuples(st.just("kill"), st.none()),
)


@given(st.sampled_from([0, 60]), st.lists(steps, min_size=1, max_size=12))
def test_recall_is_the_same_with_and_without_files_and_signs(
    tmp_path_factory: Any, many: int, changes: list[tuple[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    path = folder / "memory.db"
    memory, abandoned = opened(path), list[Memory]()
    try:
        memory.remember_many([f"{WORDS[n % 8]} {WORDS[n % 5]} {n}" for n in range(many)], scope=SCOPE)
        for action, value in changes:
            memory = _changed(memory, path, abandoned, action, value)
        with_file = recalled(memory)
    finally:
        for one in (*abandoned, memory):
            one.close()
    assert with_file == recalled_without(path, folder)


def _changed(memory: Memory, path: Path, abandoned: list[Memory], action: str, value: Any) -> Memory:
    ids = [entry.id for entry in memory.entries(scope=SCOPE, limit=100)]
    if action == "add":
        memory.remember_many(value, scope=SCOPE)
    elif action == "turn":
        memory.session(scope=SCOPE, session_id="s").add("user", value)
    elif action == "edit" and ids:
        with suppress(InvalidInput):  # another entry may say it already
            memory.edit(ids[0], text=value, scope=SCOPE)
    elif action == "forget" and ids:
        memory.forget(ids=[ids[value % len(ids)]], scope=SCOPE)
    elif action == "everything":
        memory.forget(everything=True, scope=SCOPE)
    elif action == "recall":
        recalled(memory)
    elif action in ("reopen", "kill"):
        memory.close() if action == "reopen" else abandoned.append(memory)
        return opened(path)
    return memory


def test_a_reopened_memory_reads_the_file_and_no_row(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        memory.remember_many([f"{word} {n}" for n in range(30) for word in WORDS], scope=SCOPE)
        before = recalled(memory)
    (file,) = files_of(path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with opened(path) as memory, patch.object(PartitionIndex, "load", side_effect=AssertionError("read row by row")):
        assert recalled(memory) == before


@pytest.mark.parametrize("holds_it", [True, False])
def test_what_is_forgotten_is_gone_from_the_file(tmp_path: Path, holds_it: bool) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        texts = [f"{word} {n}" for n in range(30) for word in WORDS]
        gone = memory.remember_many([*texts, "The zeppelin is at walnut cedar walnut."], scope=SCOPE)[-1]
        recalled(memory)
    (file,) = files_of(path)
    vector = WordsEmbedder().embed(["The zeppelin is at walnut cedar walnut."])[0].tobytes()
    term = analyze("zeppelin").terms.tobytes()
    assert vector in file.read_bytes()
    assert term in file.read_bytes()
    with opened(path) as memory:
        if holds_it:
            recalled(memory)
        memory.forget(ids=[gone], scope=SCOPE)
        left = file.read_bytes()
        assert vector not in left
        assert term not in left
    with opened(path) as memory, patch.object(PartitionIndex, "load", side_effect=AssertionError("read row by row")):
        with_file = recalled(memory)
    assert with_file == recalled_without(path, tmp_path)


def test_a_filter_that_leaves_few_of_the_nearest_looks_at_all(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        memory.remember_many([f"violin {n}" for n in range(200)], scope=SCOPE)
        memory.remember_many([{"text": f"violin tram cedar {n}", "tags": ["few"]} for n in range(5)], scope=SCOPE)
        with patch.object(partition, "NEAR_ROWS", 20):
            found = memory.recall("violin", tags=["few"], scope=SCOPE, k=5)
            assert {hit.entry.text for hit in found} == {f"violin tram cedar {n}" for n in range(5)}
            assert len(memory.recall("violin", scope=SCOPE, k=10)) == 10


def test_signs_name_the_nearest_of_many_that_may_be_returned() -> None:
    dice = np.random.default_rng(1)
    for width in (16, 64, 100, 256, 384):
        vectors = dice.standard_normal((2000, width)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        query = (vectors[7] + 0.1 * vectors[8]).astype(np.float32)
        vectors[9] = -query
        index = PartitionIndex(1, width, (0.0, 0.0))
        rows = [Row(no=no, terms={}, vector=tuple(vector.tolist())).slim() for no, vector in enumerate(vectors, 1)]
        index.load([Delta(seq=1, removed=[], rows=rows)])
        with patch.multiple(partition, NEAR_ROWS=20, LEAST_SIGNED=1):
            passing = np.ones(2000, dtype=bool)
            found = index.likely(query, 1, passing=passing)
            assert found is not None
            assert 7 in found.tolist()
            assert (9 in found.tolist()) == (width == 256)  # of so many bits none and all look the same
            assert 20 <= len(found) < 1000
            passing[7] = False
            found = index.likely(query, 1, passing=passing)
            assert found is not None
            assert 7 not in found.tolist()
            few = np.isin(np.arange(2000), [3, 9])
            found = index.likely(query, 2, passing=few)
            assert found is not None
            assert sorted(found.tolist()) == [3, 9]
            index.apply(Delta(seq=2, rows=[], removed=[8]))
            assert all(int(index.arrays()[0][name][7]) == 0 for name in index.arrays()[0] if name.startswith("signs"))


def test_the_file_of_a_forgotten_person_is_deleted_also_after_a_crash(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        memory.remember_many(WORDS, scope=SCOPE)
        recalled(memory)
        assert files_of(path)
        memory.forget(everything=True, scope=SCOPE)
        assert not files_of(path)
        memory.remember_many(WORDS, scope=SCOPE)
        recalled(memory)
        with patch.object(mapped.IndexFiles, "erase"):  # killed before it came to that
            memory.forget(everything=True, scope=SCOPE)
        assert files_of(path)
    opened(path).close()
    assert not files_of(path)
    assert not caplog.records  # nothing of it is unusual


def test_an_encrypted_memory_has_no_file(tmp_path: Path) -> None:
    pytest.importorskip("sqlcipher3")
    path = tmp_path / "memory.db"
    (tmp_path / "memory.db-index").mkdir()
    (tmp_path / "memory.db-index" / ("0123" * 8)).write_bytes(b"left from before it was encrypted")
    with Memory.open(path, embedder=WordsEmbedder(), key="a passphrase", background=False) as memory:
        memory.remember_many(WORDS, scope=SCOPE)
        recalled(memory)
    assert not files_of(path)


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_damaged_vectors_of_a_file_are_a_flaw_that_is_repaired(tmp_path: Path, value: float) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        first, *_ = memory.remember_many(WORDS, scope=SCOPE)
        before = recalled(memory)
    (file,) = files_of(path)
    vectors = WordsEmbedder().embed(WORDS)
    whole = file.read_bytes()
    for vector in vectors:
        whole = whole.replace(vector.tobytes(), np.full_like(vector, value).tobytes())
    file.write_bytes(whole)
    with opened(path) as memory:
        assert [(flaw.check, flaw.repairable) for flaw in memory.verify().flaws] == [("index_file", True)]
        assert memory.admin.repair().ok
        assert recalled(memory) == before
        memory.edit(first, text="changed since the file was written", scope=SCOPE)
        assert memory.verify().ok
