"""What a consolidation does to a bank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from contract.builders import make_entry
from memory.world import NOON
from tasks.consolidation_world import (
    AGENT,
    PARTITION,
    Clock,
    ReasoningBank,
    TableEmbedder,
    learn,
    live,
    opened,
    standing,
)
from wellworn import Memory
from wellworn.core.values import Entry, Kind
from wellworn.ingest.terms import record_of
from wellworn.store.port import NewEntry, Selection
from wellworn.tasks import consolidate
from wellworn.tasks.consolidate import Consolidator, contradiction, duplicates
from wellworn.tasks.engine import Parts
from wellworn.tasks.items import domain_tags

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


# -- whatever a bank holds: what a consolidation never does to it ------------------------------------------------------

SENTENCES = (
    "retry the request after a refusal",
    "never retry the request after a refusal",
    "wait 2 seconds before a request",
    "wait 9 seconds before a request",
    "enable the cache for the import",
    "disable the cache for the import",
    "open the cart, then apply the code",
    "sort the list by price",
    "avoid the search field of the shop",
)


@st.composite
def drawn_entry(draw: st.DrawFn, number: int) -> tuple[Entry, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    place = draw(st.integers(0, len(SENTENCES) - 1))
    kind: Kind = draw(st.sampled_from(["strategy", "guardrail"]))
    nudge = draw(st.integers(0, 3))
    vector = np.zeros(16, dtype=np.float32)
    vector[place // 2], vector[8 + nudge] = 1.0, 0.1 * nudge  # two of a pair of sentences are alike; so are nudges
    sure, used = draw(st.sampled_from([0.2, 0.5, 0.6, 0.75, 0.9])), draw(st.sampled_from([0, 1, 7, 60]))
    created = NOON - timedelta(days=draw(st.sampled_from([0, 40, 200])))
    entry = make_entry(
        str(UUID(int=number + 1)),
        partition=PARTITION,
        kind=kind,
        text=f"{SENTENCES[place]}{'.' * number}",
        tags=domain_tags(draw(st.sampled_from(["web", "web.shop"]))),
        evidence=f"evidence {number}",
        confidence=sure,
        usage_count=used,
        success_count=min(used, draw(st.integers(0, 5))),
        failure_count=draw(st.integers(0, 3)),
        at=created,
        content_hash=f"{number:032x}",
    )
    return entry, np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


@st.composite
def banks(draw: st.DrawFn) -> list[tuple[Entry, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]:
    return [draw(drawn_entry(number)) for number in range(draw(st.integers(0, 14)))]


Bank = Sequence[tuple[Entry, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]


def filled(bank: Bank) -> Memory:
    mem = opened(embedder=TableEmbedder({}), clock=Clock(NOON))
    with mem.engine.store.transact() as tx:
        for entry, vector in bank:
            tx.add(NewEntry(entry=entry, index=record_of(entry), vector=vector))
    return mem


def totals(mem: Memory) -> list[int]:
    """What the entries that still count, and those that lost a contradiction or were pruned, were used in all."""
    entries = [entry for _, entry in mem.engine.store.select([PARTITION], Selection(), limit=1000)]
    folded = {id for entry in entries for id in entry.metadata.get("merged", [])}
    counted = [entry for entry in entries if entry.id not in folded]
    return [
        sum(getattr(entry, name) for entry in counted) for name in ("usage_count", "success_count", "failure_count")
    ]


@given(bank=banks(), seed=st.integers(0, 1000))
def test_whatever_a_bank_holds(bank: Bank, seed: int) -> None:
    """A second run finds nothing, counts are conserved, evidence is kept, and the order of entries does not matter."""
    shuffled = [bank[place] for place in np.random.default_rng(seed).permutation(len(bank))]
    with filled(bank) as mem, filled(shuffled) as other:
        before = totals(mem)
        run = ReasoningBank(mem, scope=AGENT).consolidate()
        assert totals(mem) == before
        entries = {entry.id: entry for _, entry in mem.engine.store.select([PARTITION], Selection(), limit=1000)}
        for entry in entries.values():
            for id in entry.metadata.get("merged", []):
                assert set(entries[id].evidence.split("\n")) <= set(entry.evidence.split("\n"))
        after = standing(mem)
        assert ReasoningBank(mem, scope=AGENT).consolidate().steps == []
        assert standing(mem) == after
        assert ReasoningBank(other, scope=AGENT).consolidate().counts == run.counts
        assert standing(other) == after


# -- how two pieces of advice compare ----------------------------------------------------------------------------------


def entry(text: str, kind: Kind = "strategy") -> Entry:
    return replace(make_entry("one"), text=text, kind=kind)


def same(one: str, other: str) -> bool:
    a, b = entry(one), entry(other)
    assert duplicates(a, b) == duplicates(b, a)
    return duplicates(a, b)


FAMILIES: dict[str, list[str]] = {
    "Set the timeout of the export job to {} before it is started.": ["30", "90", "1.5", "30s"],
    "For tasks like “Post it”: This worked: login() → post(format={}).": ['"json"', '"xml"', "3"],
    "Run {} before every commit to the main branch.": ["`npm test`", "`yarn test`", "make", "tox", "./check.sh"],
    "Write the report to {} after the import has finished.": ["/var/a/daily.csv", "/var/a/weekly.csv", "out.csv"],
    "Send the invoice to {} when the order is shipped.": ["Ada", "Bob", "Grace Hopper", "ops@shop.org"],
    "Use the {} flag when the push is rejected.": ["--force", "--dry-run", "-u"],
    "Set {} before the worker is started again.": ["LOG_LEVEL=debug", "LOG_LEVEL=info", "maxRetries"],
    "Use {} instead of the old endpoint.": ["/v2/users", "/v3/users"],
}
SAME = [
    ("Retry the upload when the connection drops.", "Always retry the upload if the connection drops!"),
    ("Always validate the address before saving it.", "Validate addresses before they are saved."),
    ("Read the token and send it with the POST.", "Read the token and send it along with the POST request."),
    ("Extract CSRF token from form", "Parse CSRF token from HTML"),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_advice_that_differs_in_an_argument_is_never_the_same_however_near(family: str) -> None:
    texts = [family.format(argument) for argument in FAMILIES[family]]
    assert not [pair for pair in combinations(texts, 2) if same(*pair)]
    assert all(same(text, text.replace("the", "a")) for text in texts)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_advice_in_other_words(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Send the date as day, month, year.", "Send the date as year, month, day."),
        ("Use cursors instead of offsets.", "Use offsets instead of cursors."),
        ("Submit it when the click has no effect.", "Submit it when the click has an effect."),
        ("Always retry the upload.", "Never retry the upload."),
    ],
)
def test_order_conditions_and_polarity_keep_advice_apart(one: str, other: str) -> None:
    assert not same(one, other)


CONTRADICTING = [
    ("Always retry the request after a 429 response.", "Never retry the request after a 429 response.", "negation"),
    ("Submit the form with cookies enabled.", "Submitting the form with cookies enabled failed.", "negation"),
    ("Enable the cache before the import.", "Disable the cache before the import.", "exclusive"),
    ("Scale up the workers at night.", "Scale down the workers at night.", "exclusive"),
    ("Run the tests before the merge.", "Run the tests after the merge.", "exclusive"),
    ("Opt in to the beta channel.", "Opt out of the beta channel.", "exclusive"),
    ("Release the build on Monday.", "Release the build on Friday.", "exclusive"),
    ("Always cache API responses", "Never cache authentication responses", "negation"),  # the design's own example
    ("Always encrypt the nightly backups.", "Never encrypt local backups.", "negation"),
]
AGREEING = [
    ("Always confirm the order in the shop.", "Never confirm the newsletter in the shop."),
    ("Release the build on Monday.", "Send the report on Friday."),
    ("Ship the parcel on Monday morning.", "Ship the parcel on Friday evening after a call."),
    ("Use cursors instead of offsets for lists.", "Use offsets instead of cursors for lists."),  # it cannot tell
    ("Never disable the cache before the import.", "Always enable the cache before the import."),
    ("Wait 2 seconds when the service answers 429.", "Wait 2 seconds when the service answers 503."),
    ("Run the tests before the merge.", "Do not merge before the tests were run."),
]


@pytest.mark.parametrize(("one", "other", "why"), CONTRADICTING)
def test_advice_that_cannot_both_be_right(one: str, other: str, why: str) -> None:
    assert contradiction(entry(one), entry(other)) == contradiction(entry(other), entry(one)) == why
    assert not same(one, other)


@pytest.mark.parametrize(("one", "other"), AGREEING)
def test_advice_that_can(one: str, other: str) -> None:
    assert contradiction(entry(one), entry(other)) == contradiction(entry(other), entry(one)) == ""


def test_a_strategy_and_a_guardrail_about_the_same_contradict_by_their_outcomes() -> None:
    did = entry("Submit the order twice.")
    assert contradiction(did, entry("Submit the order twice.", "guardrail")) == "outcome"
    assert contradiction(did, entry("Always submit the order twice.", "guardrail")) == ""


@pytest.mark.parametrize(("half", "precision", "recall"), [("seen", 1.0, 0.6), ("held", 0.9, 0.4)])
def test_contradictions_among_labelled_pairs_are_found(half: str, precision: float, recall: float) -> None:
    """The rules were written on the first half. The bounds are what was measured, rounded down."""
    rows = yaml.safe_load((Path(__file__).parent / "advice_pairs" / f"{half}.yaml").read_text(encoding="utf-8"))
    there = [row["is"] in ("negation", "exclusive", "outcome") for row in rows]
    found = [
        bool(
            contradiction(entry(row["one"]), entry(row["other"], "guardrail" if row["is"] == "outcome" else "strategy"))
        )
        for row in rows
    ]
    right = sum(a and b for a, b in zip(there, found, strict=True))
    assert right / sum(found) >= precision
    assert right / sum(there) >= recall
