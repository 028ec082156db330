"""Reasoning without a model: the chain of entries that bears on a question, and why each is in it.

Begins with the best hit of a recursive recall, follows what it names and what it is linked to, several hops, and stops
when nothing new comes. Says what the entries say; it does not make a sentence of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wellworn.core.values import Entry, Hit, Link, Reasoning, ReasoningStep, Recall
from wellworn.ingest.terms import read_question, record_of
from wellworn.search.steps.executor import Executor

MAX_HOPS = 3
LONGEST = 8
"""Steps of a path at most."""
LEADS = 3
"""Best hits that are read for themselves."""
_UNFOLLOWED = ("contradicts", "supersedes")

Links = Callable[[str], list[Link]]
Get = Callable[[str], Entry | None]
"""An entry that the recall's scope, time and filters let through, or None."""


def reasoned(recall: Recall, executor: Executor | None, *, links: Links, get: Get) -> Reasoning:
    """The path through what a recall found and what is linked to it."""
    hits = {hit.entry.id: hit for hit in recall.hits}
    via = executor.via if executor is not None else {}
    path: dict[str, ReasoningStep] = {}
    for number, hit in enumerate(recall.hits):
        leader, how = via.get(hit.entry.id, ("", ""))
        if leader in path or (leader in hits and number >= LEADS):
            path[hit.entry.id] = _bridged(hit.entry, hits[leader].entry, how)
        elif number < LEADS:
            path[hit.entry.id] = _read(hit, number)
    sure = _walk(path, links, get)
    steps = tuple(path.values())[:LONGEST]
    covered, said = _coverage(recall.query, [step.entry for step in steps])
    if len(said) > 1:
        last = ReasoningStep(
            entry=said[-1],
            operation="synthesize",
            reasoning=f"{len(said)} entries together have {covered:.0%} of the question's words",
        )
        steps = (*steps, last)
    belief = min((entry.confidence for entry in said), default=0.0)
    return Reasoning(
        question=recall.query,
        conclusion="\n".join(entry.text for entry in said),
        path=steps,
        confidence=covered * belief * sure if said else 0.0,
        recall=recall,
    )


def _read(hit: Hit, number: int) -> ReasoningStep:
    best = sorted(hit.explanation, key=lambda factor: -factor.contribution)[:2]
    why = ", ".join(f"{factor.name} {factor.contribution:+.1f}" for factor in best)
    place = "best hit" if number == 0 else f"hit {number}"
    return ReasoningStep(entry=hit.entry, operation="read", reasoning=f"{place} for the question ({why})")


def _bridged(entry: Entry, leader: Entry, how: str) -> ReasoningStep:
    name = leader.title or leader.id
    reasoning = f"linked to {name}" if how == "link" else f"{name} leads to it: they name the same"
    return ReasoningStep(entry=entry, operation=how, reasoning=reasoning)


def _walk(path: dict[str, ReasoningStep], links: Links, get: Get) -> float:
    """Add what hand-made links lead to, hop by hop; returns the confidence of the least sure link that was taken."""
    sure, edge = 1.0, [*path]
    for hop in range(1, MAX_HOPS + 1):
        found: list[str] = []
        for id in edge:
            for link in links(id):
                other = link.target if link.source == id else link.source
                if link.automatic or link.type in _UNFOLLOWED or other in path or len(path) >= LONGEST:
                    continue
                entry = get(other)
                if entry is None:
                    continue
                towards = f"{link.type} it" if link.source == other else f"it {link.type} this"
                path[other] = ReasoningStep(entry=entry, operation="link", reasoning=f"hop {hop} from {id}: {towards}")
                sure = min(sure, link.confidence)
                found.append(other)
        edge = found
    return sure


def _coverage(question: str, entries: Sequence[Entry]) -> tuple[float, list[Entry]]:
    """The share of the question's terms that the entries have, and the entries that have a term the ones before lack
    or that a link or bridge brought in."""
    wanted = set(read_question(question).terms)
    left, said = set(wanted), list[Entry]()
    for entry in entries:
        own = set(record_of(entry).terms.tolist())
        if not said or left & own or not own & wanted:
            said.append(entry)
        left -= own
    return (1 - len(left) / len(wanted) if wanted else 0.0), said
