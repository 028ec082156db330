"""The route of a recall: plain or recursive, decided here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from recollect.errors import InvalidInput
from recollect.ingest.validate import checked_fraction, checked_query
from recollect.recursive.actions import Aggregate, DrillDown, FilterByRelevance
from recollect.recursive.choices import plan_of
from recollect.recursive.executor import Executor
from recollect.recursive.limits import Limits, Meter
from recollect.recursive.plans import SOURCES, Planner, RulePlanner
from recollect.recursive.reason import Get, Links, reasoned
from recollect.recursive.router import THRESHOLD, Route, route
from recollect.recursive.searches import Chosen, Searches
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
    learns: bool = True
    """Whether outcomes may put another plan, or plain search, in the place of the planner's."""
    explore: float = 0.1
    """Share of such questions on which another plan is tried, once a person gives outcomes; at first four times as
    much."""

    def __post_init__(self) -> None:
        checked_recursion(self.mode)
        checked_fraction("recursion.explore", self.explore)
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

    def __init__(self, searcher: Searcher, recursion: Recursion, searches: Searches | None = None) -> None:
        """`searches` keeps books of what is recursive and learns from them; without it the planner's plans serve."""
        self._searcher = searcher
        self._recursion = recursion
        self._searches = searches

    def recall(self, query: str, *, scope: Scope, k: int, filters: Filters, recursion: str | None = None) -> Recall:
        """The k best entries for a query, by the route that it earns; `recursion` decides for this call alone."""
        decided = self.decided(query, mode=recursion)
        books = self._searches
        if books is None:
            executor = None if decided is None else self.executor(query, decided, scope=scope)
            return self._found(executor, query, scope=scope, k=k, filters=filters)
        executor, home = None, scope.home()
        chosen = None if decided is None else self._chosen(query, decided, scope, recursion)
        if decided is not None and chosen is not None:
            executor = self.executor(query, decided, scope=scope, chosen=chosen)
        found = self._found(executor, query, scope=scope, k=k, filters=filters)
        kept = chosen is not None and (executor is not None or chosen.choice == "plain")
        books.asked(found, home, plain=not kept)
        if chosen is not None and kept:
            books.note(found, chosen, home, tokens=0 if executor is None else executor.tokens)
        return found

    def _chosen(self, query: str, decided: Route, scope: Scope, mode: str | None) -> Chosen:
        if self._searches is None or "always" in (mode, self._recursion.mode):
            return Chosen(shape=decided.shape)
        return self._searches.choose(query, decided.shape, scope.home(), self._recursion.planner)

    def _found(self, executor: Executor | None, query: str, *, scope: Scope, k: int, filters: Filters) -> Recall:
        if executor is None:
            return self._searcher.recall(query, scope=scope, k=k, filters=filters)
        return self.run(executor, query, scope=scope, k=k, filters=filters)

    def attempt(self, query: str, chosen: Chosen, *, scope: Scope, k: int) -> tuple[Recall, int]:
        """A search by a choice whatever the router says, and the tokens it used; no books are kept of it."""
        executor = self.executor(query, route(query), scope=scope, chosen=chosen)
        found = self._found(executor, query, scope=scope, k=k, filters=Filters())
        return found, 0 if executor is None else executor.tokens

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

    def decided(self, query: str, *, mode: str | None = None) -> Route | None:
        """The recursive route of a query, or None for the plain one."""
        settings = self._recursion
        mode = settings.mode if mode is None or settings.mode == "off" else checked_recursion(mode)
        if mode == "off":
            return None
        decided = route(checked_query(query), threshold=settings.threshold)
        return decided if mode == "always" or decided.recursive else None

    def executor(self, query: str, decided: Route, *, scope: Scope, chosen: Chosen | None = None) -> Executor | None:
        """What runs the query's plan, or None where plain search is chosen: a planner that fails leads there too."""
        settings, choice = self._recursion, "planner" if chosen is None else chosen.choice
        if choice == "plain":
            return None
        meter = Meter(settings.limits)
        layers = [shelf.layer for shelf in scope.shelves()]
        try:
            plan = plan_of(choice, query, decided.shape, planner=settings.planner, layers=layers)
        except Exception:  # a planner is anybody's code
            return None
        return Executor(plan, settings.planner, meter)
