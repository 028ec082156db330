"""Questions that people decide: each decision does what it says, once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tasks.consolidation_world import AGENT, Clock, ReasoningBank, learn, live, opened
from wellworn import InvalidInput, Memory, NotFound

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


def test_keeping_one_ends_the_other(mem: Memory, bank: ReasoningBank, pair: tuple[str, str, str]) -> None:
    first, second, key = pair
    bank.reviews.decide(key, "keep_one", keep=second, scope=AGENT)
    assert mem.get(second, scope=AGENT).state == "active"
    assert mem.get(first, scope=AGENT).state == "superseded"
    assert any((link.source, link.type) == (second, "supersedes") for link in mem.links(first, scope=AGENT))
    assert mem.verify().ok


def test_a_decided_question_cannot_be_decided_again(
    mem: Memory, bank: ReasoningBank, pair: tuple[str, str, str]
) -> None:
    bank.reviews.decide(pair[2], "keep_both", scope=AGENT)
    with pytest.raises(InvalidInput, match="is not open"):
        bank.reviews.decide(pair[2], "keep_one", keep=pair[0], scope=AGENT)


@pytest.mark.parametrize(
    ("decision", "more", "says"),
    [
        ("maybe", {}, "keep_both"),
        ("keep_one", {}, "give one of"),
        ("merge", {}, "keep_one"),
        ("keep_one", {"keep": "x"}, "not in this review"),
        ("correct", {}, "does not answer"),
    ],
)
def test_a_decision_that_does_not_fit_changes_nothing(
    mem: Memory, bank: ReasoningBank, pair: tuple[str, str, str], decision: str, more: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        bank.reviews.decide(pair[2], decision, scope=AGENT, keep=more.get("keep"))
    assert len(bank.reviews.questions(scope=AGENT)) == 1
    assert {entry.state for entry in live(mem).values()} == {"flagged"}


def test_an_unknown_question_is_not_found(bank: ReasoningBank) -> None:
    with pytest.raises(NotFound):
        bank.reviews.decide("nobody asked", "keep_both", scope=AGENT)


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


def test_a_question_goes_with_what_it_is_about(mem: Memory, bank: ReasoningBank, pair: tuple[str, str, str]) -> None:
    mem.forget(scope=AGENT, ids=[pair[0]])
    assert bank.reviews.questions(scope=AGENT) == []
    with pytest.raises(NotFound):
        bank.reviews.decide(pair[2], "keep_both", scope=AGENT)
