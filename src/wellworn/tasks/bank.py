"""The bank: one sentence per verb. An agent's work is judged, distilled and kept; what is kept is found for the next.

    bank = ReasoningBank(memory)
    out = bank.run_task(task_id="t1", agent_id="a1", query="…", domain="web.admin", execute=agent, scope=scope)

Holds no rule of its own. Safe to share between threads; it lives as long as the memory it was made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

from wellworn.core.clock import NewId, TimeOrderedIds
from wellworn.core.errors import InvalidInput, NotFound, ScopeError
from wellworn.core.values import Cost, Entry, Progress, Recall, Scope
from wellworn.ingest.scrub import ScrubberSpec
from wellworn.ingest.validate import (
    checked_count,
    checked_fraction,
    checked_id,
    checked_k,
    checked_line,
    checked_query,
    checked_scope,
    checked_seconds,
    checked_session_id,
)
from wellworn.learning.outcome import outcome_input
from wellworn.memory import Memory
from wellworn.models.port import Model
from wellworn.reflection.apply import scope_of
from wellworn.search.context import Refine
from wellworn.search.filters import Filters
from wellworn.tasks.attempts import Attempts, Order
from wellworn.tasks.consolidation.report import Consolidation
from wellworn.tasks.consolidation.settings import ConsolidationSettings
from wellworn.tasks.distill import Distilled, distill
from wellworn.tasks.domains import checked_domain, wanted_tags
from wellworn.tasks.engine import engine_of
from wellworn.tasks.items import bank_partition, is_item, kinds_of
from wellworn.tasks.judge import Verdict, Verify, judge
from wellworn.tasks.keeper import Keeper
from wellworn.tasks.learning import Finisher
from wellworn.tasks.matts import CONCURRENT, Matts
from wellworn.tasks.prefer import preferred, strategies_first
from wellworn.tasks.resume import resume
from wellworn.tasks.stats import BankStats, sorted_items, stats_of
from wellworn.tasks.tasks import Run, Task, Tasks, TaskState
from wellworn.tasks.trajectory import Trajectory, mapped, trajectory_of
from wellworn.tasks.work import Execute, RunResult, TaskResult, Work

DEFAULT_K = 1
"""One item: with more the paper's agents did worse (49.7 with one, 44.4 with four)."""
MIN_CONFIDENCE = 0.3
_FREE = Cost()


@lru_cache(maxsize=64)
def _filters(kinds: tuple[str, ...], tags: tuple[str, ...], least: float) -> Filters:
    """Agents ask for the same few domains again and again."""
    return replace(Filters.of(kind=kinds, tags=tags), min_confidence=least)


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
        new_id: NewId | None = None,
    ) -> None:
        """`scope` is for calls that name none; `k` and `min_confidence` are what `retrieve` takes when not told;
        `consolidation` says what is merged, pruned, promoted and asked about, and how often.

        Personal data and secrets are taken out of everything that is kept, asked or told to a model: as the memory
        does it where it does, else by `scrubber`, as `Memory.open` takes it.
        """
        self._memory = memory
        self._engine = engine_of(memory, scrubber)
        self._scope = None if scope is None else checked_scope(scope)
        self._k = checked_k(k)
        self._min_confidence = checked_fraction("min_confidence", min_confidence)
        new_id = new_id or TimeOrderedIds()
        self._tasks = Tasks(self._engine.store, self._engine.clock)
        self.keeper = Keeper(memory, settings=consolidation, scrubber=scrubber)
        """Looks after what is kept: undo, reviews, sharing, levels, walks."""
        self._finisher = Finisher(self._engine, self._tasks, self._model_for, self.keeper.watch)
        self._attempts = Attempts(self._engine, self._tasks, self._finisher, new_id)
        self._matts = Matts(self._attempts, self._tasks, self._finisher, clock=self._engine.clock, new_id=new_id)

    # -- find ----------------------------------------------------------------------------------------------------

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
        """The `k` items that help most with a task: of a `domain` (`web.admin`), or of all below one (`web.*`).

        However little they fit: an agent is given fewer where others fit much less than the best.
        """
        least = self._min_confidence if min_confidence is None else checked_fraction("min_confidence", min_confidence)
        filters = _filters((*kinds_of(kind),), (*wanted_tags(domain),), least)
        return self._found(query, filters, k, scope, strategies_first)

    def feedback(self, recall_id: str, *, cited: Sequence[int], scope: Scope | None = None) -> bool:
        """Say which hits of a recall were useful, by place: counts their use and teaches the ranking.

        False when it was told before.
        """
        told = outcome_input(cited=cited)
        return self._engine.learner.outcome(checked_id(recall_id), told, tenant=self._scoped(scope).tenant)

    # -- do ------------------------------------------------------------------------------------------------------

    def run_task(
        self,
        *,
        task_id: str,
        query: str,
        execute: Execute,
        agent_id: str = "",
        domain: str = "",
        scope: Scope | None = None,
        k: int | None = None,
        within: str | None = None,
        verify: Verify | None = None,
        session_id: str | None = None,
    ) -> TaskResult:
        """Retrieve, run, judge, distil, reinforce.

        `execute` gets a `Work` and gives a trajectory, or anything that `trajectory_of` takes. What it raises is a
        failed attempt, told in the result. `within` says where to look for items, when not in the task's own domain;
        `verify` is the caller's own check of the trajectory. A fault of the memory never stops the work.
        """
        order = self._order(task_id, agent_id, query, domain, scope, session_id)
        work = self._attempts.begin(order, lambda: self._look(order, k, within))
        return self._attempts.end(self._attempts.do(work, execute, verify))

    def begin(
        self,
        *,
        task_id: str,
        query: str,
        agent_id: str = "",
        domain: str = "",
        scope: Scope | None = None,
        k: int | None = None,
        within: str | None = None,
        session_id: str | None = None,
    ) -> Work:
        """The first half of `run_task`, for work that is done elsewhere; `finish` is the other."""
        order = self._order(task_id, agent_id, query, domain, scope, session_id)
        return self._attempts.begin(order, lambda: self._look(order, k, within))

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
        wanted = self._scoped(scope)
        begun = self._tasks.find(bank_partition(wanted), task_id, states=("executing",))
        if not begun:
            raise NotFound("task under way", task_id, "begin it first, or use `record` for work that is over")
        task = begun[0]
        work = Work(
            task=task,
            task_id=task.task_id,
            agent_id=task.agent_id,
            query=task.query,
            domain=task.domain,
            recall=None,
            number=task.number,
        )
        given = trajectory_of(trajectory, query=task.query)
        given = given if verdict is None else replace(given, verdict=verdict)
        return self._attempts.end(self._attempts.do(work, lambda _: given, verify))

    def record(
        self,
        trajectory: object,
        *,
        task_id: str,
        query: str = "",
        agent_id: str = "",
        domain: str = "",
        verdict: bool | None = None,
        verify: Verify | None = None,
        scope: Scope | None = None,
        session_id: str | None = None,
    ) -> TaskResult:
        """Learn from work that is over and was done without the bank."""
        given = trajectory_of(trajectory, query=query)
        given = given if verdict is None else replace(given, verdict=verdict)
        order = self._order(task_id, agent_id, query or given.query, domain, scope, session_id)
        nothing = Recall(id="", query=order.query, hits=[], route="none", cost=_FREE)
        work = self._attempts.begin(order, lambda: nothing)
        return self._attempts.end(self._attempts.do(work, lambda _: given, verify))

    def abandon(self, task_id: str, *, why: str = "", scope: Scope | None = None) -> int:
        """Give up every attempt at a task that was begun and not finished; returns how many."""
        partition = bank_partition(self._scoped(scope))
        begun = self._tasks.find(partition, task_id, states=("ready", "executing"))
        told = self._engine.scrubbing.sent(partition)(checked_line("why", why)) if begun else ""
        for task in begun:
            self._tasks.move(task, "abandoned", why=told)
        return len(begun)

    def matts_parallel(
        self,
        *,
        task_id: str,
        query: str,
        execute: Execute,
        agent_id: str = "",
        domain: str = "",
        k: int = 3,
        concurrency: int = CONCURRENT,
        scope: Scope | None = None,
        within: str | None = None,
        verify: Verify | None = None,
        session_id: str | None = None,
    ) -> RunResult:
        """`k` attempts at a task, at most `concurrency` at a time; the best by verdict, and what all of them teach."""
        order = self._order(task_id, agent_id, query, domain, scope, session_id)
        count = checked_count("k", k, least=1, most=64)
        at_once = min(count, checked_count("concurrency", concurrency, least=1, most=64))
        return self._matts.parallel(
            order, lambda: self._look(order, None, within), execute, verify, k=count, concurrency=at_once
        )

    def matts_sequential(
        self,
        *,
        task_id: str,
        query: str,
        execute: Execute,
        agent_id: str = "",
        domain: str = "",
        r: int = 3,
        scope: Scope | None = None,
        within: str | None = None,
        verify: Verify | None = None,
        session_id: str | None = None,
    ) -> RunResult:
        """Up to `r` attempts at a task, each shown those before it, until one succeeds."""
        order = self._order(task_id, agent_id, query, domain, scope, session_id)
        most = checked_count("r", r, least=1, most=64)
        return self._matts.sequential(order, lambda: self._look(order, None, within), execute, verify, r=most)

    # -- learn ---------------------------------------------------------------------------------------------------

    def judge(self, trajectory: object, *, scope: Scope | None = None) -> Verdict:
        """Whether work succeeded; nothing is kept."""
        given = self._scrubbed(trajectory, scope)
        return judge(given, self._model(self._scoped(scope), None))

    def distill(self, trajectory: object, verdict: Verdict | bool, *, scope: Scope | None = None) -> Distilled:
        """What work teaches; nothing is kept."""
        given = self._scrubbed(trajectory, scope)
        if isinstance(verdict, bool):
            verdict = judge(replace(given, verdict=verdict))
        if not isinstance(verdict, Verdict):
            raise InvalidInput("verdict", f"is a {type(verdict).__name__}", "use what `judge` gives, True or False")
        return distill(given, verdict, self._model(self._scoped(scope), None))

    def _scrubbed(self, trajectory: object, scope: Scope | None) -> Trajectory:
        scrub = self._engine.scrubbing.asked(bank_partition(self._scoped(scope)))
        return mapped(trajectory_of(trajectory), scrub)

    def resume(self, *, scope: Scope | None = None, idle_s: float = 3600.0) -> list[Task]:
        """Go on with attempts that a crash left behind, and give up those whose work is lost; returns them as they are.

        Only attempts that nothing has happened to for `idle_s` seconds: a younger one may still be under way.
        """
        before = self._engine.clock() - timedelta(seconds=checked_seconds("idle_s", idle_s))
        return resume(self._tasks, self._finisher, bank_partition(self._scoped(scope)), before)

    def consolidate(
        self,
        *,
        scope: Scope | None = None,
        layer: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Consolidation:
        """Merge duplicates, resolve or flag contradictions, decay, prune, promote; `keeper.undo` takes it back.

        Happens by itself, as a job, after every so many new items.
        """
        return self.keeper.consolidate(scope=self._scoped(scope), layer=layer, dry_run=dry_run, progress=progress)

    # -- look ----------------------------------------------------------------------------------------------------

    def items(
        self,
        *,
        scope: Scope | None = None,
        domain: str | None = None,
        kind: str | Sequence[str] | None = None,
        sort: str = "confidence",
        limit: int = 20,
    ) -> list[Entry]:
        """Items the scope sees, by falling `confidence`, `usage` or `created`."""
        found = self._memory.entries(
            scope=self._scoped(scope),
            kind=kinds_of(kind),
            tags=wanted_tags(domain),
            state=("active", "flagged"),
            limit=2**31,
        )
        return sorted_items(found, sort)[: checked_count("limit", limit, least=1)]

    def item(self, id: str, *, scope: Scope | None = None) -> Entry:
        """One item, whatever its state."""
        entry = self._memory.get(id, scope=self._scoped(scope))
        if not is_item(entry):
            raise NotFound("strategy or guardrail", id, f"it is a {entry.kind}")
        return entry

    def tasks(self, *, scope: Scope | None = None, state: TaskState | None = None, limit: int = 100) -> list[Task]:
        """Attempts at tasks, newest first."""
        states = None if state is None else [state]
        return self._tasks.all(bank_partition(self._scoped(scope)), states=states, limit=limit)

    def runs(self, *, scope: Scope | None = None, limit: int = 100) -> list[Run]:
        """Runs of several attempts, newest first."""
        return self._tasks.runs(bank_partition(self._scoped(scope)), limit=limit)

    def stats(self, *, scope: Scope | None = None) -> BankStats:
        """How much the scope's bank holds, and how tasks went."""
        wanted = self._scoped(scope)
        return stats_of(self._memory, self._tasks, wanted, self.keeper.stages(scope=wanted))

    # -- inside --------------------------------------------------------------------------------------------------

    def _order(
        self, task_id: str, agent_id: str, query: str, domain: str, scope: Scope | None, session_id: str | None
    ) -> Order:
        """What was asked for, checked before anything is done."""
        if not checked_line("task_id", task_id).strip():
            raise InvalidInput("task_id", "is empty", "give the task a name; an id will do")
        wanted = self._scoped(scope)
        bank_partition(wanted)
        return Order(
            task_id=task_id,
            agent_id=checked_line("agent_id", agent_id),
            query=checked_query(query),
            domain=checked_domain(domain),
            scope=wanted,
            session_id=None if session_id is None else checked_session_id(session_id),
        )

    def _look(self, order: Order, k: int | None, within: str | None) -> Recall:
        """What an agent is given: at most `k` items, and none that fits much less than the best."""
        domain = order.domain if within is None else within
        kinds, tags = kinds_of(None), wanted_tags(domain or None)
        filters = _filters((*kinds,), (*tags,), self._min_confidence)
        return self._found(order.query, filters, k, order.scope, preferred)

    def _found(self, query: str, filters: Filters, k: int | None, scope: Scope | None, refine: Refine) -> Recall:
        wanted = self._k if k is None else k
        return self._engine.searcher.recall(query, scope=self._scoped(scope), k=wanted, filters=filters, refine=refine)

    def _scoped(self, scope: Scope | None) -> Scope:
        wanted = self._scope if scope is None else checked_scope(scope)
        if wanted is None:
            raise ScopeError("scope", "is missing", "give it to the call, or to ReasoningBank(memory, scope=…)")
        return wanted

    def _model(self, scope: Scope, session_id: str | None) -> Model | None:
        return self._memory.admin.model(scope=scope, session_id=session_id)

    def _model_for(self, task: Task) -> Model | None:
        return self._memory.admin.model(scope=scope_of(task.partition), session_id=task.session_id)
