"""A question over everything, answered by programs that a model writes and a sandbox runs.

Runs as it is, with a scripted model; put the name of yours in its place, as in Models(root="openai:gpt-5.6-terra",
sub="openai:gpt-5.6-luna", repl=ReplLimits()). Needs the sandbox: pip install 'wellworn[repl]'.

    python examples/recursive_repl.py
"""

from __future__ import annotations

import re

from wellworn import Memory, Models, Recursion, ReplLimits, Scope
from wellworn.models import Request, ScriptedModel

TEAMS = {"Atlas": "retries twice", "Boreas": "fails at once", "Cygnus": "retries twice", "Draco": "fails at once"}

LOOK = """```python
found = search_chunks("error handling in team", limit=20)
print([(one["title"], one["preview"]) for one in found])
```"""
ANSWER = """```python
teams = [one for one in found if one["title"].startswith("Team ")]
answers = llm_query_batched([f"How does this team handle errors? {read_chunk(one)}" for one in teams])
groups = {}
for one, answer in zip(teams, answers):
    groups.setdefault(answer, []).append(one["title"])
lines = [f"{', '.join(sorted(who))}: {what}" for what, who in sorted(groups.items())]
FINAL("; ".join(lines), chunk_ids=[one["id"] for one in teams], confidence=0.9)
```"""


def read(request: Request) -> str:
    """A stand-in for the smaller model: it finds what a text says after a colon."""
    found = re.search(r"handling: (.*?)\.", request.messages[-1].text)
    return found[1] if found else "not stated"


def main() -> None:
    scope = Scope(tenant="examples", org="platform")
    model = ScriptedModel({"repl": [LOOK, ANSWER], "repl_query": read})
    recursion = Recursion(models=Models(root=model, repl=ReplLimits(iterations=4, usd=0.05)))
    with Memory(":memory:", recursion=recursion) as mem:
        for team, handling in TEAMS.items():
            mem.remember(f"Team {team}, error handling: {handling}.", scope=scope, title=f"Team {team}")
        mem.remember_many([f"Note {n} about lunch and parking." for n in range(200)], scope=scope)
        found = mem.reason("Compare error handling across all teams", scope=scope)
    print(found.conclusion)
    print(f"rests on {len(found.cited)} entries, confidence {found.confidence}")
    cost = found.recall.cost
    print(f"{cost.model_calls} model calls, {cost.input_tokens + cost.output_tokens} tokens")
    assert found.explored is not None
    print(f"{found.explored.iterations_used} programs")


if __name__ == "__main__":
    main()
