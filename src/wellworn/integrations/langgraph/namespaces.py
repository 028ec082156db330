"""Namespaces as partitions: one namespace is one partition of the tenant, so that what is not asked for is not even loaded.

The labels are joined by full stops, which LangGraph forbids in a label; so names begin with a prefix's name exactly
where the namespaces begin with the prefix, once the full stop after it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph.store.base import InvalidNamespaceError, MatchCondition

from wellworn.core.values import MAX_NAME_CHARS, Layer, Partition
from wellworn.core.wellformed import well_formed

LAYER: Layer = "agent"
MARK = "langgraph:"
"""What the ids of these partitions begin with: no other agent's."""

Namespace = tuple[str, ...]


def partition_of(tenant: str, namespace: Sequence[str]) -> Partition:
    """Where the items of a namespace are."""
    name = _name(namespace)
    if len(name) > MAX_NAME_CHARS:
        most = MAX_NAME_CHARS - len(MARK)
        raise InvalidNamespaceError(
            f"Namespace {'.'.join(namespace)[:60]!r}… has {len(name) - len(MARK)} characters with the full stops "
            f"between its labels; use at most {most}"
        )
    if well_formed(name) != name:
        raise InvalidNamespaceError(f"Namespace {tuple(namespace)!r} holds half a character; decode it as UTF-8")
    return Partition(tenant=tenant, layer=LAYER, layer_id=name)


def namespace_of(partition: Partition) -> Namespace:
    name = partition.layer_id.removeprefix(MARK)
    return tuple(name.split(".")) if name else ()


def stem(labels: Iterable[str]) -> str:
    """What the names of all namespaces under these labels begin with, and some others'."""
    return _name(list(labels))


def is_under(namespace: Namespace, prefix: Sequence[str]) -> bool:
    return namespace[: len(prefix)] == tuple(prefix)


def literal_prefix(conditions: Iterable[MatchCondition]) -> list[str]:
    """Labels that every namespace these conditions allow begins with."""
    longest: list[str] = []
    for condition in conditions:
        labels = list(condition.path) if condition.match_type == "prefix" else []
        fixed = labels[: labels.index("*")] if "*" in labels else labels
        longest = max(longest, fixed, key=len)
    return longest


def matches(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins, or ends, like the path; `*` stands for any label."""
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type!r}; use prefix or suffix")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _name(labels: Sequence[str]) -> str:
    return MARK + ".".join(labels)
