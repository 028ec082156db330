"""open, stats, events, entries, close: the life of a memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory.test_malformed import GIVEN, call, keywords_of, sensible_values, verbs
from memory.world import ADA, BEN, Clock, OpenMemory, holds_text
from wellworn import InvalidInput, Memory, Scope, StoreError
from wellworn.core.errors import StoreClosed


def test_stats_count_what_the_scope_sees(mem: Memory) -> None:
    shared = Scope(tenant="acme", user="ada", org="all")
    first, second = mem.remember_many(["a fact", "another fact"], scope=ADA, kind="fact")
    mem.remember("shared", scope=shared, layer="org")
    mem.remember("of Ben", scope=BEN)
    mem.session(scope=ADA, session_id="s").add("user", "a turn")
    mem.edit(first, scope=ADA, state="flagged")
    stats = mem.admin.stats(scope=ADA)
    assert (stats.entries, stats.sessions, stats.turns, stats.versions, stats.vectors) == (3, 1, 1, 1, 3)
    assert stats.by_kind == {"fact": 2, "episode": 1}
    assert stats.by_state == {"active": 2, "flagged": 1}
    assert stats.links == 2
    assert (stats.embedder, stats.width) == ("hash:256", 256)
    assert stats.size_bytes > 0
    assert mem.admin.stats(scope=shared).entries == 4
    assert mem.admin.stats(scope=Scope(tenant="nobody", user="here")).entries == 0
    assert second


def test_events_tell_what_was_done_newest_first_and_never_say_a_word_of_it(mem: Memory, clock: Clock) -> None:
    a, b = mem.remember_many(["secret one", "secret two"], scope=ADA, title="secret", tags=["secret"])
    mem.remember("secret one", scope=ADA)
    mem.edit(a, scope=ADA, text="secret three")
    mem.link(a, b, "supports", scope=ADA)
    mem.unlink(a, b, "supports", scope=ADA)
    clock.forward(hours=1)
    mem.supersede(a, b, scope=ADA)
    mem.session(scope=ADA, session_id="secret").add("user", "secret four")
    mem.forget(ids=[b], scope=ADA)
    events = mem.admin.events(scope=ADA)
    actions = "remember remember repeat edit link unlink supersede remember forget".split()  # noqa: SIM905
    assert [event.action for event in events] == actions[::-1]
    assert "secret" not in str(events)
    assert [event.action for event in mem.admin.events(scope=ADA, limit=2)] == ["forget", "remember"]


def test_entries_are_listed_oldest_first_in_pages(mem: Memory) -> None:
    ids = mem.remember_many([f"entry {n}" for n in range(7)], scope=ADA, kind="fact", tags=["x"])
    mem.remember("a note", scope=ADA)
    mem.edit(ids[0], scope=ADA, state="pruned")
    assert [e.id for e in mem.entries(scope=ADA, kind="fact", limit=3)] == ids[:3]
    assert [e.id for e in mem.entries(scope=ADA, tags="x", limit=3, offset=3)] == ids[3:6]
    assert [e.id for e in mem.entries(scope=ADA, state="pruned")] == ids[:1]
    assert len(mem.entries(scope=ADA)) == 8
    assert mem.entries(scope=ADA, limit=5, offset=100) == []


@pytest.mark.parametrize("bad", [-1, "5", None, 10**30, 1.5])
def test_a_bad_limit_or_offset_is_one_clear_error(mem: Memory, bad: Any) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        mem.entries(scope=ADA, limit=bad)
    with pytest.raises(InvalidInput, match="limit"):
        mem.admin.events(scope=ADA, limit=bad)
    with pytest.raises(InvalidInput, match="offset"):
        mem.entries(scope=ADA, offset=bad)


def test_indexes_beyond_the_memory_allowed_are_dropped() -> None:
    with Memory.open(":memory:", embedder="hash:1024", ram_mb=1) as mem:
        for user in ("ada", "ben"):
            mem.for_user(user).remember_many([f"bee {n}" for n in range(300)])
            assert len(mem.for_user(user).recall("bee 7")) == 5
        assert len(mem.engine.searcher.ram) == 1
    for wrong in (0, -1, 1.5, "many", True):
        with pytest.raises(InvalidInput, match="ram_mb"):
            Memory.open(":memory:", ram_mb=wrong)  # type: ignore[arg-type]


# -- closing -----------------------------------------------------------------------------------------------------


def test_after_closing_every_verb_says_that_it_is_closed(mem: Memory, tmp_path: Path) -> None:
    sensible = sensible_values(tmp_path, mem.remember_many(["x y z", "a b c"], scope=ADA))
    mem.recall("x", scope=ADA)
    mem.admin.export(tmp_path / "some.jsonl")
    public = verbs(mem)
    mem.close()
    mem.close()
    assert len(public) > 35
    for name, verb in public.items():
        if name in ("for_user", "for_scope", "admin.import_from"):
            continue
        needed, others = keywords_of(verb)
        given = {one: sensible[one] for one in needed} | GIVEN.get(name, {})
        with pytest.raises(StoreClosed, match="closed"):
            call(verb, given | ({"scope": ADA} if "scope" in others else {}))


def test_a_block_closes_the_memory_and_its_sessions_even_when_it_fails(opened: OpenMemory, location: str) -> None:
    with pytest.raises(RuntimeError, match="mine"), opened(location) as mem:  # noqa: PT012
        session = mem.session(scope=ADA, session_id="s")
        raise RuntimeError("mine")
    for late in (mem.admin.stats, session.turns, lambda: session.add("user", "too late")):
        with pytest.raises(StoreClosed):
            late()


def test_closing_releases_what_was_held_in_memory(mem: Memory) -> None:
    mem.remember("zqxmarker words", scope=ADA)
    mem.recall("zqxmarker", scope=ADA)
    mem.close()
    assert (holds_text(mem, "zqxmarker"), len(mem.engine.searcher.ram)) == ([], 0)


# -- opening -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"profile": "no-such"}, {"embedder": "no-such"}, {"durability": "no-such"}])
def test_a_bad_option_is_refused_before_a_file_is_made(path: Path, opened: OpenMemory, options: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="no-such"):
        opened(path, **options)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("location", ["", "  ", 5, None, b"x", "a\0b", "redis://localhost", "mysql://x/y"])
def test_a_location_that_is_none_is_refused(opened: OpenMemory, location: object) -> None:
    with pytest.raises(InvalidInput, match="location"):
        opened(location)


def test_a_folder_a_missing_folder_or_another_file_is_one_clear_error(tmp_path: Path, opened: OpenMemory) -> None:
    (tmp_path / "notes.txt").write_text(notes := "just some notes, and not a database at all. " * 100)
    for wrong in (tmp_path, tmp_path / "missing" / "memory.db", tmp_path / "notes.txt"):
        with pytest.raises(StoreError):
            opened(wrong)
    assert (tmp_path / "notes.txt").read_text() == notes


def test_words_only_and_an_embedder_can_take_turns_on_one_file(path: Path, opened: OpenMemory) -> None:
    with opened(path, embedder=None) as mem:
        mem.remember("before there were vectors", scope=ADA)
        assert mem.verify().ok
    with opened(path, embedder="hash:16") as mem:
        mem.remember("with vectors", scope=ADA)
        assert len(mem.recall("vectors", scope=ADA)) == 2
        mem.admin.reembed()
        assert mem.verify().ok
    with opened(path, embedder=None) as mem:
        mem.remember("words again, vectors later", scope=ADA)
        assert len(mem.recall("vectors", scope=ADA)) == 3
    with opened(path, embedder="hash:16") as mem:
        mem.admin.reembed()
        assert mem.verify().ok
