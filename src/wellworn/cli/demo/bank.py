"""An agent against a small service with conventions nobody told it: each task once alone, once with the bank.

The agent is honest about what it knows: it starts from a fixed guess and changes an argument only if an item that it
was given says so. Deterministic; no model.
"""

from __future__ import annotations

import re
from typing import Any

from wellworn.core.values import Scope
from wellworn.memory import Memory
from wellworn.tasks import ReasoningBank, Work

SCOPE = Scope(tenant="demo", agent="clerk")
NAMES = ("Ada", "Bob", "Cem", "Dana", "Eli", "Fay")
KINDS = {
    "invoice": ("currency", "euro", ("EUR", "eur")),
    "booking": ("date", "01.05.2026", ("2026-05-01",)),
    "ticket": ("priority", "urgent", ("P1",)),
}
"""What is made, the argument with a convention, what the agent would give, and what it tries when that is refused."""
RIGHT = {"invoice": "EUR", "booking": "2026-05-01", "ticket": "P1"}
_SAID = re.compile(r'(?P<name>\w+)="(?P<value>[^"]+)"')


def tell_bank() -> dict[str, Any]:  # as JSON
    """Run the tasks and say how each went."""
    with Memory.open(":memory:", background=False) as memory:
        bank = ReasoningBank(memory, scope=SCOPE)
        rows = [_one(bank, number, *_task(number)) for number in range(12)]
        items = [
            {"text": entry.text, "confidence": entry.confidence, "used": entry.usage_count}
            for entry in bank.items(limit=6)
        ]
    return {
        "tasks": rows,
        "items": items,
        "count": len(rows),
        "with": sum(row["with"] for row in rows),
        "without": sum(row["without"] for row in rows),
    }


def _task(number: int) -> tuple[str, str]:
    kind = (*KINDS,)[number % len(KINDS)]
    return kind, f"Make a new {kind} for {NAMES[number % len(NAMES)]}"


def _one(bank: ReasoningBank, number: int, kind: str, query: str) -> dict[str, Any]:  # as JSON
    alone = _agent(kind, query, told="", tries=1)
    given: list[str] = []

    def execute(work: Work) -> Any:  # a trajectory
        given.extend(hit.entry.title for hit in work.hits)
        return _agent(kind, query, told=" ".join(hit.entry.text for hit in work.hits), tries=1)

    out = bank.run_task(task_id=f"t{number}", query=query, domain=f"office.{kind}", execute=execute)
    if not out.success:  # the agent's owner looks into it, and the agent learns what would have worked
        bank.record(_agent(kind, query, told="", tries=9), task_id=f"t{number}", domain=f"office.{kind}", query=query)
    return {
        "number": number + 1,
        "task": query,
        "without": alone["steps"][-1]["ok"],
        "with": out.success,
        "given": given[0] if given else "",
    }


def _agent(kind: str, query: str, *, told: str, tries: int) -> dict[str, Any]:  # a trajectory
    """Calls the service with its guess, or with what it was told; then with what else it can think of."""
    name, guess, others = KINDS[kind]
    said = [found["value"] for found in _SAID.finditer(told) if found["name"] == name]
    steps = []
    for value in (said[0] if said else guess, *others)[:tries]:
        steps.append(_service(kind, {"for": query.rpartition(" ")[2], name: value}))
        if steps[-1]["ok"]:
            break
    return {"query": query, "steps": steps}


def _service(kind: str, arguments: dict[str, str]) -> dict[str, Any]:  # a step
    """Refuses whatever does not follow its conventions, and does not say what they are."""
    name = KINDS[kind][0]
    ok = arguments[name] == RIGHT[kind]
    error = "" if ok else f"400 invalid {name}"
    return {"tool": f"make_{kind}", "args": arguments, "ok": ok, "error": error}
