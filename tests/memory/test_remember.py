"""remember and remember_many: chunked, deduplicated, atomic."""

from __future__ import annotations

import random
from typing import Any

import pytest

from memory.world import ADA, BEN, NOON, Clock, OpenMemory, picture
from wellworn import Draft, InvalidInput, Memory, Scope, ScopeError
from wellworn.core.values import Entry
from wellworn.core.wellformed import count_tokens
from wellworn.ingest.validate import as_time


def prose(paragraphs: int) -> str:
    """Made-up English: sentences of 6 to 18 words, a blank line between paragraphs."""
    dice = random.Random(1)
    words = "the river ran past a mill where grain was ground and children played under wide old trees".split()  # noqa: SIM905

    def sentence() -> str:
        return " ".join(dice.choices([*words, f"w{dice.randrange(10_000)}"], k=dice.randint(6, 18))).capitalize() + "."

    return "\n\n".join(" ".join(sentence() for _ in range(5)) for _ in range(paragraphs))


def test_a_short_text_is_one_entry_with_everything_that_was_said_about_it(mem: Memory) -> None:
    said: dict[str, Any] = {
        "kind": "preference",
        "title": "Runtimes",
        "tags": ["rust", "async"],
        "session_id": "monday",
    }
    said |= {"turn_refs": [3, 4], "source": "import", "speaker": "Ada", "confidence": 0.6, "trust": "untrusted"}
    said |= {"text": "Ada prefers tokio over async-std.", "metadata": {"n": [1, {"deep": None}]}}
    times: dict[str, Any] = {"at": "2026-04-01T09:30", "valid_from": "2026-04-01", "valid_to": "2027-04-01"}
    entry = mem.get(mem.remember(scope=ADA, **said, **times)[0], scope=ADA)
    assert {name: getattr(entry, name) for name in said} == said
    assert {name: getattr(entry, name) for name in times} == {name: as_time(name, time) for name, time in times.items()}
    assert (entry.evidence, entry.token_count) == (entry.text, count_tokens(entry.text))
    assert (entry.created_at, entry.updated_at, entry.state) == (NOON, NOON, "active")


def test_the_defaults_are_a_note_that_happened_now(mem: Memory) -> None:
    entry = mem.get(mem.remember("plain words", scope=ADA)[0], scope=ADA)
    assert (entry.kind, entry.at, entry.valid_from, entry.valid_to) == ("note", NOON, NOON, None)
    assert (entry.source, entry.trust, entry.repeats, entry.tags) == ("interaction", "trusted", 0, [])


# -- chunks ------------------------------------------------------------------------------------------------------


def test_chunks_of_one_text_are_neighbours_in_order_and_have_it_verbatim(mem: Memory) -> None:
    text = "  \n" + prose(20) + "\n\n\t tail \u3000"
    ids = mem.remember(text, scope=ADA)
    entries = [mem.get(entry_id, scope=ADA) for entry_id in ids]
    assert "".join(entry.evidence for entry in entries) == text
    assert {(entry.source, entry.thread) for entry in entries} == {("interaction", entries[0].thread)}
    assert [entry.position for entry in entries] == list(range(len(entries)))
    assert mem.remember(text, scope=ADA) == ids  # said twice, it is kept once
    assert mem.verify().ok


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


def test_repeats_make_sure_but_never_certain_never_less_sure_and_keep_to_the_limits(mem: Memory) -> None:
    for number in range(20):
        (often,) = mem.remember("said all the time", scope=ADA, tags=[f"{number}-{n}" for n in range(30)])
    assert mem.get(often, scope=ADA).confidence == pytest.approx(0.95)
    assert len(mem.get(often, scope=ADA).tags) == 64
    for _ in range(2):
        (certain,) = mem.remember("certain from the start", scope=ADA, confidence=1.0)
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


def test_a_repeat_with_new_tags_adds_them_and_they_are_found(opened: OpenMemory, location: str) -> None:
    mem = opened(location, embedder=None)
    (entry_id,) = mem.remember("the mill burned down", scope=ADA, tags=["mill"])
    mem.remember("the mill burned down", scope=ADA, tags=["catastrophe", "mill"])
    assert mem.get(entry_id, scope=ADA).tags == ["mill", "catastrophe"]
    assert [hit.entry.id for hit in mem.recall("anything", scope=ADA, tags="catastrophe")] == [entry_id]
    assert mem.recall("catastrophe", scope=ADA)[0].factors["terms"] > 0
    assert str(mem.verify()).startswith("no flaws")


def test_what_is_said_again_after_it_had_ended_is_a_new_entry(mem: Memory, clock: Clock) -> None:
    mem.remember("Ada lives in Oslo", scope=ADA, valid_from="2019-01-01", valid_to="2020-01-01")
    old, new = mem.remember_many(["Ada lives in Paris", "Ada lives in Rome"], scope=ADA)
    mem.supersede(old, new, scope=ADA)
    clock.forward(days=1)
    for city in ("Oslo", "Paris"):
        (again,) = mem.remember(f"Ada lives in {city}", scope=ADA)
        assert again not in (old, new)
        assert mem.recall(f"who lives in {city}?", scope=ADA)[0].entry.id == again
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


# -- where it goes -----------------------------------------------------------------------------------------------


def test_an_entry_goes_to_the_user_else_to_the_most_specific_layer_else_nowhere(mem: Memory) -> None:
    full = Scope(tenant="acme", agent="bot", user="ada", org="all")
    no_user = Scope(tenant="acme", project="apollo", company="acme")
    for scope, layer, home in ((full, None, "user"), (no_user, None, "project"), (full, "org", "org")):
        assert mem.get(mem.remember(home, scope=scope, layer=layer)[0], scope=scope).layer == home  # type: ignore[arg-type]
    for scope, layer in ((Scope(tenant="acme"), None), (ADA, "org")):
        with pytest.raises(ScopeError, match="org" if layer else "acme"):
            mem.remember("nowhere to go", scope=scope, layer=layer)  # type: ignore[arg-type]


# -- many at once ------------------------------------------------------------------------------------------------


def test_many_items_give_their_ids_in_order_and_common_keywords_fill_what_they_leave_open(mem: Memory) -> None:
    items: list[Any] = ["a plain text", {"text": "a mapping", "kind": "fact"}]
    entries = [mem.get(one, scope=ADA) for one in mem.remember_many(iter(items), scope=ADA, kind="summary", tags=["x"])]
    assert [(e.text, e.kind, e.tags) for e in entries] == [
        ("a plain text", "summary", ["x"]),
        ("a mapping", "fact", ["x"]),
    ]
    (draft,) = mem.remember_many([Draft(text="a draft", kind="pattern")], scope=ADA)
    assert mem.get(draft, scope=ADA).kind == "pattern"
    with pytest.raises(InvalidInput, match="tags"):  # never silently dropped
        mem.remember_many([Draft(text="a draft")], scope=ADA, tags=["x"])


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


def test_one_bad_item_among_many_stores_nothing_and_is_named(mem: Memory) -> None:
    before = picture(mem)
    items: list[Any] = [f"fine {n}" for n in range(1000)]
    for bad in ({"text": "not fine", "kind": "gossip"}, {"txt": "c"}, {"text": ""}):
        items[700] = bad
        with pytest.raises(InvalidInput, match=r"items\[700\]"):
            mem.remember_many(items, scope=ADA)
    assert picture(mem) == before


def test_nothing_is_fine_and_the_same_text_twice_is_one_entry(mem: Memory) -> None:
    assert mem.remember_many([], scope=ADA) == []
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
