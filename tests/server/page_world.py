"""A small memory for looking at the page: a person with a past, sessions, an agent with questions to decide, keys."""

from __future__ import annotations

from datetime import UTC, datetime

from wellworn import Memory, Scope
from wellworn.server.keys import create_key
from wellworn.tasks import ReasoningBank

START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
SAID = (
    ("user", "I moved to Lisbon last month, and I work from home on Fridays."),
    ("assistant", "Noted. How do you like it there?"),
    ("user", "Thanks! What time is it there now?"),
    ("user", "I prefer tea to coffee, and I am allergic to walnuts."),
)


def fill(memory: Memory, *, user: str = "ada", agent: str = "deployer") -> dict[str, str]:
    """Fill a memory, and return ids by name."""
    ada = memory.for_user(user)
    session = ada.session("spring-planning")
    for number, (role, text) in enumerate(SAID):
        session.add(role, text, at=START.replace(minute=number))
    ada.reflect("spring-planning")
    (oslo,) = ada.remember("Ada lives in Oslo.", kind="fact", at="2024-02-01", tags=["home"])
    (lisbon,) = ada.remember("Ada lives in Lisbon.", kind="fact", at="2026-04-01", tags=["home"])
    ada.supersede(oslo, lisbon)
    (tokio,) = ada.remember("Ada prefers tokio over async-std.", kind="preference", tags=["rust"])
    (train,) = ada.remember("Ada takes the train to the office on Tuesdays.", kind="pattern")
    ada.link(lisbon, train, "supports")
    ada.link(tokio, lisbon, "elaborates")
    ada.edit(tokio, text="Ada prefers tokio over async-std for network services.")
    found = ada.recall("where does Ada live?")
    ada.outcome(found.id, cited=[0])
    _work(memory, Scope(user=user, agent=agent))
    store, now = memory.engine.store, memory.engine.clock()
    create_key(store, tenant="default", role="writer", now=now, name="laptop", layers={"user": [user]})
    return {"oslo": oslo, "lisbon": lisbon, "tokio": tokio, "train": train}


def _work(memory: Memory, scope: Scope) -> None:
    bank = ReasoningBank(memory, scope=scope)
    steps = [
        {"tool": "shell", "args": {"command": "make build"}, "result": "built", "ok": True},
        {"tool": "shell", "args": {"command": "make deploy-staging"}, "result": "deployed", "ok": True},
    ]
    bank.record(
        {"query": "deploy the site to staging", "steps": steps}, verdict=True, task_id="t1", agent_id="deployer"
    )
    agent = memory.for_scope(scope)
    kept = {"layer": "agent", "source": "task"}
    first, second = agent.remember_many(
        [
            {"text": "Run the migrations before the deploy.", "kind": "strategy", "title": "Migrations first", **kept},
            {
                "text": "Never run the migrations before the deploy.",
                "kind": "guardrail",
                "title": "Deploy first",
                **kept,
            },
        ]
    )
    agent.link(first, second, "contradicts")
    for id in (first, second):
        agent.edit(id, state="flagged")
