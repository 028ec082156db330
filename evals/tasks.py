"""Does an agent that learns from its tasks succeed more often? A world with hidden rules, lived through.

Every way to live gets the same tasks, the same rules and the same luck at guessing; they differ in what the bank of
strategies is allowed (`WAYS`). The agent knows a rule only from an item that the bank retrieved.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from evals.report import Interval, Report, Steps, Table, interval
from evals.world import CHECK, FAMILIES, TRIES, VOCABULARIES, World, WorldTask, attempt, read, tasks
from wellworn import Memory, Scope
from wellworn.core.values import Hit, Progress
from wellworn.tasks import ReasoningBank, Work

SCOPE = Scope(tenant="eval", agent="clerk")
DOMAIN = "office"
FIRST_WORLD = 100
"""Worlds with smaller numbers were looked at while the bank was made."""
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Life:
    """What the bank and the agent are allowed."""

    bank: bool = True
    learns: bool = True
    shuffled: bool = True
    """Whether tasks come in random order instead of kind after kind."""
    k: int = 1
    failures: bool = True
    """Whether failures may teach, too."""
    wrong: float = 0.0
    """Share of verdicts that say the opposite."""
    silent: bool = False
    """Whether nobody says how it went and tools report only errors: the judge without a model decides."""
    gullible: bool = False
    """Whether the agent follows items that are about something else."""
    changes: bool = False
    """Whether every rule is drawn anew half-way; compared with the same change without a bank."""
    consolidates: bool = False
    """Whether the bank is consolidated after every task, and not only when that is due."""
    tries: int = TRIES


WAYS = {
    "without": Life(bank=False),
    "without, six tries": Life(bank=False, tries=6),
    "empty": Life(learns=False),
    "in order": Life(shuffled=False),
    "shuffled": Life(),
    "k = 3": Life(k=3),
    "successes only": Life(failures=False),
    "verdicts 30 % wrong": Life(wrong=0.3),
    "verdicts at chance": Life(wrong=0.5),
    "rules judge": Life(silent=True),
    "gullible": Life(gullible=True),
    "gullible, verdicts at chance": Life(gullible=True, wrong=0.5),
    "k = 3, verdicts 30 % wrong": Life(k=3, wrong=0.3),
    "rules change": Life(changes=True),
    "rules change, consolidated after every task": Life(changes=True, consolidates=True),
    "rules change, without": Life(changes=True, bank=False),
}


@dataclass(frozen=True, kw_only=True)
class Done:
    """One task, done once. `place` is when in the life it came: 0 first, towards 1 last."""

    seed: int
    kind: str
    family: str
    number: int
    place: float
    success: bool
    used: int
    """Items of the bank that the agent followed."""
    steps: list[dict[str, Any]]


def run(
    ways: Sequence[str] = (),
    *,
    count: int = 200,
    seeds: int = 1,
    embedder: str = "reader",
    words: str = "check",
    progress: Progress | None = None,
) -> Report:
    """Live these ways (all without any) in every world, each beside what it is compared with; `words` is `check` or
    `tune`, the vocabulary that was looked at while the bank was made."""
    unknown = [name for name in ways if name not in WAYS]
    if unknown or count < 1 or seeds < 1:
        raise ValueError(f"not a way: {unknown[0]!r} (one of {', '.join(WAYS)})" if unknown else "at least one of each")
    chosen = list(dict.fromkeys([*map(_alone, ways), *ways])) if ways else list(WAYS)
    steps = Steps(total=count * seeds * len(chosen), progress=progress)
    worlds = range(FIRST_WORLD, FIRST_WORLD + seeds)
    done = {
        name: [one for seed in worlds for one in live(WAYS[name], seed, count, embedder, steps, words)]
        for name in chosen
    }
    about = {
        "tasks": count,
        "worlds": seeds,
        "words": words,
        "embedder": embedder,
        "gain": "over the same tasks without a bank",
    }
    return Report(name="tasks", about=about, tables=_tables(done))


def live(way: Life, seed: int, count: int, embedder: str, steps: Steps, words: str = "check") -> list[Done]:
    """One life in one world."""
    spoken = VOCABULARIES[words]
    order = tasks(spoken, seed, count, shuffled=way.shuffled)
    worlds = [World(spoken, seed), World(spoken, seed + 10_000) if way.changes else World(spoken, seed)]
    draw, ids = random.Random(f"verdicts/{seed}"), random.Random(f"ids/{seed}")
    now = [START]

    def new_id() -> str:
        return str(uuid.UUID(int=ids.getrandbits(128), version=4))

    found = []
    with Memory.open(":memory:", embedder=embedder, background=False, clock=lambda: now[0], new_id=new_id) as memory:
        bank = ReasoningBank(memory, scope=SCOPE, k=way.k)
        for number, task in enumerate(order):
            now[0] += timedelta(hours=1)
            place = number / len(order)
            work = _worked(memory, bank, way, worlds[place >= 0.5], task, seed=seed, wrong=draw.random() < way.wrong)
            found.append(
                Done(
                    seed=seed,
                    kind=task.kind.tool,
                    family=task.kind.family,
                    number=task.number,
                    place=place,
                    success=work["checks"][CHECK],
                    used=len(work["used"]),
                    steps=work["steps"],
                )
            )
            steps.advance()
    return found


def _worked(
    memory: Memory, bank: ReasoningBank, way: Life, world: World, task: WorldTask, *, seed: int, wrong: bool
) -> dict[str, Any]:
    """One task, done as this life does it, as a trajectory."""

    def agent(given: Sequence[Hit]) -> dict[str, Any]:
        told = [read(hit.entry.metadata) for hit in given]
        return attempt(world, task, told, seed=seed, gullible=way.gullible, tries=way.tries)

    if not way.bank:
        return agent([])
    if not way.learns:
        return agent(bank.retrieve(task.query, domain=DOMAIN).hits)
    done: list[dict[str, Any]] = []

    def execute(work: Work) -> dict[str, Any]:  # the trajectory as the bank sees it
        made = agent(work.hits)
        done.append(made)
        if way.silent:
            steps = [{**step, "ok": step["ok"] and None} for step in made["steps"]]
            return {**made, "steps": steps, "checks": {}}
        return {**made, "verdict": not made["checks"][CHECK]} if wrong else made

    out = bank.run_task(
        task_id=f"task-{task.number}", agent_id="clerk", query=task.query, domain=DOMAIN, execute=execute
    )
    if not way.failures and not out.success and out.entry_ids:
        memory.forget(scope=SCOPE, ids=list(out.entry_ids))
    memory.jobs.run()
    if way.consolidates:
        bank.consolidate()
    return done[0]


def _alone(way: str) -> str:
    return "rules change, without" if way.startswith("rules change") else "without"


def _tables(done: dict[str, list[Done]]) -> list[Table]:
    first, second = [], []
    for way, found in done.items():
        alone = {(one.seed, one.number): one.success for one in done.get(_alone(way), [])}
        gains = [((one.seed, one.kind), 100.0 * (one.success - alone[one.seed, one.number])) for one in found if alone]
        calls = sum(len(one.steps) for one in found) / len(found)
        first.append((way, _success(found), interval(gains), calls))
        families = [_success([one for one in found if one.family == name]).mean for name in FAMILIES]
        quarters = [_success([one for one in found if int(4 * one.place) == n]).mean for n in range(4)]
        second.append((way, *families, *quarters))
    columns = ("way", *FAMILIES, "1st quarter", "2nd", "3rd", "4th")
    return [
        Table(title="success", columns=("way", "success %", "gain", "calls per task"), rows=first),
        Table(title="success by family and quarter of a life", columns=columns, rows=second),
    ]


def _success(found: list[Done]) -> Interval:
    """In percent; tasks of one kind in one world go together."""
    return interval(((one.seed, one.kind), 100.0 * one.success) for one in found)
