"""Learned states as JSON text, every float exact.

    {"format": 1, "kind": "prior" | "person", "names": [feature, …], …the fields of the state}

A ranker is {"theta": [F+1 numbers], "precision": text, "steps": n}, theta[0] being the weight on the base score;
evidence is [n, total, squares]. Numbers are written so that reading them gives the same bits. The precision is
symmetric: its lower half, row by row, as little-endian float64 in base64. (Written as numbers it took a fifth of the
time of an outcome; a list of all (F+1)² of them is still read. The text is put together by hand for the same reason:
it is written twice with every outcome, and an encoder takes twice as long.)
A state of another format, made with other features, or unreadable, counts as none: the log rebuilds it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from wellworn.core.errors import InvalidInput
from wellworn.learning.exact import Array
from wellworn.learning.example import Places
from wellworn.learning.guard import Evidence, Guard, earned
from wellworn.learning.policy import Person, Prior
from wellworn.learning.ranker import Ranker

FORMAT = 1
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_FLAG = {True: "true", False: "false"}


def dumps_prior(prior: Prior, names: Sequence[str]) -> str:
    """The prior as text; `names` are the features its weights belong to, in order."""
    ranker = "null" if prior.ranker is None else _ranker(prior.ranker)
    return (
        f'{_head("prior", tuple(names))}"ranker":{ranker},"gain":{_evidence(prior.gain)},'
        f'"users":{prior.users},"shares":{_FLAG[prior.shares]}}}'
    )


def dumps_person(person: Person, names: Sequence[str]) -> str:
    """The person as text; `names` are the features the weights belong to, in order."""
    guard = person.guard
    changed = "null" if person.changed_at is None else f'"{person.changed_at.isoformat()}"'
    return (
        f'{_head("person", tuple(names))}"own":{_ranker(person.own)},"agree":{_evidence(guard.agree)},'
        f'"gain":{_evidence(guard.gain)},"beats":{_FLAG[guard.beats]},"trusted":{_FLAG[guard.trusted]},'
        f'"lost":{_FLAG[guard.lost]},"shortfall":{_numbers(guard.shortfall)},"placed":{_numbers(guard.placed)},'
        f'"positional":{_FLAG[guard.positional]},"outcomes":{person.outcomes},"absorbed":{_FLAG[person.absorbed]},'
        f'"lent":{_evidence(person.lent)},"barren":{person.barren},"residual":{person.residual},'
        f'"level":"{person.level}","changed_at":{changed}}}'
    )


def loads_prior(text: str | None, names: Sequence[str]) -> Prior:
    """The prior in this text; a fresh one when there is none for these features.

    A tenant that opted out stays so whatever became of the rest; when even that cannot be read, nothing is shared.
    """
    value = _read(text)
    shares = value is not None and value.get("shares", True) is True
    try:
        fields = _fitting(value, "prior", names)
        return Prior(
            ranker=None if fields["ranker"] is None else _to_ranker(fields["ranker"], len(names)),
            gain=_to_evidence(fields["gain"]),
            users=int(fields["users"]),
            shares=shares,
        )
    except (KeyError, TypeError, ValueError):
        return Prior(shares=shares)


def loads_person(text: str | None, names: Sequence[str]) -> Person | None:
    """The person in this text; None when there is none for these features."""
    try:
        value = _fitting(_read(text), "person", names)
        changed = value["changed_at"]
        if value["level"] not in ("base", "prior", "person"):
            return None
        return Person(
            own=_to_ranker(value["own"], len(names)),
            guard=_to_guard(value),
            outcomes=int(value["outcomes"]),
            absorbed=bool(value["absorbed"]),
            lent=_to_evidence(value["lent"]),
            barren=int(value["barren"]),
            residual=int(value.get("residual", 0)),
            level=value["level"],
            changed_at=None if changed is None else datetime.fromisoformat(changed),
        )
    except (KeyError, TypeError, ValueError):
        return None


@lru_cache(maxsize=16)
def _head(kind: str, names: tuple[str, ...]) -> str:
    """How a text begins, up to the fields of the state."""
    return _ENCODER.encode({"format": FORMAT, "kind": kind, "names": names})[:-1] + ","


def _ranker(ranker: Ranker) -> str:
    half = ranker.precision.take(_lower_places(len(ranker.theta)))
    text = base64.b64encode(half.astype("<f8", copy=False).tobytes()).decode("ascii")
    return f'{{"theta":{_numbers(ranker.theta.tolist())},"precision":"{text}","steps":{ranker.steps}}}'


def _evidence(evidence: Evidence) -> str:
    return _numbers([evidence.n, evidence.total, evidence.squares])


def _numbers(value: float | list[float]) -> str:
    """A number or a list of them. Python writes a float as JSON does, unless it is not finite (`nan`, `inf`)."""
    text = repr(value).replace(" ", "")
    return _ENCODER.encode(value) if "n" in text else text


def _read(text: str | None) -> dict[str, Any] | None:
    """What the text says, of whatever format: empty when there is no text, None when it is not readable."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _fitting(value: dict[str, Any] | None, kind: str, names: Sequence[str]) -> dict[str, Any]:
    """The same when it is of this kind and these features, else nothing."""
    wanted = {"format": FORMAT, "kind": kind, "names": list(names)}
    return value if value and all(value.get(key) == what for key, what in wanted.items()) else {}


def _to_ranker(value: dict[str, Any], width: int) -> Ranker:
    theta = np.array(value["theta"], dtype=np.float64).reshape(width + 1)
    return Ranker(theta=theta, precision=_to_precision(value["precision"], width + 1), steps=int(value["steps"]))


def _to_precision(value: str | list[float], size: int) -> Array:
    if not isinstance(value, str):
        return np.array(value, dtype=np.float64).reshape(size, size)
    half = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f8")
    rows, columns = _lower(size)
    precision = np.empty((size, size))
    precision[rows, columns] = precision[columns, rows] = half.reshape(len(rows))
    return precision


@lru_cache(maxsize=4)
def _lower_places(size: int) -> Places:
    """The same as places in the matrix written row by row."""
    rows, columns = _lower(size)
    return rows * size + columns


@lru_cache(maxsize=4)
def _lower(size: int) -> tuple[Places, Places]:
    """Rows and columns of the lower half of a matrix, row by row."""
    return np.tril_indices(size)


def _to_evidence(value: list[float]) -> Evidence:
    n, total, squares = value
    return Evidence(n=float(n), total=float(total), squares=float(squares))


def _to_guard(value: dict[str, Any]) -> Guard:
    """States of the first release do not say whether they are trusted: it followed from the evidence."""
    agree = _to_evidence(value["agree"])
    return Guard(
        agree=agree,
        gain=_to_evidence(value["gain"]),
        beats=bool(value["beats"]),
        trusted=bool(value.get("trusted", earned(agree))),
        lost=bool(value.get("lost", False)),
        shortfall=float(value.get("shortfall", 0.0)),
        placed=float(value.get("placed", 0.0)),
        positional=bool(value.get("positional", False)),
    )


def read_prior(path: Path, names: Sequence[str]) -> Prior:
    """The prior in a file that an export was written to: the whole export, or its `prior` alone."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(
            "prior", f"{str(path)!r} cannot be read: {error}", "give a file of exported learning"
        ) from None
    if isinstance(value, dict) and isinstance(value.get("prior"), dict):
        value = value["prior"]
    prior = loads_prior(json.dumps(value), names)
    if prior.ranker is None:
        raise InvalidInput("prior", f"{str(path)!r} holds no prior for these features", "export one with this release")
    return prior
