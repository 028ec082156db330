"""Where entries live, and what a call may see of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from wellworn.core.errors import ScopeError
from wellworn.core.types.words import LAYERS, Layer

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


@dataclass(frozen=True, kw_only=True, order=True)
class Partition:
    """Where entries live: one id at one layer of one tenant. No reading or writing reaches past the partitions named."""

    tenant: str
    layer: Layer
    layer_id: str


@dataclass(frozen=True, kw_only=True)
class Scope:
    """A tenant plus at most one id per layer: what a call may see and where it writes."""

    tenant: str
    agent: str | None = None
    user: str | None = None
    session: str | None = None
    project: str | None = None
    team: str | None = None
    org: str | None = None
    company: str | None = None

    def __post_init__(self) -> None:
        _checked_name("scope.tenant", self.tenant)
        for layer in LAYERS:
            value = getattr(self, layer)
            if value is not None:
                _checked_name(f"scope.{layer}", value)

    def partitions(self) -> list[Partition]:
        """Every partition this scope sees, most specific first; empty when the scope names no layer."""
        return [*_partitions_of(self)]

    def home(self, layer: str | None = None) -> Partition:
        """The partition that is written to: the layer asked for, else user, else the most specific one."""
        return _home_of(self, layer)


@lru_cache(maxsize=1024)
def _partitions_of(scope: Scope) -> tuple[Partition, ...]:
    return tuple(
        Partition(tenant=scope.tenant, layer=layer, layer_id=value)
        for layer in LAYERS
        if (value := getattr(scope, layer)) is not None
    )


@lru_cache(maxsize=1024)
def _home_of(scope: Scope, layer: str | None) -> Partition:
    partitions: dict[str, Partition] = {partition.layer: partition for partition in _partitions_of(scope)}
    if not partitions:
        raise ScopeError("scope", f"names no layer of tenant {scope.tenant!r}", "add one, as in user='ada'")
    if layer is None:
        return partitions.get("user") or next(iter(partitions.values()))
    if layer not in partitions:
        raise ScopeError("layer", f"{layer!r} has no id in this scope", f"the scope names {', '.join(partitions)}")
    return partitions[layer]
