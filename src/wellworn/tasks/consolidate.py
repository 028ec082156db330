"""Consolidation of a bank: duplicates are merged, contradictions settled or flagged, and single items decayed, pruned
or promoted.

Items are compared outside any transaction. One transaction then writes everything. What others changed meanwhile is
left to the next run, so a killed process leaves nothing half done, and several processes may work on one partition.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from wellworn.core.cache import text_cache
from wellworn.core.clock import to_micros
from wellworn.core.dataclass import dataclass
from wellworn.core.lazy import regex
from wellworn.core.values import Entry, Job, Link, LinkType, Partition
from wellworn.ingest.terms import STOP_WORDS, TASK_LEAD, stem
from wellworn.jobs.queue import list_jobs
from wellworn.store.events import Event, audit, trusted_now
from wellworn.store.port import Record, Selection, Store, StoreReader, Tx
from wellworn.tasks.engine import OfBank
from wellworn.tasks.items import ITEM_KINDS, LIVE, ORIGIN, PROMOTED, domain_of, pattern_of

JOB = "consolidate"
TALLY = "consolidation_tally"
"""The kind of record that counts new items."""
EVERY = 20
"""New items after which a partition is consolidated by itself."""
DUPLICATE, RELATED = 0.95, 0.45
"""Cosine from which items in other words can be duplicates, and from which two items are compared at all."""
NEAREST = 16
"""Neighbours of an item that are compared with it. What is missed in a dense bank is found by a later run."""
GAP = 0.15
"""The surer of two that contradict each other wins if it is surer by more than this; else people decide."""
DECAY_DAYS, DECAY_RATE, DECAY_FLOOR = 30, 0.95, 0.1
"""Each so many days without use or change leave this share of the confidence."""
PRUNE_DAYS, PRUNE_CONFIDENCE = 180, 0.3
"""Pruned: never used, older and less sure than this."""
PROMOTE_USAGE, PROMOTE_CONFIDENCE = 50, 0.85
"""Promoted: used more often and surer than this."""
MERGED = "merged"
"""Key of an entry's metadata: ids of the entries that were merged into it."""
MAX_EVIDENCE_CHARS, MOST_MERGED = 20_000, 100
_COUNTERS = ("usage_count", "success_count", "failure_count", "repeats")
_STEPS = regex(r"(?:^|\n)\s*(?:\d+[.)]|[-*•]) |→|->|\bthen\b", re.IGNORECASE)
_MANY, _BLOCK = 1_000_000, 256
_SLACK = 1e-6  # float32 products of unit vectors round by about this much


@dataclass(frozen=True, kw_only=True)
class ConsolidationStep:
    """One thing that a consolidation did."""

    action: str
    """`merge, resolve, flag, free, decay, prune` or `promote`."""
    id: str
    other: str = ""
    """What it was merged into, lost to, or contradicts."""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Consolidation:
    """What one run did."""

    entries: int
    """Strategies and guardrails that were looked at."""
    steps: list[ConsolidationStep]

    @property
    def counts(self) -> Counter[str]:
        """Steps by action."""
        return Counter(step.action for step in self.steps)


class Consolidator(OfBank):
    """Consolidates partitions; also by itself, as a job after every so many new items."""

    def run(self, partition: Partition, finish: Callable[[Tx, Consolidation], object] | None = None) -> Consolidation:
        """Consolidate a partition; `finish` is called within the transaction."""
        rows = live_items(self._store, partition)
        seen = {entry.id: entry for _, entry in rows}
        groups, pairs = _same(seen.values()), _near(self._store, rows)
        with self._store.transact() as tx:
            now = tx.get([partition], [*seen])
            moment = self._clock()
            plan = _Plan(
                entries={id: entry for id, entry in now.items() if entry == seen[id]},
                now=moment,
                trusted=trusted_now(tx, partition.tenant, moment),
            )
            plan.merge(groups, pairs)
            plan.settle(pairs, known=contradicting(tx, seen))
            for id in sorted(plan.entries):
                plan.look_at(id)
            done = Consolidation(entries=len(rows), steps=plan.steps)
            self._write(tx, partition, plan, now)
            if finish is not None:
                finish(tx, done)
        return done

    def _write(self, tx: Tx, partition: Partition, plan: _Plan, before: dict[str, Entry]) -> None:
        for id, entry in plan.entries.items():
            if entry is not before[id]:
                tx.update(entry, change="consolidated", before=before[id])
        for link in plan.links:
            tx.remove_link(link.target, link.source, link.type)  # what was revived by hand must not form a ring
        tx.add_links(plan.links)
        for step in plan.steps:
            detail, action = {"other": step.other, "why": step.why}, f"bank_{step.action}"
            event = Event(at=plan.now, tenant=partition.tenant, action=action, entry_id=step.id)
            audit(tx, replace(event, detail={name: value for name, value in detail.items() if value}))

    # -- as a job ----------------------------------------------------------------------------------------------------

    def run_job(self, job: Job) -> None:
        """The handler of the job: the transaction of the run finishes the job too."""
        self.run(job.partition, lambda tx, run: self._background.queue.finish(tx, job, dict(run.counts)))

    def run_due(self, partition: Partition) -> int:
        """Run the consolidations that are queued for a partition, for processes without a worker; returns how many."""
        done = 0
        for job in list_jobs(self._store, partition=partition, kinds=[JOB], states=["queued"]):
            taken = self._background.queue.take("due", partition, JOB, job.key, job.payload)
            if taken is not None:
                try:
                    self.run_job(taken)
                except Exception as error:
                    self._background.queue.fail(taken, error)
                    raise
                done += 1
        return done

    def added(self, tx: Tx, partition: Partition, number: int) -> bool:
        """Count new items in the transaction that stores them, so that none is missed; whether a job was queued."""
        now = self._clock()
        tally = tx.record(partition, TALLY, "new") or Record(
            partition=partition, kind=TALLY, key="new", body={"new": 0, "all": 0}, created_at=now, updated_at=now
        )
        new, total = tally.body["new"] + number, tally.body["all"] + number
        due = new >= EVERY
        tx.put_records([replace(tally, body={"new": 0 if due else new, "all": total}, updated_at=now)])
        return due and self._background.queue.add(tx, partition, JOB, f"after {total}", {"after": total})


# -- what is compared ------------------------------------------------------------------------------------------------


def live_items(store: Store, partition: Partition) -> list[tuple[int, Entry]]:
    """A partition's strategies and guardrails that are active or flagged, with their row numbers."""
    return store.select([partition], Selection(kinds=ITEM_KINDS, states=LIVE), limit=_MANY)


def _same(entries: Iterable[Entry]) -> list[list[str]]:
    """Ids of items with the same calls and conditions or, of prose, the same words, in groups."""
    groups: dict[Any, list[str]] = {}
    for entry in entries:
        pattern, said = pattern_of(entry), advice_of(entry)
        calls = pattern.key(entry.kind)
        key = (calls, frozenset(pattern.conditions)) if calls else (said.content, said.arguments, said.against)
        groups.setdefault((domain_of(entry.tags), entry.kind, entry.trust, key), []).append(entry.id)
    return [group for group in groups.values() if len(group) > 1]


def _near(store: Store, rows: Sequence[tuple[int, Entry]]) -> list[tuple[str, str, float]]:
    """Pairs of ids of one domain with the cosine of their vectors, the nearest of each item, in order.

    Items of different domains are not compared: the narrower one may well say otherwise.
    """
    vectors = {no: vector for no, (_, vector) in store.index_of([no for no, _ in rows]).items() if vector is not None}
    domains: dict[str, list[tuple[str, npt.NDArray[np.float32]]]] = {}
    for no, entry in sorted(rows, key=lambda row: row[1].id):
        if no in vectors:
            domains.setdefault(domain_of(entry.tags), []).append((entry.id, vectors[no]))
    found: dict[tuple[str, str], float] = {}
    for part in domains.values():
        ids, matrix = [id for id, _ in part], np.array([vector for _, vector in part], dtype=np.float32)
        for start in range(0, len(ids), _BLOCK):  # the whole product of a large bank does not fit into memory
            products = matrix[start : start + _BLOCK] @ matrix.T
            most = min(NEAREST, len(ids) - 1)
            nearest = np.argpartition(-products, most, axis=1)[:, : most + 1]
            for row, columns in enumerate(nearest.tolist(), start=start):
                for column in columns:
                    alike = float(products[row - start, column])
                    if column != row and alike >= RELATED - _SLACK:
                        first, second = sorted((ids[row], ids[column]))
                        found[first, second] = min(1.0, alike)
    return [(a, b, alike) for (a, b), alike in sorted(found.items())]


def contradicting(reader: StoreReader, ids: Iterable[str]) -> set[frozenset[str]]:
    """Pairs of ids that were found to contradict each other before, whatever people decided."""
    return {frozenset((link.source, link.target)) for link in reader.links([*ids], types=["contradicts"])}


# -- what becomes of it ----------------------------------------------------------------------------------------------


def _rank(entry: Entry) -> tuple[Any, ...]:
    """Best first: the one that says more, then by confidence · √usage, then the surer, the longer known."""
    content, quality = len(advice_of(entry).content), entry.confidence * math.sqrt(entry.usage_count)
    return (-content, -quality, -entry.confidence, to_micros(entry.created_at), entry.id)


def merged(best: Entry, others: Sequence[Entry], now: datetime) -> Entry:
    """The best of several with the counts and the evidence of all; as sure as the surest."""
    everyone = [best, *others]
    evidence = "\n".join(dict.fromkeys(line for entry in everyone for line in entry.evidence.split("\n")))
    taken = [*best.metadata.get(MERGED, []), *(other.id for other in others)]
    sums = {name: sum(getattr(entry, name) for entry in everyone) for name in _COUNTERS}
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


@dataclass(kw_only=True)
class _Plan:
    """What a run makes of the entries of a partition. Knows no store."""

    entries: dict[str, Entry]
    now: datetime
    trusted: datetime
    """What age is measured by: one jump of the clock must not make everything old."""
    links: list[Link] = field(default_factory=list)
    steps: list[ConsolidationStep] = field(default_factory=list)

    def merge(self, groups: Sequence[Sequence[str]], pairs: Sequence[tuple[str, str, float]]) -> None:
        """Merge duplicates into the best of them."""
        for group in [*groups, *([a, b] for a, b, alike in pairs if alike >= DUPLICATE - _SLACK)]:
            found = [one for id in group if (one := self.entries.get(id)) is not None and one.state == "active"]
            found.sort(key=_rank)
            others = [other for other in found[1:] if duplicates(found[0], other)]
            if others:
                self.entries[found[0].id] = merged(found[0], others, self.now)
            for other in others:
                self._end(other, found[0], "merge")

    def settle(self, pairs: Sequence[tuple[str, str, float]], known: set[frozenset[str]]) -> None:
        """End the less sure of two that contradict each other, or flag both for people where neither is much surer.

        What was learned later than the surer one was last seen may be how it is now: it is not ended. Of two that
        hold their calls as data the next tasks decide, so nobody is asked.
        """
        opposed = []
        for a, b, alike in pairs:
            found = [one for id in (a, b) if (one := self.entries.get(id)) is not None and one.state in LIVE]
            if len(found) == 2 and {a, b} not in known and (why := contradiction(*found)):
                winner, loser = sorted(found, key=lambda entry: (-entry.confidence, entry.id))
                opposed.append((-winner.confidence, loser.confidence, winner.id, loser.id, alike, why))
        for *_, first, second, alike, why in sorted(opposed):
            winner, loser = self.entries[first], self.entries[second]
            if winner.state not in LIVE or loser.state not in LIVE:
                continue
            newer = ORIGIN in loser.metadata and loser.at > winner.at
            if winner.confidence - loser.confidence > GAP + 1e-9 and not newer:
                self._end(loser, winner, "resolve", why)
            elif all(pattern_of(entry).key(entry.kind) for entry in (winner, loser)):
                continue
            else:
                for entry in (winner, loser):
                    self._change(entry, state="flagged")
                self._say("flag", loser.id, winner.id, why)
            self._link(winner.id, loser.id, "contradicts", alike)
            known.add(frozenset((first, second)))
        states = {id: entry.state for id, entry in self.entries.items()}
        waiting = {id for pair in known if all(states.get(id) == "flagged" for id in pair) for id in pair}
        for id in sorted(id for id, state in states.items() if state == "flagged" and id not in waiting):
            self._change(self.entries[id], state="active")
            self._say("free", id, why="what it contradicts is gone")

    def look_at(self, id: str) -> None:
        """Decay, prune or promote one entry."""
        entry = self.entries[id]
        if entry.state != "active":
            return
        spans = max(0, (self.trusted - entry.updated_at) // timedelta(days=DECAY_DAYS))
        floor = min(entry.confidence, DECAY_FLOOR)
        sure = max(floor, round(entry.confidence * DECAY_RATE**spans, 6)) if spans else entry.confidence
        if sure != entry.confidence:  # a change: the next span begins now
            entry = self._change(entry, confidence=sure)
            self._say("decay", id)
        old = self.trusted - entry.created_at > timedelta(days=PRUNE_DAYS)
        if old and entry.usage_count == 0 and sure < PRUNE_CONFIDENCE:
            self._change(entry, state="pruned")
            self._say("prune", id)
        elif entry.usage_count > PROMOTE_USAGE and sure > PROMOTE_CONFIDENCE and PROMOTED not in entry.metadata:
            to = "procedural" if _STEPS.search(entry.text) else "semantic"
            value = {"at": self.now.isoformat(), "to": to}
            self._change(entry, metadata={**entry.metadata, PROMOTED: value})
            self._say("promote", id, why=to)

    def _end(self, entry: Entry, by: Entry, action: str, why: str = "") -> None:
        self.entries[entry.id] = ended(entry, self.now)
        self._link(by.id, entry.id, "supersedes")
        self._say(action, entry.id, by.id, why)

    def _change(self, entry: Entry, **fields: Any) -> Entry:  # any field of it
        self.entries[entry.id] = replace(entry, **{"updated_at": max(self.now, entry.updated_at), **fields})
        return self.entries[entry.id]

    def _say(self, action: str, id: str, other: str = "", why: str = "") -> None:
        self.steps.append(ConsolidationStep(action=action, id=id, other=other, why=why))

    def _link(self, source: str, target: str, type_: LinkType, confidence: float = 1.0) -> None:
        made = Link(source=source, target=target, type=type_, confidence=round(confidence, 4), created_at=self.now)
        self.links.append(made)


# -- how two pieces of advice compare ----------------------------------------------------------------------------------
#
# Where an item has its calls as data, these decide. Else the words do, because vectors see the topic and not the
# difference that matters: "always retry" and "never retry" have nearly the same vector. Advice is the same only if its
# arguments (numbers, quoted strings, paths, commands) and its polarity are equal. It contradicts if it denies the same
# words, or differs in one word of a kind of which only one can hold (up and down, Monday and Friday). Knows English.

SHARED = 0.66
"""Share of their words that two texts must have in common to speak of the same."""
REWORDED = 0.6
"""Texts that are less alike than this, word by word, are worded differently throughout. In texts that are more alike,
the few words that differ are what matters."""

_TOKEN = regex(r"“[^”]*”|\"[^\"]*\"|`[^`]*`|[^\s“”\"`]+")
_CODE = regex(r"\d|[/\\_=@#$%<>|~^{}]|^-|\w[.:]\w|[a-z][A-Z]|\w\(")
_WORD = regex(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NOT = regex(
    r"\b(?:not|no|never|nor|avoid\w*|without|cannot|stop|fail\w*|skip\w*|forbidden|wrong|mistake|\w+n['’]t)\b"
    r"(?! (?:more|less|fewer|later|earlier|longer) than)",
    re.IGNORECASE,
)
_ADVISES = regex(r"\b(?:always|must|should|ensure|use|verify|wait|make|prefer|only)\b", re.IGNORECASE)
_ONE_OF = [
    frozenset(map(stem, names.split()))
    for names in """
    enable disable; include exclude omit; increase decrease reduce; open close; add remove; allow deny block
    accept reject; lock unlock; ascending descending; up down; on off; in out; left right; before after; first last
    above below; more less; most least; top bottom; public private; parallel sequential; encode decode; true false
    minimum maximum; push pull; start stop; import export; local remote; manual automatic; required optional
    online offline; newest oldest; earlier later; upper lower; inside outside; new same; north south east west
    monday tuesday wednesday thursday friday saturday sunday; hourly daily weekly monthly yearly
    morning noon afternoon evening night midnight
    january february march april june july august september october november december
    """.replace("\n", ";").split(";")
]
"""Words of which only one can hold at a time."""
_EMPTY = frozenset(map(stem, [*STOP_WORDS, "always", "must", "should", "ever", "instead", "rather", "need", "please"]))
_KEPT = frozenset().union(*_ONE_OF)
_UNIVERSAL = regex(
    rf"\b(always|never) (\w+) (?:(?:the|an?|any|all|every) )?((?:(?!(?:{'|'.join(sorted(STOP_WORDS))})\b)\w+ ?){{1,4}})",
    re.IGNORECASE,
)
"""Always or never, what to do, and to what."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What a text says, as far as words show it."""

    content: tuple[str, ...]
    """Stems of the words that carry the topic, in order."""
    arguments: tuple[str, ...]
    against: bool


def advice_of(entry: Entry) -> Advice:
    """What an entry says. A guardrail is against what it names, unless it says what to do."""
    return _read(entry.text, entry.kind == "guardrail")


@text_cache(8192)
def _read(text: str, warns: bool) -> Advice:
    arguments: list[str] = []

    def kept(match: re.Match[str]) -> str:
        token = match.group()
        bare = token.strip(".,;:!?()[]")
        if token[0] not in '“"`' and not _CODE.search(bare):
            return token
        arguments.append(bare)
        return token[-1] if token[-1] in ",;:." else ""

    said = _TOKEN.sub(kept, text)
    denials = len(_NOT.findall(said))
    stems = [stem(word) for word in _WORD.findall(_NOT.sub(" ", said).lower())]
    return Advice(
        content=tuple(word for word in stems if word in _KEPT or word not in _EMPTY),
        arguments=tuple(arguments),
        against=denials % 2 == 1 if denials or _ADVISES.search(said) else warns,
    )


def duplicates(one: Entry, other: Entry) -> bool:
    """Whether two entries with the same words or nearly the same vector say the same: the same calls under the same
    conditions or, of prose, the same advice, perhaps in other words throughout, or one with a few words more."""
    if (one.kind, one.trust, domain_of(one.tags)) != (other.kind, other.trust, domain_of(other.tags)):
        return False
    mine, yours = pattern_of(one), pattern_of(other)
    if mine.key(one.kind) or yours.key(other.kind):
        same = mine.key(one.kind) == yours.key(other.kind) and set(mine.conditions) == set(yours.conditions)
        if not same or one.text.startswith(TASK_LEAD):
            return same
    a, b = advice_of(one), advice_of(other)
    if (a.arguments, a.against) != (b.arguments, b.against):
        return False
    if a.content == b.content:
        return True
    if sorted(a.content) == sorted(b.content):  # the order is the difference
        return False
    short, long = sorted((a.content, b.content), key=len)
    left = iter(long)
    contained = all(word in left for word in short)
    from difflib import SequenceMatcher

    return contained or SequenceMatcher(None, a.content, b.content, autojunk=False).ratio() < REWORDED


def contradiction(one: Entry, other: Entry) -> str:
    """Why two entries cannot both be right: `outcome` (one says to do what the other says not to), `negation` or
    `exclusive`; empty when they can."""
    mine, yours = pattern_of(one), pattern_of(other)
    if mine.key(one.kind) and yours.key(other.kind):
        same = mine.key(one.kind) == yours.key(other.kind) and set(mine.conditions) == set(yours.conditions)
        return "outcome" if same and one.kind != other.kind else ""
    a, b = advice_of(one), advice_of(other)
    if a.arguments != b.arguments:
        return ""
    if a.against == b.against:
        return "exclusive" if _one_of(a.content, b.content) else ""
    if _universal(one.text, other.text):
        return "negation"
    left, right = set(a.content), set(b.content)
    shared = len(left & right) / max(1, len(left | right))
    ordered = [word for word in a.content if word in right] == [word for word in b.content if word in left]
    if not ordered or shared < SHARED:
        return ""
    return "outcome" if one.kind != other.kind else "negation"


def _one_of(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two texts differ in one word, and that is one of a kind of which only one can hold."""
    different = [{a, b} for a, b in zip(one, other, strict=False) if a != b]
    return len(one) == len(other) and len(different) == 1 and any(different[0] <= words for words in _ONE_OF)


def _universal(one: str, other: str) -> bool:
    """Whether one says always and the other never to do the same to things of one sort: "always cache API responses",
    "never cache authentication responses"."""
    found = [match for text in (one, other) if (match := _UNIVERSAL.search(text))]
    if len(found) < 2 or found[0][1].lower() == found[1][1].lower():
        return False
    verbs, things = ([stem(match[part].split()[-1].lower()) for match in found] for part in (2, 3))
    return verbs[0] == verbs[1] and things[0] == things[1]
