"""Decides from the words of a question whether it is searched once or in several steps.

    score = 0.20 · min(characters / 200, 1) + 0.40 · keywords + 0.20 · min(hops / 3, 1)
          + 0.10 · [a time is named] + 0.10 · [all are asked for] + 0.10 · min((layers - 1) / 2, 1)
          + 0.30 · [it names a thing by another]

The signals are those of the design this follows, with two changes. There, one keyword counts a twelfth, so that no
question with one keyword reaches the threshold; here one counts three quarters and two count in full. The last term is
ours: most questions that need several entries use none of the keywords. It is generous, since a question that turns out
to need one entry keeps its plain answer. A plain recall uses this file only; the rest of the package is imported when the
first question is searched in several steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from wellworn.core.cache import text_cache
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.lazy import cached_property, regex
from wellworn.core.locks import Deadline
from wellworn.core.spans import span
from wellworn.core.values import Recall, RecursionMode, Scope, altered
from wellworn.ingest.validate import checked_fraction, checked_k, checked_query, checked_seconds, shown
from wellworn.search.filters import Filters
from wellworn.search.pipeline import Searcher
from wellworn.search.profiles import Profile

if TYPE_CHECKING:
    from wellworn.search.steps.actions import Planner
    from wellworn.search.steps.limits import ModelAccess, Models
    from wellworn.search.steps.search import StepSearch
    from wellworn.search.steps.trainer import CombinedMemoryTrainer

Shape = Literal["plain", "bridge"]
"""`bridge`: something is named by what it stands in relation to ("Who directed the film that was shot in Leland?")."""

THRESHOLD = 0.3
DEEPEST = 3
READ_CHARS = 600
"""How far into a query signals are looked for: a longer one is a text, not a question."""

_KEYWORDS = regex(
    r"\b(?:compar(?:e|es|ed|ing|ison)|differences?|trends?|evolution|evolved?|histor(?:y|ies)|summari[sz]e|summary"
    r"|aggregate|impacts?|relationships?|sequence|analy[sz]e|trace)\b"
)
_HOPS = regex(r"\b(?:then|after|followed by|caused|leading to|led to)\b")
_TEMPORAL = regex(r"\b(?:last (?:week|month|quarter|year)|yesterday|since|before|periods?|over time)\b")
_AGGREGATE = regex(r"\b(?:all|every|total|average|count)\b")
_RELATIVE = regex(r"\b(?:that|which|who|whom|whose|where|when|what)\b", re.I)
_CHAIN = regex(
    r"\bof (?:the|an?|my|our|your|his|her|their|this|that)\b|\bof (?-i:(?=[A-Z\"“]))|\w['’]s \w"
    r"|\bthe \w+ (?:that|who|which|by|from|where|in(?! (?:the (?:morning|afternoon|evening|end)|\d|"
    r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|spring|summer|autumn|fall|winter)))\b"
    r"|\bthe \w+ (?-i:[A-Z])|\b(?:our|my|his|her|their) \w+ (?:\w+ )*the\b",
    re.I,
)
_RELATIVE_AFTER = 2
_SHORT_IS = regex(r"\b(what|which|who|where|when|why|how|that|this|it|he|she|there|here|let)['’]s\b", re.I)
"""A short form, which owns nothing: "what's my name"."""


def checked_numbers(name: str, values: Mapping[str, object], *, above: float = -1.0) -> None:
    """Refuse settings that are no numbers of at least 0, or of more than `above`."""
    for field_, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not (value >= 0 and value > above):
            least = "above 0" if above >= 0 else "of at least 0"
            raise InvalidInput(f"{name}.{field_}", f"{value!r} is not a number {least}")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one recall in several steps may use. When a limit is reached, what was found so far is kept."""

    actions: int = 16
    tokens: int = 50_000
    """Of the texts that are read, and of model calls."""
    usd: float = 0.05
    """For planners that call models; plans by rules cost nothing."""
    timeout_s: float = 1.0
    depth: int = DEEPEST

    def __post_init__(self) -> None:
        checked_numbers("limits", vars(self))
        if self.depth > DEEPEST:
            raise InvalidInput("limits.depth", f"{self.depth} is too deep", f"use at most {DEEPEST}")


@dataclass(frozen=True, kw_only=True)
class Recursion:
    """When a recall is searched in several steps, by which plans, and within which limits."""

    mode: RecursionMode = "on"
    """`on` (the router decides), `off` (always plain) or `always`."""
    threshold: float = THRESHOLD
    """Questions that score at least this are searched in several steps. Above 1, none are."""
    limits: Limits = field(default_factory=Limits)
    planner: Planner | None = None
    """Makes the plans; None: rules do."""
    models: Models | None = None
    """Models that plan and reason; where they fail, `planner` plans."""
    learns: bool = False
    """Whether outcomes may replace the planner's plan by another one, or by plain search."""
    explore: float = 0.05
    """With `learns`: the share of these questions on which another plan is tried, for people who report outcomes."""

    def __post_init__(self) -> None:
        checked_recursion(self.mode)
        checked_fraction("recursion.explore", self.explore)
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, int | float):
            raise InvalidInput("recursion.threshold", f"{self.threshold!r} is not a number", "use 0 … 1")


def checked_recursion(mode: object) -> RecursionMode:
    for known in get_args(RecursionMode):
        if isinstance(mode, str) and mode == known:
            return known  # type: ignore[no-any-return]  # one of the literals
    raise InvalidInput("recursion", f"{shown(mode)} is unknown", f"use one of {', '.join(get_args(RecursionMode))}")


def recursion_of(value: str | Recursion, profile: Profile) -> Recursion:
    """The settings a caller gives. Profiles that do not weigh `terms` stay plain: their scores have another scale."""
    chosen = value if isinstance(value, Recursion) else Recursion(mode=checked_recursion(value))
    return chosen if "terms" in profile.weights else replace(chosen, mode="off")


def shape_of(query: str) -> Shape:
    """Whether a question names a thing by another one. English only; other languages are plain."""
    query = _SHORT_IS.sub(r"\1 is", query[:READ_CHARS])
    nested = _RELATIVE.search(" ".join(query.split()[_RELATIVE_AFTER:]))
    return "bridge" if nested or _CHAIN.search(query) else "plain"


@text_cache(512)  # asked again as long as nobody has written anything
def complexity(query: str, *, layers: int = 1) -> float:
    """The score of a question to a scope of so many layers; no search, a few hundredths of a millisecond."""
    lower = query[:READ_CHARS].lower()
    keywords = len({found[:5] for found in _KEYWORDS.findall(lower)})
    return min(
        1.0,
        0.20 * min(len(query) / 200, 1.0)
        + 0.40 * (0.0, 0.75, 1.0)[min(keywords, 2)]
        + 0.20 * min(len(_HOPS.findall(lower)) / 3, 1.0)
        + 0.10 * bool(_TEMPORAL.search(lower))
        + 0.10 * bool(_AGGREGATE.search(lower))
        + 0.10 * min(max(layers - 1, 0) / 2, 1.0)
        + 0.30 * (shape_of(query) != "plain"),
    )


class Router:
    """Sends each query to plain search or to the search in several steps."""

    def __init__(
        self,
        searcher: Searcher,
        recursion: Recursion,
        *,
        access: Callable[[], ModelAccess],
        trainer: CombinedMemoryTrainer | None,
    ) -> None:
        """`access` gives the models a recall may ask; `trainer` learns which plans serve, where that is on."""
        self._searcher = searcher
        self._recursion = recursion
        self._access = access
        self._trainer = trainer

    @cached_property
    def steps(self) -> StepSearch:
        """The search in several steps, imported on first use."""
        from wellworn.search.steps.search import StepSearch

        return StepSearch(self._searcher, self._recursion, access=self._access(), trainer=self._trainer)

    def recall(
        self,
        query: str,
        *,
        scope: Scope,
        k: int,
        filters: Filters,
        recursion: str | None = None,
        deadline_s: float | None = None,
    ) -> Recall:
        """The k best entries for a query; `recursion` decides for this call alone, except that `off` stays off.

        With a deadline it runs on a thread of its own: whatever hangs, the caller gets what was found by then.
        """
        with span("recall") as note:
            found = self._in_time(query, scope=scope, k=k, filters=filters, recursion=recursion, deadline_s=deadline_s)
            note(recall=found.id, hits=len(found.hits), searched=found.searched, route=found.route, cut=found.cut)
        return found

    def again(
        self, query: str, *, scope: Scope, k: int, filters: Filters, recursion: str | None = None
    ) -> dict[str, Any] | None:
        """What `Searcher.again` has of the same recall without a deadline."""
        if self._mode(query, scope, recursion) != "off":
            return None
        found = self._searcher.again(query, scope=scope, k=k, filters=filters)
        if found is not None:
            with span("recall") as note:
                note(recall=found["id"], hits=len(found["hits"]), searched=found["searched"], route=found["route"])
        return found

    def _in_time(
        self, query: str, *, scope: Scope, k: int, filters: Filters, recursion: str | None, deadline_s: float | None
    ) -> Recall:
        if deadline_s is None:
            return self._recall(query, scope=scope, k=k, filters=filters, recursion=recursion)
        deadline = Deadline(checked_seconds("deadline_s", deadline_s))
        work = partial(self._recall, checked_query(query), scope=scope, k=checked_k(k), filters=filters)
        found = deadline.answer(partial(work, recursion=None if recursion is None else checked_recursion(recursion)))
        if found is None:
            return self._searcher.unanswered(query, scope=scope, seconds=deadline_s)
        return altered(found, cut=True) if deadline.missed else found

    def _recall(self, query: str, *, scope: Scope, k: int, filters: Filters, recursion: str | None) -> Recall:
        mode = self._mode(query, scope, recursion)
        if mode != "off":
            return self.steps.recall(query, scope=scope, k=k, filters=filters, learns=mode == "on")
        return self._searcher.recall(query, scope=scope, k=k, filters=filters)

    def _mode(self, query: str, scope: Scope, recursion: str | None) -> RecursionMode:
        """How this question is searched: `off` is at once."""
        settings = self._recursion
        mode = settings.mode if recursion is None or settings.mode == "off" else checked_recursion(recursion)
        if mode != "on":
            return mode
        layers = len({one.layer for one in scope.partitions()})
        return mode if complexity(checked_query(query), layers=layers) >= settings.threshold else "off"
