"""session().add: raw dialogue as ground truth, each turn an episode that can be recalled at once."""

from __future__ import annotations

from pathlib import Path

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
    session = mem.session(scope=ADA, session_id="s")
    other = mem.session(scope=ADA, session_id="t")
    ids = [
        session.add("user", "two sugars, please"),
        session.add("user", "two sugars, please"),
        other.add("user", "two sugars, please"),
    ]
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


def test_two_session_objects_of_one_id_share_the_numbers(mem: Memory) -> None:
    a, b = (mem.session(scope=ADA, session_id="s") for _ in range(2))
    refs = [mem.get(s.add("user", f"words {n}"), scope=ADA).turn_refs for n, s in enumerate((a, b, a, b))]
    assert refs == [[0], [1], [2], [3]]


def test_sessions_of_the_same_name_belong_to_their_person(mem: Memory) -> None:
    mem.session(scope=ADA, session_id="s").add("user", "ada speaking")
    bens = mem.session(scope=BEN, session_id="s")
    entry_id = bens.add("user", "ben speaking")
    assert mem.get(entry_id, scope=BEN).turn_refs == [0]
    assert [turn.text for turn in bens.turns()] == ["ben speaking"]


def test_sessions_are_listed_oldest_first_and_empty_ones_not_at_all(mem: Memory) -> None:
    for name in ("b", "a", "c"):
        mem.session(scope=ADA, session_id=name).add("user", f"hello {name}")
    mem.session(scope=ADA, session_id="never used")
    assert mem.sessions(scope=ADA) == ["b", "a", "c"]
    assert mem.sessions(scope=BEN) == []


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
    mem.forget(scope=ADA, ids=[entry_id, before], turns=True) if entry_id != before else mem.forget(
        scope=ADA, ids=[before], turns=True
    )
    assert session.turns() == []


def test_tags_of_a_turn_are_a_list_and_not_letters(mem: Memory) -> None:
    session = mem.session(scope=ADA, session_id="s")
    entry_id = session.add("user", "I like rust", tags=["rust", "work"])
    assert mem.get(entry_id, scope=ADA).tags == ["rust", "work"]
    with pytest.raises(InvalidInput, match="tags"):
        session.add("user", "I like rust", tags="rust")
    assert len(session.turns()) == 1


@pytest.mark.parametrize("bad", ["", "   ", None, 5, "a\x00b", "x" * 300])
def test_a_bad_turn_changes_nothing(mem: Memory, bad: object) -> None:
    session = mem.session(scope=ADA, session_id="s")
    session.add("user", "fine")
    with pytest.raises(InvalidInput):
        session.add(bad, "words")  # type: ignore[arg-type]
    if bad != "x" * 300:
        with pytest.raises(InvalidInput):
            session.add("user", bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            mem.session(scope=ADA, session_id=bad).add("user", "words")  # type: ignore[arg-type]
    assert [turn.text for turn in session.turns()] == ["fine"]
    assert session.add("user", "next") in [turn.entry_id for turn in session.turns()]
    assert session.turns()[-1].number == 1
