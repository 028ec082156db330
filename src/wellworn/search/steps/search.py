"""Search in several steps: chooses a plan, runs it on an open search within hard limits, and reasons from what it finds.

Whatever stops a plan (a limit, an error of a planner or an embedder), what was found so far is kept: the ranking it
begins with is the plain one, and every action leaves a whole ranking behind. Which questions come here is decided in
`router`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from wellworn.core.dataclass import dataclass
from wellworn.core.fence import MIN_CONFIDENCE, NOTHING
from wellworn.core.values import KINDS, Entry, Layer, Partition, Reasoning, Recall, Scope, SearchStep
from wellworn.ingest.terms import terms
from wellworn.ingest.validate import checked_query
from wellworn.search.bank import Rows
from wellworn.search.context import SearchContext
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.search.score import MICROS_PER_DAY, Ranked, Values
from wellworn.search.steps import actions
from wellworn.search.steps.bridges import Bridges, rows_with
from wellworn.search.steps.limits import Calls, LimitMet, ModelAccess, Usage
from wellworn.search.steps.router import Recursion, shape_of

if TYPE_CHECKING:
    from wellworn.models.ledger import Meter as MeteredModel
    from wellworn.search.steps.reason import Library
    from wellworn.search.steps.trainer import CombinedMemoryTrainer

ROUTE = "recursive"
_EPISODE = KINDS.index("episode")
HOPS, NEXT = 3, 3
"""Entries of a chain that are followed, and rows that each hop goes on from."""
CARRIED = 10
"""Best rows of another query that are added to the ranking."""
FOUND_SHARE = 0.8
"""Rows found by another query are lifted to this share of the score they had there."""


@dataclass(kw_only=True)
class _State:
    """What one level of a run knows."""

    ranked: Ranked
    context: SearchContext
    depth: int = 0
    filter: actions.FilterByRelevance = field(default_factory=actions.FilterByRelevance)
    """Which rows to go on from."""
    bridges: Bridges | None = None
    """Where they lead."""
    elsewhere: dict[int, float] = field(default_factory=dict)
    """Row → the score that other queries lift it to."""


class Executor:
    """One run: the search calls it with its ranking and gets back the changed one."""

    def __init__(self, plan: actions.Plan, planner: actions.Planner, usage: Usage) -> None:
        self._plan = plan
        self._planner = planner
        self._usage = usage
        self.steps: list[SearchStep] = []
        self.via: dict[str, tuple[str, str]] = {}
        """Entry id → the id of the entry that led to it, and how (`bridge` or `link`)."""
        self.sides: dict[str, Entry] = {}
        """Sub-question → its best entry."""

    def __call__(self, ranked: Ranked, context: SearchContext) -> Ranked:
        state = _State(ranked=ranked, context=context)
        self._run(self._plan, state)
        return state.ranked

    def _run(self, plan: actions.Plan, state: _State) -> None:
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
                    action=actions.NAMES.get(type(action), type(action).__name__),
                    detail="" if problem else actions.detail_of(action),
                    found=found,
                    seconds=time.perf_counter() - started,
                    depth=state.depth,
                    problem=problem,
                )
            )
            if problem:
                return

    def _do(self, action: actions.Action, state: _State) -> int:
        match action:
            case actions.SearchLayer():
                return self._search(action, state)
            case actions.RecursiveCall():
                return self._call(action, state)
            case actions.FilterByRelevance():
                state.filter = action
                return len(_chosen(state.ranked, state))
            case actions.FilterByRecency():
                return _recent(action, state)
            case actions.DrillDown():
                return self._drill(action, state)
            case actions.Aggregate():
                return self._aggregate(state)

    def _about(self, query: str, context: SearchContext) -> tuple[Ranked, SearchContext]:
        """The ranking for another query. Not begun if the time left is less than the first search took."""
        usage, embed = self._usage, context.embed
        usage.check(ahead_s=context.seconds)
        vector = None if embed is None else usage.within(partial(embed, query))
        usage.check(ahead_s=context.seconds)
        return context.about(query, vector, usage.check)

    def _search(self, action: actions.SearchLayer, state: _State) -> int:
        ranked, _ = self._about(action.query, state.context)
        if action.layer is not None:
            ranked = ranked.take(np.flatnonzero(state.context.on_layer(ranked.rows, action.layer)))
        return len(_carry(ranked, FOUND_SHARE * ranked.scores, state))

    def _call(self, action: actions.RecursiveCall, state: _State) -> int:
        if state.depth + 1 >= self._usage.limits.depth:
            raise LimitMet(f"depth {self._usage.limits.depth}")
        ranked, context = self._about(action.sub_query, state.context)
        deeper = _State(ranked=ranked, context=context, depth=state.depth + 1)
        if shape_of(action.sub_query) != "plain":  # else it needs no plan: its one search has just been made
            plan = _made(self._planner, self._usage, action.sub_query, context.layers, deeper.depth)
            self._run(plan, deeper)
        scores = deeper.ranked.scores
        lifted = np.where(scores == scores.max(initial=0.0), 1.0, FOUND_SHARE) * scores
        rows = _carry(deeper.ranked, lifted, state)
        if state.depth == 0:
            for entry in state.context.read(rows[:1]).values():
                self.sides[action.sub_query] = entry
        return len(rows)

    def _drill(self, action: actions.DrillDown, state: _State) -> int:
        """From the chosen rows to what they name, and on from there; `Aggregate` orders what is brought in."""
        plain, context = state.ranked, state.context
        bridges = Bridges(context, self._usage.check)
        if not len(plain.rows) or bridges.whole(int(plain.rows[plain.scores.argmax()])):
            return 0
        ranked = bridges.with_rare(plain)
        rows = _chosen(ranked, state)
        rows = rows[context.on_layer(rows, action.source)]
        scores = dict(zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True))
        reached: dict[int, tuple[float, tuple[int, ...]]] = {row: (scores[row], ()) for row in rows.tolist()}
        for hop in range(HOPS):
            rows = np.array([*reached], dtype=np.intp)
            if not action.turns:
                rows = rows[context.bank.kind[rows] != _EPISODE]
            self._usage.spend(tokens=bridges.read(rows))
            for row in rows.tolist():
                self._usage.check()
                bridges.follow(row, *reached[row])
            if not bridges.sources:
                return 0
            new = bridges.brought_in()
            new = new[context.on_layer(new, action.target)]
            if wanted := terms(action.filter):
                new = new[np.isin(new, np.concatenate([rows_with(context.bank, term) for term in wanted]))]
            ranked = context.with_rows(ranked, new)
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

    def _aggregate(self, state: _State) -> int:
        """Lift what other queries found, and order what was brought in."""
        if state.elsewhere:
            lift = np.maximum(_lifted(state.ranked, state) - state.ranked.scores, 0.0)
            state.ranked = state.ranked.with_factor("found", lift, 1.0)
            state.elsewhere = {}
        bridges, state.bridges = state.bridges, None
        if bridges is not None and bridges.sources:
            self._usage.check()
            state.ranked, via = bridges.ordered(state.ranked)
            for row, source in via.items() if state.depth == 0 else ():
                if (entry := bridges.entry(row)) is not None:
                    how = "link" if row in source.links else "bridge"
                    self.via[entry.id] = (source.read.entry.id, how)
        return len(state.ranked.rows)


def _carry(ranked: Ranked, lifted: Values, state: _State) -> Rows:
    """Add the best rows of another query to the ranking, each with the score it is lifted to; returns them."""
    best = np.argsort(-ranked.scores, kind="stable")[:CARRIED]
    rows: Rows = ranked.rows[best]
    state.ranked = state.context.with_rows(state.ranked, rows)
    for row, score in zip(rows.tolist(), lifted[best].tolist(), strict=True):
        state.elsewhere[row] = max(state.elsewhere.get(row, -np.inf), score)
    return rows


def _lifted(ranked: Ranked, state: _State) -> Values:
    """The scores that other queries lift rows to."""
    return np.array([state.elsewhere.get(row, -np.inf) for row in ranked.rows.tolist()])


def _chosen(ranked: Ranked, state: _State) -> Rows:
    """The rows to go on from, by their best score here or for another query."""
    scores, action = np.maximum(ranked.scores, _lifted(ranked, state)), state.filter
    best = np.argsort(-scores, kind="stable")[: max(action.top, 0)]
    chosen: Rows = ranked.rows[best[scores[best] >= action.min_share * scores.max(initial=0.0)]]
    return chosen


def _recent(action: actions.FilterByRecency, state: _State) -> int:
    """Leave out what is too old, unless that is everything."""
    at = state.context.bank.at[state.ranked.rows].astype(np.int64)
    kept = np.flatnonzero(at >= state.context.view.reference - action.max_age_days * MICROS_PER_DAY)
    if len(kept):
        state.ranked = state.ranked.take(kept)
    return len(kept)


# -- recalls and reasoning --------------------------------------------------------------------------------------------


class StepSearch:
    """Answers questions by plans."""

    def __init__(
        self,
        searcher: Searcher,
        recursion: Recursion,
        *,
        access: ModelAccess | None,
        trainer: CombinedMemoryTrainer | None,
    ) -> None:
        self._searcher = searcher
        self._recursion = recursion
        self._access = access
        self._trainer = trainer
        self._planner: actions.Planner = recursion.planner or actions.RulePlanner()

    def recall(self, query: str, *, scope: Scope, k: int, filters: Filters, learns: bool) -> Recall:
        """The k best entries, by the way that serves this person."""
        home, trainer = scope.home(), self._trainer if learns else None
        query = self._searcher.scrubbed(checked_query(query), home)  # before any plan is made of it
        choice: actions.Choice = "planner" if trainer is None else trainer.choose(query, home)
        found, tokens = self.attempt(query, choice, scope=scope, k=k, filters=filters)
        if trainer is not None:
            trainer.record(found, home, choice, tokens)
        return found

    def attempt(
        self, query: str, choice: actions.Choice, *, scope: Scope, k: int, filters: Filters
    ) -> tuple[Recall, int]:
        """A search by a choice, and the tokens it used."""
        search = partial(self._searcher.recall, query, scope=scope, k=k, filters=filters)
        usage = Usage(self._recursion.limits)
        calls = self._calls(usage)
        planned = None if choice == "plain" else self._planned(query, choice, scope, usage, calls)
        if planned is None:
            return search(), 0
        plan, planner, steps = planned
        executor = Executor(plan, planner, usage)
        found = search(refine=executor)
        found = replace(found, route=ROUTE, trace=(*steps, *executor.steps))
        last = next((one for one in reversed(plan) if isinstance(one, actions.Aggregate)), actions.Aggregate())
        if last.strategy != "combine":
            from wellworn.search.steps.reason import digest_of

            digest = digest_of(found, last.strategy, executor.sides, self._root(scope.home()), calls)
            found = replace(found, digest=digest)
        return replace(found, cost=calls.added_to(found.cost)), usage.tokens

    def _planned(
        self, query: str, choice: actions.Choice, scope: Scope, usage: Usage, calls: Calls
    ) -> tuple[actions.Plan, actions.Planner, Sequence[SearchStep]] | None:
        """The plan of a choice, who plans its sub-questions, and the steps of planning; None where a planner fails."""
        if choice == "turns":
            return actions.TURNS, self._planner, ()
        models, access = self._recursion.models, self._access
        layers: list[Layer] = [partition.layer for partition in scope.partitions()]
        try:
            if models is None or access is None:
                return _made(self._planner, usage, query, layers, 0), self._planner, ()
            from wellworn.search.steps.planner import ModelPlanner

            root, sub = (access.metered(model, scope.home()) for model in (models.for_root, models.for_sub))
            planner = ModelPlanner(root, sub, calls, rules=self._planner, limits=usage.limits)
            plan = planner.plan(query, shape_of(query), layers=layers, depth=0)
        except Exception:  # a planner may be anybody's code
            return None
        usage.restart_clock()  # models have their own time
        return plan, planner, planner.steps

    def reason(self, question: str, library: Library, *, k: int) -> Reasoning:
        """The chain of evidence for a question, following turns of dialogues too.

        With a model, the conclusion is its own; with programs, it may rest on what they found.
        """
        from wellworn.search.steps.reason import concluded, explored, reasoned

        home, usage = library.scope.home(), Usage(self._recursion.limits)
        question = self._searcher.scrubbed(checked_query(question), home)
        executor = Executor(actions.TURNS if self._recursion.mode != "off" else (), self._planner, usage)
        filters = Filters(as_of=library.moment)
        found = self._searcher.recall(question, scope=library.scope, k=k, filters=filters, refine=executor)
        if executor.steps:
            found = replace(found, route=ROUTE, trace=tuple(executor.steps))
        if found.confidence is not None and found.confidence < MIN_CONFIDENCE:
            return Reasoning(question=found.query, conclusion=NOTHING, path=(), confidence=0.0, recall=found)
        chain, root = reasoned(found, executor.via, library), self._root(home)
        models, access = self._recursion.models, self._access
        if root is not None and models is not None and access is not None and models.repl is not None:
            chain = explored(chain, library, root, access.metered(models.for_sub, home), models.repl)
        if root is None or chain.model:
            return chain
        calls = self._calls(Usage(self._recursion.limits))
        done = concluded(chain, root, calls)
        return replace(done, recall=replace(done.recall, cost=calls.added_to(done.recall.cost)))

    def _root(self, home: Partition) -> MeteredModel | None:
        """The model that concludes and summarises: that of `models`, else the memory's own."""
        models, access = self._recursion.models, self._access
        if access is None:
            return None
        model = access.reasoner if models is None else models.for_root
        return None if model is None else access.metered(model, home)

    def _calls(self, usage: Usage) -> Calls:
        models = self._recursion.models
        return Calls(usage) if models is None else Calls(usage, most=models.calls, timeout_s=models.timeout_s)


def _made(planner: actions.Planner, usage: Usage, query: str, layers: Sequence[Layer], depth: int) -> actions.Plan:
    """A planner's plan, read to its end before the deadline; `TypeError` if it holds anything but actions."""

    def make() -> actions.Plan:
        given = planner.plan(query, shape_of(query), layers=layers, depth=depth)
        plan = tuple(islice(given, usage.limits.actions + 1))
        if wrong := [one for one in plan if type(one) not in actions.NAMES]:
            raise TypeError(f"{wrong[0]!r:.80} is no action")
        return plan

    return make() if isinstance(planner, actions.RulePlanner) else usage.within(make)
