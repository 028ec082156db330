"""The bank: an agent's work is judged, distilled and stored; what is stored is found for the next task.

    bank = ReasoningBank(memory)
    out = bank.run_task(task_id="t1", agent_id="a1", query="…", domain="web.admin", execute=agent, scope=scope)

One sentence per verb; the rules are elsewhere. Safe to share between threads. It lives as long as its memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache, partial
from typing import Unpack

from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import Cost, Entry, Progress, Recall, Scope
from wellworn.ingest.scrub import ScrubberSpec
from wellworn.ingest.validate import (
    checked_count,
    checked_fraction,
    checked_id,
    checked_k,
    checked_line,
    checked_seconds,
)
from wellworn.learning.outcome import outcome_input
from wellworn.memory import Memory
from wellworn.search.context import Refine
from wellworn.search.filters import Filters
from wellworn.tasks.attempts import Assignment, Attempts, Execute, RunResult, TaskResult, TaskSpec, Work, planned
from wellworn.tasks.consolidate import JOB, Consolidation, Consolidator
from wellworn.tasks.distill import Distilled, distill
from wellworn.tasks.engine import parts_of
from wellworn.tasks.finish import Finisher
from wellworn.tasks.graph import Graph
from wellworn.tasks.items import ITEM_KINDS, LIVE, domain_of, is_item, kinds_of, wanted_tags
from wellworn.tasks.judge import Verdict, Verify, judge
from wellworn.tasks.review import Reviews
from wellworn.tasks.settle import ConsolidationSettings
from wellworn.tasks.sharing import Sharing
from wellworn.tasks.tasks import NEXT, Run, Task, Tasks, run_of
from wellworn.tasks.trajectory import Trajectory, scrubbed, trajectory_of

DEFAULT_K = 1
"""One item: with more the paper's agents did worse (49.7 with one, 44.4 with four)."""
MIN_CONFIDENCE = 0.3
CONCURRENT = 3
_ALL = 2**31
_MOST_TASKS = 10_000
"""The latest attempts that statistics and runs are read from."""
_ORDERS: dict[str, Callable[[Entry], float]] = {
    "confidence": lambda entry: entry.confidence,
    "usage": lambda entry: entry.usage_count,
    "created": lambda entry: entry.created_at.timestamp(),
}


@dataclass(frozen=True, kw_only=True)
class BankStats:
    """Counts of what a scope sees of the bank, and of the tasks in its own partition."""

    items: int
    by_kind: dict[str, int]
    by_stage: dict[str, int]
    by_domain: dict[str, int]
    mean_confidence: float
    uses: int
    """How often items were shown to an agent."""
    tasks: int
    by_state: dict[str, int]
    successes: int
    failures: int
    runs: int

    @property
    def success_rate(self) -> float | None:
        """Of the tasks that were judged; None when none was."""
        judged = self.successes + self.failures
        return self.successes / judged if judged else None


@lru_cache(maxsize=64)
def _filters(kinds: tuple[str, ...], tags: tuple[str, ...], least: float) -> Filters:
    """Agents ask for the same few domains again and again."""
    return replace(Filters.of(kind=kinds, tags=tags), min_entry_confidence=least)


class ReasoningBank:
    """Learning from tasks on top of a memory."""

    def __init__(
        self,
        memory: Memory,
        *,
        scope: Scope | None = None,
        k: int = DEFAULT_K,
        min_confidence: float = MIN_CONFIDENCE,
        scrubber: ScrubberSpec = "mask",
        consolidation: ConsolidationSettings | None = None,
    ) -> None:
        """`scope` is for calls that name none; `k` and `min_confidence` are the defaults of `retrieve`.

        Personal data and secrets are taken out of everything that is stored or sent to a model: as the memory does it
        where it does, else by `scrubber`, as `Memory.open` takes it.
        """
        self._parts = parts = parts_of(memory, scope, scrubber)
        self.memory = memory
        self._k = checked_k(k)
        self._min_confidence = checked_fraction("min_confidence", min_confidence)
        self.consolidation = Consolidator(parts, consolidation or ConsolidationSettings())
        """Merge, resolve, prune, promote; runs and stages."""
        self.reviews = Reviews(parts)
        """Questions that people decide."""
        self.sharing = Sharing(parts)
        """Copies for teams and other agents."""
        self.graph = Graph(parts)
        """Levels of memory, and walks over links."""
        self._tasks = Tasks(parts.store, parts.clock)
        self._finisher = Finisher(parts, self._tasks, self.consolidation.added)
        self._attempts = Attempts(parts, self._tasks, self._finisher)
        memory.engine.background.handle({JOB: self.consolidation.run_job})

    # -- find --------------------------------------------------------------------------------------------------------

    def retrieve(
        self,
        query: str,
        *,
        domain: str | None = None,
        k: int | None = None,
        scope: Scope | None = None,
        kind: str | Sequence[str] | None = None,
        min_confidence: float | None = None,
    ) -> Recall:
        """The `k` items that help most with a task: of a `domain` (`web.admin`), or of all below one (`web.*`)."""
        return self._found(query, self._parts.ranking.items, domain, k, scope, kind, min_confidence)

    def _found(
        self,
        query: str,
        refine: Refine,
        domain: str | None,
        k: int | None,
        scope: Scope | None,
        kind: str | Sequence[str] | None = None,
        min_confidence: float | None = None,
    ) -> Recall:
        least = self._min_confidence if min_confidence is None else checked_fraction("min_confidence", min_confidence)
        filters = _filters((*kinds_of(kind),), (*wanted_tags(domain),), least)
        wanted, own = self._k if k is None else k, self._parts.scope(scope)
        return self._parts.searcher.recall(query, scope=own, k=wanted, filters=filters, refine=refine)

    def feedback(self, recall_id: str, *, cited: Sequence[int], scope: Scope | None = None) -> bool:
        """Report which hits of a recall were useful, by place: counts their use and teaches the ranking.

        False when it was reported before.
        """
        told = outcome_input(cited=cited)
        return self._parts.learner.outcome(checked_id(recall_id), told, tenant=self._parts.scope(scope).tenant)

    # -- do ----------------------------------------------------------------------------------------------------------

    def run_task(
        self, *, execute: Execute, k: int | None = None, verify: Verify | None = None, **task: Unpack[TaskSpec]
    ) -> TaskResult:
        """Retrieve, run, judge, distil, reinforce.

        `execute` gets a `Work` and returns a trajectory, or anything that `trajectory_of` takes. An exception is a
        failed attempt, reported in the result. `verify` is the caller's own check of the trajectory. A fault of the
        memory never stops the agent.
        """
        given = self._assigned(task, execute, verify, k)
        return self._attempts.end(self._attempts.run(self._attempts.begin(given), execute, verify))

    def begin(self, *, k: int | None = None, **task: Unpack[TaskSpec]) -> Work:
        """The first half of `run_task`, for work that is done elsewhere; `finish` is the other."""
        return self._attempts.begin(self._assigned(task, lambda _: None, None, k))

    def finish(
        self,
        task_id: str,
        trajectory: object,
        *,
        verdict: bool | None = None,
        verify: Verify | None = None,
        scope: Scope | None = None,
    ) -> TaskResult:
        """Judge, distil and reinforce the latest attempt at a task that was begun and not finished."""
        begun = self._tasks.find(self._parts.partition(scope), task_id, states=("executing",))
        if not begun:
            raise NotFound("task under way", task_id, "begin it first, or use `record` for work that is over")
        given = _told(trajectory, begun[0].query, verdict)
        work = Work(task=begun[0], query=begun[0].query)
        return self._attempts.end(self._attempts.run(work, lambda _: given, verify))

    def record(
        self, trajectory: object, *, verdict: bool | None = None, verify: Verify | None = None, **task: Unpack[TaskSpec]
    ) -> TaskResult:
        """Learn from work that is over and was done without the bank."""
        given = _told(trajectory, task.get("query", ""), verdict)
        task["query"] = task.get("query") or given.query
        nothing = Recall(id="", query=task["query"], hits=[], route="none", cost=Cost())
        over = replace(self._assigned(task, lambda _: given, verify), look=lambda: nothing)
        return self._attempts.end(self._attempts.run(self._attempts.begin(over), over.execute, verify))

    def abandon(self, task_id: str, *, why: str = "", scope: Scope | None = None) -> int:
        """Give up every attempt at a task that was begun and not finished; returns how many."""
        partition = self._parts.partition(scope)
        begun = self._tasks.find(partition, task_id, states=("ready", "executing"))
        told = self._parts.scrubbing.sent(partition)(checked_line("why", why)) if begun else ""
        for task in begun:
            self._tasks.move(task, "abandoned", why=told)
        return len(begun)

    def matts_parallel(
        self,
        *,
        execute: Execute,
        k: int = 3,
        concurrency: int = CONCURRENT,
        verify: Verify | None = None,
        **task: Unpack[TaskSpec],
    ) -> RunResult:
        """`k` attempts at a task, at most `concurrency` at a time; the best by verdict, and what all of them teach."""
        count = checked_count("k", k, least=1, most=64)
        at_once = min(count, checked_count("concurrency", concurrency, least=1, most=64))
        return self._attempts.parallel(self._assigned(task, execute, verify), k=count, at_once=at_once)

    def matts_sequential(
        self, *, execute: Execute, r: int = 3, verify: Verify | None = None, **task: Unpack[TaskSpec]
    ) -> RunResult:
        """Up to `r` attempts at a task, each shown those before it, until one succeeds."""
        most = checked_count("r", r, least=1, most=64)
        return self._attempts.sequential(self._assigned(task, execute, verify), r=most)

    def _assigned(self, spec: TaskSpec, execute: Execute, verify: Verify | None, k: int | None = None) -> Assignment:
        """Everything that an attempt needs, checked before anything is done."""
        scope, k = self._parts.scope(spec.get("scope")), None if k is None else checked_k(k)
        plan = planned(spec, scope, self._parts)
        domain = (plan.domain if (within := spec.get("within")) is None else within) or None
        look = partial(self._found, plan.query, self._parts.ranking.fitting, domain, k, scope)
        return Assignment(plan=plan, home=scope.home(), look=look, execute=execute, verify=verify)

    # -- learn -------------------------------------------------------------------------------------------------------

    def judge(self, trajectory: object, *, scope: Scope | None = None) -> Verdict:
        """Whether work succeeded. Nothing is stored."""
        partition = self._parts.partition(scope)
        return judge(self._scrubbed(trajectory, scope), self._parts.model(partition, None))

    def distill(self, trajectory: object, verdict: Verdict | bool, *, scope: Scope | None = None) -> Distilled:
        """What work teaches. Nothing is stored."""
        given = self._scrubbed(trajectory, scope)
        if isinstance(verdict, bool):
            verdict = judge(replace(given, verdict=verdict))
        if not isinstance(verdict, Verdict):
            raise InvalidInput("verdict", f"is a {type(verdict).__name__}", "use what `judge` gives, True or False")
        return distill(given, verdict, self._parts.model(self._parts.partition(scope), None))

    def _scrubbed(self, trajectory: object, scope: Scope | None) -> Trajectory:
        scrubbing, given = self._parts.scrubbing, trajectory_of(trajectory)
        return scrubbed(given, scrubbing.asked(self._parts.partition(scope))) if scrubbing.on else given

    def resume(self, *, scope: Scope | None = None, idle_s: float = 3600.0) -> list[Task]:
        """Finish attempts that a crash interrupted, and abandon those whose work is lost; returns them as they are.

        Only attempts that nothing has happened to for `idle_s` seconds: a younger one may still be under way.
        """
        before = self._parts.clock() - timedelta(seconds=checked_seconds("idle_s", idle_s))
        return self._finisher.resume(self._parts.partition(scope), before)

    def consolidate(
        self,
        *,
        scope: Scope | None = None,
        layer: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Consolidation:
        """Merge duplicates, resolve or flag contradictions, decay, prune, promote.
        Happens by itself, as a job, after every so many new items.
        """
        return self.consolidation.run(scope=scope, layer=layer, dry_run=dry_run, progress=progress)

    # -- look --------------------------------------------------------------------------------------------------------

    def items(
        self,
        *,
        scope: Scope | None = None,
        domain: str | None = None,
        kind: str | Sequence[str] | None = None,
        sort: str = "confidence",
        limit: int = 20,
    ) -> list[Entry]:
        """Items the scope sees, by falling `confidence`, `usage` or `created`; the newer first where these are equal."""
        if sort not in _ORDERS:
            raise InvalidInput("sort", f"{sort!r} is no order", f"use one of {', '.join(_ORDERS)}")
        own, limit = self._parts.scope(scope), checked_count("limit", limit, least=1)
        kinds, tags = kinds_of(kind), wanted_tags(domain)
        found = self.memory.entries(scope=own, kind=kinds, tags=tags, state=LIVE, limit=_ALL)
        return sorted(found, key=lambda entry: (_ORDERS[sort](entry), entry.created_at), reverse=True)[:limit]

    def item(self, id: str, *, scope: Scope | None = None) -> Entry:
        """One item, whatever its state."""
        entry = self.memory.get(id, scope=self._parts.scope(scope))
        if not is_item(entry):
            raise NotFound("strategy or guardrail", id, f"it is a {entry.kind}")
        return entry

    def tasks(self, *, scope: Scope | None = None, state: str | None = None, limit: int = 100) -> list[Task]:
        """Attempts at tasks, newest first."""
        states = [known for known in NEXT if state in (None, known)]
        if not states:
            raise InvalidInput("state", f"{state!r} is no state of a task", f"use one of {', '.join(NEXT)}")
        return self._tasks.all(self._parts.partition(scope), states=states, limit=limit)

    def runs(self, *, scope: Scope | None = None, limit: int = 100) -> list[Run]:
        """Runs of several attempts, newest first."""
        found: dict[str, list[Task]] = {}
        for task in self.tasks(scope=scope, limit=_MOST_TASKS):
            if task.run_id:
                found.setdefault(task.run_id, []).append(task)
        return [run_of(tasks) for tasks in found.values()][:limit]

    def stats(self, *, scope: Scope | None = None) -> BankStats:
        """How much the scope's bank holds, and how tasks went."""
        own, stage = self._parts.scope(scope), self.consolidation.stages(scope=scope)
        entries = self.memory.entries(scope=own, kind=ITEM_KINDS, limit=_ALL)
        live = [entry for entry in entries if entry.state in LIVE]
        tasks = self.tasks(scope=own, limit=_MOST_TASKS)
        verdicts = [task.verdict.success for task in tasks if task.verdict is not None and task.verdict.teaches]
        return BankStats(
            items=len(live),
            by_kind=dict(Counter(entry.kind for entry in live)),
            by_stage=dict(Counter(stage(entry) for entry in entries)),
            by_domain=dict(Counter(domain_of(entry.tags) or "(none)" for entry in live)),
            mean_confidence=sum(entry.confidence for entry in live) / len(live) if live else 0.0,
            uses=sum(entry.usage_count for entry in live),
            tasks=len(tasks),
            by_state=dict(Counter(task.state for task in tasks)),
            successes=sum(verdicts),
            failures=len(verdicts) - sum(verdicts),
            runs=len({task.run_id for task in tasks if task.run_id}),
        )


def _told(trajectory: object, query: str, verdict: bool | None) -> Trajectory:
    given = trajectory_of(trajectory, query=query)
    return given if verdict is None else replace(given, verdict=verdict)
