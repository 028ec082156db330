"""What becomes of each proposed memory: added, folded into one that is there, or put in the place of one.

Pure over values: existing memories that are similar come in, decisions go out. A model decides where there is one, in
one call for all; rules decide the rest, and everything that the model leaves open or gets wrong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded
from wellworn.core.fence import escape
from wellworn.core.values import Entry
from wellworn.ingest.terms import terms
from wellworn.models.port import Model, Request
from wellworn.reflection import Candidate
from wellworn.reflection.compare import Relation, compare, may_be_one
from wellworn.reflection.extract import Action, prompt, read_actions

BATCH = 12
"""New memories that are decided on in one call."""
MIN_KNOWN_SHARE = 0.8
"""Of a merged text's words that must come from the two texts it merges."""
MIN_KEPT_SHARE = 0.5
"""Of each text's words that must be left in the merged one."""

UpdateName = Literal["add", "same", "merge", "supersede", "correct"]


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A new memory with the existing ones most like it, and those found before it in the same session."""

    candidate: Candidate
    similar: Sequence[Entry]
    earlier: Sequence[Entry] = ()


@dataclass(frozen=True, kw_only=True)
class UpdateDecision:
    """What to do with a new memory; `olds` are the ones concerned, `text` is what a merge makes of both."""

    candidate: Candidate
    action: UpdateName
    olds: tuple[Entry, ...] = ()
    text: str = ""
    why: str = ""

    @property
    def old(self) -> Entry | None:
        return self.olds[0] if self.olds else None


_BY_RELATION: dict[Relation, tuple[UpdateName, str]] = {
    "same": ("same", "says the same"),
    "supersedes": ("supersede", "replaces it"),
    "adds": ("merge", "more detail"),
}
"""The strongest relation first, with what it leads to and why."""


def decide(proposals: Sequence[Proposal], model: Model | None, *, among_people: bool = False) -> list[UpdateDecision]:
    """One decision for each proposal, in order. What was said within the session is compared by rules.

    People who talk to each other tell of much that is new and ends nothing: then rules replace nothing.
    """
    decided: list[UpdateDecision] = []
    ended: set[str] = set()
    for one in proposals:
        holding = [old for old in (*one.similar, *one.earlier) if old.id not in ended]
        decided.append(_by_rules(one.candidate, holding, ends=not among_people))
        ended.update(old.id for old in decided[-1].olds if decided[-1].action == "supersede")
    if model is None:
        return decided
    # What is there already word for word, and what resembles nothing, needs no model.
    open_ = [n for n, proposal in enumerate(proposals) if proposal.similar and decided[n].action != "same"]
    for start in range(0, len(open_), BATCH):
        batch = open_[start : start + BATCH]
        try:
            actions = _asked(model, [proposals[n] for n in batch])
        except BudgetExceeded:
            break
        for place, action in actions.items():
            n = batch[place]
            wanted = _by_model(proposals[n], action)
            ends = not among_people
            decided[n] = decided[n] if wanted is None else _with_session(wanted, proposals[n], ends=ends)
    return decided


def _by_rules(new: Candidate, existing: Sequence[Entry], *, ends: bool) -> UpdateDecision:
    """The strongest relation to any of the existing memories decides; a change ends all that it contradicts."""
    relations = [
        (compare(old.text, new.summary, speaker=new.speaker or old.speaker), old)
        for old in existing
        if may_be_one(new.speaker, old.speaker)
    ]
    for kind, (action, why) in _BY_RELATION.items():
        olds = tuple(old for relation, old in relations if relation == kind)
        if olds and (ends or action != "supersede"):
            olds = olds if action == "supersede" else olds[:1]
            return UpdateDecision(candidate=new, action=action, olds=olds, text=new.summary, why=why)
    return UpdateDecision(candidate=new, action="add", why="new")


def _with_session(decision: UpdateDecision, proposal: Proposal, *, ends: bool) -> UpdateDecision:
    """A model's decision on what is stored, with what the same session has said and taken back."""
    within = _by_rules(proposal.candidate, proposal.earlier, ends=ends)
    if within.action != "supersede":
        return decision
    if decision.action == "supersede":
        return replace(decision, olds=(*decision.olds, *within.olds))
    return within if decision.action == "add" else decision


def _asked(model: Model, proposals: Sequence[Proposal]) -> dict[int, Action]:
    most = 120 * len(proposals) + 40
    request = Request.of(prompt("update"), _data(proposals), purpose="update", max_output_tokens=most)
    return read_actions(model.complete(request).text, [len(proposal.similar) for proposal in proposals])


def _data(proposals: Sequence[Proposal]) -> str:
    """The new memories and what each is like, as JSON: nothing in it can end the data."""
    shown = [
        {
            "number": number,
            "new_summary": escape(proposal.candidate.summary),
            "history_summaries": [
                {"index": index, "summary": escape(entry.text), "date": entry.at.date().isoformat()}
                for index, entry in enumerate(proposal.similar)
            ],
        }
        for number, proposal in enumerate(proposals)
    ]
    return json.dumps({"new_memories": shown}, ensure_ascii=False, indent=1)


def _by_model(proposal: Proposal, action: Action) -> UpdateDecision | None:
    """The model's wish as a decision, or None when it cannot be trusted."""
    candidate = proposal.candidate
    if action.name == "add":
        return UpdateDecision(candidate=candidate, action="add", why="model: new")
    olds = tuple(proposal.similar[index] for index in action.indices)
    if action.name == "merge":
        if not _says_both(action.text, olds[0].text, candidate.summary):
            return None
        return UpdateDecision(candidate=candidate, action="merge", olds=olds, text=action.text, why="model: same topic")
    why = "model: was true before" if action.name == "supersede" else "model: was wrong"
    return UpdateDecision(candidate=candidate, action=action.name, olds=olds, why=why)


def _says_both(merged: str, old: str, new: str) -> bool:
    """Whether a merged text is made of the two and has lost neither."""
    words, first, second = set(terms(merged)), set(terms(old)), set(terms(new))
    known = len(words & (first | second)) >= MIN_KNOWN_SHARE * len(words)
    kept = all(len(words & part) >= MIN_KEPT_SHARE * len(part) for part in (first, second))
    return bool(words) and known and kept
