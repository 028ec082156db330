"""What becomes of each proposed memory: added, folded into one that is there, or put in the place of one.

Pure over values: existing memories that are similar come in, decisions go out. A model decides where there is one; what it
leaves open is added, as long as rules do not find that it is there already. Else rules decide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Literal

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import BudgetExceeded
from wellworn.core.fence import escape
from wellworn.core.lazy import regex
from wellworn.core.values import Entry
from wellworn.ingest.terms import terms
from wellworn.models.port import Model, Request
from wellworn.reflection import Candidate
from wellworn.reflection.compare import Relation, compare, may_be_one
from wellworn.reflection.extract import Action, ActionName, invention, prompt, read_actions, without_dates

BATCH = 12
"""New memories that are decided on in one call."""
MIN_KNOWN_SHARE = 0.8
"""Of the words of a merge or an update that must come from the two texts it is made of."""
MIN_KEPT_SHARE = 0.5
"""Of the new text's words that must be left in it; of the old one's too in a merge."""

UpdateName = Literal["add", "same", "merge", "supersede", "correct"]


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A new memory with the existing ones most like it, and those found before it in the same session."""

    candidate: Candidate
    similar: Sequence[Entry]
    earlier: Sequence[Entry] = ()


@dataclass(frozen=True, kw_only=True)
class UpdateDecision:
    """What to do with a new memory; `olds` are the ones concerned, `text` is what becomes of both, if it is another."""

    candidate: Candidate
    action: UpdateName
    olds: tuple[Entry, ...] = ()
    text: str = ""
    why: str = ""

    @property
    def draws_on_old(self) -> bool:
        """Whether what is written also tells what the old memory told."""
        return bool(self.olds and self.text) and (self.action == "merge" or self.text != self.candidate.summary)


_BY_RELATION: dict[Relation, tuple[UpdateName, str]] = {
    "same": ("same", "says the same"),
    "supersedes": ("supersede", "replaces it"),
    "adds": ("merge", "more detail"),
}
"""The strongest relation first, with what it leads to and why."""
_BY_ACTION: dict[ActionName, tuple[UpdateName, str]] = {
    "add": ("add", "new"),
    "merge": ("merge", "same topic"),
    "update": ("supersede", "was true before"),
    "supersede": ("supersede", "was true before"),
    "correct": ("correct", "was wrong"),
}
"""What a model's wish leads to, and why."""
_TAKES_BACK = regex(
    r"(?:[^\W\d_][\w .'’-]{0,60}: )?\W*(?:no|nope|nah|wait|sorry|oops|actually|scratch|correction|nein|non)\b", re.I
)


def decide(proposals: Sequence[Proposal], model: Model | None, *, among_people: bool = False) -> list[UpdateDecision]:
    """One decision for each proposal, in order.

    People who talk to each other tell of much that is new and ends nothing: then rules replace nothing. Nor do they where a
    model decides: there they only leave out what is there already, or add to it.
    """
    decided: list[UpdateDecision] = []
    ended: set[str] = set()
    for one in proposals:
        holding = [old for old in (*one.similar, *one.earlier) if old.id not in ended]
        decided.append(_by_rules(one, holding, ends=model is None and not among_people))
        ended.update(old.id for old in decided[-1].olds if decided[-1].action == "supersede")
    if model is None:
        return decided
    # What is there already word for word, and what resembles nothing, needs no model.
    open_ = [n for n, one in enumerate(proposals) if one.similar and decided[n].action != "same"]
    for start in range(0, len(open_), BATCH):
        batch = open_[start : start + BATCH]
        shown = {old.id: old for n in batch for old in proposals[n].similar}
        try:
            actions = _asked(model, [proposals[n].candidate for n in batch], [*shown.values()])
        except BudgetExceeded:
            break
        for place, action in actions.items():
            n = batch[place]
            decided[n] = _by_model(proposals[n].candidate, action, [*shown.values()]) or decided[n]
    return decided


def _by_rules(one: Proposal, existing: Sequence[Entry], *, ends: bool) -> UpdateDecision:
    """The strongest relation to any of the existing memories decides; a change ends all that it contradicts.

    What is said in one turn holds together ("I swim on Mondays. On Fridays I climb."), unless it is taken back there.
    """
    new = one.candidate
    kept = () if _TAKES_BACK.match(new.summary) else [old.id for old in one.earlier if {*old.turn_refs} & {*new.turns}]
    relations = [
        (compare(old.text, new.summary, speaker=new.speaker or old.speaker), old)
        for old in existing
        if may_be_one(new.speaker, old.speaker)
    ]
    for kind, (action, why) in _BY_RELATION.items():
        olds = tuple(old for relation, old in relations if relation == kind)
        olds = tuple(old for old in olds if old.id not in kept) if action == "supersede" else olds
        if olds and (ends or action != "supersede"):
            olds = olds if action == "supersede" else olds[:1]
            return UpdateDecision(candidate=new, action=action, olds=olds, text=new.summary, why=why)
    return UpdateDecision(candidate=new, action="add", why="new")


def _asked(model: Model, new: Sequence[Candidate], existing: Sequence[Entry]) -> dict[int, Action]:
    most = 120 * len(new) + 40
    request = Request.of(prompt("update"), _data(new, existing), purpose="update", max_output_tokens=most)
    return read_actions(model.complete(request).text, [len(existing)] * len(new))


def _data(new: Sequence[Candidate], existing: Sequence[Entry]) -> str:
    """The memories as JSON, one on each line: nothing in it can end the data."""
    old = [
        {"index": index, "date": entry.at.date().isoformat(), "summary": escape(entry.text)}
        for index, entry in enumerate(existing)
    ]
    said = [{"number": number, "summary": escape(one.summary)} for number, one in enumerate(new)]
    lines = (",\n".join(json.dumps(one, ensure_ascii=False) for one in part) for part in (old, said))
    return '{{"existing_memories": [\n{}\n], "new_memories": [\n{}\n]}}'.format(*lines)


def _by_model(new: Candidate, action: Action, existing: Sequence[Entry]) -> UpdateDecision | None:
    """The model's wish as a decision, or None when it cannot be trusted."""
    olds = tuple(existing[index] for index in action.indices)
    if action.text and not _is_made_of(action.text, olds[0], new):
        return None
    if action.name == "merge" and not _keeps(action.text, olds[0].text):
        return None
    name, why = _BY_ACTION[action.name]
    return UpdateDecision(candidate=new, action=name, olds=olds, text=action.text, why=f"model: {why}")


def _is_made_of(text: str, old: Entry, new: Candidate) -> bool:
    """Whether a text has the words of the two, with no other name or number, and has not lost the new one."""
    words, told = set(terms(text)), (old.text, new.summary)
    known = len(words & {term for one in told for term in terms(one)}) >= MIN_KNOWN_SHARE * len(words)
    about = (old.speaker or "", new.speaker or "")
    invented = invention(without_dates(text), told, [old], about)
    return bool(words) and known and _keeps(text, new.summary) and invented is None


def _keeps(text: str, part: str) -> bool:
    kept = set(terms(part))
    return len(kept & set(terms(text))) >= MIN_KEPT_SHARE * len(kept)
