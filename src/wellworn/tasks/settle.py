"""What becomes of items that concern each other, decided from how they stand now: no store, no transaction.

Duplicates are merged into the best of them, the less sure of two that contradict each other ends or people are asked,
and each item by itself is decayed, pruned, promoted or put up for a verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.errors import InvalidInput
from wellworn.core.values import Entry, Link, LinkType
from wellworn.tasks.advice import advice_of, contradiction, duplicates
from wellworn.tasks.items import LIVE, ORIGIN, PROMOTED, pattern_of

MERGED = "merged"
"""Key of an entry's metadata: ids of the entries that were merged into it."""
COUNTERS = ("usage_count", "success_count", "failure_count", "repeats")
MAX_EVIDENCE_CHARS = 20_000
MOST_MERGED = 100
_STEPS = re.compile(
    r"(?:^|\n)\s*(?:\d+[.)]|step \d+|[-*•]) |→|->|\bthen\b|\bfirst\b.*\b(?:next|after that|finally)\b",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class ConsolidationSettings:
    """When items are duplicates, contradict each other, have had their time, or have proved themselves."""

    duplicate: float = 0.95
    """Cosine from which items in other words can be duplicates."""
    related: float = 0.45
    """Cosine from which two items are compared at all."""
    gap: float = 0.15
    """The surer of two that contradict each other wins if it is surer by more than this; else people decide."""
    prune_confidence: float = 0.3
    prune_days: float = 180.0
    """Pruned: never used, less sure than `prune_confidence` and older than this."""
    promote_usage: int = 50
    promote_confidence: float = 0.85
    """Promoted: used more often than `promote_usage` and surer than this."""
    ask_usage: int = 5
    ask_confidence: float = 0.6
    """People are asked: used more often than `ask_usage` and less sure than this."""
    decay_days: float = 30.0
    decay_rate: float = 0.95
    """Each `decay_days` without use or change leave this share of the confidence; 1 for no decay."""
    decay_floor: float = 0.1
    every: int = 20
    """New items after which a partition is consolidated by itself."""
    batch: int = 500
    """Entries decided on in one transaction, about."""
    keep_runs: int = 50
    """The records of older runs are dropped."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value, name = getattr(self, each.name), f"consolidation.{each.name}"
            if isinstance(value, bool) or not isinstance(value, int if each.type == "int" else int | float):
                raise InvalidInput(name, f"{value!r} is not a {'whole ' * (each.type == 'int')}number")
            least = 1 if each.name in ("every", "batch", "keep_runs", "decay_days") else 0
            most = math.inf if each.type == "int" or each.name.endswith("_days") else 1
            if not least <= value <= most:
                raise InvalidInput(name, f"{value!r} is not from {least} to {most:g}")


@dataclass(frozen=True, kw_only=True)
class ConsolidationStep:
    """One thing that a consolidation did, or would do."""

    action: str
    """`merge, resolve, flag, prune, promote, decay, ask`."""
    id: str
    other: str = ""
    """What it was merged into, lost to, or contradicts."""
    why: str = ""


@dataclass(kw_only=True)
class Plan:
    """What one step makes of some entries."""

    entries: dict[str, Entry]
    now: datetime
    asked: Callable[[str], bool]
    """Whether people were asked under this key before, whatever they answered."""
    links: list[Link] = field(default_factory=list)
    reviews: list[tuple[tuple[str, ...], str, float]] = field(default_factory=list)
    """(ids, reason, similarity)"""
    steps: list[ConsolidationStep] = field(default_factory=list)

    def change(self, entry: Entry, **fields: Any) -> Entry:  # any field of it
        self.entries[entry.id] = replace(entry, **{"updated_at": max(self.now, entry.updated_at), **fields})
        return self.entries[entry.id]

    def say(self, action: str, id: str, other: str = "", why: str = "") -> None:
        self.steps.append(ConsolidationStep(action=action, id=id, other=other, why=why))

    def link(self, source: str, target: str, type_: LinkType, confidence: float = 1.0) -> None:
        made = Link(source=source, target=target, type=type_, confidence=round(confidence, 4), created_at=self.now)
        self.links.append(made)


def quality(entry: Entry) -> float:
    """Which of several duplicates stays: confidence · √usage."""
    return entry.confidence * math.sqrt(entry.usage_count)


def _rank(entry: Entry) -> tuple[float, ...]:
    """Best first: the one that says more, then by quality, then the surer, the longer known."""
    content = len(advice_of(entry).content)
    return (-content, -quality(entry), -entry.confidence, -entry.success_count, to_micros(entry.created_at))


def merged(best: Entry, others: Sequence[Entry], now: datetime) -> Entry:
    """The best of several with the counts and the evidence of all; as sure as the surest."""
    everyone = [best, *others]
    evidence = "\n".join(dict.fromkeys(line for entry in everyone for line in entry.evidence.split("\n")))
    taken = [*best.metadata.get(MERGED, []), *(other.id for other in others)]
    sums = {name: sum(getattr(entry, name) for entry in everyone) for name in COUNTERS}
    return replace(
        best,
        **{**sums, "repeats": sums["repeats"] + len(others)},
        confidence=max(entry.confidence for entry in everyone),
        at=max(entry.at for entry in everyone),
        evidence=evidence[:MAX_EVIDENCE_CHARS],
        metadata={**best.metadata, MERGED: taken[-MOST_MERGED:]},
        updated_at=max(now, best.updated_at),
    )


def ended(entry: Entry, now: datetime) -> Entry:
    """The entry as one that no longer holds."""
    until = max(now, entry.valid_from + timedelta(microseconds=1))
    until = until if entry.valid_to is None else min(until, entry.valid_to)
    return replace(entry, state="superseded", valid_to=until, updated_at=max(now, entry.updated_at))


def merge(plan: Plan, group: Sequence[str]) -> None:
    """Merge the duplicates of a group into the best of them. Each must say the same as that one itself."""
    left = [entry for id in group if (entry := plan.entries.get(id)) is not None and entry.state == "active"]
    left.sort(key=lambda entry: (_rank(entry), entry.id))
    while left:
        best, *rest = left
        others = [other for other in rest if duplicates(best, other, near=True)]
        left = [other for other in rest if other not in others]
        if others:
            plan.entries[best.id] = merged(best, others, plan.now)
        for other in others:
            plan.entries[other.id] = ended(other, plan.now)
            plan.link(best.id, other.id, "supersedes")
            plan.say("merge", other.id, best.id)


def contradict(plan: Plan, a: str, b: str, alike: float, gap: float) -> None:
    """End the less sure of two that contradict each other, or ask people where neither is much surer.

    What was learned later than the surer one was last seen may be how it is now: it is not ended. Of two that hold
    their calls as data the next tasks decide, so nobody is asked.
    """
    found = [entry for id in (a, b) if (entry := plan.entries.get(id)) is not None and entry.state in LIVE]
    if len(found) < 2 or plan.asked(":".join(sorted((a, b)))) or not (why := contradiction(*found)):
        return
    winner, loser = sorted(found, key=lambda entry: (-entry.confidence, entry.id))
    surer = winner.confidence - loser.confidence > gap + 1e-9 and not (
        ORIGIN in loser.metadata and loser.at > winner.at
    )
    if not surer and all(pattern_of(entry).key(entry.kind) for entry in found):
        return
    plan.link(winner.id, loser.id, "contradicts", alike)
    if surer:
        plan.entries[loser.id] = ended(loser, plan.now)
        plan.link(winner.id, loser.id, "supersedes")
        plan.say("resolve", loser.id, winner.id, why)
    else:
        for entry in found:
            plan.change(entry, state="flagged")
        plan.reviews.append(((winner.id, loser.id), why, alike))
        plan.say("flag", loser.id, winner.id, why)


def look_at(plan: Plan, id: str, settings: ConsolidationSettings) -> None:
    """Decay, prune, promote an entry, or ask about it."""
    entry, now = plan.entries.get(id), plan.now
    if entry is None or entry.state != "active":
        return
    spans = max(0, int((now - entry.updated_at) / timedelta(days=settings.decay_days)))
    floor = min(entry.confidence, settings.decay_floor)
    sure = max(floor, round(entry.confidence * settings.decay_rate**spans, 6)) if spans else entry.confidence
    if sure != entry.confidence:  # a change: the next span begins now
        entry = plan.change(entry, confidence=sure)
        plan.say("decay", id)
    old = now - entry.created_at > timedelta(days=settings.prune_days)
    if old and entry.usage_count == 0 and sure < settings.prune_confidence:
        plan.change(entry, state="pruned")
        plan.say("prune", id)
        return
    proven = entry.usage_count > settings.promote_usage and sure > settings.promote_confidence
    if proven and PROMOTED not in entry.metadata:
        to = "procedural" if _STEPS.search(entry.text) else "semantic"
        value = {"at": now.isoformat(), "to": to, "usage": entry.usage_count, "sure": sure}
        entry = plan.change(entry, metadata={**entry.metadata, PROMOTED: value})
        plan.say("promote", id, why=to)
    if entry.usage_count > settings.ask_usage and sure < settings.ask_confidence and not plan.asked(id):
        plan.reviews.append(((id,), "verdict", 0.0))
        plan.say("ask", id)
