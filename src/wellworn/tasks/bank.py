"""The bank: an agent's work is judged, distilled and stored; what is stored is found for the next task.

    bank = ReasoningBank(memory)
    out = bank.run_task(task_id="t1", agent_id="a1", query="…", domain="web.admin", execute=agent, scope=scope)

One sentence per verb; the rules are elsewhere. Safe to share between threads. It lives as long as its memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Unpack

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.lazy import cached_property
from wellworn.core.values import Cost, Entry, Recall, Scope
from wellworn.ingest import validate
from wellworn.ingest.scrub import ScrubberSpec
from wellworn.learning.records import outcome_input, seen_by
from wellworn.memory import Memory
from wellworn.search.filters import Filters
from wellworn.tasks.attempts import Assignment, Attempts, Execute, RunResult, TaskResult, TaskSpec, Work, planned
from wellworn.tasks.consolidate import JOB, Consolidation, Consolidator
from wellworn.tasks.distill import Distilled, distill
from wellworn.tasks.engine import LEAST_CONFIDENCE, Parts
from wellworn.tasks.engine import MIN_CONFIDENCE as MIN_CONFIDENCE
from wellworn.tasks.items import ITEM_KINDS, LIVE, domain_of, is_item, kinds_of, stage_of, wanted_tags
from wellworn.tasks.judge import Verdict, judge
from wellworn.tasks.tasks import NEXT, Task, Tasks
from wellworn.tasks.trajectory import Trajectory, trajectory_of

if TYPE_CHECKING:  # loaded on first use
    from wellworn.tasks.review import Graph, Reviews
    from wellworn.tasks.sharing import Sharing

DEFAULT_K = 1
"""One item: with more the paper's agents did worse (49.7 with one, 44.4 with four)."""
CONCURRENT = 3
_ALL = 2**31
_MOST_TASKS = 10_000
"""The latest attempts that statistics and runs are read from."""


@dataclass(frozen=True, kw_only=True)
class BankStats:
    """Counts of what a scope sees of the bank, and of the tasks in its own partition."""

    items: int
    by_kind: dict[str, int]
    by_stage: dict[str, int]
    by_domain: dict[str, int]
    uses: int
    """How often items were shown to an agent."""
    tasks: int
    by_state: dict[str, int]
    successes: int
    failures: int

    @property
    def success_rate(self) -> float | None:
        """Of the tasks that were judged; None when none was."""
        judged = self.successes + self.failures
        return self.successes / judged if judged else None


class ReasoningBank:
    """Learning from tasks on top of a memory."""

    def __init__(
        self, memory: Memory, *, scope: Scope | None = None, k: int = DEFAULT_K, scrubber: ScrubberSpec = "mask"
    ) -> None:
        """`scope` and `k` are for calls that name none.

        Personal data and secrets are taken out of everything that is stored or sent to a model: as the memory does it
        where it does, else by `scrubber`, as `Memory.open` takes it.
        """
        self._parts = parts = Parts(memory, scope, scrubber)
        self.memory = memory
        self._k = validate.checked_k(k)
        self._consolidator = Consolidator(parts)
        self._tasks = Tasks(parts.engine.store, parts.engine.clock)
        self._attempts = Attempts(parts, self._tasks, self._consolidator.added)
        memory.engine.handle({JOB: self._consolidator.run_job})

    @cached_property
    def reviews(self) -> Reviews:
        """Questions that people decide."""
        from wellworn.tasks.review import Reviews

        return Reviews(self._parts)

    @cached_property
    def sharing(self) -> Sharing:
        """Copies for teams and other agents."""
        from wellworn.tasks.sharing import Sharing

        return Sharing(self._parts)

    @cached_property
    def graph(self) -> Graph:
        """Levels of memory, and walks over links."""
        from wellworn.tasks.review import Graph

        return Graph(self._parts)

    # -- find --------------------------------------------------------------------------------------------------------

    def retrieve(
        self,
        query: str,
        *,
        domain: str | None = None,
        k: int | None = None,
        scope: Scope | None = None,
        kind: str | Sequence[str] | None = None,
        min_confidence: float = MIN_CONFIDENCE,
    ) -> Recall:
        """The `k` items that help most with a task: of a `domain` (`web.admin`), or of all below one (`web.*`)."""
        filters = _filters(domain, kind, least=validate.checked_fraction("min_confidence", min_confidence))
        wanted, own, refine = self._k if k is None else k, self._parts.scope(scope), self._parts.ranking.items
        return self._parts.searcher.recall(query, scope=own, k=wanted, filters=filters, refine=refine)

    def feedback(self, recall_id: str, *, cited: Sequence[int], scope: Scope | None = None) -> bool:
        """Report which hits of a recall were useful, by place: counts their use and teaches the ranking.

        False when it was reported before.
        """
        told = outcome_input(cited=cited)
        return self._parts.learner.outcome(
            validate.checked_id(recall_id), told, may_see=seen_by(self._parts.scope(scope))
        )

    # -- do ----------------------------------------------------------------------------------------------------------

    def run_task(self, *, execute: Execute, k: int | None = None, **task: Unpack[TaskSpec]) -> TaskResult:
        """Retrieve, run, judge, distil, reinforce.

        `execute` gets a `Work` and returns a trajectory, or anything that `trajectory_of` takes; other values raise
        `InvalidInput`. An exception is a failed attempt, reported in the result. A fault of the memory never stops the
        agent.
        """
        return self._ended(self._attempts.begin(self._assigned(task, k)), execute)

    def begin(self, *, k: int | None = None, **task: Unpack[TaskSpec]) -> Work:
        """The first half of `run_task`, for work that is done elsewhere; `finish` is the other."""
        return self._attempts.begin(self._assigned(task, k))

    def finish(
        self, task_id: str, trajectory: object, *, verdict: bool | None = None, scope: Scope | None = None
    ) -> TaskResult:
        """Judge, distil and reinforce the latest attempt at a task that was begun and not finished."""
        begun = self._tasks.find(self._parts.partition(scope), task_id)
        if not begun:
            raise NotFound("task under way", task_id, "begin it first, or use `record` for work that is over")
        given = _told(trajectory, begun[0].query, verdict)
        return self._ended(Work(task=begun[0], query=begun[0].query), lambda _: given)

    def record(self, trajectory: object, *, verdict: bool | None = None, **task: Unpack[TaskSpec]) -> TaskResult:
        """Learn from work that is over and was done without the bank."""
        given = _told(trajectory, task.get("query", ""), verdict)
        task["query"] = task.get("query") or given.query
        nothing = Recall(id="", query=task["query"], hits=[], route="none", cost=Cost())
        over = replace(self._assigned(task), look=lambda: nothing)
        return self._ended(self._attempts.begin(over), lambda _: given)

    def _ended(self, work: Work, execute: Execute) -> TaskResult:
        return self._attempts.end([self._attempts.run(work, execute)])[0]

    def abandon(self, task_id: str, *, why: str = "", keep: bool = True, scope: Scope | None = None) -> int:
        """Give up every attempt at a task that was begun and not finished; returns how many.

        With `keep=False` nothing is left of them: for what turned out to be no task.
        """
        partition = self._parts.partition(scope)
        begun = self._tasks.find(partition, task_id)
        told = self._parts.scrubbing.sent(partition)(validate.checked_line("why", why)) if begun else ""
        for task in begun:
            self._tasks.move(task, "abandoned", why=told) if keep else self._tasks.drop(task)
        return len(begun)

    def matts_parallel(
        self, *, execute: Execute, k: int = 3, concurrency: int = CONCURRENT, **task: Unpack[TaskSpec]
    ) -> RunResult:
        """`k` attempts at a task, at most `concurrency` at a time; the best by verdict, and what all of them teach."""
        count = validate.checked_count("k", k, least=1, most=64)
        at_once = min(count, validate.checked_count("concurrency", concurrency, least=1, most=64))
        return self._attempts.several(self._assigned(task), execute, "parallel", most=count, at_once=at_once)

    def matts_sequential(self, *, execute: Execute, r: int = 3, **task: Unpack[TaskSpec]) -> RunResult:
        """Up to `r` attempts at a task, each shown those before it, until one succeeds."""
        most = validate.checked_count("r", r, least=1, most=64)
        return self._attempts.several(self._assigned(task), execute, "sequential", most=most)

    def _assigned(self, spec: TaskSpec, k: int | None = None) -> Assignment:
        """Everything that an attempt needs, checked before anything is done."""
        scope, wanted = self._parts.scope(spec.get("scope")), self._k if k is None else validate.checked_k(k)
        plan, refine = planned(spec, scope, self._parts), self._parts.ranking.fitting
        asked = partial(self._parts.searcher.recall, plan.query, scope=scope, k=wanted, refine=refine)
        look = partial(asked, filters=_filters(plan.domain, least=LEAST_CONFIDENCE))
        return Assignment(plan=plan, home=scope.home(), look=look)

    # -- learn -------------------------------------------------------------------------------------------------------

    def judge(self, trajectory: object, *, scope: Scope | None = None) -> Verdict:
        """Whether work succeeded. Nothing is stored."""
        partition = self._parts.partition(scope)
        given = self._parts.scrubbed(trajectory_of(trajectory), partition, asked=True)
        return judge(given, self._parts.engine.background.model(partition, None))

    def distill(self, trajectory: object, verdict: Verdict | bool, *, scope: Scope | None = None) -> Distilled:
        """What work teaches. Nothing is stored."""
        partition = self._parts.partition(scope)
        given = self._parts.scrubbed(trajectory_of(trajectory), partition, asked=True)
        if isinstance(verdict, bool):
            verdict = judge(replace(given, verdict=verdict))
        if not isinstance(verdict, Verdict):
            raise InvalidInput("verdict", f"is a {type(verdict).__name__}", "use what `judge` gives, True or False")
        return distill([(given, verdict)], self._parts.engine.background.model(partition, None))

    def resume(self, *, scope: Scope | None = None, idle_s: float = 3600.0) -> list[Task]:
        """Finish attempts that a crash interrupted, and abandon those whose work is lost; returns them as they are.

        Only attempts that nothing has happened to for `idle_s` seconds: a younger one may still be under way.
        """
        before = self._parts.engine.clock() - timedelta(seconds=validate.checked_seconds("idle_s", idle_s))
        return self._attempts.resume(self._parts.partition(scope), before)

    def consolidate(self, *, scope: Scope | None = None) -> Consolidation:
        """Merge duplicates, resolve or flag contradictions, decay, prune, promote: in the partition of the scope's
        agent, else in its home. Happens by itself, as a job, after every so many new items.
        """
        return self._consolidator.run(self._parts.partition(scope))

    def run_due(self, *, scope: Scope | None = None) -> int:
        """Run the consolidations that are queued, for processes without a worker; returns how many."""
        return self._consolidator.run_due(self._parts.partition(scope))

    # -- look --------------------------------------------------------------------------------------------------------

    def items(
        self,
        *,
        scope: Scope | None = None,
        domain: str | None = None,
        kind: str | Sequence[str] | None = None,
        limit: int = 20,
    ) -> list[Entry]:
        """Items the scope sees, the surest first, the newer first where these are equal."""
        own, limit = self._parts.scope(scope), validate.checked_count("limit", limit, least=1)
        kinds, tags = kinds_of(kind), wanted_tags(domain)
        found = self.memory.entries(scope=own, kind=kinds, tags=tags, state=LIVE, limit=_ALL)
        return sorted(found, key=lambda entry: (entry.confidence, entry.created_at), reverse=True)[:limit]

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

    def stats(self, *, scope: Scope | None = None) -> BankStats:
        """How much the scope's bank holds, and how tasks went."""
        own = self._parts.scope(scope)
        entries = self.memory.entries(scope=own, kind=ITEM_KINDS, limit=_ALL)
        live = [entry for entry in entries if entry.state in LIVE]
        tasks = self.tasks(scope=own, limit=_MOST_TASKS)
        verdicts = [task.verdict.success for task in tasks if task.verdict is not None and task.verdict.teaches]
        return BankStats(
            items=len(live),
            by_kind=dict(Counter(entry.kind for entry in live)),
            by_stage=dict(Counter(stage_of(entry) for entry in entries)),
            by_domain=dict(Counter(domain_of(entry.tags) or "(none)" for entry in live)),
            uses=sum(entry.usage_count for entry in live),
            tasks=len(tasks),
            by_state=dict(Counter(task.state for task in tasks)),
            successes=sum(verdicts),
            failures=len(verdicts) - sum(verdicts),
        )


def _filters(domain: str | None, kind: str | Sequence[str] | None = None, *, least: float) -> Filters:
    return replace(Filters.of(kind=kinds_of(kind), tags=wanted_tags(domain)), min_entry_confidence=least)


def _told(trajectory: object, query: str, verdict: bool | None) -> Trajectory:
    given = trajectory_of(trajectory, query=query)
    return given if verdict is None else replace(given, verdict=validate.checked_flag("verdict", verdict))
