"""edit, history, supersede, as_of: what was true when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from memory.world import ADA, BEN, NOON, Clock, OpenMemory, picture, texts
from wellworn import InvalidInput, Memory, NotFound
from wellworn.core.wellformed import count_tokens
from wellworn.models.hashing import HashEmbedder
from wellworn.models.port import Matrix

# -- edit --------------------------------------------------------------------------------------------------------


def test_an_edit_changes_the_fields_given_and_what_follows_from_them(mem: Memory, clock: Clock) -> None:
    (entry_id,) = mem.remember("Ada likes tea", scope=ADA)
    before = mem.get(entry_id, scope=ADA)
    clock.forward(hours=1)
    after = mem.edit(
        entry_id,
        scope=ADA,
        text="Ada likes strong black coffee",
        title="Drinks",
        tags=["drink"],
        kind="preference",
        state="flagged",
        confidence=0.3,
        trust="untrusted",
        at="2026-01-01",
        valid_from="2026-01-01",
        valid_to="2030-01-01",
        metadata={"a": 1},
        evidence="coffee!",
        speaker="Ada",
    )
    assert mem.get(entry_id, scope=ADA) == after
    assert (after.text, after.title, after.tags, after.kind) == (
        "Ada likes strong black coffee",
        "Drinks",
        ["drink"],
        "preference",
    )
    assert (after.state, after.confidence, after.trust) == ("flagged", 0.3, "untrusted")
    assert (after.metadata, after.evidence, after.speaker) == ({"a": 1}, "coffee!", "Ada")
    assert (after.id, after.created_at, after.updated_at) == (before.id, before.created_at, clock.now)
    assert after.content_hash != before.content_hash
    assert after.token_count == count_tokens(after.text)
    assert mem.verify().ok


def test_an_edited_text_is_found_by_its_new_words_and_not_by_its_old_ones(opened: OpenMemory, location: str) -> None:
    mem = opened(location, embedder=None)
    (entry_id,) = mem.remember("Ada likes tea", scope=ADA)
    mem.recall("tea", scope=ADA)
    mem.edit(entry_id, scope=ADA, text="Ada likes coffee")
    assert mem.recall("coffee", scope=ADA).hits[0].factors["terms"] > 0
    assert mem.recall("tea", scope=ADA).hits[0].factors["terms"] == 0
    assert texts(mem, "coffee", ADA) == ["Ada likes coffee"]


@pytest.mark.parametrize("changes", [{"title": "zanzibar"}, {"tags": ["zanzibar"]}, {"speaker": "zanzibar"}])
def test_title_tags_and_speaker_are_found_by_their_words(
    opened: OpenMemory, location: str, changes: dict[str, object]
) -> None:
    mem = opened(location, embedder=None)
    (entry_id,) = mem.remember("Ada likes tea", scope=ADA)
    mem.edit(entry_id, scope=ADA, **changes)
    assert mem.recall("zanzibar", scope=ADA).hits[0].factors["terms"] > 0
    assert mem.verify().ok


def test_history_holds_every_state_and_what_brought_it_about(mem: Memory, clock: Clock) -> None:
    (entry_id,) = mem.remember("first", scope=ADA)
    clock.forward(hours=1)
    mem.edit(entry_id, scope=ADA, text="second", tags=["x"])
    clock.forward(hours=1)
    mem.edit(entry_id, scope=ADA, text="third")
    versions = mem.history(entry_id, scope=ADA)
    assert [(v.number, v.text, v.change) for v in versions] == [
        (1, "first", "remembered"),
        (2, "second", "edited"),
        (3, "third", "edited"),
    ]
    assert [v.changed_at - NOON for v in versions] == [timedelta(hours=n) for n in range(3)]
    assert [v.entry.tags for v in versions] == [[], ["x"], ["x"]]
    assert versions[-1].entry == mem.get(entry_id, scope=ADA)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"session_id": "s"},
        {"layer": "org"},
        {"text": ""},
        {"text": 5},
        {"kind": "gossip"},
        {"state": "gone"},
        {"confidence": 1.01},
        {"confidence": float("nan")},
        {"trust": "maybe"},
        {"at": None},
        {"at": "yesterday"},
        {"valid_from": None},
        {"valid_to": "2000-01-01"},
        {"metadata": None},
        {"tags": "x"},
        {"tags": None},
        {"speaker": 5},
        {"state": "superseded"},
        {"text": "fine", "confidence": 7},
    ],
    ids=str,
)
def test_a_bad_edit_is_one_error_and_changes_nothing(mem: Memory, changes: dict[str, object]) -> None:
    (entry_id,) = mem.remember("stays as it is", scope=ADA)
    before = picture(mem)
    with pytest.raises(InvalidInput):
        mem.edit(entry_id, scope=ADA, **changes)
    assert picture(mem) == before


def test_an_edit_cannot_make_two_entries_say_the_same(mem: Memory) -> None:
    first, second = mem.remember_many(["one", "two"], scope=ADA)
    before = picture(mem)
    with pytest.raises(InvalidInput, match=first):
        mem.edit(second, scope=ADA, text="one")
    assert picture(mem) == before


def test_reviving_a_superseded_entry_beside_its_twin_is_refused(mem: Memory, clock: Clock) -> None:
    old, new = mem.remember_many(["Ada lives in Paris", "Ada lives in Rome"], scope=ADA)
    clock.forward(days=1)
    mem.supersede(old, new, scope=ADA)
    mem.remember("Ada lives in Paris", scope=ADA)
    with pytest.raises(InvalidInput, match="already"):
        mem.edit(old, scope=ADA, state="active")


class Interrupting(HashEmbedder):
    """Does something else in the middle of an embedding, as another process might."""

    def __init__(self) -> None:
        super().__init__(16)
        self.meanwhile: Callable[[], object] | None = None

    def embed(self, texts: Sequence[str]) -> Matrix:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().embed(texts)


def test_two_edits_of_one_entry_at_once_leave_index_and_vector_of_the_final_text(
    opened: OpenMemory, location: str
) -> None:
    embedder = Interrupting()
    mem = opened(location, embedder=embedder)
    (entry_id,) = mem.remember("the first text of all", scope=ADA)
    embedder.meanwhile = lambda: mem.edit(entry_id, scope=ADA, text="quite different words")
    mem.edit(entry_id, scope=ADA, title="A Title")
    entry = mem.get(entry_id, scope=ADA)
    assert (entry.text, entry.title) == ("quite different words", "A Title")
    assert str(mem.verify()).startswith("no flaws")
    (hit,) = mem.recall("A Title. quite different words", scope=ADA).hits
    assert hit.factors["meaning"] == pytest.approx(10.0, abs=0.01)


# -- validity ----------------------------------------------------------------------------------------------------


def test_an_entry_is_recalled_from_valid_from_until_just_before_valid_to(mem: Memory) -> None:
    mem.remember("open on Fridays", scope=ADA, valid_from="2026-01-01", valid_to="2026-02-01")
    moments = {
        "2025-12-31T23:59:59.999999": 0,
        "2026-01-01": 1,
        "2026-01-31T23:59:59.999999": 1,
        "2026-02-01": 0,
        "2027-01-01": 0,
    }
    for moment, count in moments.items():
        found = mem.recall("open on Fridays", scope=ADA, as_of=moment)
        assert (len(found), found.searched) == (count, count), moment


def test_a_pruned_entry_is_never_recalled_and_a_flagged_one_is(mem: Memory) -> None:
    pruned, flagged = mem.remember_many(["pruned words", "flagged words"], scope=ADA)
    mem.edit(pruned, scope=ADA, state="pruned")
    mem.edit(flagged, scope=ADA, state="flagged")
    assert texts(mem, "words", ADA) == ["flagged words"]
    assert texts(mem, "words", ADA, as_of=NOON) == ["flagged words"]


# -- supersede ---------------------------------------------------------------------------------------------------


def test_the_new_entry_is_recalled_now_and_the_old_one_as_of_then(mem: Memory, clock: Clock) -> None:
    (old,) = mem.remember("Ada lives in Paris", scope=ADA, at="2020-01-01")
    (new,) = mem.remember("Ada lives in Rome", scope=ADA, at="2024-01-01")
    ended = mem.supersede(old, new, scope=ADA)
    assert ended == mem.get(old, scope=ADA)
    assert (ended.state, ended.valid_to) == ("superseded", mem.get(new, scope=ADA).valid_from)
    assert texts(mem, "where does Ada live?", ADA) == ["Ada lives in Rome"]
    assert texts(mem, "where does Ada live?", ADA, as_of="2022-01-01") == ["Ada lives in Paris"]
    assert texts(mem, "where does Ada live?", ADA, as_of="2024-01-01") == ["Ada lives in Rome"]
    assert [(link.source, link.target) for link in mem.links(old, scope=ADA) if link.type == "supersedes"] == [
        (new, old)
    ]
    assert [v.change for v in mem.history(old, scope=ADA)] == ["remembered", "superseded"]
    assert mem.verify().ok


def test_both_at_the_same_instant_still_leaves_a_valid_entry(mem: Memory) -> None:
    old, new = mem.remember_many(["old news", "new news"], scope=ADA)
    ended = mem.supersede(old, new, scope=ADA)
    assert ended.valid_to is not None
    assert ended.valid_to > ended.valid_from
    assert mem.verify().ok


def test_the_moment_can_be_given(mem: Memory) -> None:
    (old,) = mem.remember("old news", scope=ADA, at="2020-01-01")
    (new,) = mem.remember("new news", scope=ADA, at="2020-01-01")
    mem.supersede(old, new, scope=ADA, at="2023-01-01")
    assert set(texts(mem, "news", ADA, as_of="2022-12-31")) == {"old news", "new news"}
    assert texts(mem, "news", ADA, as_of="2023-01-01") == ["new news"]


def test_superseding_never_makes_an_entry_valid_for_longer(mem: Memory) -> None:
    (old,) = mem.remember("the old rule", scope=ADA, valid_from="2019-01-01", valid_to="2020-01-01")
    (new,) = mem.remember("the new rule", scope=ADA, valid_from="2024-01-01")
    ended = mem.supersede(old, new, scope=ADA)
    assert ended.valid_to is not None
    assert ended.valid_to.year == 2020
    assert texts(mem, "rule", ADA, as_of="2022-01-01") == []


def test_a_moment_before_the_old_entry_began_is_an_error_and_not_now(mem: Memory) -> None:
    (old,) = mem.remember("old news", scope=ADA, valid_from="2022-01-01")
    (new,) = mem.remember("new news", scope=ADA, valid_from="2024-01-01")
    before = picture(mem)
    with pytest.raises(InvalidInput, match="2020-01-01"):
        mem.supersede(old, new, scope=ADA, at="2020-01-01")
    assert picture(mem) == before


def test_two_entries_cannot_supersede_each_other(mem: Memory, clock: Clock) -> None:
    a, b, c = mem.remember_many(["version one", "version two", "version three"], scope=ADA)
    clock.forward(days=1)
    mem.supersede(a, b, scope=ADA)
    clock.forward(days=1)
    mem.supersede(b, c, scope=ADA)
    for old, new in ((b, a), (c, a)):
        with pytest.raises(InvalidInput):
            mem.supersede(old, new, scope=ADA)
    with pytest.raises(InvalidInput):
        mem.supersede(a, a, scope=ADA)
    assert str(mem.verify()).startswith("no flaws")


def test_only_entries_the_scope_sees_can_supersede_each_other(mem: Memory) -> None:
    (mine,) = mem.remember("mine", scope=ADA)
    (bens,) = mem.remember("of Ben", scope=BEN)
    before = picture(mem)
    for pair in ((mine, bens), (bens, mine), (mine, "no-such-id")):
        with pytest.raises(NotFound):
            mem.supersede(*pair, scope=ADA)
    assert picture(mem) == before


# -- taking it back ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [False, True])
def test_an_entry_that_was_wrongly_superseded_holds_again(mem: Memory, clock: Clock, wrong: bool) -> None:
    (old,) = mem.remember("Ada reads Dune", scope=ADA, at="2020-01-01")
    (new,) = mem.remember("Ada reads Emma", scope=ADA, at="2024-01-01")
    before = mem.get(old, scope=ADA)
    mem.supersede(old, new, scope=ADA, wrong=wrong)
    clock.forward(hours=1)
    assert mem.unlink(new, old, "supersedes", scope=ADA)
    after = mem.get(old, scope=ADA)
    assert (after.state, after.valid_to) == (before.state, before.valid_to)
    assert set(texts(mem, "what does Ada read?", ADA)) == {"Ada reads Dune", "Ada reads Emma"}
    assert mem.history(old, scope=ADA)[-1].change == "restored"
    assert mem.verify().ok


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        (lambda mem, old, third: mem.supersede(old, third, scope=ADA), "superseded"),
        (lambda mem, old, third: mem.edit(old, scope=ADA, valid_to="2022-01-01"), "active"),
        (lambda mem, old, third: mem.edit(old, scope=ADA, state="pruned"), "pruned"),
        (lambda mem, old, third: mem.remember("Ada lives in Paris", scope=ADA, at="2025-01-01"), "superseded"),
    ],
)
def test_what_something_else_ended_stays_ended(mem: Memory, clock: Clock, ended: Any, state: str) -> None:
    (old,) = mem.remember("Ada lives in Paris", scope=ADA, at="2020-01-01")
    (new,) = mem.remember("Ada lives in Rome", scope=ADA, at="2024-01-01")
    (third,) = mem.remember("Ada lives in Bern", scope=ADA, at="2024-06-01")
    mem.supersede(old, new, scope=ADA)
    clock.forward(hours=1)
    ended(mem, old, third)
    assert mem.unlink(new, old, "supersedes", scope=ADA)
    assert mem.get(old, scope=ADA).state == state
    assert mem.get(old, scope=ADA).valid_to or state == "pruned"
    assert mem.verify().ok
