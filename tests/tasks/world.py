"""A scope, small agents, and trajectories that many tests use."""

from __future__ import annotations

from typing import Any

from memory.world import NOON as NOON
from memory.world import Clock as Clock
from wellworn import Scope
from wellworn.tasks import ReasoningBank, Trajectory, trajectory_of
from wellworn.tasks.attempts import Attempts
from wellworn.tasks.consolidate import Consolidator
from wellworn.tasks.engine import Parts
from wellworn.tasks.tasks import Tasks

AGENT = Scope(tenant="acme", agent="a1", user="ada")


def a_call(tool: str, ok: bool | None = True, error: str = "", **arguments: Any) -> dict[str, Any]:  # any JSON value
    return {"tool": tool, "args": arguments, "ok": False if error else ok, "error": error}


def a_try(query: str, *steps: dict[str, Any], **fields: Any) -> Trajectory:  # fields of a trajectory
    return trajectory_of({"query": query, "steps": list(steps), **fields})


def corrected(name: str) -> Trajectory:
    """Failed with one role, worked with another."""
    return a_try(
        f"Create user {name} with the panel",
        a_call("create_user", error="400 invalid role", name=name, role="Admin"),
        a_call("create_user", name=name, role="admin"),
    )


def stuck(name: str) -> Trajectory:
    """Failed with the same call again and again."""
    wrong = a_call("create_user", error="400 invalid role", name=name, role="Admin")
    return a_try(f"Create user {name} with the panel", wrong, wrong, wrong)


def finishing(bank: ReasoningBank) -> tuple[Tasks, Attempts]:
    """What moves the attempts of a bank on, to stop it anywhere."""
    parts = Parts(bank.memory, AGENT, "mask")
    tasks = Tasks(parts.engine.store, parts.engine.clock)
    return tasks, Attempts(parts, tasks, Consolidator(parts).added)
