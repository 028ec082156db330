"""How the bank stores what it learned: strategies (do this) and guardrails (not this) as entries like any other.

| what                       | where in the entry                                                                    |
|----------------------------|---------------------------------------------------------------------------------------|
| strategy or guardrail      | `kind`                                                                                |
| one line, and what to do   | `title`, `text` (says when it applies, then what to do)                               |
| verbatim from the work     | `evidence`                                                                            |
| its calls and conditions   | `metadata["pattern_data"]`: `Pattern`; prose is written from it and never read back    |
| domain, and its prefixes   | `tags`: `domain:web.admin`, `domain:web.admin.*`, `domain:web.*`                      |
| the same calls             | `tags`: `calls:` and a hash                                                           |
| where it was learned       | `metadata["origin"]`: task, agent, outcome, run, by                                   |
| how sure, how often used   | `confidence`, `usage_count`, `success_count`, `failure_count`                         |
| whose                      | `partition`: the scope's agent, else its home                                         |

A domain is a dotted name. Each prefix is a tag of its own, because every store filters by tags. Knows no store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import field
from typing import Literal, get_args

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.lazy import regex
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import MAX_NAME_CHARS, Entry, Kind, Partition, Scope, State
from wellworn.core.wellformed import one_line, shortened
from wellworn.ingest.forget import MAX_TASK_CHARS
from wellworn.ingest.forget import PATTERN as PATTERN
from wellworn.ingest.terms import STOP_WORDS, TASK_END, TASK_LEAD, words
from wellworn.ingest.validate import MAX_TAGS, Draft
from wellworn.tasks.calls import ToolCall, shape_of
from wellworn.tasks.trajectory import Trajectory

ItemKind = Literal["strategy", "guardrail"]
ITEM_KINDS: tuple[ItemKind, ...] = get_args(ItemKind)
Outcome = Literal["success", "failure", "contrast"]
"""The work an item was learned from; `contrast`: attempts that succeeded and attempts that failed, together."""
Stage = Literal["stored", "retrieved", "reinforced", "promoted", "pruned"]

START_CONFIDENCE = 0.5
SOURCE = "task"
"""The `source` of the bank's entries."""
ORIGIN = "origin"
"""The key of an entry's metadata that holds its `Origin`."""
PROMOTED = "promoted"
"""The key of an entry's metadata that says when it was promoted, and to which level."""
REVIEWED = "reviewed"
"""The key of an entry's metadata that says when a person found it correct."""
LIVE: tuple[State, ...] = ("active", "flagged")
MOST_STRATEGIES, MOST_GUARDRAILS, MOST_CONTRASTS = 3, 2, 5
"""Items at most from one success, one failure, and several attempts side by side."""
MAX_ITEM_CHARS = 2_000
TASK_CHARS = 160
"""Of a task that the text shows."""
CALLS_TAG = "calls:"
MAX_EVIDENCE_CHARS = 4_000


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """What an item says, as data."""

    task: str = ""
    """The task it is for."""
    shape: str = ""
    """The task with every value that went into a call, and every number, left open; siblings have the same."""
    conditions: tuple[str, ...] = ()
    """The words of the task that it depends on."""
    calls: tuple[ToolCall, ...] = ()
    """To make, in order."""
    failed: tuple[ToolCall, ...] = ()
    """Not to make."""

    def key(self, kind: str) -> str:
        """The same for items about the same calls, whether to make them or not; empty for an item without calls."""
        calls = self.calls if kind == "strategy" and self.calls else self.failed
        named = json.dumps([[call.tool, call.args] for call in calls], sort_keys=True)
        return hashlib.sha256(named.encode()).hexdigest()[:12] if calls else ""


def pattern_for(trajectory: Trajectory, calls: Sequence[ToolCall] = (), failed: Sequence[ToolCall] = ()) -> Pattern:
    """What one attempt says about calls. All words of its task are conditions: any of them may decide."""
    task, shape = one_line(trajectory.query)[:MAX_TASK_CHARS], shape_of(trajectory)
    return Pattern(task=task, shape=shape, conditions=content_words(task), calls=tuple(calls), failed=tuple(failed))


@dataclass(frozen=True, kw_only=True)
class NewItem:
    """What distilling proposes, not stored yet."""

    kind: ItemKind
    title: str
    advice: str
    """What to do, or not to do; `text` adds when."""
    evidence: str
    """Verbatim from the trajectory."""
    pattern: Pattern = field(default_factory=Pattern)
    confidence: float = START_CONFIDENCE
    when: str | None = None
    """When it applies, in a model's words; None: for tasks like the one of the pattern."""

    @property
    def text(self) -> str:
        like = shortened(self.pattern.task, TASK_CHARS) if self.when is None else ""
        lead = f"{TASK_LEAD}{like}{TASK_END}" if like else f"{self.when}: " if self.when else ""
        return one_line(lead + self.advice)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where an item was learned."""

    task: str = ""
    agent: str = ""
    outcome: Outcome
    run: str = ""
    """The run of several attempts that it came from, if it did."""
    by: str = "rules"
    """Who distilled it: a model's name, or `rules`."""


def bank_partition(scope: Scope) -> Partition:
    """Where what is learned in a scope is stored: with its agent, else at its home."""
    return scope.home("agent" if scope.agent is not None else None)


def content_words(text: str) -> tuple[str, ...]:
    """The words of a task that carry meaning, each once, in lower case."""
    return tuple(dict.fromkeys(word for word in words(text) if word not in STOP_WORDS))


def pattern_of(entry: Entry) -> Pattern:
    """What an entry says, as data; an empty pattern where it holds none that can be read."""
    try:
        return from_plain(Pattern, entry.metadata.get(PATTERN) or {}, strict=False)
    except ValueError:
        return Pattern()


def calls_tag(pattern: Pattern, kind: str) -> list[str]:
    """The tag that finds items with the same calls."""
    return [CALLS_TAG + key] if (key := pattern.key(kind)) else []


def draft_of(item: NewItem, origin: Origin, *, domain: str, layer: str, trusted: bool) -> Draft:
    """An item as a draft to be stored: unproven, resting on its evidence."""
    plain = to_plain(item.pattern) if item.pattern.task or item.pattern.key(item.kind) else None
    return Draft(
        text=item.text[:MAX_ITEM_CHARS],
        kind=item.kind,
        title=item.title[:MAX_NAME_CHARS],
        tags=[*domain_tags(domain), *calls_tag(item.pattern, item.kind)][:MAX_TAGS],
        layer=layer,
        evidence=item.evidence[:MAX_EVIDENCE_CHARS] or None,
        source=SOURCE,
        confidence=item.confidence,
        trust="trusted" if trusted else "untrusted",
        metadata={
            ORIGIN: {name: value for name, value in to_plain(origin).items() if value},
            **({PATTERN: plain} if plain else {}),
        },
    )


def is_item(entry: Entry) -> bool:
    """Whether an entry is a strategy or a guardrail, whoever stored it."""
    return entry.kind in ITEM_KINDS


def kinds_of(kind: str | Sequence[str] | None) -> list[Kind]:
    """The kinds of items meant; all for None."""
    wanted = [kind] if kind is not None and not isinstance(kind, list | tuple) else kind
    unknown = [each for each in wanted or () if each not in ITEM_KINDS]
    if unknown:
        raise InvalidInput("kind", f"{unknown[0]!r} is no kind of item", f"use {' or '.join(ITEM_KINDS)}")
    return [each for each in ITEM_KINDS if wanted is None or each in wanted]


def stage_of(entry: Entry) -> Stage:
    """How far an item has come: stored, shown to an agent, judged by the result, promoted; or ended."""
    if entry.state in ("pruned", "superseded"):
        return "pruned"
    if PROMOTED in entry.metadata:
        return "promoted"
    if entry.success_count or entry.failure_count:
        return "reinforced"
    return "retrieved" if entry.usage_count else "stored"


# -- domains ---------------------------------------------------------------------------------------------------------

TAG = "domain:"
MAX_PARTS = 8
MAX_CHARS = 120
_PART = regex(r"[\w-]+")


def checked_domain(domain: object) -> str:
    """A domain to store an item under, in lower case; empty for none."""
    if not isinstance(domain, str):
        raise InvalidInput("domain", f"must be text, not {type(domain).__name__}")
    name = domain.strip().lower()
    parts = name.split(".") if name else []
    if len(name) > MAX_CHARS or len(parts) > MAX_PARTS or not all(_PART.fullmatch(part) for part in parts):
        remedy = f"use up to {MAX_PARTS} words with dots between them, as in web.admin"
        raise InvalidInput("domain", f"{name[:60]!r} is not a domain", remedy)
    return name


def domain_tags(domain: str) -> list[str]:
    """The tags of an entry of a domain: its own, and one for every prefix that finds it."""
    name = checked_domain(domain)
    parts = name.split(".") if name else []
    prefixes = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return [TAG + name, *(f"{TAG}{prefix}.*" for prefix in prefixes)] if name else []


def wanted_tags(pattern: str | None) -> list[str]:
    """The tag that finds a domain (`web.admin`), or a domain and all below it (`web.*`); none for everything."""
    if pattern is None or (isinstance(pattern, str) and pattern.strip() in ("", "*")):
        return []
    if isinstance(pattern, str) and pattern.strip().endswith(".*"):
        return [f"{TAG}{checked_domain(pattern.strip()[:-2])}.*"]
    return [TAG + checked_domain(pattern)]


def domain_of(tags: Sequence[str]) -> str:
    """The domain that an entry's tags name; the first, when merging gave it several. Empty for none."""
    return next((tag[len(TAG) :] for tag in tags if tag.startswith(TAG) and not tag.endswith(".*")), "")
