"""Search in several steps: chooses a plan, runs it on an open search, and follows chains of evidence for `reason`.

Nothing here decides which questions come here (`router`), and a plan that cannot be had leaves the plain answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from wellworn.core.values import Layer, Reasoning, Recall, Scope, SearchStep
from wellworn.ingest.validate import checked_query
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.search.steps.actions import TURNS, Choice, Plan, Planner, RulePlanner, plan_of_choice
from wellworn.search.steps.executor import Executor
from wellworn.search.steps.limits import Calls, ModelAccess, Models, Usage
from wellworn.search.steps.router import Recursion, Route, Shape

if TYPE_CHECKING:
    from wellworn.search.steps.reason import Library
    from wellworn.search.steps.trainer import SearchTrainer

ROUTE = "recursive"


@dataclass(frozen=True, kw_only=True)
class _Planned:
    """A plan, who plans its sub-questions, and what was used to make it."""

    plan: Plan
    planner: Planner
    usage: Usage
    calls: Calls | None = None
    steps: Sequence[SearchStep] = ()


class StepSearch:
    """Answers questions by plans."""

    def __init__(
        self, searcher: Searcher, recursion: Recursion, *, access: ModelAccess | None, trainer: SearchTrainer | None
    ) -> None:
        self._searcher = searcher
        self._recursion = recursion
        self._access = access
        self._trainer = trainer
        self._planner: Planner = recursion.planner or RulePlanner()

    def recall(self, query: str, route: Route, *, scope: Scope, k: int, filters: Filters, learns: bool) -> Recall:
        """The k best entries, by the plan that serves questions of this shape."""
        home, trainer = scope.home(), self._trainer if learns else None
        query = self._searcher.scrubbed(checked_query(query), home)  # before any plan is made of it
        choice: Choice = "planner"
        tried = False
        if trainer is not None:
            choice, tried = trainer.choose(query, route.shape, home)
        found, tokens = self.attempt(query, route.shape, choice, scope=scope, k=k, filters=filters)
        if trainer is not None:
            trainer.record(found, home, route.shape, choice, tried, tokens)
        return found

    def attempt(
        self, query: str, shape: Shape, choice: Choice, *, scope: Scope, k: int, filters: Filters
    ) -> tuple[Recall, int]:
        """A search by a choice, and the tokens it used."""
        search = partial(self._searcher.recall, query, scope=scope, k=k, filters=filters)
        planned = self._planned(query, shape, choice, scope)
        if planned is None:
            return search(), 0
        executor = Executor(planned.plan, planned.planner, planned.usage)
        found = search(refine=executor)
        cost = found.cost if planned.calls is None else planned.calls.added_to(found.cost)
        found = replace(found, route=ROUTE, trace=(*planned.steps, *executor.steps), cost=cost)
        return found, planned.usage.tokens

    def _planned(self, query: str, shape: Shape, choice: Choice, scope: Scope) -> _Planned | None:
        """The plan of a choice; None for plain search, and where a planner fails."""
        usage = Usage(self._recursion.limits)
        if choice != "planner":
            plan = plan_of_choice(choice, query)
            return _Planned(plan=plan, planner=self._planner, usage=usage) if plan else None
        layers: list[Layer] = [partition.layer for partition in scope.partitions()]
        make = partial(self._planner.plan, query, shape, layers=layers, depth=0)
        try:
            if self._recursion.models is not None and self._access is not None:
                return self._by_model(query, shape, layers, scope, self._recursion.models, self._access)
            plan = tuple(make() if isinstance(self._planner, RulePlanner) else usage.within(make))
        except Exception:  # a planner may be anybody's code
            return None
        return _Planned(plan=plan, planner=self._planner, usage=usage)

    def _by_model(
        self, query: str, shape: Shape, layers: Sequence[Layer], scope: Scope, models: Models, access: ModelAccess
    ) -> _Planned:
        from wellworn.search.steps.planner import ModelPlanner

        usage, home = Usage(self._recursion.limits), scope.home()
        calls = _calls(usage, models)
        root, sub = access.metered(models.for_root, home), access.metered(models.for_sub, home)
        planner = ModelPlanner(root, sub, calls, rules=self._planner, limits=self._recursion.limits)
        plan = planner.plan(query, shape, layers=layers, depth=0)
        usage.restart_clock()  # models have their own time
        return _Planned(plan=tuple(plan), planner=planner, usage=usage, calls=calls, steps=planner.steps)

    def reason(self, question: str, library: Library, *, k: int) -> Reasoning:
        """The chain of evidence for a question, following turns of dialogues too.

        With a model, the conclusion is its own; with programs, it may rest on what they found.
        """
        from wellworn.search.steps.reason import concluded, explored, reasoned

        home = library.scope.home()
        question = self._searcher.scrubbed(checked_query(question), home)
        executor = Executor(TURNS, self._planner, Usage(self._recursion.limits))
        several = self._recursion.mode != "off"
        filters = Filters(as_of=library.moment)
        refine = executor if several else None
        found = self._searcher.recall(question, scope=library.scope, k=k, filters=filters, refine=refine)
        if several:
            found = replace(found, route=ROUTE, trace=tuple(executor.steps))
        chain = reasoned(found, executor.via, library)
        models, access = self._recursion.models, self._access
        root = models.for_root if models is not None else access.reasoner if access is not None else None
        if access is None or root is None:
            return chain
        if models is not None and models.repl is not None:
            sub = access.metered(models.for_sub, home)
            chain = explored(chain, library, access.metered(root, home), sub, models.repl)
            if chain.model:
                return chain
        calls = _calls(Usage(self._recursion.limits), models or Models(root=root))
        done = concluded(chain, access.metered(root, home), calls)
        return replace(done, recall=replace(done.recall, cost=calls.added_to(done.recall.cost)))


def _calls(usage: Usage, models: Models) -> Calls:
    return Calls(usage, most=models.calls, call_timeout_s=models.call_timeout_s, timeout_s=models.timeout_s)
