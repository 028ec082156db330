"""What becomes of entries that concern each other: a plan over values, decided from how they stand now.

A case is a set of entries joined by being alike. It is decided in this order: duplicates fold into the best of each
group, contradictions are resolved or flagged, then each entry that is left is decayed, pruned, promoted or put up for
a verdict. Knows no store, and decides the same whatever the order of the entries.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.values import Entry, Link, LinkType, filled
from wellworn.tasks.consolidation.rows import CONSOLIDATED, LIVE, PROMOTED
from wellworn.tasks.consolidation.settings import ConsolidationSettings
from wellworn.tasks.consolidation.stance import contradiction, reordered

Asked = Callable[[str], bool]
"""Whether people were asked already, under this key, whatever became of it."""

MAX_EVIDENCE_CHARS = 20_000
MOST_MERGED = 100
MERGED = "merged"
"""Key of an entry's metadata: ids of the entries that were folded into it."""
_INSTANT = timedelta(microseconds=1)
_STEPS = re.compile(
    r"(?:^|\n)\s*(?:\d+[.)]|step \d+|[-*•]) |→|->|\bthen\b|\bfirst\b.*\b(?:next|after that|finally)\b",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Entries to be decided together, by id."""

    ids: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...] = ()
    """Duplicates of each other."""
    pairs: tuple[tuple[str, str, float], ...] = ()
    """Alike enough to be read for a contradiction, and how much."""


@dataclass(frozen=True, kw_only=True)
class Review:
    """Something for people to decide on."""

    key: str
    ids: tuple[str, ...]
    reason: str
    similarity: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One thing that a consolidation did, or would do."""

    action: str
    """`merge, resolve, flag, prune, promote, decay, ask`."""
    id: str
    other: str = ""
    """What it was merged into, lost to, or contradicts."""
    why: str = ""


@dataclass(kw_only=True)
class Settled:
    """What is to be written for a case."""

    after: dict[str, Entry] = field(default_factory=dict)
    """Entries that change, as they will stand."""
    links: list[Link] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def say(self, action: str, id: str, other: str = "", why: str = "") -> None:
        self.decisions.append(Decision(action=action, id=id, other=other, why=why))


def quality(entry: Entry) -> float:
    """Which of several duplicates is kept: confidence · √usage, as the seed has it."""
    return entry.confidence * math.sqrt(entry.usage_count)


def _rank(entry: Entry) -> tuple[float, float, int, int, str]:
    """Best first. Unused duplicates all have quality 0: then the surer, the longer known, the smaller id."""
    return (-quality(entry), -entry.confidence, -entry.success_count, to_micros(entry.created_at), entry.id)


def review_key(ids: Sequence[str]) -> str:
    """The key under which people are asked about these entries, in whichever order."""
    return ":".join(sorted(ids))


def settle(
    case: Case, entries: Mapping[str, Entry], asked: Asked, *, now: datetime, settings: ConsolidationSettings
) -> Settled:
    """Decide a case, of the entries as they stand now; those that are gone or ended are left out."""
    done = Settled()
    now_of = {id: entry for id in case.ids if (entry := entries.get(id)) is not None and entry.state in LIVE}
    for group in case.groups:
        _merge([now_of[id] for id in group if id in now_of and now_of[id].state == "active"], now_of, done, now)
    _contradict(case, now_of, asked, done, now, settings)
    for id in sorted(now_of):
        if now_of[id].state == "active":
            _look_at(now_of[id], now_of, asked, done, now, settings)
    done.after = {id: entry for id, entry in now_of.items() if entry is not entries[id]}
    return done


# -- duplicates --------------------------------------------------------------------------------------------------


def _merge(group: list[Entry], now_of: dict[str, Entry], done: Settled, now: datetime) -> None:
    """Fold all but the best into it."""
    if len(group) < 2:
        return
    best, *others = sorted(group, key=_rank)
    folded = [other for other in others if not reordered(best.text, other.text)]
    if not folded:
        return
    now_of[best.id] = merged(best, folded, now)
    for other in folded:
        now_of[other.id] = ended(other, now)
        done.links.append(_link(best.id, other.id, "supersedes", 1.0, now))
        done.say("merge", other.id, best.id)


def merged(best: Entry, others: Sequence[Entry], now: datetime) -> Entry:
    """The best of several with the counts and the evidence of all; as sure as the surest."""
    everyone = [best, *sorted(others, key=_rank)]
    evidence = "\n".join(dict.fromkeys(line for entry in everyone for line in entry.evidence.split("\n")))
    taken = [*best.metadata.get(MERGED, []), *(other.id for other in everyone[1:])]
    return _with(
        best,
        usage_count=sum(entry.usage_count for entry in everyone),
        success_count=sum(entry.success_count for entry in everyone),
        failure_count=sum(entry.failure_count for entry in everyone),
        repeats=sum(entry.repeats for entry in everyone) + len(others),
        confidence=max(entry.confidence for entry in everyone),
        at=max(entry.at for entry in everyone),
        evidence=evidence[:MAX_EVIDENCE_CHARS],
        metadata={**best.metadata, MERGED: taken[-MOST_MERGED:]},
        updated_at=max(now, best.updated_at),
    )


def ended(entry: Entry, now: datetime) -> Entry:
    """The entry as one that no longer holds."""
    until = max(now, entry.valid_from + _INSTANT)
    until = until if entry.valid_to is None else min(until, entry.valid_to)
    return _with(entry, state="superseded", valid_to=until, updated_at=max(now, entry.updated_at))


# -- contradictions ----------------------------------------------------------------------------------------------


def _contradict(
    case: Case, now_of: dict[str, Entry], asked: Asked, done: Settled, now: datetime, settings: ConsolidationSettings
) -> None:
    """The surest speak first: what lost to one of them contradicts nobody any more."""
    stands = _stands_for(case, now_of)
    found = {
        (min(a, b), max(a, b)): alike
        for first, second, alike in sorted(case.pairs, key=lambda pair: (pair[2], pair))
        if (a := stands.get(first)) is not None and (b := stands.get(second)) is not None and a != b
    }
    opposed = [(a, b, alike, why) for (a, b), alike in found.items() if (why := contradiction(now_of[a], now_of[b]))]

    def surest(pair: tuple[str, str, float, str]) -> tuple[float, float, str, str]:
        sure = sorted((now_of[pair[0]].confidence, now_of[pair[1]].confidence))
        return (-sure[1], sure[0], pair[0], pair[1])

    for a, b, alike, why in sorted(opposed, key=surest):
        if asked(review_key((a, b))) or "superseded" in (now_of[a].state, now_of[b].state):
            continue
        winner, loser = sorted((now_of[a], now_of[b]), key=lambda entry: (-entry.confidence, entry.id))
        done.links.append(_link(winner.id, loser.id, "contradicts", round(min(1.0, alike), 4), now))
        if winner.confidence - loser.confidence > settings.gap + 1e-9:
            now_of[loser.id] = ended(loser, now)
            done.links.append(_link(winner.id, loser.id, "supersedes", 1.0, now))
            done.say("resolve", loser.id, winner.id, why)
        else:
            for entry in (winner, loser):
                now_of[entry.id] = replace(entry, state="flagged", updated_at=max(now, entry.updated_at))
            done.reviews.append(Review(key=review_key((a, b)), ids=(winner.id, loser.id), reason=why, similarity=alike))
            done.say("flag", loser.id, winner.id, why)


def _stands_for(case: Case, now_of: Mapping[str, Entry]) -> dict[str, str]:
    """Each entry → the one that stands for it: itself, or the one it was folded into just now."""
    stands = {id: id for id, entry in now_of.items() if entry.state in LIVE}
    for group in case.groups:
        left = [id for id in group if id in stands]
        if len(left) == 1:
            stands.update((id, left[0]) for id in group)
    return stands


# -- one entry ---------------------------------------------------------------------------------------------------


def _look_at(
    entry: Entry, now_of: dict[str, Entry], asked: Asked, done: Settled, now: datetime, settings: ConsolidationSettings
) -> None:
    faded = decayed(entry, now, settings)
    if faded is not entry:
        done.say("decay", entry.id)
    if is_useless(faded, now, settings):
        now_of[entry.id] = replace(faded, state="pruned", updated_at=max(now, entry.updated_at))
        done.say("prune", entry.id)
        return
    if is_proven(faded, settings):
        to = "procedural" if teaches_process(entry.text) else "semantic"
        faded = _promoted(faded, now, to)
        done.say("promote", entry.id, why=to)
    now_of[entry.id] = faded
    if needs_verdict(faded, settings) and not asked(entry.id):
        done.reviews.append(Review(key=entry.id, ids=(entry.id,), reason="verdict"))
        done.say("ask", entry.id)


def decayed(entry: Entry, now: datetime, settings: ConsolidationSettings) -> Entry:
    """The entry after its whole spans without use or change: confidence · rate^spans. To decay is to change, so the
    next span begins now, and a second look finds nothing to do."""
    spans = int((now - entry.updated_at) / timedelta(days=settings.decay_days))
    floor = min(entry.confidence, settings.decay_floor)
    sure = max(floor, round(entry.confidence * settings.decay_rate ** max(0, spans), 6))
    return entry if spans < 1 or sure == entry.confidence else replace(entry, confidence=sure, updated_at=now)


def is_useless(entry: Entry, now: datetime, settings: ConsolidationSettings) -> bool:
    old = now - entry.created_at > timedelta(days=settings.prune_days)
    return old and entry.usage_count == 0 and entry.confidence < settings.prune_confidence


def is_proven(entry: Entry, settings: ConsolidationSettings) -> bool:
    proven = entry.usage_count > settings.promote_usage and entry.confidence > settings.promote_confidence
    return proven and PROMOTED not in entry.metadata


def needs_verdict(entry: Entry, settings: ConsolidationSettings) -> bool:
    return entry.usage_count > settings.ask_usage and entry.confidence < settings.ask_confidence


def teaches_process(text: str) -> bool:
    """Whether a text says what to do step by step: a list, arrows, "then", "first … finally"."""
    return _STEPS.search(text) is not None


def _promoted(entry: Entry, now: datetime, to: str) -> Entry:
    value: dict[str, Any] = {"at": now.isoformat(), "to": to, "usage": entry.usage_count, "sure": entry.confidence}
    return replace(entry, metadata={**entry.metadata, PROMOTED: value}, updated_at=max(now, entry.updated_at))


def marked(entry: Entry, run_id: str) -> Entry:
    """The entry as one that a consolidation has changed and kept."""
    return _with(entry, metadata={**entry.metadata, CONSOLIDATED: run_id})


def _with(entry: Entry, **fields: Any) -> Entry:  # any field of it
    """`replace` in a fifth of its time: a run makes thousands."""
    return filled(Entry, **{**vars(entry), **fields})


def _link(source: str, target: str, type_: LinkType, confidence: float, now: datetime) -> Link:
    return Link(source=source, target=target, type=type_, confidence=confidence, created_at=now)
