"""Search in several steps: chooses a plan, runs it on an open search within hard limits, and reasons from what it finds.

Whatever stops a plan (a limit, an error of a planner or an embedder), what was found so far is kept: the ranking it
begins with is the plain one, and every action leaves a whole ranking behind. Which questions come here is decided in
`router`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from wellworn.core.values import KINDS, Layer, Reasoning, Recall, Scope, SearchStep
from wellworn.ingest.terms import terms
from wellworn.ingest.validate import checked_query
from wellworn.search.context import Rows, SearchContext
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.search.score import MICROS_PER_DAY, Ranked
from wellworn.search.steps.actions import (
    NAMES,
    TURNS,
    Action,
    Aggregate,
    Choice,
    DrillDown,
    FilterByRecency,
    FilterByRelevance,
    Plan,
    Planner,
    RecursiveCall,
    RulePlanner,
    SearchLayer,
    Strategy,
    detail_of,
    plan_of_choice,
)
from wellworn.search.steps.bridges import Bridges, rows_with
from wellworn.search.steps.limits import Calls, LimitMet, ModelAccess, Models, Usage
from wellworn.search.steps.router import Recursion, Route, Shape, shape_of

if TYPE_CHECKING:
    from wellworn.search.steps.reason import Library
    from wellworn.search.steps.trainer import SearchTrainer

ROUTE = "recursive"
_EPISODE = KINDS.index("episode")
HOPS, NEXT = 3, 3
"""Entries of a chain that are followed, and rows that each hop goes on from."""
CARRIED = 10
"""Best rows of another query that are added to the ranking."""
SHOWN_OF_SIDE = 1
"""Best entries of a sub-question that a comparison tells."""
FOUND_SHARE = 0.8
"""Rows found by another query are lifted to this share of the score they had there."""


@dataclass(kw_only=True)
class _State:
    """What one level of a run knows."""

    ranked: Ranked
    context: SearchContext
    depth: int = 0
    filter: FilterByRelevance = field(default_factory=FilterByRelevance)
    """Which rows to go on from."""
    bridges: Bridges | None = None
    """Where they lead."""
    elsewhere: dict[int, float] = field(default_factory=dict)
    """Row → its best score for another query."""
    sides: dict[int, float] = field(default_factory=dict)
    """The same for the best row of each sub-question."""


class Executor:
    """One run: the search calls it with its ranking and gets back the changed one."""

    def __init__(self, plan: Plan, planner: Planner, usage: Usage) -> None:
        self._plan = plan
        self._planner = planner
        self._usage = usage
        self.steps: list[SearchStep] = []
        self.via: dict[str, tuple[str, str]] = {}
        """Entry id → the id of the entry that led to it, and how (`bridge` or `link`)."""
        self.sides: dict[str, list[str]] = {}
        """Sub-question → the ids of its best entries."""

    def __call__(self, ranked: Ranked, context: SearchContext) -> Ranked:
        state = _State(ranked=ranked, context=context)
        self._run(self._plan, state)
        return state.ranked

    def _run(self, plan: Plan, state: _State) -> None:
        for action in plan:
            started, problem, found = time.perf_counter(), "", 0
            try:
                self._usage.begin_action()
                found = self._do(action, state)
            except LimitMet as limit:
                problem = f"stopped at the limit of {limit}"
            except Exception as error:  # a failed plan must not cost the plain answer
                problem = f"failed: {type(error).__name__}"
            self.steps.append(
                SearchStep(
                    action=NAMES.get(type(action), type(action).__name__),
                    detail="" if problem else detail_of(action),
                    found=found,
                    seconds=time.perf_counter() - started,
                    depth=state.depth,
                    problem=problem,
                )
            )
            if problem:
                return

    def _do(self, action: Action, state: _State) -> int:
        match action:
            case SearchLayer():
                return self._search(action, state)
            case RecursiveCall():
                return self._call(action, state)
            case FilterByRelevance():
                state.filter = action
                return len(_chosen(state.ranked, state))
            case FilterByRecency():
                return _recent(action, state)
            case DrillDown():
                return self._drill(action, state)
            case Aggregate():
                return self._aggregate(action, state)

    def _about(self, query: str, context: SearchContext) -> tuple[Ranked, SearchContext]:
        """The ranking for another query. Not begun if the time left is less than the first search took."""
        usage, embed = self._usage, context.embed
        usage.check(ahead_s=context.seconds)
        vector = None if embed is None else usage.within(partial(embed, query))
        usage.check(ahead_s=context.seconds)
        return context.about(query, vector, usage.check)

    def _search(self, action: SearchLayer, state: _State) -> int:
        ranked, _ = self._about(action.query, state.context)
        if action.layer is not None:
            ranked = ranked.take(np.flatnonzero(state.context.on_layers(ranked.rows, [action.layer])))
        return len(_carry(ranked, state).rows)

    def _call(self, action: RecursiveCall, state: _State) -> int:
        if state.depth + 1 >= self._usage.limits.depth:
            raise LimitMet(f"depth {self._usage.limits.depth}")
        ranked, context = self._about(action.sub_query, state.context)
        deeper = _State(ranked=ranked, context=context, depth=state.depth + 1)
        shape = shape_of(action.sub_query)
        if shape != "plain":  # a plain question needs no plan: its one search has just been made
            layers = list(context.layers)
            self._run(_made(self._planner, self._usage, action.sub_query, shape, layers, deeper.depth), deeper)
        best = _carry(deeper.ranked, state)
        if state.depth == 0:
            entries = state.context.read(best.rows[:SHOWN_OF_SIDE])
            self.sides[action.sub_query] = [entry.id for entry in entries.values()]
        for row, score in zip(best.rows[:1].tolist(), best.scores[:1].tolist(), strict=True):
            state.sides[row] = max(state.sides.get(row, -np.inf), score)
        return len(best.rows)

    def _drill(self, action: DrillDown, state: _State) -> int:
        """From the chosen rows to what they name, and on from there; `Aggregate` orders what is brought in."""
        plain, context = state.ranked, state.context
        bridges = Bridges(context, self._usage.check)
        if not len(plain.rows) or bridges.whole(int(plain.rows[plain.scores.argmax()])):
            return 0
        ranked = bridges.with_rare(plain)
        rows = _chosen(ranked, state)
        rows = rows[context.on_layers(rows, [action.source] if action.source else [])]
        scores = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
        reached: dict[int, tuple[float, tuple[int, ...]]] = {row: (scores[row], ()) for row in rows.tolist()}
        for hop in range(HOPS):
            ranked = self._follow(action, context, bridges, reached, ranked)
            if not bridges.sources:
                return 0
            self._usage.spend(tokens=bridges.read(bridges.worth_reading(ranked)))
            if hop + 1 < HOPS:
                ordered, via = bridges.ordered(ranked)
                known = {source.row for source in bridges.sources}
                scores = dict(zip(ordered.rows.tolist(), ordered.scores.tolist(), strict=True))
                led = sorted((row for row in via if row not in known), key=lambda row: -scores[row])[:NEXT]
                reached = {row: (min(scores[row], via[row].score), via[row].path) for row in led}
                if not led:
                    break
        state.ranked, state.bridges = ranked, bridges
        return len(ranked.rows) - len(plain.rows)

    def _follow(
        self,
        action: DrillDown,
        context: SearchContext,
        bridges: Bridges,
        reached: dict[int, tuple[float, tuple[int, ...]]],
        ranked: Ranked,
    ) -> Ranked:
        """Make rows sources, each with its score and the path to it; the ranking with what they lead to."""
        rows = np.array([*reached], dtype=np.intp)
        if not action.turns:
            rows = rows[context.bank.column("kind", rows) != _EPISODE]
        self._usage.spend(tokens=bridges.read(rows))
        for row in rows.tolist():
            self._usage.check()
            bridges.follow(row, *reached[row])
        new = bridges.brought_in()
        new = new[context.on_layers(new, [action.target] if action.target else [])]
        if wanted := terms(action.filter):
            new = new[np.isin(new, np.concatenate([rows_with(context.bank, term) for term in wanted]))]
        return context.with_rows(ranked, new)

    def _aggregate(self, action: Aggregate, state: _State) -> int:
        if state.elsewhere:
            whole = action.strategy == "compare" and bool(state.sides)
            scores, share = (state.sides, 1.0) if whole else (state.elsewhere, FOUND_SHARE)
            target = share * np.array([scores.get(row, -np.inf) for row in state.ranked.rows.tolist()])
            lift = np.maximum(target - state.ranked.scores, 0.0)
            state.ranked = state.ranked.with_factor("found", lift, 1.0)
            state.elsewhere, state.sides = {}, {}
        bridges, state.bridges = state.bridges, None
        if bridges is not None and bridges.sources:
            self._usage.check()
            state.ranked, via = bridges.ordered(state.ranked)
            for row, source in via.items() if state.depth == 0 else ():
                if (entry := bridges.entry(row)) is not None:
                    how = "link" if row in source.links else "bridge"
                    self.via[entry.id] = (source.read.entry.id, how)
        return len(state.ranked.rows)


def _carry(ranked: Ranked, state: _State) -> Ranked:
    """Add the best rows of another query to the ranking; returns them."""
    best = ranked.take(np.argsort(-ranked.scores, kind="stable")[:CARRIED])
    state.ranked = state.context.with_rows(state.ranked, best.rows)
    for row, score in zip(best.rows.tolist(), best.scores.tolist(), strict=True):
        state.elsewhere[row] = max(state.elsewhere.get(row, -np.inf), score)
    return best


def _chosen(ranked: Ranked, state: _State) -> Rows:
    """The rows to go on from, by their best score here or for another query."""
    rows, action = ranked.rows, state.filter
    elsewhere = np.array([state.elsewhere.get(row, -np.inf) for row in rows.tolist()])
    scores = np.maximum(ranked.scores, elsewhere)
    best = np.argsort(-scores, kind="stable")[: action.top]
    chosen: Rows = rows[best[scores[best] >= action.min_share * scores.max(initial=0.0)]]
    return chosen


def _recent(action: FilterByRecency, state: _State) -> int:
    """Leave out what is too old, unless that is everything."""
    at = state.context.bank.column("at", state.ranked.rows).astype(np.int64)
    kept = np.flatnonzero(at >= state.context.view.reference - action.max_age_days * MICROS_PER_DAY)
    if len(kept):
        state.ranked = state.ranked.take(kept)
    return len(kept)


# -- recalls and reasoning --------------------------------------------------------------------------------------------


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
        last = next((one for one in reversed(planned.plan) if isinstance(one, Aggregate)), Aggregate())
        if last.strategy != "combine":
            found = self._digested(found, last.strategy, executor.sides, planned, scope)
        return found, planned.usage.tokens

    def _digested(
        self, found: Recall, strategy: Strategy, sides: dict[str, list[str]], planned: _Planned, scope: Scope
    ) -> Recall:
        """The recall with what `compare` or `summarize` makes of it, by the model there is."""
        from wellworn.search.steps.digest import digest_of

        models, access = self._recursion.models, self._access
        root = models.for_root if models is not None else access.reasoner if access is not None else None
        calls = Calls(planned.usage, most=1) if models is None else _calls(planned.usage, models)
        model = None if root is None or access is None else access.metered(root, scope.home())
        digest = digest_of(found, strategy, sides, model, calls)
        return replace(found, digest=digest, cost=calls.added_to(found.cost))

    def _planned(self, query: str, shape: Shape, choice: Choice, scope: Scope) -> _Planned | None:
        """The plan of a choice; None for plain search, and where a planner fails."""
        usage = Usage(self._recursion.limits)
        if choice != "planner":
            plan = plan_of_choice(choice, query)
            return _Planned(plan=plan, planner=self._planner, usage=usage) if plan else None
        layers: list[Layer] = [partition.layer for partition in scope.partitions()]
        try:
            if self._recursion.models is not None and self._access is not None:
                return self._by_model(query, shape, layers, scope, self._recursion.models, self._access)
            plan = _made(self._planner, usage, query, shape, layers, 0)
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
        return _Planned(plan=plan, planner=planner, usage=usage, calls=calls, steps=planner.steps)

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


def _made(planner: Planner, usage: Usage, query: str, shape: Shape, layers: Sequence[Layer], depth: int) -> Plan:
    """A planner's plan, read to its end before the deadline; `TypeError` if it holds anything but actions."""

    def make() -> Plan:
        plan = tuple(islice(planner.plan(query, shape, layers=layers, depth=depth), usage.limits.actions + 1))
        if wrong := [one for one in plan if type(one) not in NAMES]:
            raise TypeError(f"{wrong[0]!r:.80} is no action")
        return plan

    return make() if isinstance(planner, RulePlanner) else usage.within(make)


def _calls(usage: Usage, models: Models) -> Calls:
    return Calls(usage, most=models.calls, call_timeout_s=models.call_timeout_s, timeout_s=models.timeout_s)
