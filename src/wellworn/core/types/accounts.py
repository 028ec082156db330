"""What a memory tells about itself: receipts, counts and how far learning has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from wellworn.core.types.scope import Partition


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What a forget removed, and from where; `kept` says what it left on purpose."""

    entries: int = 0
    index_records: int = 0
    vectors: int = 0
    links: int = 0
    versions: int = 0
    turns: int = 0
    sessions: int = 0
    recalls: int = 0
    """Logged recalls, each with its outcomes."""
    jobs: int = 0
    records: int = 0
    """What mechanisms had written down about it: tasks, searches, runs."""
    cached: int = 0
    copies: int = 0
    """How many of the entries were copies that had been shared to other partitions: they went with their originals."""
    ids: list[str] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)
    kept: Mapping[str, int] = field(default_factory=dict)
    scrubbed: bool = True
    """Whether the removed bytes are gone from the files already; False while someone's open read holds the log."""
    at: datetime


@dataclass(frozen=True, kw_only=True)
class CacheLevel:
    """What one level of the embedding cache was asked for and had, in this process."""

    level: str
    """`l1` (process), `l2` (file) or `l3` (Redis)."""
    hits: int
    misses: int
    errors: int = 0
    """How often it could not be asked or told."""

    @property
    def hit_rate(self) -> float:
        """Share of what it was asked for that it had; 0 when it was asked for nothing."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else 0.0


@dataclass(frozen=True, kw_only=True)
class Stats:
    """How much a scope holds."""

    entries: int
    by_kind: dict[str, int]
    by_state: dict[str, int]
    links: int
    versions: int
    sessions: int
    turns: int
    vectors: int
    embedder: str
    width: int
    size_bytes: int
    scrubbed: dict[str, int] = field(default_factory=dict)
    """How often something of each type was taken out, by this memory's `scrubber`."""
    embedding_cache: list[CacheLevel] = field(default_factory=list)
    """Hits and misses of the embedder's cache since this memory was opened; empty without a cache."""


@dataclass(frozen=True, kw_only=True)
class Searching:
    """How questions of one shape are searched, as far as outcomes taught."""

    shape: str
    outcomes: int
    serves: str
    """The way that serves: `planner` until another is proven."""
    starts: float
    """The score from which on these questions are recursive: that of the settings, unless learned otherwise."""
    rewards: dict[str, float]
    """Mean reward of each way that was tried."""


@dataclass(frozen=True, kw_only=True)
class LearningStatus:
    """How far learning has come for a scope's home, and what serves it."""

    mode: str
    """`on`, `observe` (learns, serves the base) or `off`."""
    serving: str
    """`base` or `learned`."""
    level: str
    """`base`, `prior` (learned from the tenant's users) or `person`."""
    outcomes: int
    """Outcomes of this person that could teach something."""
    steps: int
    """Updates of this person's weights."""
    agreement: float
    """How well the untrained order among the shown foretells citations: -0.5 … 0.5, chance is 0."""
    trusted: bool
    distrust: str
    """Why the feedback is not trusted; empty when it is, or when there is too little to tell."""
    gain: float
    """How much better than the untrained order the learned one foretells them."""
    bound: float
    """The lower bound of that gain; the learned ranking begins to serve when it is above 0."""
    prior_steps: int
    prior_users: int
    shares: bool
    """Whether the tenant's users learn from each other."""
    last_change: datetime | None
    weights: dict[str, float]
    searches: tuple[Searching, ...] = ()
    """How questions that need several entries are searched, by their shape."""


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The state of learning after one outcome."""

    number: int
    at: datetime
    cited_rate: float
    """Share of the shown that were cited, over the last 20 outcomes."""
    gain: float
    bound: float
    level: str
    weights: dict[str, float]
