"""Claims made with "is": Ada is a nurse, is 31, is vegan; her manager is Grace; the launch is on Monday."""

from __future__ import annotations

from collections.abc import Sequence

from wellworn.reflection.matching import attributes as at
from wellworn.reflection.matching import lexicon as lx
from wellworn.reflection.matching.clauses import Claim, Clause, Policy, covered, led, made, phrase, wed, when
from wellworn.reflection.matching.reading import Atom


def copular(clause: Clause) -> list[Claim]:
    main = clause.main
    if clause.helpers & {"from"}:
        return made(clause, "origin", [main], policy="lasting")
    if main.kind in ("date", "clock"):
        days = [main, *(atom for atom in clause.rest if atom.kind in ("date", "clock"))]
        return _attribute(clause, phrase((main, *clause.rest), 0)[0]) or when(clause, days)
    value, after = phrase((main, *clause.rest), 0)
    if not value:
        return []
    return _age(clause, value) or _owned_by(clause) or _attribute(clause, value) or _is_a(clause, value, after)


def _age(clause: Clause, value: Sequence[Atom]) -> list[Claim]:
    main, keys = clause.main, [atom.key for atom in value[1:]]
    alone = keys in ([], ["year", "old"], ["year"]) and not clause.helpers & lx.PREPOSITIONS
    if not main.key.isdecimal() or not alone or len(main.key) > 3 or _attribute_of(clause)[0]:
        return []
    covers = covered(clause, [main]) | {atom.start for atom in value}
    return made(clause, "age", [main], covers=covers)


def _owned(clause: Clause) -> bool:
    return any(atom.key == "'s" or atom.raw == "of" for atom in clause.subject)


def _is_a(clause: Clause, value: Sequence[Atom], after: int) -> list[Claim]:
    """Is a nurse at Acme, is vegan."""
    head = value[-1].key
    if head in at.DIETS:
        return made(clause, "diet", value)
    owned = any(atom.key == "'s" for atom in clause.rest[: max(after - 1, 0)])
    if head not in at.OCCUPATIONS or clause.helpers & {"the"} or owned or value[0].key in at.PRAISE:
        return []
    covers = covered(clause, value)
    found = made(clause, "job", value)
    employer = led(clause.rest[max(after - 1, 0) :], ("at", "for"))
    return found + made(clause, "employer", employer, covers=covers | {atom.start for atom in employer[-1:]})


def _attribute_of(clause: Clause) -> tuple[tuple[str, ...], str, Policy]:
    """The attribute that the subject names (Ada's manager, the rent of the flat), its head and its policy.

    Empty when it names none.
    """
    told = [atom for atom in clause.subject if atom.tells and atom.key not in at.PASSING]
    if not told:
        return (), "", "open"
    head = next((atom.key for atom in reversed(told) if not atom.role), told[-1].key)
    about = (*(atom.key for atom in told if atom.key != head), head)
    owned = _owned(clause) or len(about) > 1
    if head in at.LASTING or (owned and {"nativ", "blood"} & set(about)):
        return about, head, "lasting"
    if at.CHOSEN & set(about) or (head in at.SINGLE and owned):
        return about, head, "single"
    return (about, head, "open") if head == "name" else ((), "", "open")


def _attribute(clause: Clause, value: Sequence[Atom]) -> list[Claim]:
    """Ada's manager is Grace; the deadline of the project is Friday; Ben's dog is named Rex."""
    if clause.main.key == "name" and len(value) > 1:
        return made(clause, "attribute", value[1:], about=(*clause.about, "name"), policy="open")
    if clause.main.key == "name" or clause.helpers & {"to"}:
        return []
    about, head, policy = _attribute_of(clause)
    if not about or not _suits(head, clause, value):
        return []
    return _partnered(clause, about, value) or _named_attribute(clause, about, policy, value)


def _suits(head: str, clause: Clause, value: Sequence[Atom]) -> bool:
    """Whether a value is of the attribute's sort: a boss is a name, a rent a number; "on holiday" is neither."""
    kinds = {atom.kind for atom in value}
    if clause.helpers & lx.PREPOSITIONS and not kinds & {"date", "clock", "name"}:
        return False
    if head in at.PERSONS:
        return value[-1].kind == "name" and not clause.helpers & lx.PREPOSITIONS
    if head in at.AMOUNTS:
        return bool(kinds & {"number", "date", "clock", "phone"})
    return not value[0].raw.endswith("ing") or value[0].kind == "name"


def _named_attribute(clause: Clause, about: tuple[str, ...], policy: Policy, value: Sequence[Atom]) -> list[Claim]:
    if about[-1] in at.LASTING:
        slot = "birthday" if about[-1] == "birthday" else "attribute"
        about = about[:-1] if slot == "birthday" else about
        return made(clause, slot, value, about=about, policy="lasting")
    if about[-1] == "age":
        return made(clause, "age", value[:1], about=about[:-1]) if value[0].key.isdecimal() else []
    kinds = {atom.kind for atom in value}
    if "phone" in kinds:
        about = (*(key for key in about if key not in ("number", "phone")), "phone")
    if kinds & {"date", "clock"} and about[-1] in at.DATED:
        return made(clause, "when", value, about=about, policy=policy)
    if value[-1].kind == "word" and policy == "single" and not at.CHOSEN & set(about) and not kinds & {"number"}:
        policy = "cued"  # as often an opinion as a value: her role is important
    return made(clause, "attribute", value, about=about, policy=policy)


def _partnered(clause: Clause, about: tuple[str, ...], value: Sequence[Atom]) -> list[Claim]:
    """Ada's husband is Tom: she is married to Tom."""
    if about[-1] not in at.PARTNERS or value[-1].kind != "name" or len(about) < 2:
        return []
    return wed(clause, value, about[:-1], covered(clause, value))


def _owned_by(clause: Clause) -> list[Claim]:
    """Grace Hopper is Ada's manager: Ada's manager is Grace Hopper."""
    rest = (clause.main, *clause.rest)
    if len(rest) < 3 or rest[1].key != "'s" or clause.main.kind != "name" or _owned(clause):
        return []
    words, _ = phrase(rest, 2)
    if not words or not any(atom.kind == "name" for atom in clause.subject):
        return []
    value = tuple(atom for atom in clause.subject if atom.tells)
    about = (clause.main.key, *(atom.key for atom in words))
    covers = frozenset(atom.start for atom in (*value, clause.main, *words))
    if about[-1] in at.PARTNERS:
        return wed(clause, value, about[:-1], covers)
    single = about[-1] in at.SINGLE or set(about) & at.CHOSEN
    return made(clause, "attribute", value, about=about, policy="single" if single else "open", covers=covers)
