"""Whatever a model answers, memory stays sound: what is there is kept, what is added has its evidence."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wellworn import Memory, Scope
from wellworn.core.values import Entry
from wellworn.models import ScriptedModel

ADA = Scope(tenant="acme", user="ada")
EVE = Scope(tenant="other", user="ada")
SAID = [
    "I live in Berlin with my cat Momo.",
    "Oh, nice!",
    "I work as a nurse and I paid 40 euros.",
    "My sister is Mia.",
]
KNOWN = ["Ada lives in Hamburg.", "Ada has a cat called Momo.", "Ada's sister is called Mia."]
KINDS = ["fact", "preference", "pattern"]

_WORDS = st.sampled_from(
    [*" ".join(SAID + KNOWN).split(), "Ignore", "instructions", "DROP", "TABLE", "\x00", "\ud800", "9999"]
)
_SENTENCE = st.lists(_WORDS, max_size=14).map(" ".join)
_SUMMARY = st.one_of(_SENTENCE, st.sampled_from([*SAID, *KNOWN]), st.just("x" * 5000), st.integers(), st.none())
_REFERENCE = st.one_of(
    st.lists(st.integers(-3, 9), max_size=4),
    st.integers(-2, 99),
    st.text(max_size=8),
    st.none(),
    st.recursive(st.integers(0, 5), lambda inner: st.lists(inner, max_size=3), max_leaves=8),
)
_ITEM = st.one_of(
    st.fixed_dictionaries({"summary": _SUMMARY, "reference": _REFERENCE}),
    st.fixed_dictionaries({"summary": _SUMMARY}),
    st.dictionaries(st.text(max_size=6), st.text(max_size=6), max_size=3),
    st.text(max_size=10),
)


@st.composite
def _extraction(draw: st.DrawFn) -> str:
    """An answer of the right shape, then broken: cut off, wrapped, fenced, quoted wrongly, or not JSON at all."""
    value: Any = {"extracted_memories": draw(st.lists(_ITEM, max_size=5))}
    value = draw(st.sampled_from([value, value["extracted_memories"], {"memories": value}, [[value]]]))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), default=str)
    text = text * draw(st.sampled_from([1, 1, 1, 2, 40]))
    how = draw(st.sampled_from(["plain", "cut", "prose", "fence", "quotes", "comma", "noise", "nothing"]))
    if how == "cut":
        return text[: draw(st.integers(0, len(text)))]
    return {
        "plain": text,
        "prose": f"Sure! Here you are:\n{text}\nHope this helps.",
        "fence": f"```json\n{text}\n```",
        "quotes": text.replace('"', "'"),
        "comma": text.replace("}", ",}"),
        "noise": draw(st.text(max_size=80)),
        "nothing": draw(st.sampled_from(["NO_TRAIT", "", " ", "null", "[]", "{}", "NO_TRAIT and " + text])),
    }[how]


_NAME = st.sampled_from(["Merge", "Add", "Supersede", "Correct", "Delete"])
_ACTION = st.one_of(
    st.builds('{}: {}({}, "{}")'.format, st.integers(-1, 9), _NAME, st.integers(-1, 9), _SENTENCE),
    st.builds("{}({})".format, _NAME, st.integers(-1, 9)),
    st.text(max_size=30),
)
_ACTIONS = st.lists(_ACTION, max_size=6).map("\n".join)


@given(extraction=_extraction(), actions=_ACTIONS)
def test_no_answer_of_a_model_corrupts_memory(extraction: str, actions: str) -> None:
    model = ScriptedModel({"extract": extraction, "update": actions})
    with Memory.open(":memory:", embedder="hash", llm=model, background=False) as mem:
        known = mem.remember_many(KNOWN, scope=ADA, kind="fact")
        foreign = mem.remember_many(KNOWN, scope=EVE, kind="fact")
        session = mem.session(scope=ADA, session_id="monday")
        for number, text in enumerate(SAID):
            session.add("user" if number % 2 == 0 else "assistant", text)
        before = [mem.get(id, scope=EVE) for id in foreign]
        mem.reflect(scope=ADA)
        assert [turn.text for turn in session.turns()] == SAID
        assert [mem.get(id, scope=EVE) for id in foreign] == before
        for id in known:  # nothing is gone: superseded or corrected at most, its first text in its history
            assert mem.history(id, scope=ADA)[0].text in KNOWN
        for entry in mem.entries(scope=ADA, kind=KINDS):  # type: ignore[arg-type]
            if entry.id not in known:
                _check_rests_on_the_session(entry)
        assert mem.verify().ok
        assert mem.reflect(scope=ADA) == []


def _check_rests_on_the_session(entry: Entry) -> None:
    assert entry.session_id == "monday"
    assert set(entry.turn_refs) <= set(range(len(SAID)))
    assert entry.turn_refs
    for line in entry.evidence.splitlines():
        assert any(line.endswith(text) for text in SAID)
    assert len(entry.text) <= 600
    assert "\x00" not in entry.text
