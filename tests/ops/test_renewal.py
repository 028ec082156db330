"""A large store of an older release opens, is searched by words, and gets its vectors in the background."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from contract.postgres import Server
from ops.renewing import ADA, EVE, PARTS, Former, die_after, make_old, renew, watched
from wellworn import EmbedderMismatch, Memory, ReflectionSettings
from wellworn.cli.program import command_word, program
from wellworn.core.clock import system_clock
from wellworn.core.errors import MissingExtra
from wellworn.core.values import Job
from wellworn.language.parts import embedded
from wellworn.language.reader import NAME, WIDTH, bundled
from wellworn.ops import reembed
from wellworn.ops.reembed import RENEWAL, model_of
from wellworn.store.events import events
from wellworn.store.port import EmbeddingModel, Selection

NEW = EmbeddingModel(name=NAME, width=WIDTH)
OLD = EmbeddingModel(name="static:of old", width=16)
ASKED = "kayak seat"
PROCESSES = multiprocessing.get_context("forkserver")
WAIT_S = 600


@pytest.fixture(params=["file", "encrypted", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """Where a store is, and with what it is opened."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres_server")
        return server.url(), {}
    return str(tmp_path / "memory.db"), {"key": "a long passphrase"} if request.param == "encrypted" else {}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores of more than five entries are large, and renewed four at a time."""
    monkeypatch.setattr(reembed, "RENEWED_AT_ONCE", 5)
    monkeypatch.setattr(reembed, "PART", 4)


@pytest.fixture(autouse=True)
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many texts were embedded anew."""
    monkeypatch.setattr(reembed, "embedded", embedded)
    return watched(lambda before: None)


def route(memory: Memory) -> str:
    """How the kayak is found, which both ways find."""
    found = memory.recall(ASKED, scope=ADA)
    assert "kayak" in found.hits[0].entry.text.lower()
    return found.route


def job_of(memory: Memory) -> Job:
    (job,) = (job for job in memory.jobs.list(scope=ADA) if job.kind == RENEWAL)
    return job


def lacking(memory: Memory) -> int:
    return len(memory.engine.store.select(None, Selection(without_vector_of=NEW), limit=10_000))


def run_part(memory: Memory) -> None:
    """Do one part of what is due."""
    memory.engine.background._worker.run_one(tenants=["acme"])


def check_renewed(memory: Memory) -> None:
    """Every entry has the vectors that its text gives, those of its sentences too."""
    assert memory.engine.store.model() == NEW
    assert memory.verify().ok
    rows = dict(memory.engine.store.select(None, Selection(), limit=10_000))
    several = [no for no, entry in rows.items() if "kayak" in entry.text]
    assert set(memory.engine.store.parts([*rows])) == {*several}
    stored = memory.engine.store.vectors(several)
    for no in several:
        np.testing.assert_allclose(stored[no], bundled().embed([rows[no].text])[0], atol=1e-4)


def test_a_large_old_store_is_searched_by_words_until_its_vectors_are_renewed(
    place: tuple[str, dict[str, Any]], count: Callable[[], int]
) -> None:
    location, settings = place
    try:
        make_old(location, **settings)
    except MissingExtra:
        pytest.skip("needs SQLCipher")
    with ExitStack() as stack:
        memory, other = (stack.enter_context(Memory(location, background=False, **settings)) for _ in range(2))
        assert memory.engine.store.model() == OLD
        assert [route(one) for one in (memory, other)] == ["words", "words"]
        assert (job_of(memory).state, job_of(memory).result) == ("queued", {})
        assert memory.recall(ASKED, scope=ADA).cost.embedded_texts == 0
        run_part(memory)
        assert job_of(other).result.items() >= {"done": 128, "total": 600}.items()
        memory.remember("Kayak number two is on the roof.", scope=ADA)
        (entry_id,) = other.remember("Tea is served at noon.", scope=ADA)
        other.edit(entry_id, scope=ADA, text="Tea is served at five.")
        assert lacking(memory) == 600 - 128  # what is written meanwhile has its vector already
        assert [hit.entry.text for hit in other.recall("tea served", scope=ADA, k=1)] == ["Tea is served at five."]
        assert memory.verify().ok
        assert route(memory) == "words"
        assert memory.jobs.run(scope=ADA) == PARTS
        assert [route(one) for one in (memory, other)] == ["hybrid", "hybrid"]
        assert memory.recall("two-person paddling boat", scope=ADA).hits[0].entry.text.lower().count("kayak")
        assert count() == 600
        assert (job_of(memory).state, job_of(memory).result["done"]) == ("done", 600)
        assert memory.jobs.run(scope=ADA) == 0
        check_renewed(memory)
        for scope in (ADA, EVE):
            assert [one.detail["model"] for one in events(memory.engine.store, scope.tenant) if one.action == "reembed"]


def test_it_happens_in_the_background_without_being_asked_for(path: str, small_parts: None) -> None:
    make_old(path, entries=30)
    with Memory(path) as memory:
        deadline = time.monotonic() + WAIT_S
        while route(memory) != "hybrid":
            assert time.monotonic() < deadline, "it never came about"
            time.sleep(0.01)
        check_renewed(memory)


def test_a_process_that_is_killed_leaves_the_rest_to_another(
    place: tuple[str, dict[str, Any]], count: Callable[[], int]
) -> None:
    location, settings = place
    try:
        make_old(location, **settings)
    except MissingExtra:
        pytest.skip("needs SQLCipher")
    with child(die_after, location, 256, settings) as (process, _):
        process.join(WAIT_S)
        assert process.exitcode == -9
    with Memory(location, background=False, **settings) as memory:
        assert route(memory) == "words"
        assert job_of(memory).state == "running"
        assert memory.jobs.run(scope=ADA) == 0  # its lease is not over
    later = timedelta(minutes=2)
    with Memory(location, background=False, clock=lambda: system_clock() + later, **settings) as memory:
        memory.jobs.run(scope=ADA)
        assert (route(memory), count()) == ("hybrid", 600 - 256)
        check_renewed(memory)


@contextmanager
def child(target: Callable[..., None], *args: Any) -> Iterator[tuple[Any, Any]]:
    listening, telling = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=target, args=(*args, telling))
    process.start()
    telling.close()
    try:
        yield process, listening
    finally:
        if process.is_alive():
            process.kill()
        process.join(WAIT_S)
        listening.close()


def test_a_role_of_a_tenant_searches_by_words_until_the_owner_has_renewed_all(
    postgres_server: Server, small_parts: None
) -> None:
    url = postgres_server.url()
    make_old(url, entries=20)
    schema = url.rpartition("=")[2]
    roles = {scope.tenant: f"{schema}_{scope.tenant}" for scope in (ADA, EVE)}
    for tenant, role in {**roles, "nobody's": f"{schema}_nobody"}.items():
        postgres_server.say(f"CREATE ROLE {role} LOGIN")
        postgres_server.say(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        postgres_server.say(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
        postgres_server.say(f"INSERT INTO {schema}.tenant_roles VALUES ('{role}', $${tenant}$$)")
    with ExitStack() as stack:

        def opened(role: str) -> Memory:
            as_role = url.replace("postgres@", f"{role}@")
            return stack.enter_context(Memory(as_role, background=False, reflection=ReflectionSettings()))

        mine, eves = opened(roles["acme"]), opened(roles["other"])  # of the first this is a large store
        opened(f"{schema}_nobody")
        owner = stack.enter_context(Memory(url, background=False))
        for _ in range(2):
            mine.jobs.run(scope=ADA)
            mine.remember("The canoe is in the shed.", scope=ADA)
            eves.remember("The hive is full.", scope=EVE)
            assert (route(mine), owner.engine.store.model()) == ("words", OLD)
            assert eves.recall("bees in Ghent", scope=EVE).route == "words"
            run_part(owner)
        assert lacking(owner) > 0
        owner.admin.reembed()
        assert [route(one) for one in (mine, owner)] == ["hybrid", "hybrid"]
        assert eves.recall("bees in Ghent", scope=EVE).route == "hybrid"
        check_renewed(owner)


@pytest.mark.parametrize("place", ["file", "postgres"], indirect=True)
def test_of_two_processes_only_one_has_a_part_and_both_serve_the_result(place: tuple[str, dict[str, Any]]) -> None:
    location, _ = place
    make_old(location)
    with child(renew, location) as (_, first), child(renew, location) as (_, second):
        told = [(one.recv(), one.recv()) for one in (first, second) if one.poll(WAIT_S)]
    assert [opened for opened, _ in told] == ["open", "open"]
    assert sum(texts for _, texts in told) == 600
    with Memory(location, background=False) as memory:
        check_renewed(memory)


def test_who_closes_the_memory_waits_for_a_part_and_the_next_goes_on(
    path: str, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(path, entries=20)
    with Memory(path) as memory:
        deadline = time.monotonic() + WAIT_S
        while not job_of(memory).result:
            assert time.monotonic() < deadline, "it never began"
            time.sleep(0.001)
    with Memory(path, background=False) as memory:
        assert job_of(memory).state in ("queued", "done")
        memory.jobs.run(scope=ADA)
        assert route(memory) == "hybrid"


def test_vectors_of_a_paid_model_are_not_touched(path: str, small_parts: None) -> None:
    make_old(path, entries=20, former=Former("openai:text-embedding-3-small"))
    with pytest.raises(EmbedderMismatch, match="reembed"):
        Memory(path)
    make_old(path + "2", entries=20)
    with pytest.raises(EmbedderMismatch, match="static"):
        Memory(path + "2", embedder="hash")


def test_a_former_reader_of_the_same_width_is_not_mixed_with_this_one(path: str, small_parts: None) -> None:
    make_old(path, entries=20, former=Former("reader:of old", WIDTH))
    with Memory(path, background=False) as memory:
        assert route(memory) == "words"
        memory.remember("The canoe is in the shed.", scope=ADA)
        memory.jobs.run(scope=ADA)
        assert route(memory) == "hybrid"
        check_renewed(memory)


def test_what_is_written_before_it_begins_gets_its_vector_from_the_job(path: str, small_parts: None) -> None:
    make_old(path, entries=20)
    with Memory(path, background=False) as memory:
        memory.remember("The canoe is in the shed.", scope=ADA)
        assert lacking(memory) == 21
        memory.jobs.run(scope=ADA)
        assert lacking(memory) == 0
        check_renewed(memory)


def test_an_export_of_either_model_can_be_loaded_meanwhile(path: str, tmp_path: Path, small_parts: None) -> None:
    make_old(path, entries=20, former=Former("reader:of old", WIDTH))
    texts = {}
    for name, embedder in (("old", Former("reader:of old", WIDTH)), ("new", "reader")):
        with Memory(tmp_path / f"{name}.db", embedder=embedder, background=False) as other:
            (texts[name],) = [f"The {name} canoe is in the shed."]
            other.remember(texts[name], scope=ADA)
            other.admin.export(tmp_path / f"{name}.jsonl")
    with Memory(path, background=False) as memory:
        for name in texts:
            run_part(memory)
            assert memory.admin.load(tmp_path / f"{name}.jsonl").entries == 1
        memory.jobs.run(scope=ADA)
        check_renewed(memory)
        for text in texts.values():
            assert memory.recall(text, scope=ADA).hits[0].entry.text == text


def test_the_job_is_anyones_but_other_work_of_its_tenant_is_not(path: str, small_parts: None) -> None:
    make_old(path, entries=20)
    with Memory(path, background=False, embedder=Former()) as memory:
        session = memory.session("talk", scope=ADA)
        session.add("user", "The secret is a blue door.")
        session.end()
    with Memory(path, background=False, reflection=ReflectionSettings(idle_minutes=None)) as memory:
        memory.jobs.run(scope=EVE)
        assert route(memory) == "hybrid"
        states = {job.kind: job.state for job in memory.jobs.list(scope=ADA)}
        assert states == {RENEWAL: "done", "reflect": "queued"}
        assert memory.jobs.list(scope=EVE) == []


def test_it_is_begun_again_when_those_it_lies_with_are_forgotten(path: str, small_parts: None) -> None:
    make_old(path, entries=20)
    with Memory(path, background=False) as memory:
        memory.remember_many([f"Hive {number} is full." for number in range(8)], scope=EVE)
        run_part(memory)
        memory.forget(everything=True, scope=ADA)
        memory.jobs.run(scope=EVE)
        assert memory.recall("bees in Ghent", scope=EVE).route == "hybrid"
        assert memory.engine.store.model() == NEW


def test_a_job_that_was_given_up_is_begun_again_when_the_store_is_opened(
    path: str, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(path, entries=20)

    def refuse(*_: object) -> None:
        raise ZeroDivisionError

    later = timedelta()
    with Memory(path, background=False, clock=lambda: system_clock() + later) as memory:
        with monkeypatch.context() as broken:
            broken.setattr(reembed, "embedded", refuse)
            for _ in range(6):
                memory.jobs.run(scope=ADA)
                later += timedelta(hours=1)
        assert job_of(memory).state == "dead"
        assert memory.jobs.run(scope=ADA) == 0
        assert route(memory) == "words"
    with Memory(path, background=False, clock=lambda: system_clock() + later) as memory:
        memory.jobs.run(scope=ADA)
        assert route(memory) == "hybrid"


def test_a_store_that_was_moved_back_is_renewed_again(path: str, small_parts: None) -> None:
    make_old(path, entries=20)
    with Memory(path, background=False) as memory:
        memory.jobs.run(scope=ADA)
    with Memory(path, embedder=Former(), reembedding=True, background=False) as memory:
        memory.admin.reembed()
    with Memory(path, background=False) as memory:
        assert (route(memory), job_of(memory).state) == ("words", "queued")
        memory.admin.reembed()
        assert route(memory) == "hybrid"
        memory.jobs.run(scope=ADA)
        assert job_of(memory).state == "done"
        assert memory.engine.store.model() == model_of(bundled())


def test_the_command_line_says_once_how_far_it_is(path: str, small_parts: None) -> None:
    make_old(path, entries=20)
    told = "The vectors of this memory are being renewed: {} of 20."

    def run(*args: str) -> Any:
        options = ["--db", path, "--tenant", "acme", "--user", "ada"]
        result = CliRunner().invoke(program(command_word(args)), [*args, *options], env={"COLUMNS": "200"})
        assert result.exit_code == 0, result.stderr
        return result

    assert run("recall", ASKED).stderr.count(told.format(0)) == 1
    assert "renewed" not in run("recall", ASKED, "--json").stderr
    with Memory(path, background=False) as memory:
        run_part(memory)
    listed = run("jobs", "list")
    assert "whole store: 4 of 20" in listed.stdout
    assert told.format(4) in listed.stderr
    run("jobs", "run")
    assert "renewed" not in run("recall", ASKED).stderr
