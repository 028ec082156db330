"""Whether one memory says what another says: all of it, or all of it and more.

Facts are compared as sets: claims where the text makes any that are known, else words. Sets alone would take a dog
allergy for a dog and Ann's gift to Bob for Bob's to Ann, so heads of phrases, prepositions and the order of names
must fit as well.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise

from wellworn.reflection.matching import lexicon as lx
from wellworn.reflection.matching.reading import Atom, Reading, key_of
from wellworn.reflection.matching.slots import Text

_FREE_ORDER = 3
"""Up to this many words beside the subject say the same in any order: a severe peanut allergy."""


def agree(one: Text, other: Text) -> bool:
    """Whether two texts say the same and no more."""
    return (
        _items(one) == _items(other)
        and one.reading.ended == other.reading.ended
        and ((_all_claimed(one) and _all_claimed(other)) or _arranged(one, other))
        and not _warmth_differs(one.reading, other.reading)
    )


def _arranged(one: Text, other: Text) -> bool:
    """Whether equal words stand for equal facts: the same subject, prepositions and order of names."""
    return (
        _same_person(one.reading, other.reading)
        and _roles_fit(one, other)
        and _roles_fit(other, one)
        and _names_fit(one.reading, other.reading)
        and (_layout(one) == _layout(other) or (_is_short(one) and _is_short(other)))
    )


def _is_short(text: Text) -> bool:
    """Whether so few words are left beside subject and claims, and no two numbers, that order tells nothing."""
    left = [atom for atom in text.reading.atoms[text.reading.verb :] if atom.tells and atom.start not in text.covered]
    return len(left) <= _FREE_ORDER and sum(atom.kind == "number" for atom in left) < 2


def _layout(text: Text) -> tuple[object, object]:
    """Which words belong together: phrases in their order, but for those a preposition leads and for members of a list.

    Equal words in another layout are another fact: two apples and three pears, three apples and two pears.
    """
    led: list[tuple[str, ...]] = []
    plain: list[list[tuple[str, ...]]] = []
    phrase: list[Atom] = []
    listed = False
    predicate, covered = text.predicate, text.covered
    for atom in (*text.reading.atoms[: text.reading.front], *text.reading.atoms[text.reading.verb :]):
        if not atom.tells or atom.start in covered:
            listed = atom.raw in ("and", "or", ",") or (listed and atom.kind == "function")
            continue
        phrase.append(atom)
        if not (atom.closes or atom is predicate):
            continue
        _place(led, plain, phrase, listed=listed)
        phrase, listed = [], False
    return sorted(led), [group if _in_turn(group) else sorted(group) for group in plain]


def _in_turn(group: list[tuple[str, ...]]) -> bool:
    """Whether numbers stand between other members of a list, so that its order tells: Tom, 5, and Max, 7."""
    numbers = [len(keys) == 1 and keys[0][:1].isdecimal() for keys in group]
    return any(numbers) and not all(numbers)


def _place(led: list[tuple[str, ...]], plain: list[list[tuple[str, ...]]], phrase: list[Atom], *, listed: bool) -> None:
    keys = tuple(atom.key for atom in phrase)
    if phrase[0].role or phrase[0].kind in ("date", "clock"):
        led.append(keys)
    elif listed and plain:
        plain[-1].append(keys)
    else:
        plain.append([keys])


def holds(full: Text, part: Text) -> bool:
    """Whether the full text says all that the part says, and more."""
    wanted, found = _items(part), _items(full)
    if not wanted < found or full.reading.ended != part.reading.ended or {"past", "or"} & (found - wanted):
        return False
    if any(atom.negated for atom in part.reading.telling):
        return False  # what does not hold with a detail may well hold without it
    if _limits(full.reading, part.reading) or not _roles_fit(full, part) or not _heads_fit(full, part):
        return False
    if _all_claimed(part):
        return True
    return (
        _same_person(full.reading, part.reading)
        and _in_order(full, part)
        and not _narrows(full, part)
        and not _warmth_differs(full.reading, part.reading)
    )


def holds_apart(one: Text, other: Text) -> bool:
    """Whether two texts may be said in one breath: neither negates, limits or ends anything."""
    return (
        one.reading.subject == other.reading.subject
        and not (one.reading.ended or other.reading.ended)
        and not any(atom.negated for text in (one, other) for atom in text.reading.telling)
        and not _limits(one.reading, other.reading)
        and not _limits(other.reading, one.reading)
    )


def _items(text: Text) -> frozenset[Hashable]:
    """What a text says, as a set: its claims, and the words that no claim accounts for."""
    covered = text.covered
    words = {(atom.key, atom.negated) for atom in text.reading.telling if atom.start not in covered}
    said: set[Hashable] = {claim.item for claim in text.claims}
    verb = text.predicate
    if verb is not None and verb.past and verb.start not in covered:
        said.add("past")
    if any(atom.raw == "or" for atom in text.reading.atoms) and not any(negated for _, negated in words):
        said.add("or")
    return frozenset(said | words)


def _all_claimed(text: Text) -> bool:
    return bool(text.claims) and all(atom.start in text.covered for atom in text.reading.telling)


def _same_person(one: Reading, other: Reading) -> bool:
    if not one.subject or not other.subject:
        return False
    return one.subject == other.subject or (
        sorted(one.subject) == sorted(other.subject) and _joined(one) and _joined(other)
    )


def _joined(reading: Reading) -> bool:
    """Whether the subject is a list: Ada and Ben."""
    subject = reading.atoms[reading.front : reading.verb]
    return any(atom.raw == "and" for atom in subject) and not any(atom.kind == "number" for atom in subject)


def _roles_fit(one: Text, other: Text) -> bool:
    """Whether no word has a preposition that makes it another fact: from Rome and to Rome, in the box and under it."""
    roles: dict[str, set[str]] = {}
    for atom in other.reading.telling:
        roles.setdefault(atom.key, set()).add(atom.role)
    return all(
        any(_role_fits(atom, role) for role in roles[atom.key])
        for atom in one.reading.telling
        if atom.key in roles and atom.start not in one.covered
    )


def _role_fits(atom: Atom, role: str) -> bool:
    if atom.role == role or frozenset({atom.role, role}) in lx.ALIKE_ROLES:
        return True
    if atom.kind in ("date", "clock"):
        return {atom.role, role} <= {"", "on", "in", "at"}
    return "" in (atom.role, role) and {atom.role, role} <= lx.PLAIN_ROLES


def _names_fit(one: Reading, other: Reading) -> bool:
    """Whether shared names come in the same order, unless their prepositions or an "and" make order meaningless."""
    firsts, seconds = ([atom for atom in reading.telling if atom.kind == "name"] for reading in (one, other))
    if [atom.key for atom in firsts] == [atom.key for atom in seconds]:
        return True
    if sorted(atom.key for atom in firsts) != sorted(atom.key for atom in seconds):
        return True  # acronyms spelled out beside the word, and the like
    roles = [{atom.key: atom.role for atom in atoms} for atoms in (firsts, seconds)]
    moved = [a.key for a, b in zip(firsts, seconds, strict=True) if a.key != b.key]
    led = all(roles[0][key] == roles[1][key] for key in moved) and any(roles[0][key] for key in moved)
    return led or all(_listed(reading, moved) for reading in (one, other)) or "'s" in {a.key for a in one.atoms}


def _listed(reading: Reading, names: list[str]) -> bool:
    """Whether nothing but commas and "and" stands between the names."""
    places = [place for place, atom in enumerate(reading.atoms) if atom.key in names]
    between = reading.atoms[places[0] : places[-1]] if places else ()
    return all(atom.key in names or atom.raw in ("and", "or", ",", "the") for atom in between)


def _warmth_differs(one: Reading, other: Reading) -> bool:
    """Whether one loves and the other likes a person or place named: that is not the same."""
    return _warmth(one) != _warmth(other)


def _warmth(reading: Reading) -> str:
    for first, second in pairwise(reading.telling):
        if first.key == "like" and second.kind == "name" and not second.role:
            return "love" if first.raw.startswith(("lov", "ador")) else "like"
    return ""


def _limits(full: Reading, part: Reading) -> bool:
    """Whether the longer text takes part of it back: only, rarely, if, wants to."""
    have = {atom.raw for atom in part.atoms} | {atom.key for atom in part.atoms}
    extra = [atom for atom in full.atoms if atom.key not in have and atom.raw != "before"]
    keys = {key_of(atom.raw) if atom.kind == "name" else atom.key for atom in extra}
    return not lx.RESTRICTING.isdisjoint(keys | {atom.raw for atom in extra if atom.kind in ("word", "function")})


def _heads_fit(full: Text, part: Text) -> bool:
    """Whether each word that ends a phrase in the part ends one in the full text: a dog is no dog allergy."""
    closing = {atom.key for atom in full.reading.telling if atom.closes}
    return all(atom.key in closing for atom in part.reading.telling if atom.closes and atom.start not in part.covered)


def _narrows(full: Text, part: Text) -> bool:
    """Whether a general habit gets a narrower object: likes tea, likes green tea."""
    verb = part.predicate
    if verb is None or verb.key not in lx.GENERAL:
        return False
    telling = full.reading.telling
    return any(
        first.key not in part.keys and second.key in part.keys and not first.closes
        for first, second in pairwise(telling)
        if first.start > verb.start or first.key not in part.keys
    )


def _in_order(full: Text, part: Text) -> bool:
    """Whether both begin with the same verb, and each sentence of the part is within one of the full text's.

    Words count in their order; sentences do too, so one pass over both is enough.
    """
    first, second = full.predicate, part.predicate
    if first is None or second is None or first.key != second.key or full.action != part.action:
        return False
    ahead = iter(_sentences(full.reading))
    return all(any(_within(sentence, wanted) for sentence in ahead) for wanted in _sentences(part.reading))


def _sentences(reading: Reading) -> list[list[Atom]]:
    found: list[list[Atom]] = [[]]
    for atom in reading.atoms:
        if atom.tells:
            found[-1].append(atom)
        elif atom.kind == "mark" and atom.raw in ".!?;" and found[-1]:
            found.append([])
    return [sentence for sentence in found if sentence]


def _within(sentence: list[Atom], wanted: list[Atom]) -> bool:
    ahead = iter(sentence)
    return all(any(atom.key == one.key for atom in ahead) for one in wanted)
