"""What a consolidation does to a bank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.consolidation_world import AGENT, PARTITION, Clock, ReasoningBank, TableEmbedder, learn, live, opened
from wellworn import Memory
from wellworn.tasks import consolidate
from wellworn.tasks.consolidate import Consolidator
from wellworn.tasks.engine import Parts

SEED_MATRIX = np.array([[1, 0.96, 0.91, 0.15], [0.96, 1, 0.88, 0.12], [0.91, 0.88, 1, 0.18], [0.15, 0.12, 0.18, 1]])
RETRY, NEVER = "Always retry the request after a 429 response.", "Never retry the request after a 429 response."
TOKEN = "When the login form has a CSRF token, read it first and send it with the POST."
TOKEN_AGAIN = "When the login form has a CSRF token, always read it first and send it with the POST."


@pytest.fixture
def mem(clock: Clock) -> Iterator[Memory]:
    with opened(clock=clock) as memory:
        yield memory


@pytest.fixture
def bank(mem: Memory) -> ReasoningBank:
    return ReasoningBank(mem, scope=AGENT)


def test_the_cluster_example_of_the_design(tmp_path: Path) -> None:
    titles = [
        "Extract CSRF token from form",
        "Parse CSRF token from HTML",
        "Include CSRF token in POST",
        "Rate limit with exponential backoff",
    ]
    numbers = [(0.8, 15), (0.7, 8), (0.75, 12), (0.65, 5)]
    vectors = np.linalg.cholesky(SEED_MATRIX)
    table = TableEmbedder(dict(zip(titles, vectors.tolist(), strict=True)))
    with opened(embedder=table) as mem:
        ids = [
            learn(mem, title, confidence=sure, usage_count=used, evidence=f"seen in {title}")
            for title, (sure, used) in zip(titles, numbers, strict=True)
        ]
        run = ReasoningBank(mem, scope=AGENT).consolidate(scope=AGENT)
        assert run.counts["merge"] == 1
        assert set(live(mem)) == {titles[0], titles[2], titles[3]}
        kept = mem.get(ids[0], scope=AGENT)
        assert (kept.usage_count, kept.confidence) == (23, 0.8)
        assert kept.evidence == f"seen in {titles[0]}\nseen in {titles[1]}"
        assert mem.get(ids[1], scope=AGENT).state == "superseded"
        links = [(link.source, link.target) for link in mem.links(ids[0], scope=AGENT) if link.type == "supersedes"]
        assert links == [(ids[0], ids[1])]
        assert mem.verify().ok


def test_merging_adds_the_counts_and_keeps_the_best(mem: Memory, bank: ReasoningBank) -> None:
    learn(mem, TOKEN, confidence=0.9, usage_count=1, success_count=1)
    best = learn(mem, TOKEN_AGAIN, confidence=0.6, usage_count=9, success_count=5, failure_count=4)
    assert bank.consolidate(scope=AGENT).counts["merge"] == 1
    [kept] = live(mem).values()
    assert kept.id == best  # 0.6 · √9 > 0.9 · √1
    assert (kept.usage_count, kept.success_count, kept.failure_count, kept.confidence) == (10, 6, 4, 0.9)


def test_entries_of_other_domains_kinds_or_stances_are_not_merged(mem: Memory, bank: ReasoningBank) -> None:
    learn(mem, TOKEN, domain="web")
    learn(mem, TOKEN_AGAIN, domain="web.admin")
    learn(mem, TOKEN + " Now.", kind="guardrail")
    learn(mem, "Send the date as day, month, year.")
    learn(mem, "Send the date as year, month, day.")
    assert bank.consolidate(scope=AGENT).counts["merge"] == 0
    assert len(live(mem)) == 5


def test_the_surer_of_two_that_contradict_each_other_stays(mem: Memory, bank: ReasoningBank) -> None:
    learn(mem, RETRY, confidence=0.5)
    learn(mem, NEVER, confidence=0.7)
    run = bank.consolidate(scope=AGENT)
    assert [(step.action, step.why) for step in run.steps] == [("resolve", "negation")]
    assert set(live(mem)) == {NEVER}
    types = {link.type for link in mem.links(live(mem)[NEVER].id, scope=AGENT) if not link.automatic}
    assert types == {"contradicts", "supersedes"}


def test_the_unused_unsure_and_old_is_pruned_and_nothing_else(mem: Memory, bank: ReasoningBank, clock: Clock) -> None:
    learn(mem, "Scroll to the end of the page.", confidence=0.2)
    learn(mem, "Open the order list by its address.", confidence=0.2, usage_count=1)
    learn(mem, "Filter by the name of the customer.", confidence=0.9)
    for days in (179, 1):  # a jump of the clock prunes nothing before the clock has gone on for a day
        clock.forward(days=days)
        assert bank.consolidate(scope=AGENT).counts["prune"] == 0
    clock.forward(days=1)
    run = bank.consolidate(scope=AGENT)
    assert run.counts["prune"] == 1
    assert "Scroll to the end of the page." not in live(mem)
    assert len(live(mem)) == 2


def test_the_proven_is_promoted_and_a_process_becomes_a_skill(mem: Memory, bank: ReasoningBank) -> None:
    skill = learn(mem, "Open the cart, then apply the code.", confidence=0.9, usage_count=51)
    known = learn(mem, "Prices are shown without tax.", confidence=0.9, usage_count=51)
    learn(mem, "Names are sorted by their last word.", confidence=0.85, usage_count=500)
    learn(mem, "The filter is below the table.", confidence=0.95, usage_count=50)
    assert bank.consolidate(scope=AGENT).counts["promote"] == 2
    levels = bank.graph.levels(scope=AGENT)
    assert [entry.id for entry in levels["procedural.skills"]] == [skill]
    assert [entry.id for entry in levels["semantic.knowledge"]] == [known]
    assert bank.consolidate(scope=AGENT).steps == []


def test_confidence_fades_by_whole_spans_without_use(mem: Memory, bank: ReasoningBank, clock: Clock) -> None:
    learn(mem, TOKEN, confidence=0.8)
    clock.forward(days=60)
    assert bank.consolidate(scope=AGENT).steps == []  # the clock may be wrong
    clock.forward(days=1)
    assert bank.consolidate(scope=AGENT).counts["decay"] == 1
    assert live(mem)[TOKEN].confidence == pytest.approx(0.8 * 0.95**2)
    assert bank.consolidate(scope=AGENT).steps == []


def test_without_vectors_the_words_decide(clock: Clock) -> None:
    with opened(embedder=None, clock=clock) as mem:
        learn(mem, TOKEN, confidence=0.9, usage_count=60)
        learn(mem, TOKEN_AGAIN)
        learn(mem, "Send the token of the login form with the request.")
        counts = ReasoningBank(mem, scope=AGENT).consolidate().counts
        assert {name: n for name, n in counts.items() if n} == {"merge": 1, "promote": 1}


def test_what_others_change_meanwhile_is_left_to_the_next_run(
    mem: Memory, bank: ReasoningBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = learn(mem, TOKEN), learn(mem, TOKEN_AGAIN)

    def used_meanwhile(*_: Any) -> list[Any]:
        mem.edit(second, scope=AGENT, confidence=0.7)
        return []

    with monkeypatch.context() as patch:
        patch.setattr(consolidate, "_near", used_meanwhile)
        assert bank.consolidate().steps == []
    assert bank.consolidate().counts == {"merge": 1}
    assert mem.get(first, scope=AGENT).state == "superseded"


def test_what_waits_for_a_question_that_is_gone_is_free_again(mem: Memory, bank: ReasoningBank) -> None:
    first, second = learn(mem, RETRY), learn(mem, NEVER)
    bank.consolidate()
    mem.forget(scope=AGENT, ids=[first])
    assert bank.reviews.questions() == []
    assert bank.consolidate().counts == {"free": 1}
    assert mem.get(second, scope=AGENT).state == "active"


# -- by itself, as a job, and several at once --

LOGIN = "When the login form has a CSRF token, read it first and send it with the POST"


def added(mem: Memory) -> bool:
    with mem.engine.store.transact() as tx:
        return Consolidator(Parts(mem, AGENT, "mask")).added(tx, PARTITION, 1)


def test_every_so_many_new_entries_a_job_consolidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidate, "EVERY", 3)
    with opened(tmp_path / "memory.db") as mem:
        ReasoningBank(mem, scope=AGENT)
        queued = []
        for number in range(7):
            learn(mem, LOGIN + "." * number)
            queued.append(added(mem))
        assert queued == [False, False, True, False, False, True, False]
        assert [job.kind for job in mem.jobs.list(scope=AGENT, state="queued")] == ["consolidate"] * 2
        assert mem.jobs.run() == 2
        assert [job.result for job in reversed(mem.jobs.list(scope=AGENT, state="done"))] == [{"merge": 6}, {}]
        assert len(live(mem)) == 1


def test_a_memory_without_a_bank_leaves_the_job_to_one_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidate, "EVERY", 1)
    with opened(tmp_path / "memory.db") as mem:
        assert added(mem)
        assert mem.jobs.run() == 0
        bank = ReasoningBank(mem, scope=AGENT)
        assert bank.run_due() == 1
        assert bank.run_due() == 0
