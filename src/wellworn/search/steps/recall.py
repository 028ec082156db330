"""The route of a recall: plain or recursive, decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from wellworn.core.errors import InvalidInput
from wellworn.core.values import Partition, Reasoning, ReasoningStep, Recall, Scope
from wellworn.ingest.validate import checked_fraction, checked_query
from wellworn.models.port import Model
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.search.profiles import Profile
from wellworn.search.steps.actions import Aggregate, DrillDown, FilterByRelevance
from wellworn.search.steps.calls import Calls
from wellworn.search.steps.choices import plan_of
from wellworn.search.steps.conclude import concluded, with_conclusion
from wellworn.search.steps.executor import Executor
from wellworn.search.steps.library import Library
from wellworn.search.steps.limits import Limits, Meter
from wellworn.search.steps.models import Metered, Models
from wellworn.search.steps.planner import ModelPlanner
from wellworn.search.steps.plans import SOURCES, Planner, RulePlanner
from wellworn.search.steps.reason import Get, Links, reasoned
from wellworn.search.steps.repl import Repl, ReplLimits
from wellworn.search.steps.router import THRESHOLD, Route, route
from wellworn.search.steps.searches import Chosen, Searches, within

MODES = ("on", "off", "always")
ROUTE = "recursive"


@dataclass(frozen=True, kw_only=True)
class Recursion:
    """When a recall is recursive, by which plans, and within which limits."""

    mode: str = "on"
    """`on` (the router decides), `off` (always plain) or `always`."""
    threshold: float = THRESHOLD
    """The score from which on a question is recursive; raise it to roll out in stages. Outcomes may move it by 0.2 for
    the questions of a shape; above 1 nothing is recursive."""
    share: float = 1.0
    """Share of questions that may be recursive at all, the same ones every time: 0.1 for a first stage. The rest is
    searched plainly and is what the others are compared with."""
    limits: Limits = field(default_factory=Limits)
    planner: Planner = field(default_factory=RulePlanner)
    models: Models | None = None
    """Models that plan; where they fail, `planner` does."""
    learns: bool = True
    """Whether outcomes may put another plan, or plain search, in the place of the planner's."""
    explore: float = 0.025
    """Share of such questions on which another plan is tried, once a person gives outcomes; at first four times as
    much."""

    def __post_init__(self) -> None:
        checked_recursion(self.mode)
        checked_fraction("recursion.explore", self.explore)
        checked_fraction("recursion.share", self.share)
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


@dataclass(frozen=True, kw_only=True)
class Minds:
    """The models that a memory has for its recalls, and how they may be asked."""

    metered: Metered
    reasoner: Model | None = None
    """Draws conclusions where `Recursion.models` names no model."""


class Router:
    """Sends each query on its way."""

    def __init__(
        self, searcher: Searcher, recursion: Recursion, *, minds: Minds | None = None, searches: Searches | None = None
    ) -> None:
        """`searches` keeps books of what is recursive and learns from them; without it the planner's plans serve."""
        self._searcher = searcher
        self._recursion = recursion
        self._minds = minds
        self._searches = searches

    def recall(self, query: str, *, scope: Scope, k: int, filters: Filters, recursion: str | None = None) -> Recall:
        """The k best entries for a query, by the route that it earns; `recursion` decides for this call alone."""
        query = self._searcher.scrubbed(checked_query(query), scope.home())  # before any plan is made of it
        home, books = scope.home(), self._searches
        decided = self.decided(query, mode=recursion)
        chosen = None if decided is None else self._chosen(query, decided, home, recursion)
        executor = None
        if decided is not None and chosen is not None:
            executor = self.executor(query, decided, scope=scope, chosen=chosen)
        found = self._found(executor, query, scope=scope, k=k, filters=filters)
        if books is not None:
            kept = chosen is not None and (executor is not None or chosen.choice == "plain")
            books.asked(found, home, plain=not kept)
            if chosen is not None and kept:
                books.note(found, chosen, home, tokens=0 if executor is None else executor.tokens)
        return found

    def _chosen(self, query: str, decided: Route, home: Partition, mode: str | None) -> Chosen | None:
        """How a question is searched; None: plainly."""
        planned = Chosen(shape=decided.shape, score=decided.score)
        settings = self._recursion
        if "always" in (mode, settings.mode):
            return planned if mode in (None, "always") or decided.recursive else None
        if self._searches is None:
            return planned if decided.recursive and within(settings.share, home, query) else None
        return self._searches.choose(query, decided, home, settings.planner)

    def _found(self, executor: Executor | None, query: str, *, scope: Scope, k: int, filters: Filters) -> Recall:
        if executor is None:
            return self._searcher.recall(query, scope=scope, k=k, filters=filters)
        return self.run(executor, query, scope=scope, k=k, filters=filters)

    def attempt(self, query: str, chosen: Chosen, *, scope: Scope, k: int) -> tuple[Recall, int]:
        """A search by a choice whatever the router says, and the tokens it used; no books are kept of it."""
        executor = self.executor(query, route(query), scope=scope, chosen=chosen)
        found = self._found(executor, query, scope=scope, k=k, filters=Filters())
        return found, 0 if executor is None else executor.tokens

    def reason(
        self,
        question: str,
        *,
        scope: Scope,
        k: int,
        filters: Filters,
        links: Links,
        get: Get,
        library: Callable[[], Library],
    ) -> Reasoning:
        """The chain of evidence for a question: always recursive, turns of dialogues followed too. With a model, the
        conclusion is its own, and with programs it may rest on what they found."""
        question = self._searcher.scrubbed(checked_query(question), scope.home())
        executor = None
        if self._recursion.mode != "off":
            plan = (FilterByRelevance(top=SOURCES), DrillDown(turns=True), Aggregate(strategy="combine"))
            executor = Executor(plan, self._recursion.planner, Meter(self._recursion.limits))
        if executor is None:
            found = self._searcher.recall(question, scope=scope, k=k, filters=filters)
        else:
            found = self.run(executor, question, scope=scope, k=k, filters=filters)
        chain = reasoned(found, executor, links=links, get=get)
        return chain if self._minds is None else self._minded(chain, self._minds, scope, library)

    def _minded(self, chain: Reasoning, minds: Minds, scope: Scope, library: Callable[[], Library]) -> Reasoning:
        """The chain with a conclusion by programs, else by one call, else as it is."""
        models, home = self._recursion.models, scope.home()
        if models is not None and models.repl is not None:
            chain = _explored(chain, models, models.repl, minds, library())
            if chain.model:
                return chain
        root = models.for_root if models is not None else minds.reasoner
        if root is None:
            return chain
        settings = models or Models(root=root)
        calls = Calls(
            Meter(self._recursion.limits),
            calls=settings.calls,
            call_timeout_s=settings.call_timeout_s,
            timeout_s=settings.timeout_s,
        )
        done = concluded(chain, minds.metered(root, home), calls)
        return replace(done, recall=replace(done.recall, cost=calls.added_to(done.recall.cost)))

    def run(self, executor: Executor, query: str, *, scope: Scope, k: int, filters: Filters) -> Recall:
        """A recursive recall."""
        found = self._searcher.recall(query, scope=scope, k=k, filters=filters, refine=executor)
        cost = found.cost if executor.calls is None else executor.calls.added_to(found.cost)
        return replace(found, route=ROUTE, trace=tuple(executor.steps), cost=cost)

    def decided(self, query: str, *, mode: str | None = None) -> Route | None:
        """What the words of a query say about its route; None where nothing is recursive."""
        settings = self._recursion
        mode = settings.mode if mode is None or settings.mode == "off" else checked_recursion(mode)
        return None if mode == "off" else route(checked_query(query), threshold=settings.threshold)

    def executor(self, query: str, decided: Route, *, scope: Scope, chosen: Chosen | None = None) -> Executor | None:
        """What runs the query's plan, or None where plain search is chosen: a planner that fails leads there too."""
        settings, choice = self._recursion, "planner" if chosen is None else chosen.choice
        if choice == "plain":
            return None
        meter = Meter(settings.limits)
        planner, calls = self._planner(scope, meter)
        layers = [partition.layer for partition in scope.partitions()]
        try:
            make = partial(plan_of, choice, query, decided.shape, planner=planner, layers=layers)
            own = choice == "planner" and not isinstance(planner, RulePlanner | ModelPlanner)
            plan = meter.within(make) if own else make()
        except Exception:  # a planner is anybody's code
            return None
        if calls is not None:
            meter.begin()
        made = Executor(plan, planner, meter, calls)
        made.steps += planner.steps if isinstance(planner, ModelPlanner) else []
        return made

    def _planner(self, scope: Scope, meter: Meter) -> tuple[Planner, Calls | None]:
        """The planner for one recall, and the calls it makes."""
        models, minds = self._recursion.models, self._minds
        if models is None or minds is None:
            return self._recursion.planner, None
        calls = Calls(meter, calls=models.calls, call_timeout_s=models.call_timeout_s, timeout_s=models.timeout_s)
        home = scope.home()
        planner = ModelPlanner(
            minds.metered(models.for_root, home),
            minds.metered(models.for_sub, home),
            calls,
            rules=self._recursion.planner,
            limits=self._recursion.limits,
        )
        return planner, calls


def _explored(chain: Reasoning, models: Models, limits: ReplLimits, minds: Minds, library: Library) -> Reasoning:
    """The chain with what programs found; its conclusion is theirs if it rests on entries that may be seen."""
    home = library.scope.home()
    repl = Repl(library, minds.metered(models.for_root, home), minds.metered(models.for_sub, home), limits)
    result = repl.recall(chain.question)
    recall = replace(chain.recall, cost=repl.calls.added_to(chain.recall.cost))
    chain = replace(chain, explored=result, recall=recall)
    entries = [entry for id in result.chunk_ids if (entry := library.read(id)) is not None]
    if result.problem or result.content is None or not entries:
        return replace(chain, problem=result.problem or "the programs' answer rests on no entry")
    known = {step.entry.id for step in chain.path}
    read = tuple(
        ReasoningStep(entry=entry, operation="read", reasoning="by a program")
        for entry in entries
        if entry.id not in known
    )
    return with_conclusion(
        replace(chain, path=chain.path + read),
        result.content,
        entries,
        by=models.for_root.name,
        reasoning=f"by programs, in {result.iterations_used} rounds",
        sure=result.confidence,
    )
