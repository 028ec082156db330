"""Finding items: the four factors with the worked numbers, domains, least confidence, the learned ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn import InvalidInput, Memory, Scope, ScopeError
from wellworn.search.score import diversify
from wellworn.tasks import ReasoningBank
from wellworn.tasks.items import checked_domain, domain_of, domain_tags, wanted_tags

from .world import AGENT, NOON


class Angles:
    """Texts that begin with a number: unit vectors with that cosine to every query, in planes of their own."""

    name, width = "angles:1", 16

    def embed(self, texts: Sequence[str]) -> Any:  # an array
        return np.stack([self._of(text) for text in texts])

    def embed_query(self, text: str) -> Any:  # an array
        return np.eye(self.width, dtype=np.float32)[0]

    def _of(self, text: str) -> Any:  # an array
        title, _, rest = text.partition(". ")
        plane, cosine = title.split(" ")[0], float(rest.split(" ")[0])
        vector = np.zeros(self.width, dtype=np.float32)
        vector[0], vector[int(plane)] = cosine, math.sqrt(1 - cosine * cosine)
        return vector


def kept(
    mem: Memory,
    text: str,
    *,
    plane: int = 1,
    days: float = 0,
    confidence: float = 0.5,
    usage: int = 0,
    domain: str = "",
    kind: str = "strategy",
    scope: Scope = AGENT,
) -> str:
    (entry_id,) = mem.remember(
        text,
        scope=scope,
        kind=kind,  # type: ignore[arg-type]
        title=f"{plane} x",
        confidence=confidence,
        tags=domain_tags(domain),
        at=NOON - timedelta(days=days),
        layer="agent" if scope.agent else None,
    )
    if usage:
        with mem.engine.store.transact() as tx:
            tx.update(replace(mem.get(entry_id, scope=scope), usage_count=usage), change=None)
    return entry_id


@pytest.fixture
def mem() -> Memory:
    return Memory.open(":memory:", embedder=Angles(), clock=lambda: NOON, background=False)


@pytest.fixture
def bank(mem: Memory) -> ReasoningBank:
    return ReasoningBank(mem, scope=AGENT)


def test_the_worked_score_is_0_857(mem: Memory, bank: ReasoningBank) -> None:
    csrf = kept(mem, "0.87 CSRF token extraction", days=15, confidence=0.75, usage=18)
    kept(mem, "0.00 the newest", plane=2)
    (hit,) = bank.retrieve("Login to admin panel with CSRF protection").hits
    assert hit.entry.id == csrf
    values = {factor.name: (factor.weight, factor.value) for factor in hit.explanation}
    assert values["similarity"] == pytest.approx((0.65, 0.87))
    assert values["recency"] == pytest.approx((0.15, math.exp(-0.5)))
    assert values["reliability"] == pytest.approx((0.20, 1.0))
    assert sum(round(part, 3) for part in hit.factors.values()) == pytest.approx(0.566 + 0.091 + 0.200)
    assert hit.score == pytest.approx(0.857, abs=6e-4)  # the addends were rounded to three places


def test_a_likeness_of_0_65_to_a_better_one_makes_it_0_792() -> None:
    mem = Memory.open(":memory:", embedder=_Pair(), clock=lambda: NOON, background=False)
    kept(mem, "first", confidence=1.0, usage=1000)
    csrf = kept(mem, "second", days=15, confidence=0.75, usage=18)
    first, second = ReasoningBank(mem, scope=AGENT).retrieve("q", k=2).hits
    assert second.entry.id == csrf
    assert second.factors["diversity"] == pytest.approx(-0.065, abs=1e-4)
    assert second.score == pytest.approx(0.792, abs=6e-4)
    assert first.score > second.score


class _Pair:
    """Two texts: 0.87 like the query, and another 0.65 like that one."""

    name, width = "pair:1", 3

    def embed(self, texts: Sequence[str]) -> Any:  # an array
        second = np.array([0.87, math.sqrt(1 - 0.87**2), 0])
        across = np.array([math.sqrt(1 - 0.87**2), -0.87, 0])
        first = 0.65 * second + math.sqrt(1 - 0.65**2) * across
        return np.stack([second if "second" in text else first for text in texts]).astype(np.float32)

    def embed_query(self, text: str) -> Any:  # an array
        return np.array([1, 0, 0], dtype=np.float32)


def test_the_mmr_trace() -> None:
    """0.697 for the second, 0.663 for the third, 0.547 for the fourth; then the third with 0.660."""
    scores = np.array([0.92, 0.88, 0.75, 0.71])
    like = np.array([[1, 0.95, 0.12, 0.92], [0.95, 1, 0.15, 0.89], [0.12, 0.15, 1, 0.1], [0.92, 0.89, 0.1, 1]])
    vectors = _with_cosines(like)
    picked, redundancy = diversify(scores, vectors, 3, lambda_=0.9)
    assert picked == [0, 1, 2]
    assert redundancy == pytest.approx([0, 0.95, 0.15], abs=1e-3)
    mmr = [0.9 * scores[place] - 0.1 * like[place, 0] for place in (1, 2, 3)]
    assert mmr == pytest.approx([0.697, 0.663, 0.547], abs=5e-4)
    assert 0.9 * scores[2] - 0.1 * redundancy[2] == pytest.approx(0.660, abs=5e-4)


def _with_cosines(like: Any) -> Any:  # arrays
    values, axes = np.linalg.eigh(like)
    return (axes * np.sqrt(np.clip(values, 0, None))).astype(np.float32)


def test_one_item_is_the_default_and_k_gives_more(mem: Memory, bank: ReasoningBank) -> None:
    for plane in range(1, 6):
        kept(mem, f"0.{plane}0 item", plane=plane)
    assert len(bank.retrieve("q")) == 1
    assert [hit.entry.text for hit in bank.retrieve("q", k=3)] == ["0.50 item", "0.40 item", "0.30 item"]


def test_only_items_of_the_domain_or_below_the_prefix(mem: Memory, bank: ReasoningBank) -> None:
    for plane, domain in enumerate(["web.admin", "web.shop.cart", "webby", "db", ""], start=1):
        kept(mem, f"0.{plane}0 of {domain}", plane=plane, domain=domain)

    def found(domain: str | None) -> set[str]:
        return {hit.entry.text[8:] for hit in bank.retrieve("q", domain=domain, k=10)}

    assert found("web.admin") == {"web.admin"}
    assert found("web.*") == {"web.admin", "web.shop.cart"}
    assert found("web.shop.*") == {"web.shop.cart"}
    assert found("web") == set()
    assert found(None) == found("*") == {"web.admin", "web.shop.cart", "webby", "db", ""}
    with pytest.raises(InvalidInput, match="not a domain"):
        bank.retrieve("q", domain="a b")


def test_other_kinds_the_unsure_and_other_agents_are_not_found(mem: Memory, bank: ReasoningBank) -> None:
    kept(mem, "0.90 a note", kind="note")
    kept(mem, "0.90 unsure", confidence=0.29, plane=2)
    kept(mem, "0.90 of another", scope=Scope(tenant="acme", agent="b"), plane=3)
    kept(mem, "0.90 of another tenant", scope=Scope(tenant="rival", agent="a1"), plane=3)
    sure = kept(mem, "0.10 just sure enough", confidence=0.3, plane=4, kind="guardrail")
    assert [hit.entry.id for hit in bank.retrieve("q", k=9)] == [sure]
    assert len(bank.retrieve("q", k=9, min_confidence=0.0)) == 2
    assert bank.retrieve("q", k=9, kind="strategy").hits == []


def test_without_a_scope_it_says_where_to_give_one(mem: Memory) -> None:
    with pytest.raises(ScopeError, match="ReasoningBank"):
        ReasoningBank(mem).retrieve("q")


class Noisy:
    """Vectors of which a small part tells the topic and the rest is noise: right more often than not, and no more."""

    name, width = "noisy:1", 64

    def embed(self, texts: Sequence[str]) -> Any:  # an array
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Any:  # an array
        vector = np.random.default_rng(crc32(text.encode())).standard_normal(self.width)
        vector[int(text.rpartition("topic")[2])] += 6.0
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def test_the_learned_ranking_serves_the_bank_and_nobody_else(tmp_path: Path) -> None:
    """Items that share the query's word are the useful ones; the four factors do not look at words."""
    with Memory.open(tmp_path / "m.db", embedder=Noisy(), background=False, durability="normal") as mem:
        bank = ReasoningBank(mem, scope=AGENT)
        for number in range(60):
            kept(mem, f"what helps with topic{number}")
        for round_ in range(120):
            wanted = f"topic{round_ * 7 % 60}"
            recall = bank.retrieve(f"case {round_} of {wanted}", k=5)
            useful = [place for place, hit in enumerate(recall.hits) if wanted in hit.entry.text.split()]
            assert bank.feedback(recall.id, cited=useful)
            assert not bank.feedback(recall.id, cited=useful), "told before"
        assert "learned" in bank.retrieve("another of topic33").hits[0].factors
        assert mem.learning.status(scope=AGENT).outcomes == 0, "the memory's own ranking learned nothing from it"


def test_of_two_that_fit_alike_the_strategy_comes_before_the_guardrail(mem: Memory, bank: ReasoningBank) -> None:
    kept(mem, "0.80 not this", plane=1, kind="guardrail")
    strategy = kept(mem, "0.75 this", plane=2)
    found = bank.retrieve("x", scope=AGENT, k=2)
    assert found[0].entry.id == strategy
    assert found[1].factors["guardrail"] == pytest.approx(-0.1)
    assert "guardrail" not in bank.retrieve("x", scope=AGENT, kind="strategy")[0].factors
    kept(mem, "0.95 never that", plane=3, kind="guardrail")
    assert bank.retrieve("x", scope=AGENT)[0].entry.kind == "guardrail"  # much nearer, so it is said first


LEARNED = {
    "Run the tests of the parser": "pytest tests/parser",
    "Bump the version and publish to npm": "npm publish",
    "Migrate the database to the new schema": "python manage.py migrate",
    "Speed up the image upload": "cargo bench",
}


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("run the parser tests", "Run the tests of the parser"),
        ("publish a new version", "Bump the version and publish to npm"),
        ("migrate the db", "Migrate the database to the new schema"),
        ("make image uploads faster", "Speed up the image upload"),
        ("thanks", None),
        ("rename the variable foo to bar", None),
        ("explain the retry logic", None),
        ("what does this function do?", None),
        ("update dependencies", None),
    ],
)
def test_advice_about_something_else_is_not_given(asked: str, shown: str | None) -> None:
    with Memory.open(":memory:", embedder="reader", background=False) as memory:
        bank = ReasoningBank(memory, scope=Scope(tenant="t", agent="a"))
        for task, command in LEARNED.items():
            step = {"tool": "Bash", "args": {"command": command}, "ok": True}
            bank.record({"query": task, "steps": [step]}, task_id=task, verdict=True)
        work = bank.begin(task_id="x", query=asked)
        assert [hit.entry.metadata["pattern_data"]["task"] for hit in work.hits] == ([shown] if shown else [])
        assert bool(work.context()) == (shown is not None)


# -- domains --


@given(st.lists(st.text("abcdef0-_", min_size=1, max_size=5), min_size=1, max_size=8))
def test_a_domain_is_found_by_itself_and_by_each_of_its_prefixes(parts: list[str]) -> None:
    domain = ".".join(parts)
    tags = domain_tags(domain)
    for n in range(1, len(parts) + 1):
        prefix = ".".join(parts[:n])
        assert wanted_tags(f"{prefix}.*")[0] in tags
        assert (wanted_tags(prefix)[0] in tags) == (n == len(parts))
    assert domain_of(tags) == domain
    assert domain_tags("") == wanted_tags("*") == wanted_tags(None) == []


@pytest.mark.parametrize("bad", ["web..admin", "web.", "a b", "web.*", "x" * 200, ".".join("abcdefghi")])
def test_what_is_not_a_domain_is_refused_with_a_remedy(bad: str) -> None:
    with pytest.raises(InvalidInput, match=r"web\.admin"):
        checked_domain(bad)
