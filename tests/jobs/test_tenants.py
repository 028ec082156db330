"""A worker serves the tenants it was told to, by default those that were opened there; nobody else's words reach its model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wellworn import InvalidInput, Memory, ReflectionSettings, Scope, ScopeError
from wellworn.cli.program import program

ACME, RIVAL = Scope(tenant="acme", user="ada"), Scope(tenant="rival", user="bo")


class Listener:
    """A model that only listens."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.heard.append(prompt)
        return "[]"


def queue_a_talk(path: Path, scope: Scope, **settings: Any) -> None:
    with Memory(path, embedder="hash", background=False, **settings) as memory:
        session = memory.session("talk", scope=scope)
        session.add("user", f"The secret of {scope.tenant} is a blue door in Delft.")
        session.end()


def states(path: Path, scope: Scope) -> list[str]:
    with Memory(path, embedder="hash", background=False) as memory:
        return [job.state for job in memory.jobs.list(scope=scope)]


@pytest.mark.parametrize("background", [True, False])
def test_a_model_is_never_asked_about_a_tenant_that_was_not_opened_with_it(tmp_path: Path, background: bool) -> None:
    path, model = tmp_path / "memory.db", Listener()
    queue_a_talk(path, RIVAL)
    with Memory(path, embedder="hash", llm=model, background=background) as memory:
        session = memory.session("talk", scope=ACME)
        session.add("user", "The secret of acme is a red bicycle in Ghent.")
        session.end(wait=300)
        if not background:
            memory.jobs.run()
        deadline = time.monotonic() + 300
        while memory.jobs.list(scope=ACME)[0].state != "done" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [job.state for job in memory.jobs.list(scope=RIVAL)] == ["queued"]
    assert model.heard
    assert not [prompt for prompt in model.heard if "blue door" in prompt]


def test_it_serves_the_tenants_it_was_told_to(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    for scope in (ACME, RIVAL):
        queue_a_talk(path, scope)
    with Memory(path, embedder="hash", background=False) as memory:
        with pytest.raises(ScopeError, match="several tenants"):
            memory.jobs.run()
        assert memory.for_scope(ACME).jobs.run() == 1
        assert memory.for_scope(ACME).jobs.run() == 0
    assert (states(path, ACME), states(path, RIVAL)) == (["done"], ["queued"])
    with Memory(path, embedder="hash", background=False, tenants="all") as memory:
        assert memory.jobs.run() == 1
    with pytest.raises(InvalidInput, match="tenants"):
        Memory(path, tenants="acme")


def test_idle_sessions_of_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder="hash", background=False) as memory:
        for scope in (ACME, RIVAL):
            memory.session("idle", scope=scope).add("user", "The harbour opens at six.", at="2020-01-01")
    settings = ReflectionSettings(idle_minutes=0)
    with Memory(path, embedder="hash", background=False, tenants=["acme"], reflection=settings) as memory:
        assert memory.jobs.run() == 1
        assert memory.jobs.list(scope=RIVAL) == []


def test_a_command_runs_the_jobs_of_its_own_tenant(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    for scope in (ACME, RIVAL):
        queue_a_talk(path, scope)
    options = ["--db", str(path), "--embedder", "hash"]
    for more, expected in ((["--tenant", "acme"], ["queued"]), (["--all-tenants"], ["done"])):
        assert CliRunner().invoke(program("jobs"), ["jobs", "run", *options, *more]).exit_code == 0
        assert (states(path, ACME), states(path, RIVAL)) == (["done"], expected)
