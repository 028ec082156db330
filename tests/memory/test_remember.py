"""remember and remember_many: chunked, deduplicated, atomic."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from memory.world import ADA, BEN, NOON, Clock, OpenMemory, picture
from wellworn import Draft, InvalidInput, Memory, Scope, ScopeError
from wellworn.core.values import Entry
from wellworn.core.wellformed import count_tokens


def prose(paragraphs: int, *, seed: int = 1, sentences: tuple[int, int] = (3, 7)) -> str:
    """Made-up English: sentences of 6 to 18 words, a blank line between paragraphs."""
    dice = random.Random(seed)
    words = [f"w{dice.randrange(10_000)}" if dice.random() < 0.1 else dice.choice(_WORDS) for _ in range(2000)]

    def sentence() -> str:
        return " ".join(dice.choice(words) for _ in range(dice.randint(6, 18))).capitalize() + "."

    return "\n\n".join(" ".join(sentence() for _ in range(dice.randint(*sentences))) for _ in range(paragraphs))


_WORDS = re.findall(r"\w+", "the river ran past a mill where grain was ground and children played under wide old trees")


def test_a_short_text_is_one_entry_with_everything_that_was_said_about_it(mem: Memory) -> None:
    (entry_id,) = mem.remember(
        "Ada prefers tokio over async-std.",
        scope=ADA,
        kind="preference",
        title="Runtimes",
        tags=["rust", "async"],
        session_id="monday",
        turn_refs=[3, 4],
        source="import",
        speaker="Ada",
        confidence=0.6,
        trust="untrusted",
        at="2026-04-01T09:30",
        valid_from="2026-04-01",
        valid_to="2027-04-01",
        metadata={"n": [1, {"deep": None}]},
    )
    entry = mem.get(entry_id, scope=ADA)
    assert (entry.text, entry.kind, entry.title) == ("Ada prefers tokio over async-std.", "preference", "Runtimes")
    assert (entry.tags, entry.session_id, entry.turn_refs) == (["rust", "async"], "monday", [3, 4])
    assert (entry.source, entry.speaker, entry.confidence, entry.trust) == ("import", "Ada", 0.6, "untrusted")
    assert entry.at.isoformat() == "2026-04-01T09:30:00+00:00"
    assert entry.valid_from.isoformat() == "2026-04-01T00:00:00+00:00"
    assert entry.valid_to is not None
    assert entry.valid_to.isoformat() == "2027-04-01T00:00:00+00:00"
    assert entry.metadata == {"n": [1, {"deep": None}]}
    assert entry.evidence == entry.text
    assert entry.token_count == count_tokens(entry.text)
    assert (entry.created_at, entry.updated_at, entry.state) == (NOON, NOON, "active")


def test_the_defaults_are_a_note_that_happened_now(mem: Memory) -> None:
    entry = mem.get(mem.remember("plain words", scope=ADA)[0], scope=ADA)
    assert (entry.kind, entry.at, entry.valid_from, entry.valid_to) == ("note", NOON, NOON, None)
    assert (entry.source, entry.trust, entry.repeats, entry.tags) == ("interaction", "trusted", 0, [])


# -- chunks ------------------------------------------------------------------------------------------------------


def test_the_evidence_of_the_chunks_is_the_text_verbatim(mem: Memory) -> None:
    text = "  \n" + prose(20, seed=3) + "\n\n\t tail \u3000"
    entries = [mem.get(entry_id, scope=ADA) for entry_id in mem.remember(text, scope=ADA)]
    assert "".join(entry.evidence for entry in entries) == text
    assert all(entry.source == "interaction" for entry in entries)


def test_chunks_of_one_text_are_neighbours_in_order(mem: Memory) -> None:
    entries = [mem.get(entry_id, scope=ADA) for entry_id in mem.remember(prose(20, seed=5), scope=ADA)]
    assert len({entry.thread for entry in entries}) == 1
    assert [entry.position for entry in entries] == list(range(len(entries)))


def test_evidence_that_was_given_is_kept_with_every_chunk(mem: Memory) -> None:
    ids = mem.remember(prose(10), scope=ADA, evidence="as she said it")
    assert {mem.get(entry_id, scope=ADA).evidence for entry_id in ids} == {"as she said it"}


# -- repeats -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", ["Ada likes café au lait.", "  Ada likes\n cafe\u0301 au   lait. "])
def test_a_repeat_strengthens_the_entry_and_does_not_duplicate_it(mem: Memory, clock: Clock, again: str) -> None:
    first = mem.remember("Ada likes café au lait.", scope=ADA)
    clock.forward(days=1)
    assert mem.remember(again, scope=ADA) == first
    entry = mem.get(first[0], scope=ADA)
    assert mem.admin.stats(scope=ADA).entries == 1
    assert entry.repeats == 1
    assert entry.confidence == pytest.approx(0.85)
    assert entry.updated_at == clock.now
    assert entry.text == "Ada likes café au lait."
    assert mem.verify().ok


def test_repeats_make_sure_but_never_certain_and_never_less_sure(mem: Memory) -> None:
    for _ in range(20):
        (often,) = mem.remember("said all the time", scope=ADA)
    mem.remember("certain from the start", scope=ADA, confidence=1.0)
    (certain,) = mem.remember("certain from the start", scope=ADA)
    assert mem.get(often, scope=ADA).confidence == pytest.approx(0.95)
    assert mem.get(certain, scope=ADA).confidence == 1.0


def test_a_repeat_adds_what_the_first_did_not_tell(mem: Memory) -> None:
    def told(**given: Any) -> Entry:
        (id,) = mem.remember("Ada rents a flat in Oslo.", scope=ADA, **given)
        return mem.get(id, scope=ADA)

    first = told(trust="untrusted", valid_from="2024-01-01", valid_to="2024-06-01", metadata={"by": "Bo"})
    later = told(valid_from="2023-01-01", valid_to="2025-01-01", metadata={"by": "Cy", "page": 3})
    assert (first.id, later.trust, later.metadata) == (later.id, "trusted", {"by": "Bo", "page": 3})
    assert (later.valid_from.year, later.valid_to and later.valid_to.year, later.at) == (2023, 2025, first.at)
    doubted = told(trust="untrusted", valid_from="2022-01-01")
    assert (doubted.trust, doubted.confidence, doubted.valid_to) == ("trusted", later.confidence, later.valid_to)
    assert doubted.repeats == 2
    assert told(valid_from="2024-01-01").valid_to is None
    assert mem.verify().ok


def test_a_repeat_with_new_tags_adds_them_and_leaves_a_sound_store(mem: Memory) -> None:
    (entry_id,) = mem.remember("the mill by the river burned down", scope=ADA, tags=["mill"])
    mem.remember("the mill by the river burned down", scope=ADA, tags=["fire", "mill"])
    assert mem.get(entry_id, scope=ADA).tags == ["mill", "fire"]
    assert [hit.entry.id for hit in mem.recall("anything", scope=ADA, tags="fire")] == [entry_id]
    assert str(mem.verify()).startswith("no flaws")


def test_a_new_tag_of_a_repeat_is_found_by_its_word(opened: OpenMemory, location: str) -> None:
    mem = opened(location, embedder=None)
    (entry_id,) = mem.remember("the mill burned down", scope=ADA, tags=["mill"])
    mem.remember("the mill burned down", scope=ADA, tags=["catastrophe"])
    (hit,) = mem.recall("catastrophe", scope=ADA).hits
    assert hit.entry.id == entry_id
    assert hit.factors["terms"] > 0


def test_repeats_cannot_pile_up_more_tags_than_an_entry_may_have(mem: Memory) -> None:
    for number in range(5):
        (entry_id,) = mem.remember("tagged again and again", scope=ADA, tags=[f"{number}-{n}" for n in range(30)])
    assert len(mem.get(entry_id, scope=ADA).tags) <= 64


def test_what_is_said_again_after_it_had_ended_is_recalled_again(mem: Memory) -> None:
    mem.remember("Ada lives in Paris", scope=ADA, valid_from="2019-01-01", valid_to="2020-01-01")
    mem.remember("Ada lives in Paris", scope=ADA)
    assert [hit.entry.text for hit in mem.recall("where does Ada live?", scope=ADA)] == ["Ada lives in Paris"]


def test_a_superseded_text_that_is_said_again_is_a_new_entry(mem: Memory, clock: Clock) -> None:
    old, new = mem.remember_many(["Ada lives in Paris", "Ada lives in Rome"], scope=ADA)
    clock.forward(days=1)
    mem.supersede(old, new, scope=ADA)
    clock.forward(days=1)
    (again,) = mem.remember("Ada lives in Paris", scope=ADA)
    assert again not in (old, new)
    assert mem.verify().ok


def test_the_same_words_of_two_people_are_two_entries(mem: Memory) -> None:
    scope = Scope(tenant="acme", user="ada", org="all")
    ids = {
        *mem.remember("same words", scope=ADA),
        *mem.remember("same words", scope=BEN),
        *mem.remember("same words", scope=scope, layer="org"),
    }
    assert len(ids) == 3
    assert {mem.get(entry_id, scope=scope).repeats for entry_id in mem.remember("same words", scope=ADA)} == {1}


def test_a_long_text_said_twice_is_kept_once(mem: Memory) -> None:
    text = prose(10)
    assert mem.remember(text, scope=ADA) == mem.remember(text, scope=ADA)
    assert mem.verify().ok


# -- where it goes -----------------------------------------------------------------------------------------------


def test_without_a_layer_an_entry_goes_to_the_user_else_to_the_most_specific_layer(mem: Memory) -> None:
    full = Scope(tenant="acme", agent="bot", user="ada", org="all")
    no_user = Scope(tenant="acme", project="apollo", company="acme")
    assert mem.get(mem.remember("one", scope=full)[0], scope=full).layer == "user"
    assert mem.get(mem.remember("two", scope=no_user)[0], scope=no_user).layer == "project"
    assert mem.get(mem.remember("three", scope=full, layer="org")[0], scope=full).layer == "org"


def test_a_scope_without_any_layer_cannot_be_written_to(mem: Memory) -> None:
    with pytest.raises(ScopeError, match="acme"):
        mem.remember("nowhere to go", scope=Scope(tenant="acme"))
    with pytest.raises(ScopeError, match="org"):
        mem.remember("no such layer here", scope=ADA, layer="org")


# -- many at once ------------------------------------------------------------------------------------------------


def test_many_items_give_their_ids_in_order(mem: Memory) -> None:
    items: list[Any] = ["a plain text", {"text": "a mapping", "kind": "fact"}, Draft(text="a draft", kind="pattern")]
    ids = mem.remember_many(iter(items), scope=ADA)
    entries = [mem.get(entry_id, scope=ADA) for entry_id in ids]
    assert [(e.text, e.kind) for e in entries] == [
        ("a plain text", "note"),
        ("a mapping", "fact"),
        ("a draft", "pattern"),
    ]


def test_common_keywords_fill_what_an_item_leaves_open(mem: Memory) -> None:
    ids = mem.remember_many(["one", {"text": "two", "kind": "fact"}], scope=ADA, kind="summary", tags=["x"])
    assert [mem.get(entry_id, scope=ADA).kind for entry_id in ids] == ["summary", "fact"]
    assert [mem.get(entry_id, scope=ADA).tags for entry_id in ids] == [["x"], ["x"]]


def test_common_keywords_are_never_silently_dropped_for_a_draft(mem: Memory) -> None:
    try:
        (entry_id,) = mem.remember_many([Draft(text="a draft")], scope=ADA, tags=["x"])
    except InvalidInput:
        return
    assert mem.get(entry_id, scope=ADA).tags == ["x"]


def test_progress_counts_up_to_the_total(mem: Memory) -> None:
    calls: list[tuple[int, int]] = []
    ids = mem.remember_many(
        (f"entry number {n}" for n in range(1100)), scope=ADA, progress=lambda done, total: calls.append((done, total))
    )
    assert len(ids) == len(set(ids)) == 1100
    assert len(calls) > 1
    assert calls == sorted(set(calls))
    assert calls[-1] == (1100, 1100)
    assert {total for _, total in calls} == {1100}


def test_one_bad_item_among_many_stores_nothing(mem: Memory) -> None:
    before = picture(mem)
    items: list[object] = [f"fine {n}" for n in range(1000)]
    items[700] = {"text": "not fine", "kind": "gossip"}
    with pytest.raises(InvalidInput, match="gossip"):
        mem.remember_many(items, scope=ADA)  # type: ignore[arg-type]
    assert picture(mem) == before
    assert mem.admin.stats(scope=ADA).entries == 0


def test_the_error_of_a_bad_item_says_which_one_it_is(mem: Memory) -> None:
    with pytest.raises(InvalidInput, match=r"items\[2\]"):
        mem.remember_many(["a", "b", {"txt": "c"}], scope=ADA)
    with pytest.raises(InvalidInput, match=r"items\[1\]"):
        mem.remember_many(["a", {"text": ""}], scope=ADA)


def test_nothing_to_remember_is_fine(mem: Memory) -> None:
    assert mem.remember_many([], scope=ADA) == []
    assert mem.admin.stats(scope=ADA).entries == 0


def test_the_same_text_twice_in_a_batch_is_one_entry(mem: Memory) -> None:
    first, second = mem.remember_many(["twice", "twice"], scope=ADA)
    assert first == second
    assert mem.get(first, scope=ADA).repeats == 1


def test_a_write_is_entry_index_vector_links_and_audit_together(mem: Memory) -> None:
    ids = mem.remember_many(["one thing", "another thing"], scope=ADA)
    stats = mem.admin.stats(scope=ADA)
    assert (stats.entries, stats.vectors, stats.links) == (2, 2, 1)
    assert [(event.action, event.entry_id) for event in mem.admin.events(scope=ADA)] == [
        ("remember", ids[1]),
        ("remember", ids[0]),
    ]
    assert mem.verify().ok


# -- the scrub hook ----------------------------------------------------------------------------------------------


def test_nothing_past_the_scrub_hook_sees_the_raw_text(opened: OpenMemory, location: str) -> None:
    seen: list[str] = []

    def embed(batch: list[str]) -> list[list[float]]:
        seen.extend(batch)
        return [[1.0, 0.0]] * len(batch)

    mem = opened(location, embedder=embed, scrubber=lambda text: text.replace("hunter2", "[secret]"))
    (entry_id,) = mem.remember("the password is hunter2", scope=ADA, title="hunter2!", evidence="she said hunter2")
    mem.session(scope=ADA, session_id="s").add("user", "hunter2 it is")
    mem.edit(entry_id, scope=ADA, text="now hunter2 again", evidence="hunter2")
    assert "hunter2" not in str(picture(mem)) + "".join(seen)
    assert mem.get(entry_id, scope=ADA).text == "now [secret] again"
    assert mem.session(scope=ADA, session_id="s").turns()[0].text == "[secret] it is"
