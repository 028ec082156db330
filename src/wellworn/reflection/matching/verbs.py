"""Claims by verb: lives in, moved to, works at, has two, prefers, left, turned, was born."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile

from wellworn.reflection.matching import attributes as at
from wellworn.reflection.matching import lexicon as lx
from wellworn.reflection.matching.clauses import MARRIED, Claim, Clause, covered, led, made, phrase, when
from wellworn.reflection.matching.reading import Atom, key_of

_MANAGER = key_of("manager")


def _live(clause: Clause) -> list[Claim]:
    first = clause.rest[0] if clause.rest else None
    if first is None:
        return []
    if first.raw in ("in", "at"):
        return made(clause, "home", phrase(clause.rest, 1)[0])
    if first.key == "alon":
        return made(clause, "household", [first])
    if first.raw == "with":
        return made(clause, "household", phrase(clause.rest, 1)[0], policy="cued")
    return []


def _move(clause: Clause) -> list[Claim]:
    """Moved to Lisbon; moved from Berlin to Lisbon. What is moved to a date is an event."""
    if not clause.main.past or not clause.rest:
        return []
    where = led(clause.rest, "to")
    days = [atom for atom in where if atom.kind in ("date", "clock")]
    if days and clause.copular:
        return when(clause, days)
    where = [*takewhile(lambda atom: atom.kind == "name", where)]
    if clause.rest[0].raw not in ("to", "from") or not where or where[-1].kind != "name":
        return []
    if led(clause.rest, "as") or {"job", "team", "role", "compani"} & {atom.key for atom in clause.rest}:
        return []  # to another employer
    return made(clause, "home", where, past=False)


def _work(clause: Clause) -> list[Claim]:
    found: list[Claim] = []
    if clause.rest and clause.rest[0].raw in ("at", "for", "as"):
        found += made(clause, "employer", led(clause.rest, ("at", "for")))
        found += made(clause, "job", led(clause.rest, "as"))
    return [
        claim
        for claim in found
        if {atom.kind for atom in claim.value} <= {"name", "word", "sign"} and claim.keys[-1] not in at.NO_EMPLOYERS
    ]


def _join(clause: Clause) -> list[Claim]:
    value = phrase(clause.rest, 0)[0]
    if not clause.main.past or not value or value[-1].kind != "name":
        return []
    return made(clause, "employer", value, policy="cued", past=False)


def _begin(clause: Clause) -> list[Claim]:
    value = led(clause.rest[:1] and clause.rest, "at")
    if not clause.main.past or not value or value[-1].kind != "name":
        return []
    return made(clause, "employer", value, past=False)


def _become(clause: Clause) -> list[Claim]:
    value = phrase(clause.rest, 0)[0]
    known = bool(value) and value[-1].key in at.OCCUPATIONS
    return made(clause, "job", value, past=False) if known and clause.main.past else []


def _leave(clause: Clause) -> list[Claim]:
    """Left Acme; quit her job at Acme."""
    value = phrase(clause.rest, 0)[0] if clause.main.key == "leav" else led(clause.rest, ("at", "with"))
    if not value or value[-1].kind != "name" or not (clause.main.past or clause.main.negated):
        return []
    return made(clause, "employer", value, negated=True, past=False)


def _have(clause: Clause) -> list[Claim]:
    """Has two cats. The thing counted belongs to whom it is about, so that a cat is no dog."""
    lead = clause.rest[0] if clause.rest else None
    value = phrase(clause.rest, 0)[0]
    if lead is None or not value:
        return []
    job = _new_job(clause)
    if job:
        return job
    if value[0].kind == "number" and len(value) > 1:
        counted, number = value[1:], value[:1]
    elif lead.raw in ("a", "an"):
        counted, number = value, [_one(lead)]
    else:
        return []
    if counted[-1].kind != "word":
        return []
    about = (*clause.about, "have", counted[-1].key)
    covers = covered(clause, number) | {counted[-1].start}
    return made(clause, "count", number, about=about, covers=covers, policy="single" if len(counted) == 1 else "open")


def _new_job(clause: Clause) -> list[Claim]:
    """Has a new job at Acme, found a new job as a nurse."""
    what, after = phrase(clause.rest, 0)
    if [atom.raw for atom in what][-2:] not in (["new", "job"], ["new", "position"]):
        return []
    found = made(clause, "employer", led(clause.rest[after:], ("at", "with", "for")), past=False)
    found += made(clause, "job", led(clause.rest[after:], "as"), past=False)
    return [claim for claim in found if claim.slot == "job" or claim.value[-1].kind == "name"]


def _report(clause: Clause) -> list[Claim]:
    """Reports to Grace: she is the manager."""
    if not clause.rest or clause.rest[0].raw != "to":
        return []
    value = phrase(clause.rest, 1)[0]
    if not value or any(atom.kind != "name" for atom in value):
        return []
    return made(clause, "attribute", value, about=(*clause.about, _MANAGER))


def _one(lead: Atom) -> Atom:
    return Atom(key="1", kind="number", raw=lead.raw, start=lead.start, end=lead.end)


def _measure(clause: Clause) -> list[Claim]:
    value = [atom for atom in phrase(clause.rest, 0)[0] if atom.kind in ("number", "word", "sign")]
    if not any(atom.kind == "number" for atom in value):
        return []
    about = (*clause.about, clause.main.key)
    return made(clause, "measure", value, about=about)


def _turn(clause: Clause) -> list[Claim]:
    value = [atom for atom in clause.rest[:1] if atom.kind == "number" and atom.key.isdecimal()]
    return made(clause, "age", value, past=False) if clause.main.past else []


def _prefer(clause: Clause) -> list[Claim]:
    """Prefers tea to coffee: about the pair, the value is the one put first."""
    chosen: list[Atom] = []
    for place, atom in enumerate(clause.rest):
        if atom.kind == "function" and atom.raw in ("over", "to", "than") and chosen:
            other = phrase(clause.rest, place + 1)[0]
            if not other:
                return []
            pair = tuple(sorted((chosen[-1].key, other[-1].key)))
            about = (*clause.about, "prefer", *pair)
            covers = covered(clause, chosen[-1:]) | {other[-1].start}
            return made(clause, "preference", chosen[-1:], about=about, covers=covers)
        if atom.tells:
            chosen.append(atom)
        elif atom.kind == "mark":
            break
    return []


def _major(clause: Clause) -> list[Claim]:
    return made(clause, "attribute", led(clause.rest, "in"), about=(*clause.about, clause.main.key))


def _retire(clause: Clause) -> list[Claim]:
    return made(clause, "work", [clause.main], past=False) if clause.main.past or clause.copular else []


def _part(clause: Clause) -> list[Claim]:
    """Broke up with Tom."""
    return made(clause, "parting", phrase(clause.rest, 0)[0], past=False)


def _status(clause: Clause) -> list[Claim]:
    """Is married to Tom, got divorced, is dating Tom. A partner who is no spouse stays a detail."""
    after = clause.rest[0].raw if clause.rest else ""
    if clause.helpers & {"was", "were"} or after in lx.PREPOSITIONS - {"to", "since", "for", "from"}:
        return []
    if after == "from" and (len(clause.rest) < 2 or clause.rest[1].kind != "name"):
        return []
    found = made(clause, "relationship", [clause.main], past=False)
    spouse = led(clause.rest[:1] and clause.rest, "to") if clause.main.key == MARRIED else []
    return found + made(clause, "spouse", spouse, past=False)


def _come(clause: Clause) -> list[Claim]:
    return made(clause, "origin", led(clause.rest[:1] and clause.rest, "from"), policy="lasting", past=False)


def _born(clause: Clause) -> list[Claim]:
    found: list[Claim] = []
    for slot, preposition in (("birthday", "on"), ("birthplace", "in")):
        value = led(clause.rest, preposition)
        dated = any(atom.kind in ("date", "number") for atom in value)
        found += made(clause, "birthday" if dated else slot, value, policy="lasting", past=False)
    return found


BY_VERB: Mapping[str, Callable[[Clause], list[Claim]]] = {
    "live": _live,
    "move": _move,
    "work": _work,
    "join": _join,
    "begin": _begin,
    "becom": _become,
    "leav": _leave,
    "job": _leave,
    "have": _have,
    "turn": _turn,
    "prefer": _prefer,
    "major": _major,
    "ex": _part,
    "come": _come,
    "born": _born,
    "report": _report,
    "get": _new_job,
    "find": _new_job,
    **dict.fromkeys(at.MEASURES, _measure),
    **dict.fromkeys(at.IDLE, _retire),
    **dict.fromkeys(at.STATUSES, _status),
}
