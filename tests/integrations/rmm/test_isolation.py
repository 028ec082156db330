"""One agent for everyone: whatever they say, in whatever order, nobody is shown what another said."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from integrations.rmm.world import Parts, agent_of, ask, scripted, shown
from wellworn import Memory
from wellworn.integrations.langchain import RMMMiddleware

USERS = ["ada", "a.da", "a/da", "a%2Eda", "ädä@example.com", "ADA", "ada ", "аda", "x" * 200, "x" * 199 + "y", "%", "."]
"""Alike, and with every sign that a namespace or a path might stumble over."""

Step = tuple[int, int, bool]
"""Who says something, in which of their threads, and whether that session ends with it."""
STEPS = st.lists(st.tuples(st.integers(0, len(USERS) - 1), st.integers(0, 1), st.booleans()), min_size=2, max_size=14)
relaxed = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def word_of(who: int) -> str:
    """A word that only this person says."""
    return "secret" + "abcdefghijklmnop"[who]


def played(agent: Any, model: Any, steps: list[Step]) -> int:
    """Everyone says their word; how often a memory was shown. No prompt holds another's."""
    seen = 0
    for who, which, ends in steps:
        before = len(model.seen)
        ask(
            agent,
            f"My word is {word_of(who)}, remember the word.",
            user=USERS[who],
            on=f"{who}-{which}",
            is_session_end=ends,
        )
        for prompt in model.seen[before:]:
            everything = " ".join(str(message.content) for message in prompt)
            others = [word_of(one) for one in range(len(USERS)) if one != who]
            assert not any(other in everything for other in others)
            seen += len(shown(prompt))
    return seen


@given(steps=STEPS)
@relaxed
def test_nobody_sees_anothers_memories(steps: list[Step]) -> None:
    with Memory.open(":memory:", background=False, embedder="hash") as memory:
        model = scripted("Yes. [0]")
        played(agent_of(model, RMMMiddleware(memory)), model, steps)


def finds_the_word(messages: list[BaseMessage]) -> str:
    text = str(messages[-1].content)
    if "history_summaries" in text:
        return "0: Add()"
    word = next(word_of(one) for one in range(len(USERS)) if word_of(one) in text)
    return f'{{"extracted_memories": [{{"summary": "The user has the word {word}.", "reference": [0]}}]}}'


@given(steps=STEPS)
@relaxed
def test_nor_on_parts_that_all_share(steps: list[Step]) -> None:
    parts = Parts(model=scripted(finds_the_word))
    model = scripted("Yes. [0]")
    played(agent_of(model, parts.middleware()), model, steps)
    for who, user in enumerate(USERS):
        assert all(word_of(who) in text for text in parts.texts(user))


def test_the_play_shows_memories_at_all() -> None:
    """What is proved above would be easy for a bank that finds nothing."""
    steps: list[Step] = [(0, 0, True), (1, 0, True), (0, 1, False), (1, 1, False)]
    with Memory.open(":memory:", background=False, embedder="hash") as memory:
        model = scripted("Yes. [0]")
        assert played(agent_of(model, RMMMiddleware(memory)), model, steps) > 0
    parts, model = Parts(model=scripted(finds_the_word)), scripted("Yes. [0]")
    assert played(agent_of(model, parts.middleware()), model, steps) > 0
