"""Where things live: layers, the partitions that hold entries, and the scope of a call.

Frozen values without I/O. `core.values` offers the same names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, get_args

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import ScopeError
from wellworn.core.lazy import cached_property

Layer = Literal["agent", "user", "session", "project", "team", "org", "company"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
"""Most specific first."""
SHARED_LAYERS: tuple[Layer, ...] = LAYERS[3:]
"""Those of which a scope may name several ids."""
MAX_NAME_CHARS = 256


def _checked_name(field_name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ScopeError(field_name, f"must be text, not {type(value).__name__}")
    if not value.strip():
        raise ScopeError(field_name, "is empty", "leave it out or give an id")
    if len(value) > MAX_NAME_CHARS:
        raise ScopeError(field_name, f"has {len(value)} characters", f"use at most {MAX_NAME_CHARS}")
    if "\x00" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise ScopeError(field_name, "holds a NUL or a lone surrogate", "use printable text")
    return value


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class Partition:
    """Where entries live: one id at one layer of one tenant. No reading or writing reaches past the partitions named."""

    tenant: str
    layer: Layer
    layer_id: str

    @property
    def scope(self) -> Scope:
        """The scope that sees this partition and nothing else."""
        return Scope(tenant=self.tenant, **{self.layer: self.layer_id})


@dataclass(frozen=True, kw_only=True)
class Scope:
    """A tenant plus ids per layer: what a call may see and where it writes.

    A layer that people share may name several ids, as in `Scope(org="acme", team=["core", "web"])`: all of them are read, and a question
    of the organisation reaches its teams. What is written goes to a layer with one id.
    """

    tenant: str = "default"
    agent: str | None = None
    user: str | None = None
    session: str | None = None
    project: str | Sequence[str] | None = None
    team: str | Sequence[str] | None = None
    org: str | Sequence[str] | None = None
    company: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        _checked_name("scope.tenant", self.tenant)
        for layer in LAYERS:
            value = getattr(self, layer)
            if isinstance(value, list | tuple) and layer in SHARED_LAYERS:
                if not value:
                    raise ScopeError(f"scope.{layer}", "is an empty list", "leave it out or give ids")
                ids = tuple(dict.fromkeys(_checked_name(f"scope.{layer}", one) for one in value))
                object.__setattr__(self, layer, ids if len(ids) > 1 else ids[0])
            elif value is not None:
                _checked_name(f"scope.{layer}", value)

    def ids(self, layer: str) -> tuple[str, ...]:
        """The ids that this scope names on a layer."""
        value = getattr(self, layer)
        return () if value is None else (value,) if isinstance(value, str) else tuple(value)

    def partitions(self) -> list[Partition]:
        """Every partition this scope sees, most specific first; empty when the scope names no layer."""
        return [*self._partitions]

    def within(self, wider: Scope) -> bool:
        """Whether this scope names nothing that the wider one does not name."""
        return self.tenant == wider.tenant and all(set(self.ids(layer)) <= set(wider.ids(layer)) for layer in LAYERS)

    def home(self, layer: str | None = None) -> Partition:
        """The partition that is written to: the layer asked for, else user, else the most specific with one id."""
        if layer is not None and not isinstance(layer, str):
            raise ScopeError("layer", f"must be text, not {type(layer).__name__}")
        seen = self._partitions
        partitions: dict[str, Partition] = {one.layer: one for one in seen if len(self.ids(one.layer)) == 1}
        if seen and not partitions:
            raise ScopeError(
                "scope",
                f"names several ids on each layer ({', '.join({one.layer: 0 for one in seen})})",
                "name one id on one layer at least",
            )
        if not partitions:
            raise ScopeError("scope", f"names no layer of tenant {self.tenant!r}", "name one, such as a user")
        if layer is None:
            return partitions.get("user") or next(iter(partitions.values()))
        if layer not in partitions:
            problem = (
                f"{layer!r} has several ids in this scope"
                if layer in LAYERS and self.ids(layer)
                else f"{layer!r} has no id in this scope"
            )
            raise ScopeError("layer", problem, f"layers with one id are {', '.join(partitions)}")
        return partitions[layer]

    @cached_property
    def _partitions(self) -> tuple[Partition, ...]:
        return tuple(
            Partition(tenant=self.tenant, layer=layer, layer_id=value) for layer in LAYERS for value in self.ids(layer)
        )
