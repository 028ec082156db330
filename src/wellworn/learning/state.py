"""Learned states and a tenant's settings as JSON text, every float exact.

    {"format": 1, "kind": "prior" | "person", "names": [feature, …], …the fields of the state}

A ranker's `theta` is a list of numbers, the first of them the weight on the base score. Its `precision` is the lower
half of the matrix, row by row, as little-endian float64 in base64. Evidence is [n, total, squares]. A state of an earlier
release lacks features: they begin as in a fresh ranker. One with features that are unknown, of another format, or
unreadable counts as none: the log rebuilds it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput
from wellworn.core.values import altered
from wellworn.learning.policy import Person, Prior
from wellworn.learning.ranker import Array, Places

FORMAT = 1
BUNDLED = {"dialogue": Path(__file__).with_name("dialogue.json")}
"""Priors that come with the package, by name; `python -m evals prior` makes them."""
RENAMED = {"echo": "repeated"}
"""Features that had another name in earlier releases."""
SETTINGS = ""
"""The profile under which a tenant's settings are kept: the empty one, because they hold for every profile."""

S = TypeVar("S", Prior, Person)


def places_of(old: Sequence[str], names: Sequence[str]) -> list[int] | None:
    """Where features of a log or state of any release are among those of now; None if one is not."""
    current = [RENAMED.get(name, name) for name in old]
    return [names.index(name) for name in current] if {*current} <= {*names} else None


def dumps_state(state: Prior | Person, names: Sequence[str]) -> str:
    """The state as text; `names` are the features that its weights belong to, in order."""
    head = {"format": FORMAT, "kind": type(state).__name__.lower(), "names": [*names]}
    return msgspec.json.encode(head | msgspec.to_builtins(state, enc_hook=_of_array)).decode()


def loads_state(of: type[S], text: str | None, names: Sequence[str]) -> S | None:
    """The state in this text; None when there is none of this kind for these features."""
    try:
        value = msgspec.json.decode(text or "")
        places = places_of(value["names"], names)
        if (value["format"], value["kind"]) != (FORMAT, of.__name__.lower()) or places is None:
            return None
        value.setdefault("guard", value)  # earlier releases wrote the guard's fields among the person's
        state = msgspec.convert(value, of, dec_hook=_to_array)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError):
        return None
    ranker = state.own if isinstance(state, Person) else state.ranker
    if ranker is None:
        return state
    if ranker.width != len(places) or len(ranker.precision) != len(places) + 1:
        return None
    return altered(state, **{"own" if of is Person else "ranker": ranker.widened(places, len(names))})


def _of_array(array: Any) -> Any:
    if array.ndim == 1:
        return array.tolist()
    return base64.b64encode(array[_lower(len(array))].astype("<f8").tobytes()).decode()


def _to_array(_: type, value: Any) -> Array:
    if isinstance(value, list):
        return np.array(value, dtype=np.float64)
    half = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f8")
    size = int(np.sqrt(2 * len(half)))  # n (n + 1) / 2 numbers
    array = np.zeros((size, size))
    array[_lower(size)] = half
    return array + np.tril(array, -1).T


@lru_cache(maxsize=8)
def _lower(size: int) -> tuple[Places, Places]:
    return np.tril_indices(size)


def read_prior(path: Path, names: Sequence[str]) -> Prior:
    """The prior in a file that an export was written to (the whole export, or its `prior` alone), or a bundled one."""
    path = BUNDLED.get(str(path), path)
    if path.exists() and not path.is_file():  # reading a named pipe or a device may never end
        raise InvalidInput("prior", f"{str(path)!r} is not a plain file", "give a file of exported learning")
    try:
        value = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidInput(
            "prior", f"{str(path)!r} cannot be read: {error}", "give a file of exported learning, or dialogue"
        ) from None
    if isinstance(value, dict) and isinstance(value.get("prior"), dict):
        value = value["prior"]
    prior = loads_state(Prior, msgspec.json.encode(value).decode(), names)
    if prior is None or prior.ranker is None:
        raise InvalidInput("prior", f"{str(path)!r} holds no prior for these features", "export one with this release")
    return prior


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """The settings of a tenant, for every profile. Written when they change, never by an outcome."""

    shares: bool = True
    """Whether its people learn from each other."""
    since: int = 0
    """Number of the last outcome before a reset: it and those before it teach no more."""
    starts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By profile, the state of the prior that labelled pairs taught."""
    format: int = FORMAT
    kind: str = "tenant"

    def start(self, profile: str, names: Sequence[str]) -> Prior | None:
        """The pretrained prior of a profile; None when there is none for these features."""
        return loads_state(Prior, msgspec.json.encode(self.starts.get(profile)).decode(), names)

    def with_start(self, profile: str, prior: Prior | None, names: Sequence[str]) -> Tenant:
        """With another pretrained prior of a profile, or without one."""
        others = {name: state for name, state in self.starts.items() if name != profile}
        start = {} if prior is None else {profile: msgspec.json.decode(dumps_state(prior, names))}
        return replace(self, starts=others | start)


def dumps_tenant(tenant: Tenant) -> str:
    return msgspec.json.encode(tenant).decode()


def loads_tenant(text: str | None) -> Tenant:
    """The settings in this text, the defaults when there is none. What cannot be read shares nothing."""
    if text is None:
        return Tenant()
    try:
        return msgspec.json.decode(text, type=Tenant)
    except msgspec.MsgspecError:
        return Tenant(shares=False)
