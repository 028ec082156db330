"""How the bank keeps what it learned: strategies (do this) and guardrails (not this) as entries like any other.

| what                       | where in the entry                                                                    |
|----------------------------|---------------------------------------------------------------------------------------|
| strategy or guardrail      | `kind`                                                                                |
| one line, and what to do   | `title`, `text` (says when it applies, then what to do)                               |
| verbatim from the work     | `evidence`                                                                            |
| domain, and its prefixes   | `tags`, see `domains`                                                                 |
| where it was learned       | `metadata["origin"]`: task, agent, outcome, run, by                                   |
| how sure, how often used   | `confidence`, `usage_count`, `success_count`, `failure_count`                         |
| whose                      | `partition`: the scope's agent, else its home                                             |

Everything that reads or writes an entry of the bank goes through here. Knows no store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from wellworn.core.errors import InvalidInput
from wellworn.core.values import MAX_NAME_CHARS, Entry, Kind, Partition, Scope
from wellworn.ingest.validate import MAX_TAGS, Draft
from wellworn.tasks.domains import domain_of, domain_tags

ItemKind = Literal["strategy", "guardrail"]
ITEM_KINDS: tuple[ItemKind, ...] = get_args(ItemKind)
Outcome = Literal["success", "failure", "contrast"]
"""What work an item was learned from; `contrast`: from attempts that succeeded and attempts that failed, together."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

START_CONFIDENCE = 0.5
SOURCE = "task"
"""What entries of the bank say they come from."""
ORIGIN = "origin"
"""The key of an entry's metadata under which `Origin` is kept."""
MOST_STRATEGIES, MOST_GUARDRAILS, MOST_CONTRASTS = 3, 2, 5
"""Items at most out of one success, one failure, and several attempts side by side."""
MAX_ITEM_CHARS = 2_000
MAX_EVIDENCE_CHARS = 4_000

Stage = Literal["stored", "retrieved", "reinforced", "consolidating", "active", "pruned"]


@dataclass(frozen=True, kw_only=True)
class Item:
    """What distilling proposes, not kept yet."""

    kind: ItemKind
    title: str
    text: str
    evidence: str
    """Verbatim from the trajectory."""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where an item was learned."""

    task: str
    agent: str = ""
    domain: str = ""
    outcome: Outcome
    run: str = ""
    """The run of several attempts that it came out of, if it did."""
    by: str = "rules"
    """Who distilled it: a model's name, or `rules`."""
    rest: dict[str, Any] = field(default_factory=dict)
    """What else is kept beside these (who shared it, what was merged): left as it is."""


def bank_partition(scope: Scope) -> Partition:
    """Where what is learned in a scope is kept: with its agent, else at its home."""
    return scope.home("agent" if scope.agent is not None else None)


def draft_of(item: Item, origin: Origin, *, layer: str) -> Draft:
    """An item as a draft to be kept: unproven, resting on its evidence."""
    tags = [*domain_tags(origin.domain), *item.tags]
    return Draft(
        text=item.text[:MAX_ITEM_CHARS],
        kind=item.kind,
        title=item.title[:MAX_NAME_CHARS],
        tags=tags[:MAX_TAGS],
        layer=layer,
        evidence=item.evidence[:MAX_EVIDENCE_CHARS] or None,
        source=SOURCE,
        confidence=START_CONFIDENCE,
        metadata={ORIGIN: origin_value(origin)},
    )


def origin_value(origin: Origin) -> dict[str, Any]:
    """An origin as metadata keeps it. The domain is in the tags, and not said twice."""
    kept = {"task": origin.task, "agent": origin.agent, "outcome": origin.outcome, "run": origin.run, "by": origin.by}
    return {**origin.rest, **{name: value for name, value in kept.items() if value}}


def origin_of(entry: Entry) -> Origin | None:
    """Where an entry was learned; None when the bank did not keep it."""
    kept = entry.metadata.get(ORIGIN)
    if not is_item(entry) or not isinstance(kept, dict) or kept.get("outcome") not in OUTCOMES:
        return None
    named = {name: str(kept.get(name, "")) for name in ("task", "agent", "run")}
    rest = {name: value for name, value in kept.items() if name not in ("task", "agent", "outcome", "run", "by")}
    return Origin(
        **named, domain=domain_of(entry.tags), outcome=kept["outcome"], by=str(kept.get("by", "rules")), rest=rest
    )


def is_item(entry: Entry) -> bool:
    """Whether an entry is a strategy or a guardrail, whoever kept it."""
    return entry.kind in ITEM_KINDS


def kinds_of(kind: str | Sequence[str] | None) -> list[Kind]:
    """The kinds of items meant; all for None."""
    wanted = [kind] if isinstance(kind, str) else kind
    unknown = [each for each in wanted or () if each not in ITEM_KINDS]
    if unknown:
        raise InvalidInput("kind", f"{unknown[0]!r} is no kind of item", f"use {' or '.join(ITEM_KINDS)}")
    return [each for each in ITEM_KINDS if wanted is None or each in wanted]


def stage_of(entry: Entry) -> Stage:
    """How far an item has come by itself: kept, put before an agent, judged by how that went, changed and kept by a
    consolidation (`consolidated` in the metadata). What a run only looked at, `consolidation.stages` knows."""
    if entry.state in ("pruned", "superseded"):
        return "pruned"
    if entry.metadata.get("consolidated"):
        return "active"
    if entry.success_count or entry.failure_count:
        return "reinforced"
    return "retrieved" if entry.usage_count else "stored"
