"""Questions that people decide: each decision does what it says, once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tasks.consolidation_world import AGENT, Clock, ReasoningBank, learn, live, opened
from wellworn import InvalidInput, Memory, NotFound, Scope

RETRY, NEVER = "Always retry the request after a 429 response.", "Never retry the request after a 429 response."
TOKEN = "When the login form has a CSRF token, read it first and send it with the POST."


@pytest.fixture
def mem(clock: Clock) -> Iterator[Memory]:
    with opened(clock=clock) as memory:
        yield memory


@pytest.fixture
def bank(mem: Memory) -> ReasoningBank:
    return ReasoningBank(mem, scope=AGENT)


@pytest.fixture
def pair(mem: Memory, bank: ReasoningBank, clock: Clock) -> tuple[str, str, str]:
    """Two that contradict each other, and the key of the question."""
    first = learn(mem, RETRY, confidence=0.6, usage_count=4, evidence="it came through")
    second = learn(mem, NEVER, confidence=0.5, usage_count=2, evidence="it was banned")
    clock.forward(hours=1)
    bank.consolidate(scope=AGENT)
    [review] = bank.reviews.questions(scope=AGENT)
    return first, second, review.key


def test_keeping_both_makes_them_active_and_is_not_asked_again(
    mem: Memory, bank: ReasoningBank, pair: tuple[str, str, str]
) -> None:
    bank.reviews.decide(pair[2], "keep_both", scope=AGENT)
    assert {entry.state for entry in live(mem).values()} == {"active"}
    assert bank.reviews.questions(scope=AGENT) == []
    assert bank.consolidate(scope=AGENT).steps == []
    with pytest.raises(InvalidInput, match="is not open"):
        bank.reviews.decide(pair[2], "keep_one", keep=pair[0], scope=AGENT)


def test_keeping_one_ends_the_other(mem: Memory, bank: ReasoningBank, pair: tuple[str, str, str]) -> None:
    first, second, key = pair
    bank.reviews.decide(key, "keep_one", keep=second, scope=AGENT)
    assert mem.get(second, scope=AGENT).state == "active"
    assert mem.get(first, scope=AGENT).state == "superseded"
    assert any((link.source, link.type) == (second, "supersedes") for link in mem.links(first, scope=AGENT))
    assert mem.verify().ok


@pytest.mark.parametrize(
    ("decision", "more", "says"),
    [("maybe", {}, "keep_both"), ("keep_one", {"keep": "x"}, "give one of"), ("correct", {}, "does not answer")],
)
def test_a_decision_that_does_not_fit_changes_nothing(
    mem: Memory, bank: ReasoningBank, pair: tuple[str, str, str], decision: str, more: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        bank.reviews.decide(pair[2], decision, scope=AGENT, keep=more.get("keep"))
    assert len(bank.reviews.questions(scope=AGENT)) == 1
    assert {entry.state for entry in live(mem).values()} == {"flagged"}


def test_ending_an_entry_settles_the_other_questions_about_it(mem: Memory, bank: ReasoningBank) -> None:
    once, twice = learn(mem, NEVER), learn(mem, "Never retry the request a second time after a 429 response.")
    retry = learn(mem, RETRY)
    bank.consolidate(scope=AGENT)
    reviews = {review.key: review for review in bank.reviews.questions(scope=AGENT)}
    assert len(reviews) == 2
    bank.reviews.decide(next(key for key in reviews if once in key), "keep_one", keep=once, scope=AGENT)
    assert mem.get(retry, scope=AGENT).state == "superseded"
    assert mem.get(twice, scope=AGENT).state == "active"
    assert bank.reviews.questions(scope=AGENT) == []


@pytest.mark.parametrize(
    ("verdict", "state", "confidence"),
    [("correct", "active", 0.9), ("incorrect", "pruned", 0.5), ("partial", "active", 0.6)],
)
def test_a_verdict_on_what_is_often_used_and_little_trusted(
    mem: Memory, bank: ReasoningBank, verdict: str, state: str, confidence: float
) -> None:
    id = learn(mem, TOKEN, confidence=0.5, usage_count=8)
    bank.consolidate(scope=AGENT)
    [review] = bank.reviews.questions(scope=AGENT)
    assert "Used 8 times" in review.question
    text = "Read the token of the login form and send it along." if verdict == "partial" else None
    bank.reviews.decide(review.key, verdict, text=text, scope=AGENT)
    entry = mem.get(id, scope=AGENT)
    assert (entry.state, entry.confidence) == (state, confidence)
    assert entry.text == (text or TOKEN)
    assert bank.consolidate(scope=AGENT).steps == []


def test_better_words_pass_the_scrubber(bank: ReasoningBank) -> None:
    with opened(scrubber=lambda text: text.replace("secret", "[GONE]")) as mem:
        own = ReasoningBank(mem, scope=AGENT)
        id = learn(mem, TOKEN, confidence=0.5, usage_count=8)
        own.consolidate(scope=AGENT)
        own.reviews.decide(id, "partial", text="Send the secret token along.", scope=AGENT)
        assert mem.get(id, scope=AGENT).text == "Send the [GONE] token along."


# -- levels of memory, and walks over links --


def test_the_multi_hop_example_of_the_design(mem: Memory, bank: ReasoningBank) -> None:
    login = learn(mem, "Login requires a CSRF token.")
    token = learn(mem, "The CSRF token is extracted from the form.")
    parse = learn(mem, "Parse the form with the HTML parser.")
    mem.link(login, token, "requires", scope=AGENT, confidence=0.9)
    mem.link(token, parse, "requires", scope=AGENT, confidence=0.8)
    paths = bank.graph.walk(login, scope=AGENT, hops=2)
    assert [(path.entry.id, path.types, path.confidence) for path in paths] == [
        (token, ("requires",), 0.9),
        (parse, ("requires", "requires"), pytest.approx(0.72)),
    ]
    assert [path.entry.id for path in bank.graph.walk(login, scope=AGENT, hops=1)] == [token]
    assert bank.graph.walk(parse, scope=AGENT) == []  # links are followed the way they point


def test_of_two_ways_the_surer_is_told_and_a_ring_ends(mem: Memory, bank: ReasoningBank) -> None:
    a, b, c = (learn(mem, f"Step {name} of the way.") for name in ("one", "two", "three"))
    mem.link(a, c, "enables", scope=AGENT, confidence=0.3)
    mem.link(a, b, "entails", scope=AGENT, confidence=0.9)
    mem.link(b, c, "refines", scope=AGENT, confidence=0.9)
    mem.link(c, a, "requires", scope=AGENT)
    found = {path.entry.id: path for path in bank.graph.walk(a, scope=AGENT, hops=8)}
    assert set(found) == {b, c}
    assert found[c].types == ("entails", "refines")


def test_a_walk_stays_in_its_scope(mem: Memory, bank: ReasoningBank) -> None:
    mine = learn(mem, "Read the row.")
    shared = Scope(tenant="acme", agent="solver", team="ops")
    teams = learn(mem, "Rows begin at one.", scope=shared, layer="team")
    mem.link(mine, teams, "requires", scope=shared)
    assert [path.entry.id for path in bank.graph.walk(mine, scope=shared)] == [teams]
    assert bank.graph.walk(mine, scope=Scope(tenant="acme", agent="solver")) == []
    with pytest.raises(NotFound):
        bank.graph.walk(mine, scope=Scope(tenant="acme", agent="other"))


def test_a_walk_has_at_least_one_hop(mem: Memory, bank: ReasoningBank) -> None:
    with pytest.raises(InvalidInput, match="hops"):
        bank.graph.walk(learn(mem, "Read the row."), scope=AGENT, hops=0)


def test_levels_by_age_and_by_promotion(mem: Memory, bank: ReasoningBank, clock: Clock) -> None:
    old = learn(mem, "Old advice about menus.")
    clock.forward(days=20)
    working = learn(mem, "Advice about tables.")
    clock.forward(days=20)
    recent = learn(mem, "Advice about dates.")
    proven = learn(mem, "Prices are shown without tax.", confidence=0.9, usage_count=51)
    meta = learn(mem, "Numbers are shown the short way.", confidence=0.9, usage_count=51)
    for other in (old, working):
        mem.link(meta, other, "entails", scope=AGENT)
    bank.consolidate(scope=AGENT)
    levels = bank.graph.levels(scope=AGENT)
    found = {view: [entry.id for entry in entries] for view, entries in levels.items()}
    assert found == {
        "episodic.recent": [recent],
        "episodic.working": [working],
        "episodic.older": [old],
        "semantic.knowledge": [proven],
        "semantic.meta": [meta],
        "procedural.skills": [],
    }
