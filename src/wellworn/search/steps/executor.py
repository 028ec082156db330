"""Runs a plan on an open search, action by action, within hard limits.

Whatever stops it (a limit, an error of a planner or an embedder), what was found so far is kept: the ranking it began
with is the plain one, and every action leaves a whole ranking behind.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from wellworn.core.values import KINDS, Entry, Step
from wellworn.ingest.terms import terms
from wellworn.search.context import Rows, SearchContext, Vector
from wellworn.search.score import MICROS_PER_DAY, Ranked, View
from wellworn.search.steps import order
from wellworn.search.steps.actions import (
    NAMES,
    Action,
    Aggregate,
    DrillDown,
    FilterByRecency,
    FilterByRelevance,
    Plan,
    RecursiveCall,
    SearchLayer,
    detail_of,
)
from wellworn.search.steps.bridges import Source, source_of
from wellworn.search.steps.calls import Calls
from wellworn.search.steps.cues import shape_of
from wellworn.search.steps.limits import LimitMet, Meter
from wellworn.search.steps.planner import ModelPlanner
from wellworn.search.steps.plans import Planner, RulePlanner
from wellworn.search.steps.subject import gathered, inferred

_EPISODE = KINDS.index("episode")
CARRIED = 10
"""Best rows of another query that come into the ranking."""
FOUND_SHARE = 0.8
"""Share of the score a row had for another query that it is lifted to."""
OF_A_SIDE = 1
"""Best rows of each side of a comparison, which are lifted to all of the score they had there."""


@dataclass(kw_only=True)
class State:
    """What one level of a run knows."""

    ranked: Ranked
    context: SearchContext
    depth: int = 0
    chosen: list[int] | None = None
    """Rows to go on from; None: no filter yet, the best are meant."""
    sources: list[Source] = field(default_factory=list)
    elsewhere: dict[int, float] = field(default_factory=dict)
    """Row → its best score for another query."""
    sides: dict[int, float] = field(default_factory=dict)
    """The same for the best few of each sub-question."""


class Executor:
    """One run: called by the search with its ranking, gives back the changed one."""

    def __init__(self, plan: Plan, planner: Planner, meter: Meter, calls: Calls | None = None) -> None:
        self.calls = calls
        """The model calls that were made for the plan, if any."""
        self._plan = plan
        self._planner = planner
        self._prompt = isinstance(planner, RulePlanner | ModelPlanner)
        """Whether the planner answers at once: a model's plans are all made before."""
        self._meter = meter
        self.steps: list[Step] = []
        self.via: dict[str, tuple[str, str]] = {}
        """Entry id → the id of the entry that led to it, and how (`bridge` or `link`)."""

    @property
    def tokens(self) -> int:
        """Tokens used so far."""
        return self._meter.tokens

    def __call__(self, ranked: Ranked, context: SearchContext) -> Ranked:
        state = State(ranked=ranked, context=context)
        self._run(self._plan, state)
        return state.ranked

    def _run(self, plan: Plan, state: State) -> None:
        for action in plan:
            started, problem, found = time.perf_counter(), "", 0
            try:
                if type(action) not in NAMES:  # a planner is anybody's code
                    raise TypeError
                self._meter.begin_action()
                found = self._do(action, state)
            except LimitMet as limit:
                problem = f"stopped at the limit of {limit}"
            except Exception as error:  # outermost loop of the route: a failed plan must not cost the plain answer
                problem = f"failed: {type(error).__name__}"
            self.steps.append(
                Step(
                    action=NAMES.get(type(action), type(action).__name__),
                    detail=detail_of(action) if not problem else "",
                    found=found,
                    seconds=time.perf_counter() - started,
                    depth=state.depth,
                    problem=problem,
                )
            )
            if problem:
                return

    def _do(self, action: Action, state: State) -> int:
        match action:
            case SearchLayer():
                return self._search(action, state)
            case RecursiveCall():
                return self._call(action, state)
            case FilterByRelevance():
                return _choose(action, state)
            case FilterByRecency():
                return _recent(action, state)
            case DrillDown():
                return self._drill(action, state)
            case Aggregate():
                return self._aggregate(action, state)

    def _search(self, action: SearchLayer, state: State) -> int:
        ranked, _ = self._about(action.query, state.context)
        if action.layer is not None:
            ranked = ranked.take(np.flatnonzero(state.context.on_layers(ranked.rows, [action.layer])))
        return _carry(ranked, state)

    def _about(self, query: str, context: SearchContext) -> tuple[Ranked, SearchContext]:
        """The ranking for another query."""
        return context.about(query, self._vector(context, query), self._meter.check)

    def _view(self, context: SearchContext, query: str) -> View:
        """Both arms for another query."""
        return context.again(query, self._vector(context, query), self._meter.check)

    def _vector(self, context: SearchContext, query: str) -> Vector | None:
        """The vector of another query. A search is not begun where the time left will not do, by the first one."""
        self._meter.check(ahead_s=context.seconds)
        embed = context.embed
        vector = None if embed is None else self._meter.within(partial(embed, query))
        self._meter.check(ahead_s=context.seconds)
        return vector

    def _call(self, action: RecursiveCall, state: State) -> int:
        if state.depth + 1 >= self._meter.limits.depth:
            raise LimitMet(f"depth {self._meter.limits.depth}")
        ranked, context = self._about(action.sub_query, state.context)
        deeper = State(ranked=ranked, context=context, depth=state.depth + 1)
        shape = shape_of(action.sub_query)
        if shape != "plain":  # a plain question needs no plan: its one search has just been made
            layers = list(context.layers)
            plan = partial(self._planner.plan, action.sub_query, shape, layers=layers, depth=deeper.depth)
            self._run(plan() if self._prompt else self._meter.within(plan), deeper)
        found = _carry(deeper.ranked, state)
        best = deeper.ranked.take(np.argsort(-deeper.ranked.scores, kind="stable")[:OF_A_SIDE])
        for row, score in zip(best.rows.tolist(), best.scores.tolist(), strict=True):
            state.sides[row] = max(state.sides.get(row, -np.inf), score)  # it may be second for another side
        return found

    def _drill(self, action: DrillDown, state: State) -> int:
        if state.chosen is None:
            _choose(FilterByRelevance(), state)
        rows = np.array(state.chosen, dtype=np.intp)
        layer = [action.source] if action.source else []
        rows = rows[state.context.on_layers(rows, layer)]
        if not action.turns:
            rows = rows[state.context.bank.column("kind", rows) != _EPISODE]
        entries = state.context.read(rows)
        for row in rows.tolist():
            self._meter.check()
            if (entry := entries.get(row)) is not None:
                self._meter.spend(tokens=entry.token_count)
                state.sources.append(source_of(state.context, row, entry, check=self._meter.check))
        new = order.brought_in(state.sources)
        new = new[state.context.on_layers(new, [action.target] if action.target else [])]
        before = len(state.ranked.rows)
        state.ranked = state.context.with_rows(state.ranked, _having(new, action.filter, state.context))
        return len(state.ranked.rows) - before

    def _aggregate(self, action: Aggregate, state: State) -> int:
        if state.elsewhere:
            whole = action.strategy == "compare" and bool(state.sides)
            found, share = (state.sides, 1.0) if whole else (state.elsewhere, FOUND_SHARE)
            state.ranked = order.lifted(state.ranked, found, share)
            state.elsewhere, state.sides = {}, {}
        if action.strategy in ("summarize", "infer"):
            self._meter.check()
            ordered = gathered if action.strategy == "summarize" else inferred
            state.ranked = ordered(state.ranked, state.context, partial(self._view, state.context))
        elif state.sources:
            self._combine(state)
        return len(state.ranked.rows)

    def _combine(self, state: State) -> None:
        rows = order.to_read(state.ranked, state.context, state.sources)
        self._meter.check()
        entries = state.context.read(rows)
        self._meter.spend(tokens=sum(entry.token_count for entry in entries.values()))
        self._meter.check()
        before = state.ranked
        state.ranked, via = order.combined(before, state.context, state.sources, entries, check=self._meter.check)
        if state.depth == 0:
            self._note_ways(state, entries, via)

    def _note_ways(self, state: State, entries: dict[int, Entry], via: list[int]) -> None:
        """Keep which entry led to which, for those that a bridge or a link leads to."""
        values = dict(zip(state.ranked.names, state.ranked.values.T, strict=True))
        bridged = (values["shares"] > 0) | (values["named"] > 0) | (values["names"] > 0)
        for place, row in enumerate(state.ranked.rows.tolist()):
            if bridged[place] and via[place] >= 0 and row in entries:
                source = state.sources[via[place]]
                how = "link" if row in source.links else "bridge"
                self.via[entries[row].id] = (source.entry.id, how)


def _carry(ranked: Ranked, state: State) -> int:
    """Bring the best of another query into the ranking."""
    best = ranked.take(np.argsort(-ranked.scores, kind="stable")[:CARRIED])
    state.ranked = state.context.with_rows(state.ranked, best.rows)
    for row, score in zip(best.rows.tolist(), best.scores.tolist(), strict=True):
        state.elsewhere[row] = max(state.elsewhere.get(row, -np.inf), score)
    return len(best.rows)


def _choose(action: FilterByRelevance, state: State) -> int:
    """Choose the rows to go on from: by their best score, here or for another query."""
    ranked = state.ranked
    scores = [
        max(score, state.elsewhere.get(row, -np.inf))
        for row, score in zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True)
    ]
    best = np.argsort(-np.array(scores), kind="stable")[: action.top].tolist()
    least = action.min_share * max(scores, default=0.0)
    state.chosen = [int(ranked.rows[place]) for place in best if scores[place] >= least]
    return len(state.chosen)


def _recent(action: FilterByRecency, state: State) -> int:
    """Leave out what is too old, unless that is everything."""
    at = state.context.bank.column("at", state.ranked.rows).astype(np.int64)
    kept = np.flatnonzero(at >= state.context.view.reference - action.max_age_days * MICROS_PER_DAY)
    if len(kept):
        state.ranked = state.ranked.take(kept)
    return len(kept)


def _having(rows: Rows, words: str, context: SearchContext) -> Rows:
    """The rows that have one of these words; all of them when no word is given."""
    wanted = terms(words)
    if not wanted:
        return rows
    found = [
        partition.postings.find(term)[0] + start
        for term in wanted
        for partition, start in zip(context.bank.partitions, context.bank.starts, strict=False)
    ]
    return rows[np.isin(rows, np.concatenate(found))]
