"""Reviewers that learn what to look for: each has time for two checks, and learns where which of them pays.

Three agents review every change, each for its own domain and with items of its own. When a defect gets past them, what
would have found it is recorded afterwards, and the next change of that sort is checked for it first. A newcomer then
starts from what a colleague is sure of. Runs as it is; a reviewer that asks a model gets `work.context()` in its prompt
instead of reading the items itself.

    python examples/code_review_agents.py
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from wellworn import Memory, Scope
from wellworn.tasks import ReasoningBank, Work

CHECKS = {
    "security": ("sql from strings", "unescaped output", "missing csrf token", "secret in code", "open redirect"),
    "performance": ("query in a loop", "unbounded cache", "copy of a large list", "regex in a loop", "missing index"),
    "style": ("swallowed exception", "unclear name", "no test", "dead code", "wide interface"),
}
DEFECTS = {
    ("orders database layer", "security"): "sql from strings",
    ("orders database layer", "performance"): "missing index",
    ("checkout page template", "security"): "unescaped output",
    ("checkout page template", "style"): "dead code",
    ("report export job", "performance"): "copy of a large list",
    ("report export job", "style"): "swallowed exception",
}
"""What goes wrong where: the reviewers are not told."""
TIME_FOR = 2
CHECKED = re.compile(r'check\(defect="([^"]+)"')


@dataclass(frozen=True)
class Change:
    """A change to review."""

    number: int
    area: str

    def has(self, topic: str, defect: str) -> bool:
        return DEFECTS.get((self.area, topic)) == defect


class Reviewer:
    """One agent with one topic."""

    def __init__(self, memory: Memory, topic: str, *, name: str = "", seed: int = 1) -> None:
        self.topic = topic
        self.scope = Scope(tenant="examples", agent=name or f"{topic}-reviewer")
        self.bank = ReasoningBank(memory, scope=self.scope)
        self._draw = random.Random(seed)

    def review(self, change: Change) -> bool:
        """Whether the review found what is wrong with the change; a change without a defect passes."""
        query = f"Review a change of the {change.area} for {self.topic}"
        expected = DEFECTS.get((change.area, self.topic))
        if expected is None:
            return True

        def execute(work: Work) -> dict[str, object]:
            steps = [self._check(change, defect) for defect in self._chosen(work)]
            return {"steps": steps, "checks": {"found what was wrong": any(step["ok"] for step in steps)}}

        task_id, domain = f"{self.topic}-{change.number}", f"code-review.{self.topic}"
        found = self.bank.run_task(task_id=task_id, query=query, domain=domain, execute=execute).success
        if not found:  # it came out later; the post-mortem says which check would have told
            late = [self._check(change, expected)]
            self.bank.record({"steps": late}, task_id=f"{task_id}-post-mortem", query=query, domain=domain)
        return found

    def _chosen(self, work: Work) -> list[str]:
        """What the items say has paid before, then whatever comes to mind, as long as there is time."""
        paid = [name for hit in work.hits if hit.entry.kind == "strategy" for name in CHECKED.findall(hit.entry.text)]
        guesses = self._draw.sample(CHECKS[self.topic], k=len(CHECKS[self.topic]))
        return list(dict.fromkeys([*paid, *guesses]))[:TIME_FOR]

    def _check(self, change: Change, defect: str) -> dict[str, object]:
        """Stands for the work itself: a linter, a model, a person."""
        found = change.has(self.topic, defect)
        error = "" if found else "nothing found"
        return {"tool": "check", "args": {"defect": defect}, "ok": found, "error": error}


def main() -> None:
    areas = sorted({area for area, _ in DEFECTS})
    changes = [Change(number, areas[number % len(areas)]) for number in range(48)]
    with Memory(":memory:") as memory:
        team = [Reviewer(memory, topic) for topic in CHECKS]
        missed = [sum(not reviewer.review(change) for reviewer in team) for change in changes]
        for start in range(0, len(missed), 12):
            print(f"changes {start + 1:2}-{start + 12:2}: {sum(missed[start : start + 12])} defects got through")

        newcomer, colleague = Reviewer(memory, "security", name="newcomer", seed=2), team[0]
        shares = newcomer.bank.sharing.learn_from_peer(colleague.scope)
        copied = [share for share in shares if share.copy_id]
        missed_late = sum(not newcomer.review(Change(100 + number, area)) for number, area in enumerate(areas))
        print(f"the newcomer starts with {len(copied)} items of {colleague.scope.agent} and misses {missed_late}")
        for hit in newcomer.bank.retrieve("Review a change of the orders database layer for security"):
            print(hit.entry.text)


if __name__ == "__main__":
    main()
