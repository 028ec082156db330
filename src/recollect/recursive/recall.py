"""The route of a recall: plain or recursive, decided here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from recollect.errors import InvalidInput
from recollect.ingest.validate import checked_query
from recollect.recursive.actions import Aggregate, DrillDown, FilterByRelevance
from recollect.recursive.executor import Executor
from recollect.recursive.limits import Limits, Meter
from recollect.recursive.plans import SOURCES, Planner, RulePlanner
from recollect.recursive.reason import Get, Links, reasoned
from recollect.recursive.router import THRESHOLD, route
from recollect.retrieval.filters import Filters
from recollect.retrieval.pipeline import Searcher
from recollect.retrieval.profiles import Profile
from recollect.types import Reasoning, Recall, Scope

MODES = ("on", "off", "always")
ROUTE = "recursive"


@dataclass(frozen=True, kw_only=True)
class Recursion:
    """When a recall is recursive, by which plans, and within which limits."""

    mode: str = "on"
    """`on` (the router decides), `off` (always plain) or `always`."""
    threshold: float = THRESHOLD
    """The score from which on a question is recursive; raise it to roll out in stages."""
    limits: Limits = field(default_factory=Limits)
    planner: Planner = field(default_factory=RulePlanner)

    def __post_init__(self) -> None:
        checked_recursion(self.mode)
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, int | float):
            raise InvalidInput("recursion.threshold", f"{self.threshold!r} is not a number", "use 0 … 1")


def checked_recursion(mode: object) -> str:
    if mode not in MODES:
        raise InvalidInput("recursion", f"{mode!r} is unknown", f"use one of {', '.join(MODES)}")
    return str(mode)


def recursion_of(value: str | Recursion, profile: Profile) -> Recursion:
    """The settings as a caller gives them. Profiles that do not weigh `terms` stay plain: their scores have another
    scale, and they are there to repeat what others did."""
    chosen = value if isinstance(value, Recursion) else Recursion(mode=checked_recursion(value))
    return chosen if "terms" in profile.weights else replace(chosen, mode="off")


class Router:
    """Sends each query on its way."""

    def __init__(self, searcher: Searcher, recursion: Recursion) -> None:
        self._searcher = searcher
        self._recursion = recursion

    def recall(self, query: str, *, scope: Scope, k: int, filters: Filters, recursion: str | None = None) -> Recall:
        """The k best entries for a query, by the route that it earns; `recursion` decides for this call alone."""
        executor = self.executor(query, scope=scope, mode=recursion)
        if executor is None:
            return self._searcher.recall(query, scope=scope, k=k, filters=filters)
        return self.run(executor, query, scope=scope, k=k, filters=filters)

    def reason(self, question: str, *, scope: Scope, k: int, filters: Filters, links: Links, get: Get) -> Reasoning:
        """The chain of evidence for a question: always recursive, turns of dialogues followed too."""
        checked_query(question)
        executor = None
        if self._recursion.mode != "off":
            plan = (FilterByRelevance(top=SOURCES), DrillDown(turns=True), Aggregate(strategy="combine"))
            executor = Executor(plan, self._recursion.planner, Meter(self._recursion.limits))
        if executor is None:
            found = self._searcher.recall(question, scope=scope, k=k, filters=filters)
        else:
            found = self.run(executor, question, scope=scope, k=k, filters=filters)
        return reasoned(found, executor, links=links, get=get)

    def run(self, executor: Executor, query: str, *, scope: Scope, k: int, filters: Filters) -> Recall:
        """A recursive recall."""
        found = self._searcher.recall(query, scope=scope, k=k, filters=filters, refine=executor)
        return replace(found, route=ROUTE, trace=tuple(executor.steps))

    def executor(self, query: str, *, scope: Scope, mode: str | None = None) -> Executor | None:
        """What runs the query's plan, or None for the plain route: a planner that fails leads there too."""
        settings = self._recursion
        mode = settings.mode if mode is None or settings.mode == "off" else checked_recursion(mode)
        if mode == "off":
            return None
        decided = route(checked_query(query), threshold=settings.threshold)
        if mode != "always" and not decided.recursive:
            return None
        meter = Meter(settings.limits)
        layers = [shelf.layer for shelf in scope.shelves()]
        try:
            plan = settings.planner.plan(query, decided.shape, layers=layers, depth=0)
        except Exception:  # a planner is anybody's code
            return None
        return Executor(plan, settings.planner, meter)
