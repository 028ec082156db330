"""Whether two memories cannot both hold now, and if so, whether the world changed or someone was wrong.

Looks for a slot with another value, a statement turned into its opposite, something held that was given up, and, where
the speaker says so, any single detail that differs. Without a clash there is no verdict: unsure means both are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from wellworn.reflection.matching import attributes as at
from wellworn.reflection.matching import lexicon as lx
from wellworn.reflection.matching.clauses import Claim, Policy
from wellworn.reflection.matching.cues import Cues, Said, leaves
from wellworn.reflection.matching.reading import Atom
from wellworn.reflection.matching.slots import Text

Verdict = Literal["changed", "corrected"]
_HOLDING = lx.word_set("have drive ride use own play wear attend subscrib rent")
_GIVING_UP = lx.word_set("sell cancel drop ditch sold lose swap replac cancell return")
_MOST_LOST = 3
"""Details of an old memory that may go with it when its slot has another value."""
_MOST_DIFFERENT = 2


def clash(new: Text, old: Text, said: Said) -> tuple[Verdict, str] | None:
    """The verdict and the reason, or None when both may hold."""
    return _slot_clash(new, old, said) or _turned(new, old, said) or _given_up(new, old) or _detail(new, old, said)


def _slot_clash(new: Text, old: Text, said: Said) -> tuple[Verdict, str] | None:
    for mine in new.claims:
        for theirs in old.claims:
            if not _same_slot(mine, theirs) or mine.past or theirs.past:
                continue
            if not _spares(new, old, theirs) or (mine.slot == "count" and _rest(new) != _rest(old)):
                continue
            if mine.slot == "parting" and mine.keys[-1] not in old.keys:
                continue
            found = _values_clash(mine, theirs, said)
            if found is not None:
                return found, f"value {found}: {_label(theirs)}"
    return None


def _rest(text: Text) -> frozenset[str]:
    """The words that no claim accounts for."""
    return frozenset(atom.key for atom in text.reading.telling if atom.start not in text.covered)


def _label(claim: Claim) -> str:
    return " ".join((claim.slot, *claim.about[1:])) if claim.slot in ("attribute", "count", "measure") else claim.slot


def _same_slot(mine: Claim, theirs: Claim) -> bool:
    if mine.about != theirs.about:
        return False
    if mine.slot == "work":
        return theirs.slot in ("job", "employer", "work")
    if mine.slot == "parting":
        return theirs.slot in ("relationship", "spouse")
    return mine.slot == theirs.slot


def _spares(new: Text, old: Text, lost: Claim) -> bool:
    """Whether little else goes when the old memory does: no other claim than of work, few other details."""
    kept = {claim.item for claim in new.claims}
    related = (
        {lost.slot, "job", "employer"} if lost.slot in ("job", "employer") else {lost.slot, "relationship", "spouse"}
    )
    others = [claim for claim in old.claims if claim.slot not in related and claim.item not in kept]
    covered = old.covered
    details = {
        atom.key for atom in old.reading.telling if atom.start not in covered and atom not in lost.value
    } - new.keys
    return not others and len(details) <= _MOST_LOST


def _values_clash(mine: Claim, theirs: Claim, said: Said) -> Verdict | None:
    if mine.slot != theirs.slot:  # retired from a job, parted from a partner
        return "changed" if not theirs.negated and not mine.negated else None
    if set(mine.keys) == set(theirs.keys):
        return _reversed(mine, theirs, said)
    if mine.negated or theirs.negated or not _differ(mine, theirs):
        return None
    cues = said.about(mine.keys, theirs.keys)
    policy = _policy(mine, theirs, cues)
    if mine.slot == "when" and policy == "cued" and cues.doubt and not cues.change:
        return "corrected"
    return _judged(policy, cues, counting=mine.slot == "count")


def _reversed(mine: Claim, theirs: Claim, said: Said) -> Verdict | None:
    """The same value, held and not held: left Acme, works at Acme."""
    if mine.negated == theirs.negated:
        return None
    cues = said.about(mine.keys, ())
    if cues.wrong or (mine.negated and cues.never) or (cues.doubt and not cues.change):
        return "corrected"
    return "changed" if mine.negated or cues.change else None


def _differ(mine: Claim, theirs: Claim) -> bool:
    """Whether two values exclude each other, as far as their form tells."""
    if mine.slot == "when":
        return any(_days_differ(one, other) for one in mine.value for other in theirs.value)
    numbers = [[atom.key for atom in claim.value if atom.kind == "number"] for claim in (mine, theirs)]
    if all(numbers):
        units = [{atom.key for atom in claim.value if atom.kind != "number"} for claim in (mine, theirs)]
        return numbers[0] != numbers[1] and (units[0] == units[1] or not all(units) or mine.slot == "attribute")
    one, other = ({word for key in claim.keys for word in key.split()} - lx.TITLES for claim in (mine, theirs))
    return not one & other


def _days_differ(one: Atom, other: Atom) -> bool:
    """Whether two days or times of the same form differ: 3 May and 4 May, not Monday and 4 May."""
    return one.kind == other.kind and one.key != other.key and _form(one.key) == _form(other.key)


def _form(key: str) -> str:
    return "".join("0" if c.isdecimal() else "a" if c.isalpha() else c for c in key).replace("a", "")


def _policy(mine: Claim, theirs: Claim, cues: Cues) -> Policy:
    """The stricter policy of the two; values of different width or sort need a word that says "changed"."""
    policies: tuple[Policy, ...] = ("lasting", "open", "cued", "single")
    policy = min(mine.policy, theirs.policy, key=policies.index)
    if policy != "single":
        return policy
    if mine.slot == "age" and float(mine.keys[0]) < float(theirs.keys[0]):
        return "lasting"
    heads = {mine.keys[-1], theirs.keys[-1]}
    mixed = mine.heads[-1].kind != theirs.heads[-1].kind
    if mine.slot == "home" and (mixed or len(heads & at.WIDE_PLACES) == 1):
        return "single" if cues.moved else "open"
    if mine.slot == "job" and (heads & at.CASUAL or any(heads <= group for group in at.KINDRED)):
        return "cued"
    if mine.slot == "household":
        return "single" if "alon" in heads else "cued"
    return "cued" if mixed else "single"


def _judged(policy: Policy, cues: Cues, *, counting: bool = False) -> Verdict | None:
    """What another value means, by the slot's policy and by what was said."""
    if cues.wrong or (cues.denied and not cues.change):
        return "corrected"
    if cues.doubt and not cues.change and policy in ("single", "lasting"):
        return "corrected"
    if policy == "lasting" or (cues.more and not counting and not cues.left):
        return None
    if policy == "single" or cues.left or (policy == "cued" and cues.news):
        return "changed"
    return None


def _turned(new: Text, old: Text, said: Said) -> tuple[Verdict, str] | None:
    """Likes olives, does not like olives. The negative one may be the plainer: "drinks no coffee" ends "drinks coffee
    every morning", but "no coffee in the evening" does not end "drinks coffee"."""
    if new.reading.subject != old.reading.subject or not new.reading.subject:
        return None
    negatives = [any(atom.negated for atom in text.reading.telling) for text in (new, old)]
    if negatives[0] == negatives[1]:
        return None
    negative, positive = (new, old) if negatives[0] else (old, new)
    plain = _bare(negative)
    if not plain <= _bare(positive) | _subject(positive) or _restricted(new) or _restricted(old):
        return None
    if not _predicates_match(new, old):
        return None
    cues = said.about(plain - _subject(new), ())
    before = old.predicate
    if before is not None and before.past and not (cues.wrong or cues.never):
        return None  # what was, was; that it is not so now contradicts nothing
    if cues.wrong or (negative is new and cues.never):
        return "corrected", "denied"
    if cues.doubt and not cues.change and not new.reading.ended:
        return "corrected", "denied"
    if old.reading.ended and not cues.change:
        return None
    return "changed", "no longer" if negative is new else "again"


def _bare(text: Text) -> frozenset[str]:
    return text.keys - {"have"}


def _subject(text: Text) -> frozenset[str]:
    return frozenset(text.reading.subject)


def _restricted(text: Text) -> bool:
    restricting = lx.RESTRICTING - {"never", "not", "can", "before"}
    return any(atom.kind in ("word", "function") and restricting & {atom.key, atom.raw} for atom in text.reading.atoms)


def _predicates_match(one: Text, other: Text) -> bool:
    """Whether both say the same thing of their subject: the same verb, or words that both texts have."""
    first, second = one.predicate, other.predicate
    if first is None or second is None:
        return False
    return first.key == second.key or {first.key, second.key} <= one.keys & other.keys


def _given_up(new: Text, old: Text) -> tuple[Verdict, str] | None:
    """Sold the Honda that is driven, cancelled a membership that was had, switched from what was used."""
    verb, held = new.predicate, old.predicate
    if verb is None or held is None or new.reading.subject != old.reading.subject or held.key not in _HOLDING:
        return None
    if held.past or held.negated:
        return None
    what = frozenset(atom.key for atom in old.reading.telling if not atom.role) - _subject(old) - {held.key}
    if verb.key == held.key and not verb.negated and leaves(new.reading, what):
        return "changed", "instead"
    if verb.key in _GIVING_UP and verb.past:
        given = frozenset(atom.key for atom in new.reading.telling if not atom.role) - _subject(new) - {verb.key}
        return ("changed", "given up") if what and what == given and _definite(new, verb) else None
    left = frozenset(atom.key for atom in new.reading.telling if atom.role == "from")
    if verb.key in ("switch", "migrat", "chang", "move") and verb.past and what and what <= left:
        return "changed", "switched"
    return None


def _definite(text: Text, verb: Atom) -> bool:
    """Whether the verb's object is a known one: her car, the Honda; not a painting."""
    after = text.reading.atoms[text.reading.atoms.index(verb) + 1 :][:1]
    return bool(after) and (after[0].kind == "name" or after[0].raw in ("her", "his", "their", "the", "its", "our"))


def _detail(new: Text, old: Text, said: Said) -> tuple[Verdict, str] | None:
    """The same sentence but for one detail, and the speaker says that it changed or was wrong."""
    if not _same_frame(new, old):
        return None
    mine, theirs = _differing(new, old), _differing(old, new)
    if not _comparable(mine, theirs):
        return None
    ours, before = [atom.key for atom in mine], [atom.key for atom in theirs]
    cues = said.about(ours, before)
    opposite = any(frozenset({one, other}) in lx.OPPOSITES for one in ours for other in before)
    policy: Policy = "open"
    if opposite and new.predicate is not None and new.predicate.key == "prefer":
        policy = "single"
    elif {atom.kind for atom in mine} <= {"date", "clock"} and len(mine) == len(theirs):
        policy = "cued"
    verdict = _judged(policy, cues)
    return None if verdict is None else (verdict, f"detail {verdict}")


def _differing(one: Text, other: Text) -> list[Atom]:
    """What only one of them says; what it says "not" of is not said: "hazelnuts, not peanuts"."""
    known = {atom.key for atom in other.reading.telling if not atom.negated or not _denied_in(other, one, atom.key)}
    return [atom for atom in one.reading.telling if atom.key not in known and not _denied_in(one, other, atom.key)]


def _denied_in(text: Text, other: Text, key: str) -> bool:
    """Whether a text denies what the other one says."""
    negated = all(atom.negated for atom in text.reading.telling if atom.key == key)
    return negated and any(atom.key == key and not atom.negated for atom in other.reading.telling)


def _same_frame(new: Text, old: Text) -> bool:
    """The same subject, verb, tense and polarity, and nothing that takes the assertion back."""
    one, other = new.predicate, old.predicate
    return (
        bool(new.reading.subject)
        and new.reading.subject == old.reading.subject
        and one is not None
        and other is not None
        and one.past == other.past
        and one.negated == other.negated
        and (one.key == other.key or _is_value(new, one, old, other))
    )


def _is_value(new: Text, one: Atom, old: Text, other: Atom) -> bool:
    """Whether the verb is "be" on both sides, so that what follows is the detail itself."""
    verbs = [text.reading.atoms[text.reading.verb].raw for text in (new, old)]
    return all(verb in lx.BE for verb in verbs) and one.kind == other.kind and one.role == other.role


def _comparable(mine: Sequence[Atom], theirs: Sequence[Atom]) -> bool:
    if not 0 < len(mine) <= _MOST_DIFFERENT or not 0 < len(theirs) <= _MOST_DIFFERENT:
        return False
    return mine[-1].kind == theirs[-1].kind or {mine[-1].kind, theirs[-1].kind} == {"name", "word"}
