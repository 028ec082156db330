"""The surface that invites: bound memories, printable recalls, and an async API that lacks nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wellworn import AsyncMemory, InvalidInput, Memory, Scope, ScopeError
from wellworn.aio import AsyncAdminView, AsyncJobsView, AsyncLearningView, AsyncSession
from wellworn.ingest.session import Session
from wellworn.views import AdminView, JobsView, LearningView


@pytest.fixture
def mem() -> Iterator[Memory]:
    with Memory(":memory:", background=False) as opened:
        yield opened


def test_a_bound_memory_needs_no_scope(mem: Memory) -> None:
    ada, bob = mem.for_user("ada"), mem.for_user("bob")
    ada.remember("Ada prefers tokio over async-std.", kind="preference", tags=["rust"])
    talk = ada.session("monday")
    talk.add("user", "I ran the charity race on Saturday.")
    found = ada.recall("which async runtime does Ada like?")
    assert found[0].text == found.hits[0].entry.text == "Ada prefers tokio over async-std."
    assert ada.outcome(found.id, cited=[0])
    assert ada.learning.status().outcomes == 1
    assert ada.admin.stats().entries == 2
    assert not bob.recall("which async runtime does Ada like?").hits
    assert mem.recall("tokio", scope=Scope(user="ada"))[0].text == found[0].text


def test_a_call_without_any_scope_says_how_to_give_one(mem: Memory) -> None:
    with pytest.raises(ScopeError, match=r"for_user\('ada'\)"):
        mem.remember("whose is this?")


def test_a_bound_memory_refuses_another_scope(mem: Memory) -> None:
    ada = mem.for_user("ada", team="core")
    ada.remember("ours", layer="team")
    assert ada.recall("ours", scope=Scope(user="ada", team="core")).hits
    for call in (ada.recall, ada.remember, ada.session):
        with pytest.raises(ScopeError, match="bound"):
            call("ours", scope=Scope(user="bob"))


def test_export_of_a_bound_memory_holds_that_person_only(mem: Memory, tmp_path: object) -> None:
    mem.for_user("ada").remember("about ada")
    mem.for_user("bob").remember("about bob")
    path = f"{tmp_path}/out.jsonl"
    mem.for_user("ada").admin.export(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "about ada" in text
    assert "about bob" not in text


def test_a_recall_prints_as_short_aligned_lines(mem: Memory) -> None:
    ada = mem.for_user("ada")
    assert str(ada.recall("anything")) == "nothing found for 'anything'"
    ada.remember("The <script>bicycle is\nred.", at="2026-05-01")
    ada.remember("The bicycle has a \x1b[31mbell " + "and a basket " * 30, at="2026-05-02")
    found = ada.recall("bicycle")
    lines = str(found).split("\n")
    assert len(lines) == 2
    assert all(len(line) <= 120 for line in lines)
    assert "2026-05-01" in str(found)
    assert "The <script>bicycle is red." in str(found)
    assert "\x1b" not in str(found)
    assert "<table>" in found._repr_html_()
    assert "<script>" not in found._repr_html_()


FACES = [
    (Memory, AsyncMemory, {"open"}),
    (Session, AsyncSession, set()),
    (LearningView, AsyncLearningView, set()),
    (JobsView, AsyncJobsView, set()),
    (AdminView, AsyncAdminView, set()),
]


@pytest.mark.parametrize(("sync", "face", "more"), FACES)
def test_the_async_api_lacks_nothing(sync: type, face: type, more: set[str]) -> None:
    def public(cls: type) -> set[str]:
        return {name for name in dir(cls) if not name.startswith("_")}

    assert public(sync) - public(face) - more == set()


def test_an_async_memory_on_a_path_says_how_to_open_one() -> None:
    with pytest.raises(InvalidInput, match=r"'memory.db' is not an open Memory \(use await AsyncMemory.open"):
        AsyncMemory("memory.db")  # type: ignore[arg-type]
