"""Duplicates within one extraction, folded before anything is compared with what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from wellworn.reflection.candidate import Candidate
from wellworn.reflection.compare import may_be_one, relate
from wellworn.reflection.matching.reading import Reading, read


@dataclass(frozen=True, kw_only=True)
class _Kept:
    candidate: Candidate
    reading: Reading
    keys: frozenset[str]


def group_same(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without repeats, in the order of their first mention.

    Those that say the same, or one more than the other, become one: with the turns of both, the fullest text and the
    highest confidence. What contradicts stays apart, for the comparison with the store to judge in turn.
    """
    kept = [_kept(candidate) for candidate in candidates]
    while True:
        folded = _folded(kept)
        if len(folded) == len(kept):
            return [one.candidate for one in folded]
        kept = folded  # a fuller text may say what a third one says


def _folded(candidates: Iterable[_Kept]) -> list[_Kept]:
    kept: list[_Kept] = []
    for one in candidates:
        for place, before in enumerate(kept):
            text = _said_by_both(one, before)
            if text is not None:
                kept[place] = _kept(_united(one.candidate, before.candidate, text))
                break
        else:
            kept.append(one)
    return kept


def _kept(candidate: Candidate) -> _Kept:
    reading = read(candidate.summary, speaker=candidate.speaker)
    keys = frozenset(atom.key for atom in reading.telling) or frozenset(reading.near)
    return _Kept(candidate=candidate, reading=reading, keys=keys)


def _said_by_both(one: _Kept, before: _Kept) -> str | None:
    """The text that says both, or None when they are two memories."""
    new, old = one.candidate, before.candidate
    if not may_be_one(new.speaker, old.speaker) or not (one.keys & before.keys or new.summary == old.summary):
        return None
    relation = relate(one.reading, before.reading, said="", speaker=new.speaker or old.speaker)
    if relation.kind == "refines":
        return relation.merged
    return old.summary if relation.kind == "same" else None


def _united(new: Candidate, old: Candidate, text: str) -> Candidate:
    """One candidate for both; what the text does not say comes from the earlier one, else from the later."""
    first, second = (new, old) if text == new.summary else (old, new)
    return replace(
        first,
        summary=text,
        turns=tuple(sorted({*new.turns, *old.turns})),
        title=first.title or second.title,
        confidence=max(new.confidence, old.confidence),
        speaker=first.speaker or second.speaker,
        valid_from=first.valid_from or second.valid_from,
        valid_to=first.valid_to or second.valid_to,
    )
