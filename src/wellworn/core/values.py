"""The nouns: what is remembered, where it lives, and what a recall answers.

Frozen values without I/O. Knows nothing about how they are stored, embedded or ranked; outside input is checked once,
in `ingest.validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Literal, get_args

from wellworn.core.dataclass import altered as altered
from wellworn.core.dataclass import dataclass
from wellworn.core.dataclass import filled as filled
from wellworn.core.fence import Item, fenced_block, fenced_lines
from wellworn.core.scope import LAYERS as LAYERS
from wellworn.core.scope import MAX_NAME_CHARS as MAX_NAME_CHARS
from wellworn.core.scope import Layer as Layer
from wellworn.core.scope import Partition as Partition
from wellworn.core.scope import Scope as Scope
from wellworn.core.wellformed import HIDDEN

Progress = Callable[[int, int], None]
"""Called with what is done and what there is to do."""


def unwatched(done: int, total: int) -> None:
    """The progress of a call that nobody watches."""


# -- words ------------------------------------------------------------
Kind = Literal["fact", "preference", "pattern", "note", "episode", "strategy", "guardrail", "summary"]
State = Literal["active", "superseded", "flagged", "pruned"]
RecursionMode = Literal["on", "off", "always"]
LearningMode = Literal["on", "observe", "off"]
Durability = Literal["full", "normal"]
JobState = Literal["queued", "running", "done", "dead"]
Trust = Literal["trusted", "untrusted"]
LinkType = Literal[
    "context_of",
    "related_to",
    "follows",
    "similar_to",
    "supports",
    "contradicts",
    "elaborates",
    "example_of",
    "refines",
    "entails",
    "requires",
    "enables",
    "derived_from",
    "supersedes",
]

KINDS: tuple[str, ...] = get_args(Kind)
STATES: tuple[str, ...] = get_args(State)
LINK_TYPES: tuple[str, ...] = get_args(LinkType)


# -- what is remembered ------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class Entry:
    """One remembered thing.

    `text` is what is recalled, `evidence` the verbatim source it rests on. `at` is when it happened, `created_at`
    when it was stored. It is valid in [`valid_from`, `valid_to`); no `valid_to` means still valid.
    """

    id: str
    partition: Partition
    kind: Kind
    text: str
    title: str = ""
    tags: list[str] = field(default_factory=list)
    evidence: str = ""
    source: str = "interaction"
    speaker: str | None = None
    session_id: str | None = None
    turn_refs: list[int] = field(default_factory=list)
    thread: int | None = None
    """Entries of one thread at positions one apart are neighbours: turns of a session, chunks of a text."""
    position: int | None = None
    confidence: float = 0.8
    trust: Trust = "trusted"
    state: State = "active"
    repeats: int = 0
    usage_count: int = 0
    success_count: int = 0
    failure_count: int = 0
    token_count: int = 0
    content_hash: str = ""
    at: datetime
    created_at: datetime
    updated_at: datetime
    valid_from: datetime
    valid_to: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)  # any JSON value: the caller's own

    @property
    def tenant(self) -> str:
        return self.partition.tenant

    @property
    def layer(self) -> Layer:
        return self.partition.layer

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, kw_only=True)
class Link:
    """A typed edge from one entry to another, read "source TYPE target"."""

    source: str
    target: str
    type: LinkType
    confidence: float = 1.0
    automatic: bool = False
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One utterance of a session, verbatim: ground truth that nothing rewrites."""

    session_id: str
    number: int
    role: str
    text: str
    at: datetime
    speaker: str | None = None
    entry_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Version:
    """One state of an entry: as the change named made it stand, from then on until the next version."""

    number: int
    change: str
    changed_at: datetime
    entry: Entry

    @property
    def text(self) -> str:
        return self.entry.text


def fence_item(entry: Entry, *, outdated: bool = False) -> Item:
    """What a prompt shows of an entry."""
    return Item(
        text=entry.text,
        kind=entry.kind,
        date=entry.at.date().isoformat(),
        speaker=entry.speaker or ("assistant" if entry.source == "assistant" else None),
        trusted=entry.trust == "trusted",
        flagged=entry.state == "flagged",
        until=entry.valid_to.date().isoformat() if outdated and entry.valid_to is not None else "",
    )


# -- what a question is answered with ------------------------------------------------------------
READ_BY_RULES, READ_BY_MODEL = "reflection", "reflection by model"
"""The source of a memory that rules, or a model, wrote when they read a session."""

FACTOR_WORDS: dict[str, tuple[str, str]] = {
    "terms": ("same words", "it has your words"),
    "meaning": ("similar meaning, with what was said around it", "its meaning is close"),
    "similarity": ("similar meaning", "its meaning is close"),
    "sentence": ("a sentence of similar meaning", "a sentence of it is close"),
    "question": ("only asks", ""),
    "speaker": ("said by the person named", "it is about the person you name"),
    "assistant": ("said by an assistant", ""),
    "length": ("length", ""),
    "recency": ("recent", "it is recent"),
    "date": ("of the date named", "it is from the time you ask about"),
    "unsure": ("uncertain", ""),
    "reliability": ("proved itself", ""),
    "asked": ("said by the assistant, as asked", "you ask for what was suggested"),
    "past": ("from before, as asked", "it is from before"),
    "older": ("something newer is like it", ""),
    "words": ("same words of its own", ""),
    "linked": ("linked to another hit", ""),
    "holds": ("holds at the time asked about", ""),
    "layer": ("more specific", ""),
    "whose": ("about somebody else", ""),
    "noted": ("written down from what was said", ""),
    "direct": ("says what was or may be", ""),
    "later": ("told after the time asked about", ""),
    "told": ("told", "you told me, and it still holds"),
    "rare": ("shares a rare name", ""),
    "found": ("found on the way", ""),
    "learned": ("like what you chose before", "it helped with questions like this"),
    "in_vain": ("did not help before", ""),
    "diversity": ("says what another hit says", ""),
}
"""By factor of a score, what it is, and why it speaks for a hit as one would say it; others are named as they are."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One named addend of a hit's score: `weight` × `value` = `contribution`."""

    name: str
    value: float
    weight: float

    @property
    def contribution(self) -> float:
        return self.value * self.weight + 0.0  # never a negative zero

    @property
    def words(self) -> str:
        """What it is, in plain words."""
        return FACTOR_WORDS.get(self.name, (self.name, ""))[0]

    @property
    def sentence(self) -> str:
        """Why it speaks for a hit; empty where that says little to a person."""
        return FACTOR_WORDS.get(self.name, ("", ""))[1]


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One recalled entry with its score and every factor of it; the contributions add up to the score."""

    entry: Entry
    score: float
    explanation: tuple[Factor, ...]
    outdated: bool = False
    """It held once, and was replaced before the time that was asked about."""
    sentence: tuple[int, int] | None = None
    """Where the sentence that matches best begins and ends in the text; None where the text has one, or nobody knows."""

    @property
    def text(self) -> str:
        return self.entry.text

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
class SearchStep:
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
    trace: tuple[SearchStep, ...] = ()
    """What a recursive recall did, in order; empty on the plain route."""
    confidence: float | None = None
    """How likely it is that an answer is among the hits, 0 … 1; None under a profile that it was not measured for."""
    digest: str = ""
    """What a plan that ends with `compare` or `summarize` makes of the hits: a table, or a summary."""
    cut: bool = False
    """Whether `deadline_s` ended the search early: with more time there may be more or better hits."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    def __str__(self) -> str:
        """The hits in short lines: place, score, date, who said it, text."""
        if not self.hits:
            return f"nothing found for {self.query!r}" + (" before the deadline" if self.cut else "")
        return "\n".join(
            f"{place:>2}  {hit.score:7.3f}  {hit.entry.at:%Y-%m-%d}  {_in_short(hit)}"
            for place, hit in enumerate(self.hits)
        )

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        from html import escape

        rows = "".join(
            f"<tr><td>{place}</td><td>{hit.score:.3f}</td><td>{hit.entry.at:%Y-%m-%d}</td>"
            f"<td style='text-align:left'>{escape(_in_short(hit, 300))}</td></tr>"
            for place, hit in enumerate(self.hits)
        )
        head = "<tr><th></th><th>score</th><th>date</th><th style='text-align:left'>text</th></tr>"
        return f"<p>{escape(self.query)}</p><table>{head}{rows}</table>"

    def context(self, *, max_tokens: int = 1500) -> str:
        """The hits as a fenced block of data for a prompt, best first, within a token budget."""
        return fenced_block([_shown(hit) for hit in self.hits], max_tokens=max_tokens)

    def shown(self, *, max_tokens: int = 1500) -> int:
        """How many of the hits such a block has room for, always the first ones: only they can be cited."""
        return len(fenced_lines([_shown(hit) for hit in self.hits], max_tokens=max_tokens))


def _shown(hit: Hit) -> Item:
    return fence_item(hit.entry, outdated=hit.outdated)


def _in_short(hit: Hit, width: int = 90) -> str:
    """One line of at most that many characters, without signs that a terminal would obey."""
    entry = hit.entry
    mark = f"(outdated since {entry.valid_to:%Y-%m-%d}) " if hit.outdated else ""
    begin = hit.sentence[0] if hit.sentence is not None and len(entry.text) > width else 0
    text = f"… {entry.text[begin:]}" if begin else entry.text
    line = mark + " ".join((f"{entry.speaker}: " if entry.speaker else "").join(("", text)).split())
    line = HIDDEN.sub("\N{REPLACEMENT CHARACTER}", line)
    return line if len(line) <= width else line[: width - 1] + "…"


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
    """The answer; None when there is none."""
    chunk_ids: list[str]
    """The entries it rests on: those that the answer names, else what was read."""
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


# -- work in the background ------------------------------------------------------------
JOB_STATES: tuple[str, ...] = get_args(JobState)


@dataclass(frozen=True, kw_only=True)
class Job:
    """Work to be done in the background, once. `jobs.queue` says how it gets from one state to the next.

    `payload`, `result` and `error` hold ids and numbers only, never what anybody said. A job about a session names it
    as `payload["session"]`, and goes with it.
    """

    id: str
    partition: Partition
    kind: str
    key: str
    """What it does; a partition has one job of a kind and key, whatever became of it."""
    payload: dict[str, Any] = field(default_factory=dict)
    state: JobState = "queued"
    """`queued`; `running`, and then alone with a worker and a lease; `done`; `dead`: given up."""
    attempts: int = 0
    due_at: datetime
    lease_until: datetime | None = None
    worker: str | None = None
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    created_at: datetime
    updated_at: datetime


# -- what a memory reports about itself ------------------------------------------------------------
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
    """`process` or `redis`."""
    hits: int
    misses: int
    errors: int = 0
    """How often it could not be asked or told."""


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
    """How well the learned order of the shown predicts citations before it learns from them: -0.5 … 0.5, chance is 0."""
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
    citation_rate: float | None = None
    """Of this person's last recalls with an outcome, the share of which something was cited; None without any."""
