"""Does an agent with the bank succeed more often? A world with hidden rules, lived through on the real product.

Every way to live gets the same tasks, the same rules and the same luck at guessing; they differ in what the bank is
allowed. What the agent knows of a rule it read in an item that the bank retrieved.

    without             no bank
    six tries           no bank, but twice the tries at every task
    empty               a bank that is asked and never told anything
    in order            the bank, one item a task; tasks come kind after kind
    shuffled            the same, in random order; every way below is shuffled too
    k = 2, 3, 4         more items a task
    successes only      items out of failures are forgotten again
    verdicts 30 % wrong the judge is wrong in three of ten tasks
    verdicts at chance  it is wrong in every other, and sure of it
    rules judge         nobody says how it went, and tools say only what failed: the judge without a model decides
    gullible            the agent follows items that are about something else
    rules change        half-way every rule is drawn anew; compared with the same change without a bank
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from evals.bank_agent import CHECK, TRIES, attempt
from evals.bank_report import BankReport, Done
from evals.bank_world import World, WorldTask, tasks
from evals.run import Steps
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Progress, Scope
from wellworn.memory import Memory
from wellworn.tasks import ReasoningBank, TaskResult, Work

SCOPE = Scope(tenant="eval", agent="clerk")
DOMAIN = "office"
FIRST_WORLD = 100
"""Worlds with smaller numbers were looked at while the bank was made."""
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Way:
    """What the bank and the agent are allowed."""

    bank: bool = True
    learns: bool = True
    shuffled: bool = True
    k: int = 1
    failures: bool = True
    wrong: float = 0.0
    """Share of verdicts that say the opposite."""
    silent: bool = False
    """Whether nobody says how it went, and tools say only that they failed."""
    gullible: bool = False
    changes: bool = False
    tries: int = TRIES


WAYS = {
    "without": Way(bank=False),
    "without, six tries": Way(bank=False, tries=6),
    "empty": Way(learns=False),
    "in order": Way(shuffled=False),
    "shuffled": Way(),
    "k = 2": Way(k=2),
    "k = 3": Way(k=3),
    "k = 4": Way(k=4),
    "successes only": Way(failures=False),
    "verdicts 30 % wrong": Way(wrong=0.3),
    "verdicts at chance": Way(wrong=0.5),
    "rules judge": Way(silent=True),
    "gullible": Way(gullible=True),
    "gullible, k = 4": Way(gullible=True, k=4),
    "gullible, verdicts at chance": Way(gullible=True, wrong=0.5),
    "rules change": Way(changes=True),
    "rules change, without": Way(changes=True, bank=False),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How many tasks, in how many worlds, and which of the ways."""

    tasks: int = 200
    seeds: int = 5
    embedder: str = "static"
    ways: tuple[str, ...] = tuple(WAYS)


def run(settings: Settings, *, progress: Progress | None = None) -> BankReport:
    """Live every way in every world."""
    unknown = [name for name in settings.ways if name not in WAYS]
    if unknown:
        raise InvalidInput("--way", f"{unknown[0]!r} is none", f"known are {', '.join(WAYS)}")
    for name, number in (("--tasks", settings.tasks), ("--seeds", settings.seeds)):
        if number < 1:
            raise InvalidInput(name, f"is {number}", "at least 1")
    steps = Steps(total=settings.tasks * settings.seeds * len(settings.ways), progress=progress)
    done = {
        name: [
            one
            for seed in range(FIRST_WORLD, FIRST_WORLD + settings.seeds)
            for one in live(WAYS[name], seed, settings, steps)
        ]
        for name in settings.ways
    }
    return BankReport(tasks=settings.tasks, seeds=settings.seeds, embedder=settings.embedder, done=done)


def with_alone(ways: Sequence[str]) -> tuple[str, ...]:
    """These ways, and before each what it is compared with."""
    alone = {name: "rules change, without" if name.startswith("rules change") else "without" for name in ways}
    return tuple(dict.fromkeys([*alone.values(), *ways]))


def live(way: Way, seed: int, settings: Settings, steps: Steps) -> list[Done]:
    """One life in one world."""
    order = tasks(seed, settings.tasks, shuffled=way.shuffled)
    worlds = [World(seed), World(seed + 10_000) if way.changes else World(seed)]
    draw = random.Random(f"verdicts/{seed}")
    with _Life(way, seed, settings.embedder) as life:
        found = []
        for place, task in enumerate(order):
            world = worlds[2 * place >= len(order)]
            found.append(life.do(task, world, place / len(order), wrong=draw.random() < way.wrong))
            steps.advance()
    return found


class _Life:
    """A memory of its own, a clock that moves an hour a task, and ids from the seed."""

    def __init__(self, way: Way, seed: int, embedder: str) -> None:
        draw = random.Random(f"ids/{seed}")
        self._way, self._seed, self._now = way, seed, START

        def new_id() -> str:
            return str(uuid.UUID(int=draw.getrandbits(128), version=4))

        self._memory = Memory.open(
            ":memory:", embedder=embedder, background=False, clock=lambda: self._now, new_id=new_id
        )
        self._bank = ReasoningBank(self._memory, scope=SCOPE, k=way.k, new_id=new_id)

    def __enter__(self) -> _Life:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()

    def do(self, task: WorldTask, world: World, place: float, *, wrong: bool) -> Done:
        """One task, done as this life does it."""
        self._now += timedelta(hours=1)
        items: list[str] = []

        def agent(given: list[str]) -> dict[str, Any]:  # a trajectory
            items.extend(given)
            return attempt(world, task, given, seed=self._seed, gullible=self._way.gullible, tries=self._way.tries)

        work = self._worked(task, agent, wrong)
        return Done(
            seed=self._seed,
            kind=task.kind.tool,
            family=task.kind.family,
            number=task.number,
            place=place,
            success=work["checks"][CHECK],
            calls=len(work["steps"]),
            given=len(items),
            used=len(work["used"]),
            steps=work["steps"],
        )

    def _worked(self, task: WorldTask, agent: Callable[[list[str]], dict[str, Any]], wrong: bool) -> dict[str, Any]:
        if not self._way.bank:
            return agent([])
        if not self._way.learns:
            return agent([hit.entry.text for hit in self._bank.retrieve(task.query, domain=DOMAIN).hits])

        done: list[dict[str, Any]] = []

        def execute(work: Work) -> dict[str, Any]:  # a trajectory, as the bank is to see it
            made = agent([hit.entry.text for hit in work.hits])
            done.append(made)
            if self._way.silent:
                steps = [{**step, "ok": step["ok"] and None} for step in made["steps"]]
                return {**made, "steps": steps, "checks": {}}
            return {**made, "verdict": not made["checks"][CHECK]} if wrong else made

        out = self._bank.run_task(
            task_id=f"task-{task.number}", agent_id="clerk", query=task.query, domain=DOMAIN, execute=execute
        )
        self._after(out)
        return done[0]

    def _after(self, out: TaskResult) -> None:
        """Jobs that came due are done at once; where only successes may teach, a failure's items go."""
        if not self._way.failures and not out.success and out.entry_ids:
            self._memory.forget(scope=SCOPE, ids=list(out.entry_ids))
        self._memory.run_jobs()
