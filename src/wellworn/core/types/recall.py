"""What a question is answered with: hits with their factors, the way taken and what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from wellworn.core.fence import fenced_block, fenced_lines
from wellworn.core.types.entry import Entry, fence_item

T = TypeVar("T")


def filled(cls: type[T], /, **fields: Any) -> T:  # any field of it
    """A frozen value of which every field is given, made in a fifth of the time.

    `__init__` of a frozen class assigns each field by a call of its own; that was a tenth of a recall.
    """
    made = object.__new__(cls)
    made.__dict__.update(fields)
    return made


def altered(value: T, /, **fields: Any) -> T:  # any field of it
    """`dataclasses.replace` in a fifth of the time, for frozen values that compute nothing of themselves."""
    made = object.__new__(type(value))
    made.__dict__.update(value.__dict__)
    made.__dict__.update(fields)
    return made


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One named addend of a hit's score: `weight` × `value` = `contribution`."""

    name: str
    value: float
    weight: float

    @property
    def contribution(self) -> float:
        return self.value * self.weight + 0.0  # never a negative zero


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One recalled entry with its score and every factor of it; the contributions add up to the score."""

    entry: Entry
    score: float
    explanation: tuple[Factor, ...]

    @property
    def factors(self) -> dict[str, float]:
        """Factor name → its contribution to the score."""
        return {factor.name: factor.contribution for factor in self.explanation}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a call used: wall time, texts embedded, and model calls with their tokens and price."""

    seconds: float = 0.0
    embedded_texts: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Step:
    """One action of a recursive recall: what was done, what it found, how long it took."""

    action: str
    """`plan` (by a model), `search_layer`, `drill_down`, `filter_by_relevance`, `filter_by_recency`, `recursive_call`
    or `aggregate`."""
    detail: str
    found: int
    """Entries it looked at or brought in."""
    seconds: float
    depth: int = 0
    problem: str = ""
    """Why it was cut short; empty when it was not."""


@dataclass(frozen=True, kw_only=True)
class Recall:
    """The answer to a query: ranked hits, the route taken and what it cost."""

    id: str
    query: str
    hits: list[Hit]
    route: str
    cost: Cost
    searched: int = 0
    """Entries that were eligible: visible in the scope, valid at the time, past the filters."""
    trace: tuple[Step, ...] = ()
    """What a recursive recall did, in order; empty on the plain route."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    def context(self, *, max_tokens: int = 1500) -> str:
        """The hits as a fenced block of data for a prompt, best first, within a token budget."""
        return fenced_block([fence_item(hit.entry) for hit in self.hits], max_tokens=max_tokens)

    def shown(self, *, max_tokens: int = 1500) -> int:
        """How many of the hits such a block has room for, always the first ones: only they can be cited."""
        return len(fenced_lines([fence_item(hit.entry) for hit in self.hits], max_tokens=max_tokens))


@dataclass(frozen=True, kw_only=True)
class ReasoningStep:
    """One step of a chain of evidence."""

    entry: Entry
    operation: str
    """`read` (found by the question), `bridge` (by what an earlier entry names), `link` (along a hand-made link) or
    `synthesize` (put together)."""
    reasoning: str


@dataclass(frozen=True, kw_only=True)
class RecallResult:
    """What came of working on a question by programs (`wellworn.search.steps.repl`)."""

    content: str | None
    """The answer; when there is none, what plain search found; None when that found nothing."""
    chunk_ids: list[str]
    """The entries it rests on: those that the answer names, else what was read, then what plain search found."""
    confidence: float
    iterations_used: int
    problem: str = ""
    """Why there is no answer; empty when there is one."""


@dataclass(frozen=True, kw_only=True)
class Reasoning:
    """What the entries say about a question, with the way there."""

    question: str
    conclusion: str
    path: tuple[ReasoningStep, ...]
    confidence: float
    """0 … 1: how much of the question's weight the path covers, times how sure its entries and links are."""
    recall: Recall
    """The recall it began with."""
    cited: tuple[str, ...] = ()
    """Ids of the entries that a model's conclusion rests on; each is in the path. Empty without a model."""
    model: str = ""
    """The model that drew the conclusion; empty when it is what the entries say."""
    problem: str = ""
    """Why a model that was asked did not draw it."""
    explored: RecallResult | None = None
    """What came of programs, where they are on."""
