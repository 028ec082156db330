"""session().add: raw dialogue as ground truth, each turn an episode that can be recalled at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory.world import ADA, BEN, NOON, Clock, OpenMemory, texts
from wellworn import InvalidInput, Memory
from wellworn.ingest.session import missing_turns


def test_turns_count_from_zero_and_are_recallable_at_once(mem: Memory) -> None:
    session = mem.session(scope=ADA, session_id="2026-05-01")
    said = ["I ran the charity race on Saturday", "The race was in the news", "Ten kilometres in the rain"]
    for number, text in enumerate(said):
        entry_id = session.add("user" if number != 1 else "assistant", text)
        entry = mem.get(entry_id, scope=ADA)
        assert (entry.kind, entry.session_id, entry.turn_refs) == ("episode", "2026-05-01", [number])
        assert entry_id in [hit.entry.id for hit in mem.recall(text, scope=ADA).hits]
    assert [(turn.number, turn.role, turn.text) for turn in session.turns()] == [
        (0, "user", said[0]),
        (1, "assistant", said[1]),
        (2, "user", said[2]),
    ]
    assert mem.verify().ok


def test_turns_of_another_system_are_written_once_though_two_found_them_missing(mem: Memory) -> None:
    session, store = mem.session(scope=ADA, session_id="s"), mem.engine.store
    drafts = {"there-1": session.writer.draft("user", "I live in Oslo.")}
    for new in [missing_turns(session, store, ADA.home(), drafts) for _ in range(2)]:
        session.writer.write(session.writer.ready(new))
    assert [turn.text for turn in session.turns()] == ["I live in Oslo."]


def test_the_same_words_said_twice_are_two_episodes(mem: Memory) -> None:
    sessions = [mem.session(scope=ADA, session_id=name) for name in ("s", "s", "t")]
    ids = [session.add("user", "two sugars, please") for session in sessions]
    assert len(set(ids)) == 3
    assert [mem.get(entry_id, scope=ADA).turn_refs for entry_id in ids] == [[0], [1], [0]]
    assert len(mem.recall("two sugars please", scope=ADA).hits) == 3
    assert mem.verify().ok


def test_a_session_is_continued_where_it_was_left(path: Path, opened: OpenMemory) -> None:
    first = opened(path)
    first.session(scope=ADA, session_id="s").add("user", "first words")
    second = opened(path)
    continued = second.session(scope=ADA, session_id="s")
    second_id = continued.add("assistant", "second words")
    first.close()
    third = opened(path)
    third_id = third.session(scope=ADA, session_id="s").add("user", "third words")
    assert [third.get(i, scope=ADA).turn_refs for i in (second_id, third_id)] == [[1], [2]]
    assert [turn.text for turn in continued.turns()] == ["first words", "second words", "third words"]
    assert third.verify().ok


def test_sessions_of_the_same_name_belong_to_their_person_and_are_listed_oldest_first(mem: Memory) -> None:
    for name in ("b", "a", "c"):
        mem.session(scope=ADA, session_id=name).add("user", f"hello {name}")
    mem.session(scope=ADA, session_id="never used")
    bens = mem.session(scope=BEN, session_id="b")
    assert mem.get(bens.add("user", "ben speaking"), scope=BEN).turn_refs == [0]
    assert [turn.text for turn in bens.turns()] == ["ben speaking"]
    assert (mem.sessions(scope=ADA), mem.sessions(scope=BEN)) == (["b", "a", "c"], ["b"])


def test_a_turn_knows_when_it_was_said_and_by_whom(mem: Memory, clock: Clock) -> None:
    session = mem.session(scope=ADA, session_id="s")
    session.add("user", "said before", at="2023-05-08T13:56", speaker="Caroline")
    session.add("Melanie", "said just now")
    session.add("assistant", "and this is nobody")
    first, second, third = session.turns()
    assert (first.at.isoformat(), first.speaker) == ("2023-05-08T13:56:00+00:00", "Caroline")
    assert (second.at, second.speaker, second.role) == (NOON, "Melanie", "Melanie")
    assert third.speaker is None
    assert mem.get(first.entry_id or "", scope=ADA).at == first.at


def test_a_session_is_touched_when_a_turn_is_added_whenever_that_was_said(mem: Memory, clock: Clock) -> None:
    session = mem.session(scope=ADA, session_id="s")
    session.add("user", "last year I moved", at="2025-01-01")
    added = clock.forward(hours=1)
    session.add("user", "and in ten years I will retire", at="2036-01-01")
    head = mem.engine.store.session(ADA.home(), "s")
    assert head is not None
    assert (head.turns, head.reflected, head.touched_at, head.ended_at) == (2, 0, added, None)


def test_a_turn_dated_ahead_of_the_clock_is_recallable_at_once(mem: Memory) -> None:
    mem.session(scope=ADA, session_id="s").add("user", "posted from tomorrow", at="2026-05-02")
    assert texts(mem, "posted from tomorrow", ADA) == ["posted from tomorrow"]


def test_a_turn_stays_verbatim_when_its_episode_is_edited(mem: Memory) -> None:
    session = mem.session(scope=ADA, session_id="s")
    entry_id = session.add("user", "  spaced\n words, as typed ")
    mem.edit(entry_id, scope=ADA, text="tidied words")
    assert session.turns()[0].text == "  spaced\n words, as typed "
    assert mem.get(entry_id, scope=ADA).evidence == "  spaced\n words, as typed "
    assert mem.verify().ok


def test_a_turn_points_at_its_episode_even_when_that_was_there_before(mem: Memory) -> None:
    (before,) = mem.remember("hello there friend", scope=ADA, kind="episode", session_id="s", turn_refs=[0])
    session = mem.session(scope=ADA, session_id="s")
    entry_id = session.add("user", "hello there friend")
    assert [turn.entry_id for turn in session.turns()] == [entry_id]
    mem.forget(scope=ADA, ids=list({entry_id, before}), turns=True)
    assert session.turns() == []


@pytest.mark.parametrize("bad", ["   ", None, "a\x00b"])
def test_a_bad_turn_changes_nothing(mem: Memory, bad: Any) -> None:
    session = mem.session(scope=ADA, session_id="s")
    session.add("user", "fine")
    for role, text, tags in ((bad, "words", ()), ("user", bad, ()), ("user", "words", "rust")):
        with pytest.raises(InvalidInput):
            session.add(role, text, tags=tags)
    with pytest.raises(InvalidInput):
        mem.session(scope=ADA, session_id=bad).add("user", "words")
    assert [turn.text for turn in session.turns()] == ["fine"]
    session.add("user", "next", tags=["rust", "work"])
    assert session.turns()[-1].number == 1
