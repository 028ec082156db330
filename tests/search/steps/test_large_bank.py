"""A million tokens: a question about all teams is answered by programs and by plans, within budget."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

import pytest

from wellworn import Limits, Memory, Models, Recursion, ReplLimits, Scope
from wellworn.models import Request, ScriptedModel

pytestmark = pytest.mark.slow

SCOPE = Scope(tenant="acme", org="platform")
TEAMS = "Atlas Boreas Cygnus Draco Equinox Fornax Gemini Hydra Indus Juno Kepler Lyra".split()  # noqa: SIM905
HANDLING = {
    team: ("retries with backoff", "fails at once", "keeps a dead letter queue")[n % 3] for n, team in enumerate(TEAMS)
}
QUESTION = "Compare error handling across all teams"
ENTRIES = 10_200
WORDS = [
    f"{a}{b}"
    for a in ("sprint", "report", "ticket", "deploy", "review", "budget", "meeting", "metric", "plan", "draft")
    for b in ("", "s", "ing", "board", "log", "note", "list", "day")
]


def texts() -> Iterator[dict[str, object]]:
    chance = random.Random(7)
    for number in range(ENTRIES):
        team = TEAMS[number % len(TEAMS)]
        words = " ".join(chance.choices(WORDS, k=62))
        yield {"text": f"Item {number} of team {team}: {words}.", "tags": [team.lower()]}
    for number in range(40):  # what plain search takes for the answer
        yield {"text": f"To compare error handling across all teams was put off, note {number}.", "tags": ["errors"]}
    for team, handling in HANDLING.items():
        yield {"text": f"Error handling in team {team}: the service {handling}.", "tags": [team.lower(), "errors"]}


@pytest.fixture(scope="module")
def bank() -> Iterator[tuple[Memory, dict[str, list[str]]]]:
    """The memory, and the programs of its model by round."""
    program = """
teams = TEAMS
found = {team: search_chunks(f"error handling in team {team}", limit=3) for team in teams}
prompts = [f"How does team {team} handle errors? {read_chunk(found[team][0])}" for team in teams]
answers = dict(zip(teams, llm_query_batched(prompts)))
print(answers)
"""
    final = """
by = {}
for team, answer in answers.items():
    by.setdefault(answer, []).append(team)
FINAL("; ".join(f"{what}: {', '.join(who)}" for what, who in sorted(by.items())),
      chunk_ids=[found[team][0] for team in teams], confidence=0.9)
"""
    plan = {
        "actions": [
            *[{"action": "recursive_call", "sub_query": f"error handling in team {team}"} for team in TEAMS],
            {"action": "aggregate", "strategy": "compare"},
        ]
    }

    def read(request: Request) -> str:
        found = re.search(r"the service (.*)\.", request.messages[-1].text)
        return found[1] if found else "not stated"

    first = f"```python\n{program.replace('TEAMS', repr(TEAMS))}\n```"
    rounds = {"repl": [first, f"```python\n{final}\n```"]}
    model = ScriptedModel(
        {
            "repl": lambda request: rounds["repl"][(len(request.messages) - 2) // 2],
            "repl_query": read,
            "plan": json.dumps(plan),
        },
        name="gpt-5.6-luna",
    )
    models = Models(root=model, repl=ReplLimits(usd=0.05, tokens=60_000, timeout_s=600))
    recursion = Recursion(models=models, limits=Limits(timeout_s=600.0))
    with Memory.open(":memory:", embedder=None, recursion=recursion, learning="off") as memory:
        memory.remember_many(texts(), scope=SCOPE)
        yield memory, rounds


def test_programs_compare_all_teams_of_a_million_tokens(bank: tuple[Memory, dict[str, list[str]]]) -> None:
    memory, _ = bank
    entries = memory.entries(scope=SCOPE, limit=ENTRIES + 100)
    assert len(entries) >= 10_000
    assert sum(entry.token_count for entry in entries) >= 1_000_000
    found = memory.reason(QUESTION, scope=SCOPE)
    assert found.explored is not None
    assert found.explored.problem == ""
    for handling in set(HANDLING.values()):
        teams = ", ".join(team for team, own in HANDLING.items() if own == handling)
        assert f"{handling}: {teams}" in found.conclusion
    assert len(found.cited) == len(TEAMS)
    cost = found.recall.cost
    assert cost.model_calls == 2 + len(TEAMS)
    assert cost.input_tokens + cost.output_tokens < 10_000, "a hundredth of the bank"
    assert 0 < cost.usd < 0.05


def test_a_plan_brings_every_team_into_one_recall(bank: tuple[Memory, dict[str, list[str]]]) -> None:
    memory, _ = bank
    found = memory.recall(QUESTION, scope=SCOPE, k=len(TEAMS))
    assert not any(step.problem for step in found.trace)
    teams = {team for team in TEAMS for hit in found.hits if f"Error handling in team {team}" in hit.entry.text}
    assert teams == set(TEAMS)
    assert found.cost.model_calls == 1
    plain = memory.recall(QUESTION, scope=SCOPE, k=len(TEAMS), recursion="off")
    assert not any("Error handling in team" in hit.entry.text for hit in plain.hits)


def test_over_the_budget_the_question_is_answered_without_programs(bank: tuple[Memory, dict[str, list[str]]]) -> None:
    memory, rounds = bank
    kept = rounds["repl"]
    rounds["repl"] = ["```\nwhile True:\n    llm_query_batched(['x' * 4000] * 8)\n```"] * 8
    try:
        found = memory.reason(QUESTION, scope=SCOPE)
    finally:
        rounds["repl"] = kept
    assert found.explored is not None
    assert "limit" in found.explored.problem
    assert found.path
    assert found.recall.cost.usd < 0.05
