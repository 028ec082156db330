"""One contract for a memory here and a memory behind a service: the same verbs, values and errors."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from wellworn import (
    AsyncClient,
    InvalidInput,
    Memory,
    NotFound,
    RetentionPolicy,
    Scope,
    ScopeError,
    Spent,
    TransferError,
    UnknownKind,
    aio,
)
from wellworn.server.verbs import VERBS
from wellworn.tasks import ReasoningBank

from .conftest import Running, serving

ADA = Scope(user="ada")


class Blocking:
    """An async client whose answers are waited for, so that the same tests speak to it."""

    def __init__(self, face: Any, runner: asyncio.Runner) -> None:
        self._face = face
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._face, name)
        if not callable(found):
            return Blocking(found, self._runner) if hasattr(found, "connection") else found

        def call(*args: Any, **kwargs: Any) -> Any:
            answer = found(*args, **kwargs)
            if inspect.iscoroutine(answer):
                return self._runner.run(answer)
            return Blocking(answer, self._runner) if hasattr(answer, "connection") else answer

        return call


Subject = Any
"""A Memory, a Client, or an AsyncClient that is waited for."""


@pytest.fixture(scope="module", params=["memory", "client", "async client"])
def opened(request: pytest.FixtureRequest) -> Iterator[Subject]:
    if request.param == "memory":
        with Memory(":memory:", embedder="hash", background=False) as memory:
            yield memory
    else:
        with serving(background=False) as running, asyncio.Runner() as runner:
            if request.param == "client":
                yield running.client()
            else:
                client = AsyncClient(running.url)
                yield Blocking(client, runner)
                runner.run(client.close())


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
    assert [mem.entries(kind=[]), mem.entries(state=()), mem.entries(layer=[])] == [[]] * 3
    assert len(mem.entries(tags=[])) == 3


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


def test_a_task_teaches_the_next_one(mem: Subject) -> None:
    local = isinstance(mem, Memory)
    bank: Any = ReasoningBank(mem) if local else mem.tasks
    assert bank.begin(task_id="web/1", query="export the report as csv", domain="web", k=2).hits == []
    steps = [
        {"tool": "export", "args": {"format": "xls"}, "error": "unknown format"},
        {"tool": "export", "args": {"format": "csv"}, "result": "42 rows", "ok": True},
    ]
    over = bank.finish("web/1", {"steps": steps, "output": "done"}, verdict=True)
    assert (over.task_id, over.verdict.outcome if local else over.outcome) == ("web/1", "success")
    with pytest.raises(NotFound, match="web/1"):
        bank.finish("web/1", steps)
    ids = {one.id for one in bank.items(domain="web", kind=["strategy", "guardrail"])}
    assert ids == {*over.entry_ids} if local else ids == {one.id for one in over.items} != set()
    begun = bank.begin(task_id="web/2", query="export the invoices as csv", domain="web")
    assert "csv" in begun.hits[0].text
    assert bank.retrieve("export a table as csv", k=1)[0].entry.id in ids
    listed = bank.tasks if local else bank.list
    assert [one.task_id for one in listed()] == ["web/2", "web/1"]
    assert [one.trajectory.steps[1].result for one in listed(state="reinforced", limit=1)] == ["42 rows"]
    with pytest.raises(InvalidInput, match="no state of a task"):
        listed(state="nowhere")
    with pytest.raises(InvalidInput, match="trajectory"):
        bank.finish("web/2", {"stepz": []})


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
    for dots in (".", ".."):
        mem.session(dots).add("user", "I live in Oslo.")
        assert [turn.text for turn in mem.session(dots).turns()] == ["I live in Oslo."]
        assert mem.forget(session_id=dots).turns == 1
    session = mem.session("talk/1 of 2")
    first = session.add("user", "I live in Oslo.", at="2026-05-01")
    more = session.add_turns([("assistant", "Noted."), ("user", "My sister is called Hana.")])
    with pytest.raises(InvalidInput, match="is not a role and a text"):
        session.add_turns([{"role": "user", "content": "My brother is called Per."}])
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


NOW = datetime(2026, 5, 1, tzinfo=UTC)
WRONG: dict[str, tuple[type[InvalidInput], Any]] = {
    "text": (InvalidInput, lambda mem: mem.remember(3)),
    "kind": (UnknownKind, lambda mem: mem.remember("x", kind="poem")),
    "layer": (ScopeError, lambda mem: mem.remember("x", layer="team")),
    "keys of metadata": (InvalidInput, lambda mem: mem.remember("x", metadata={1: 2, "1": 3})),
    "set in metadata": (InvalidInput, lambda mem: mem.edit(mem.remember("same")[0], metadata={"a": {1, 2}})),
    "third of many": (InvalidInput, lambda mem: mem.remember_many(["a", "b", {"text": "c", "confidence": 7}])),
    "query": (InvalidInput, lambda mem: mem.recall("")),
    "k": (InvalidInput, lambda mem: mem.recall("x", k=0)),
    "no outcome": (InvalidInput, lambda mem: mem.outcome("x")),
    "forget nothing": (InvalidInput, lambda mem: mem.forget()),
    "beyond": (ScopeError, lambda mem: mem.recall("x", scope=Scope(user="someone else"))),
    "session of no scope": (ScopeError, lambda mem: mem.session("x", scope="ada")),
    "long id": (InvalidInput, lambda mem: mem.get("a" * 70_000)),
    "policy": (InvalidInput, lambda mem: mem.admin.retention({"kinds": {}})),
    "nobody": (ScopeError, lambda mem: mem.for_user(None)),
    "another layer": (InvalidInput, lambda mem: mem.for_user("ada", teams="core")),
    "no layer": (ScopeError, lambda mem: mem.remember("x", scope=Scope())),
    "no layer to learn for": (ScopeError, lambda mem: mem.learning.status(scope=Scope())),
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


def test_a_scope_that_names_nobody_opens_nobodys_memory(server: Running) -> None:
    client = server.client()
    client.remember("Ada lives in Oslo.")  # the memory that a request without a layer means here
    for ask in (
        lambda: client.entries(scope=Scope()),
        lambda: client.for_scope(Scope()).remember("x"),
        lambda: client.for_scope(Scope()).session("s").add("user", "x"),
        lambda: client.for_user("ben").entries(scope=Scope()),
        lambda: client.for_scope(Scope()).tasks.list(),
    ):
        with pytest.raises(ScopeError, match="names no layer"):
            ask()
    assert client.for_scope(Scope()).admin.stats().entries == 1
    assert client.jobs.list(scope=Scope()) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda mem: mem.get("nobody"),
        lambda mem: mem.history("nobody"),
        lambda mem: mem.get("a/nobody"),
        lambda mem: mem.outcome("nobody", cited=[]),
        lambda mem: mem.forget(["nobody"]),
        lambda mem: mem.session("nobody").end(),
    ],
)
def test_what_is_not_there_is_not_found(mem: Subject, call: Any) -> None:
    with pytest.raises(NotFound, match="nobody"):
        call(mem)


def test_learning_and_jobs(mem: Subject) -> None:
    a, _ = mem.remember_many(["Ada prefers tokio over async-std", "The kettle is in the kitchen"])
    assert mem.learning.relearn(pairs=[("which runtime", [a])]).mode == "on"
    assert mem.learning.share(True) is None
    assert isinstance(mem.learning.export(), dict)
    assert mem.learning.practise(tasks=3) >= 0
    assert mem.learning.reset() >= 0
    mem.session("s").add("user", "I live in Oslo.")
    mem.session("s").end()
    assert [job.state for job in mem.jobs.list(state="queued")] == ["queued"]
    assert mem.jobs.run() >= 1
    assert [job.state for job in mem.jobs.list()] == ["done"]
    assert mem.jobs.retry() == 0


def test_keeping_moving_and_erasing(mem: Subject, tmp_path: Path) -> None:
    mem.remember_many(["one thing", "another thing"], kind="fact", at="2020-01-01")
    assert mem.admin.costs(by=()) == [Spent(key=())]
    assert mem.admin.retention(RetentionPolicy(kinds={"fact": 40000})) == mem.admin.retention()
    assert mem.admin.expire(policy=RetentionPolicy(kinds={"fact": 30}), dry_run=True).entries == 2
    assert mem.admin.expire().entries == 0
    written = mem.admin.export(tmp_path / "out.jsonl")
    assert (written.entries, written.path) == (2, str(tmp_path / "out.jsonl"))
    assert written.bytes == (tmp_path / "out.jsonl").stat().st_size
    assert mem.admin.load(tmp_path / "out.jsonl").skipped == 2
    assert mem.admin.erase().receipt["entries"] == 2
    assert mem.entries() == []
    assert mem.admin.load(tmp_path / "out.jsonl").entries == 2
    assert mem.admin.events(limit=1)[0].tenant == "default"
    (tmp_path / "bad.jsonl").write_text("no export")
    with pytest.raises(TransferError):
        mem.admin.load(tmp_path / "bad.jsonl")


def test_every_verb_of_a_memory_asks_the_service() -> None:
    """The verbs of the clients are those of the async memory, which is complete, as another test says."""
    faces = (aio.MemoryVerbs, aio.SessionVerbs, aio.LearningVerbs, aio.JobsVerbs, aio.AdminVerbs)
    verbs = {
        one.__wrapped__ for face in faces for name in vars(face) if hasattr(one := getattr(face, name), "__wrapped__")
    }
    assert verbs <= {*VERBS}


def test_a_memory_of_an_address_names_the_client() -> None:
    with pytest.raises(InvalidInput, match=r"wellworn\.Client"):
        Memory("https://memory.example")
