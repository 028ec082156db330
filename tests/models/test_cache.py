"""The vector cache: in the process, and in a real Redis where the program `redis-server` is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn import Memory, Scope, cached_embedder
from wellworn.core.errors import EmbedderMismatch, EmbeddingFailed, InvalidInput, MissingExtra
from wellworn.models import FallbackEmbedder, HashEmbedder, choose_embedder
from wellworn.models.cache import REST_S, CachedEmbedder, RedisVectors
from wellworn.models.port import Matrix

KEYS = [bytes([number]) * 20 for number in range(6)]
ROWS = np.arange(24, dtype=np.float32).reshape(6, 4)


class Dead:
    """A Redis that nobody answers for, until it does."""

    def __init__(self, real: Any = None) -> None:
        self.real = real
        self.alive = False
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        self.asked += 1
        if not self.alive:
            raise ConnectionError("nobody there")
        return getattr(self.real, name)


class Kept:
    """What the level uses of a Redis client, in a dictionary: for where there is no Redis."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.ttls: list[int] = []

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        return [self.kept.get(key) for key in keys]

    def pipeline(self, transaction: bool) -> Kept:
        return self

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def set(self, key: str, value: bytes, ex: int) -> None:
        self.kept[key] = value
        self.ttls.append(ex)

    def execute(self) -> None:
        pass

    def unlink(self, *keys: str) -> int:
        return sum(self.kept.pop(key, None) is not None for key in keys)

    def scan_iter(self, match: str, count: int) -> list[str]:
        return [key for key in self.kept if key.startswith(match.rstrip("*"))]


@pytest.fixture(params=["dictionary", "redis"])
def level(request: pytest.FixtureRequest) -> RedisVectors:
    return RedisVectors(Kept() if request.param == "dictionary" else request.getfixturevalue("redis_server"))


def put(level: RedisVectors, *numbers: int) -> None:
    level.put({KEYS[number]: ROWS[number] for number in numbers})


def test_a_level_gives_back_what_it_was_given_and_lets_go(level: RedisVectors) -> None:
    assert level.get(KEYS, width=4) == {}
    put(level, 0, 1, 2)
    found = level.get(KEYS, width=4)
    assert {KEYS.index(key): row.tolist() for key, row in found.items()} == {n: ROWS[n].tolist() for n in range(3)}
    assert level.get(KEYS, width=5) == {}  # of another width: not ours
    level.clear()
    assert level.get(KEYS, width=4) == {}
    assert level.errors == 0


def test_in_a_real_redis_too(redis_server: Any) -> None:
    level = RedisVectors(redis_server)
    put(level, 0)
    (key,) = redis_server.keys("*")
    assert 3000 < redis_server.ttl(key) <= 3600
    redis_server.set("someone:else", b"1")
    level.clear()
    assert redis_server.keys("*") == [b"someone:else"]
    redis_server.shutdown(nosave=True)
    assert (level.get(KEYS, width=4), level.errors) == ({}, 1)


def test_a_dead_redis_fails_nobody_is_left_alone_for_a_while_and_forgets_before_it_is_read() -> None:
    now = [0.0]
    dead = Dead(Kept())
    level = RedisVectors(dead, clock=lambda: now[0])
    embedder = CachedEmbedder(HashEmbedder(16), shared=level)
    for text in "abc":
        assert np.array_equal(embedder.embed([text]), HashEmbedder(16).embed([text]))
    assert (dead.asked, level.errors) == (1, 1)
    dead.alive = True
    now[0] += REST_S + 1
    embedder.embed(["d"])
    assert len(dead.real.kept) == 1
    dead.alive = False
    level.clear()
    dead.alive = True
    assert level.get(KEYS, width=4) == {}  # resting
    now[0] += REST_S + 1
    assert level.get(KEYS, width=4) == {}
    assert dead.real.kept == {}


class Counting:
    """An embedder that counts what it is asked for."""

    name, width = "counting", 16

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.during: Callable[[], object] = lambda: None

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.texts += texts
        self.during()
        return HashEmbedder(16).embed(texts)

    def embed_query(self, text: str) -> Matrix:
        row: Matrix = self.embed([text])[0]
        return row


def shared(kept: Kept) -> tuple[Counting, CachedEmbedder]:
    inner = Counting()
    return inner, CachedEmbedder(inner, shared=RedisVectors(kept))


def test_what_one_process_embedded_another_reads_from_redis() -> None:
    kept = Kept()
    first, one = shared(kept)
    expected = one.embed(["a", "b", "a"])
    one.embed_query("a")
    assert first.texts == ["a", "b", "a"]  # as text and as question
    second, two = shared(kept)
    assert np.array_equal(two.embed(["a", "b", "a"]), expected)
    assert second.texts == []
    two.embed(["a"])
    assert [(m.level, m.hits, m.misses) for m in two.metrics()] == [("process", 2, 2), ("redis", 2, 0)]
    for width in (16, 32):  # two models do not meet
        assert cached_embedder(f"hash:{width}", redis=kept).embed(["a"]).shape == (1, width)


def test_a_forget_reaches_redis(tmp_path: Path) -> None:
    kept = Kept()
    _, embedder = shared(kept)
    scope = Scope(tenant="acme", user="ada")
    with Memory.open(tmp_path / "memory.db", embedder=embedder) as mem:
        ids = mem.remember("Ada likes tea", scope=scope)
        mem.recall("what does Ada like?", scope=scope)
        assert len(kept.kept) == 2
        assert [one.level for one in mem.admin.stats(scope=scope).embedding_cache] == ["process", "redis"]
        mem.forget(scope=scope, ids=ids)
    assert kept.kept == {}


def test_what_is_forgotten_while_it_is_embedded_is_kept_nowhere() -> None:
    kept = Kept()
    inner, embedder = shared(kept)
    inner.during = embedder.clear
    embedder.embed(["a"])
    assert (len(embedder), kept.kept) == (0, {})


def test_bad_settings_are_refused() -> None:
    calls: Mapping[str, Callable[[], object]] = {
        "ttl_s": lambda: RedisVectors(Kept(), ttl_s=0),
        "redis": lambda: RedisVectors("nowhere"),
        "embedder": lambda: cached_embedder(None),
    }
    for name, call in calls.items():
        with pytest.raises(InvalidInput, match=name):
            call()


# -- the level in the process -----------------------------------------------------------------------------------


@given(st.lists(st.lists(st.sampled_from(["", "a", "b", "é", "\ud800"]), max_size=6), max_size=8), st.integers(0, 1500))
def test_it_equals_the_inner_embedder_whatever_the_limits(calls: list[list[str]], most: int) -> None:
    inner = HashEmbedder(16)
    cached = CachedEmbedder(inner, max_bytes=most)
    for texts in calls:
        np.testing.assert_array_equal(cached.embed(texts), inner.embed(texts))
        for text in texts:
            np.testing.assert_array_equal(cached.embed_query(text), inner.embed_query(text))
        assert len(cached) <= most // 256
    assert cached.hits + cached.misses == 2 * sum(map(len, calls))


def test_misses_go_out_in_one_batch_each_text_once() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner)
    cached.embed(["a", "b"])
    cached.embed(["b", "c", "a", "d", "c"])
    assert inner.texts == ["a", "b", "c", "d"]
    assert (cached.hits, cached.misses) == (3, 4)


def test_changing_an_answer_does_not_change_the_cache() -> None:
    cached = CachedEmbedder(HashEmbedder(16))
    for answer in (cached.embed(["a"]), cached.embed(["a"]), cached.embed_query("a"), cached.embed_query("a")):
        answer[...] = 7
    np.testing.assert_array_equal(cached.embed(["a"])[0], HashEmbedder(16).embed_query("a"))
    np.testing.assert_array_equal(cached.embed_query("a"), HashEmbedder(16).embed_query("a"))


# -- a list of embedders: members with the same model take over from each other ----------------------------------------


class Unsteady(HashEmbedder):
    """An embedder that can be down."""

    def __init__(self, name: str, width: int = 16, *, down: bool = False) -> None:
        super().__init__(width)
        self.called, self.down, self.calls = name, down, 0

    @property
    def name(self) -> str:
        return self.called

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.calls += 1
        if self.down:
            raise EmbeddingFailed(f"{self.called} is down")
        return super().embed(texts)


def test_a_new_store_gets_the_first_model_that_answers(tmp_path: Path) -> None:
    down, up = Unsteady("service:a", down=True), Unsteady("service:b", 8)
    for embedder in ([down, up], cached_embedder([up, down])):
        with Memory(tmp_path / "m.db", embedder=embedder) as mem:
            ada = mem.for_user("ada")
            ada.remember("Ada likes tea.")
            assert ada.recall("tea")[0].text == "Ada likes tea."
            assert ada.admin.stats().embedder == "service:b"


def test_a_store_keeps_its_model_and_vectors_never_mix(tmp_path: Path) -> None:
    first, second = Unsteady("service:a"), Unsteady("service:b")
    with Memory(tmp_path / "m.db", embedder=[first, second]) as mem:
        ada = mem.for_user("ada")
        ada.remember("Ada likes tea.")
        first.down = True
        with pytest.raises(EmbeddingFailed, match="service:a is down"):
            ada.remember("Ada likes coffee.")
    assert second.calls == 0
    first.down = False
    with Memory(tmp_path / "m.db", embedder=[second, first]) as mem:  # its model serves, wherever it stands
        assert mem.for_user("ada").admin.stats().embedder == "service:a"
        assert mem.for_user("ada").recall("tea")
    with pytest.raises(EmbedderMismatch, match="service:b"):
        Memory(tmp_path / "m.db", embedder=[second])
    with Memory(tmp_path / "m.db", embedder=[second, first], reembedding=True) as mem:
        assert mem.admin.reembed().model.name == "service:b"


def test_the_same_model_elsewhere_takes_over_and_is_asked_first_from_then_on() -> None:
    near, far, other = Unsteady("service:a"), Unsteady("service:a"), Unsteady("service:b")
    embedder = FallbackEmbedder([near, other, far])
    row = embedder.embed_query("tea")
    near.down = True
    np.testing.assert_array_equal(embedder.embed_query("tea"), row)
    before = near.calls
    np.testing.assert_array_equal(embedder.embed(["tea"])[0], row)
    assert (near.calls, other.calls) == (before, 0)
    far.down, near.down = True, False
    assert embedder.embed(["tea"]).shape == (1, embedder.width)
    near.down = True
    with pytest.raises(EmbeddingFailed, match="service:a is down"):
        embedder.embed(["tea"])


def test_members_that_cannot_be_made_here_are_passed_over(tmp_path: Path) -> None:
    lacking = [f"onnx:{tmp_path / 'nowhere'}", "openai:text-embedding-3-small"]  # a folder and a key
    embedder = choose_embedder([*lacking, "static"])
    assert embedder is not None
    assert embedder.name.startswith("static:")
    with pytest.raises((EmbeddingFailed, MissingExtra), match="onnx"):
        choose_embedder(lacking[:1])
    for wrong, match in ((["onx:folder", "static"], "onx:folder"), ([], "empty"), (["static", "none"], "leave it out")):
        with pytest.raises(InvalidInput, match=match):
            choose_embedder(wrong)
