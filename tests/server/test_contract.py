"""One contract for a memory here and a memory behind a service: the same verbs, values and errors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from wellworn import Client, InvalidInput, Memory, NotFound, Scope, ScopeError, UnknownKind
from wellworn.aio import AsyncSession
from wellworn.ingest.session import Session
from wellworn.server.client import ClientSession

from .conftest import serving

ADA = Scope(user="ada")
Subject = Memory | Client


@pytest.fixture(scope="module", params=["memory", "client"])
def opened(request: pytest.FixtureRequest) -> Iterator[Subject]:
    if request.param == "memory":
        with Memory(":memory:", embedder="hash", background=False) as memory:
            yield memory
    else:
        with serving(background=False) as running:
            yield running.client()


@pytest.fixture
def mem(opened: Subject, request: pytest.FixtureRequest) -> Subject:
    """The memory of a person of this test's own."""
    return opened.for_user(request.node.name[:200])


def test_remember_get_and_list(mem: Subject) -> None:
    moment = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
    (a,) = mem.remember("Ada prefers tokio", kind="preference", tags=["rust"], at=moment, metadata={"n": [1, None]})
    ids = mem.remember_many(["Ben likes rain", {"text": "Cleo left", "kind": "fact"}], title="people")
    assert mem.remember("Ada prefers tokio", kind="preference") == [a]
    entry = mem.get(a)
    assert (entry.text, entry.at, entry.metadata, entry.repeats) == ("Ada prefers tokio", moment, {"n": [1, None]}, 1)
    assert [one.id for one in mem.entries()] == [a, *ids]
    assert [one.id for one in mem.entries(limit=1, offset=1)] == ids[:1]
    assert [one.id for one in mem.entries(kind=["fact", "preference"])] == [a, ids[1]]
    assert [one.id for one in mem.entries(tags="rust", state="active")] == [a]
    assert {one.title for one in mem.entries(kind="note")} == {"people"}


def test_many_are_told_of_as_they_are_stored(mem: Subject) -> None:
    told: list[tuple[int, int]] = []
    ids = mem.remember_many([f"text number {n}" for n in range(300)], progress=lambda *step: told.append(step))
    assert len({*ids}) == 300
    assert (told[0], told[-1]) == ((0, 300), (300, 300))
    assert len(mem.entries(limit=2000)) == 300


def test_recall_outcome_and_reason(mem: Subject) -> None:
    (a,) = mem.remember("Ada prefers tokio over async-std")
    mem.remember("The kettle is in the kitchen")
    found = mem.recall("which runtime does Ada prefer", k=2, kind="note", since="2020-01-01")
    assert found[0].entry.id == a
    assert found[0].entry == mem.get(a)
    assert found[0].score == pytest.approx(sum(found[0].factors.values()))
    assert mem.outcome(found.id, cited=[0]) is True
    assert mem.outcome(found.id, cited=[0]) is False
    assert "tokio" in mem.assemble("which runtime does Ada prefer").text
    assert mem.reason("which runtime does Ada prefer").recall.hits
    assert mem.learning.status().mode == "on"


def test_edit_supersede_link_and_history(mem: Subject) -> None:
    old, new = mem.remember_many(["Ada lives in Oslo", "The tram stops at nine"], at="2026-05-01")
    assert mem.edit(new, text="The tram stops at ten", tags=["tram"]).text == "The tram stops at ten"
    assert [version.text for version in mem.history(new)] == ["The tram stops at nine", "The tram stops at ten"]
    assert mem.link(new, old, "supports", confidence=0.5).confidence == 0.5
    assert "supports" in {link.type for link in mem.links(old)}
    assert mem.unlink(new, old, "supports") is True
    assert mem.unlink(new, old, "supports") is False
    assert mem.supersede(old, new, at="2026-06-01").state == "superseded"


def test_sessions(mem: Subject) -> None:
    session = mem.session("talk/1 of 2")
    first = session.add("user", "I live in Oslo.", at="2026-05-01")
    more = session.add_turns([("assistant", "Noted."), ("user", "My sister is called Hana.")])
    assert [turn.text for turn in session.turns()] == ["I live in Oslo.", "Noted.", "My sister is called Hana."]
    assert [turn.entry_id for turn in session.turns()] == [first, *(entry.id for entry in more)]
    assert mem.sessions() == ["talk/1 of 2"]
    job = session.end()
    assert job is not None
    assert job.state == "queued"
    (reflection,) = mem.reflect("talk/1 of 2")
    assert reflection.session_id == "talk/1 of 2"
    assert reflection.stop == 3
    assert mem.forget(session_id="talk/1 of 2").turns == 3
    assert mem.sessions() == []


def test_forget_and_count(mem: Subject) -> None:
    a, b, c = mem.remember_many(["one thing", "another thing", "a third"])
    assert mem.admin.stats().entries == 3
    receipt = mem.forget([a])
    assert (receipt.entries, receipt.ids) == (1, [a])
    with pytest.raises(NotFound, match=a):
        mem.get(a)
    assert mem.forget(everything=True).entries == 2
    assert mem.entries() == []
    assert mem.verify().ok
    assert {b, c}.isdisjoint(entry.id for entry in mem.entries())


WRONG: dict[str, tuple[type[InvalidInput], Any]] = {
    "text": (InvalidInput, lambda mem: mem.remember(3)),
    "empty text": (InvalidInput, lambda mem: mem.remember(" ")),
    "kind": (UnknownKind, lambda mem: mem.remember("x", kind="poem")),
    "time": (InvalidInput, lambda mem: mem.remember("x", at="yesterday")),
    "layer": (ScopeError, lambda mem: mem.remember("x", layer="team")),
    "third of many": (InvalidInput, lambda mem: mem.remember_many(["a", "b", {"text": "c", "confidence": 7}])),
    "unknown key": (InvalidInput, lambda mem: mem.remember_many([{"texty": "c"}])),
    "query": (InvalidInput, lambda mem: mem.recall("")),
    "k": (InvalidInput, lambda mem: mem.recall("x", k=0)),
    "no outcome": (InvalidInput, lambda mem: mem.outcome("x")),
    "no change": (InvalidInput, lambda mem: mem.edit(mem.remember("same")[0])),
    "forget nothing": (InvalidInput, lambda mem: mem.forget()),
    "beyond": (ScopeError, lambda mem: mem.recall("x", scope=Scope(user="someone else"))),
    "role": (InvalidInput, lambda mem: mem.session("s").add(" ", "x")),
}


@pytest.fixture(scope="module")
def both() -> Iterator[list[Subject]]:
    with Memory(":memory:", embedder="hash", background=False) as memory, serving(background=False) as running:
        yield [memory.for_scope(ADA), running.client().for_scope(ADA)]


@pytest.mark.parametrize("name", WRONG)
def test_a_bad_value_is_the_same_error(both: list[Subject], name: str) -> None:
    kind, call = WRONG[name]
    texts = []
    for subject in both:
        with pytest.raises(kind) as caught:
            call(subject)
        texts.append(str(caught.value).replace("client", "memory"))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda mem: mem.get("nobody"),
        lambda mem: mem.history("nobody"),
        lambda mem: mem.outcome("nobody", cited=[]),
        lambda mem: mem.forget(["nobody"]),
        lambda mem: mem.session("nobody").end(),
    ],
)
def test_what_is_not_there_is_not_found(mem: Subject, call: Any) -> None:
    with pytest.raises(NotFound, match="nobody"):
        call(mem)


def test_every_verb_of_a_memory_is_a_verb_of_the_client() -> None:
    def verbs(kind: type) -> dict[str, list[str]]:
        methods = inspect.getmembers(kind, inspect.isfunction)
        return {name: [*inspect.signature(method).parameters] for name, method in methods if name[0] != "_"}

    here, there = verbs(Memory), verbs(Client)
    assert {name: there.get(name) for name in here} == here
    here, there = verbs(Session), verbs(ClientSession)
    assert {name: there.get(name) for name in verbs(AsyncSession)} == {name: here[name] for name in verbs(AsyncSession)}
