"""Runs a plan on an open search, action by action, within hard limits.

Whatever stops it (a limit, an error of a planner or an embedder), what was found so far is kept: the ranking it begins
with is the plain one, and every action leaves a whole ranking behind.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from wellworn.core.values import KINDS, SearchStep
from wellworn.ingest.terms import terms
from wellworn.search.context import Rows, SearchContext
from wellworn.search.score import MICROS_PER_DAY, Ranked
from wellworn.search.steps.actions import (
    NAMES,
    Action,
    Aggregate,
    DrillDown,
    FilterByRecency,
    FilterByRelevance,
    Plan,
    Planner,
    RecursiveCall,
    SearchLayer,
    detail_of,
)
from wellworn.search.steps.bridges import Source, brought_in, combined, rows_with, source_of, to_read
from wellworn.search.steps.limits import LimitMet, Usage
from wellworn.search.steps.router import shape_of

_EPISODE = KINDS.index("episode")
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
    chosen: Rows | None = None
    """Rows to go on from; None: the best."""
    sources: list[Source] = field(default_factory=list)
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
                return _choose(action, state)
            case FilterByRecency():
                return _recent(action, state)
            case DrillDown():
                return self._drill(action, state)
            case Aggregate():
                return self._aggregate(action, state)
        raise TypeError(f"{action!r:.80} is no action")  # a planner may return anything

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
            plan = partial(self._planner.plan, action.sub_query, shape, layers=list(context.layers), depth=deeper.depth)
            self._run(self._usage.within(plan), deeper)
        best = _carry(deeper.ranked, state)
        for row, score in zip(best.rows[:1].tolist(), best.scores[:1].tolist(), strict=True):
            state.sides[row] = max(state.sides.get(row, -np.inf), score)
        return len(best.rows)

    def _drill(self, action: DrillDown, state: _State) -> int:
        if state.chosen is None:
            _choose(FilterByRelevance(), state)
        context, rows = state.context, np.array(state.chosen, dtype=np.intp)
        rows = rows[context.on_layers(rows, [action.source] if action.source else [])]
        if not action.turns:
            rows = rows[context.bank.column("kind", rows) != _EPISODE]
        entries = context.read(rows)
        for row in rows.tolist():
            self._usage.check()
            if (entry := entries.get(row)) is not None:
                self._usage.spend(tokens=entry.token_count)
                state.sources.append(source_of(context, row, entry, self._usage.check))
        new = brought_in(state.sources)
        new = new[context.on_layers(new, [action.target] if action.target else [])]
        if wanted := terms(action.filter):
            new = new[np.isin(new, np.concatenate([rows_with(context.bank, term) for term in wanted]))]
        before = len(state.ranked.rows)
        state.ranked = context.with_rows(state.ranked, new)
        return len(state.ranked.rows) - before

    def _aggregate(self, action: Aggregate, state: _State) -> int:
        if state.elsewhere:
            whole = action.strategy == "compare" and bool(state.sides)
            scores, share = (state.sides, 1.0) if whole else (state.elsewhere, FOUND_SHARE)
            target = share * np.array([scores.get(row, -np.inf) for row in state.ranked.rows.tolist()])
            lift = np.maximum(target - state.ranked.scores, 0.0)
            state.ranked = state.ranked.with_factor("found", lift, 1.0)
            state.elsewhere, state.sides = {}, {}
        if state.sources:
            self._combine(state)
        return len(state.ranked.rows)

    def _combine(self, state: _State) -> None:
        usage = self._usage
        rows = to_read(state.ranked, state.context, state.sources)
        usage.check()
        entries = state.context.read(rows)
        usage.spend(tokens=sum(entry.token_count for entry in entries.values()))
        usage.check()
        state.ranked, via = combined(state.ranked, state.context, state.sources, entries, usage.check)
        if state.depth == 0:
            for row, source in via.items():
                if row in entries:
                    self.via[entries[row].id] = (source.entry.id, "link" if row in source.links else "bridge")


def _carry(ranked: Ranked, state: _State) -> Ranked:
    """Add the best rows of another query to the ranking; returns them."""
    best = ranked.take(np.argsort(-ranked.scores, kind="stable")[:CARRIED])
    state.ranked = state.context.with_rows(state.ranked, best.rows)
    for row, score in zip(best.rows.tolist(), best.scores.tolist(), strict=True):
        state.elsewhere[row] = max(state.elsewhere.get(row, -np.inf), score)
    return best


def _choose(action: FilterByRelevance, state: _State) -> int:
    """Choose the rows to go on from, by their best score here or for another query."""
    rows = state.ranked.rows
    elsewhere = np.array([state.elsewhere.get(row, -np.inf) for row in rows.tolist()])
    scores = np.maximum(state.ranked.scores, elsewhere)
    best = np.argsort(-scores, kind="stable")[: action.top]
    state.chosen = rows[best[scores[best] >= action.min_share * scores.max(initial=0.0)]]
    return len(state.chosen)


def _recent(action: FilterByRecency, state: _State) -> int:
    """Leave out what is too old, unless that is everything."""
    at = state.context.bank.column("at", state.ranked.rows).astype(np.int64)
    kept = np.flatnonzero(at >= state.context.view.reference - action.max_age_days * MICROS_PER_DAY)
    if len(kept):
        state.ranked = state.ranked.take(kept)
    return len(kept)
