"""A LangGraph `BaseStore` on a memory: items under keys in namespaces, found by wellworn's own ranking.

Translates LangGraph's operations; `items` knows how an item is stored. One namespace is one partition of the tenant,
so that what is not asked for is not even loaded. Needs the extra `langchain`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.values import MAX_NAME_CHARS, Hit, Layer, Partition, Scope
from wellworn.core.wellformed import well_formed
from wellworn.ingest.validate import MAX_QUERY_CHARS, checked_count
from wellworn.integrations import checked_memory
from wellworn.integrations.items import Items, PutItem, StoredItem, check_filter, encoded, matches
from wellworn.memory import Memory

try:
    from langgraph.store import base
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornStore", "langchain") from error

Namespace = tuple[str, ...]

_LAYER: Layer = "agent"
_MARK = "langgraph:"
"""What the ids of these partitions begin with, so that no other agent's id is one of them."""


class WellwornStore(base.BaseStore):
    """LangGraph's long-term memory in a wellworn file, for one tenant.

    `fields` are the paths of a value that a search looks at, `["$"]` for all of it; `put(index=…)` overrides them for
    one item. Safe to share between threads and event loops. Closing the memory stays the caller's task.
    """

    def __init__(self, memory: Memory, *, tenant: str, fields: Sequence[str] = ("$",)) -> None:
        super().__init__()
        engine = checked_memory(memory).engine
        self._store = engine.store
        self._items = Items(engine, source="langgraph")
        self._tenant = Scope(tenant=tenant).tenant
        self._fields = _checked_paths("fields", fields)

    def scope(self, namespace: Namespace) -> Scope:
        """Return the scope under which `Memory` sees the items of a namespace, to export, count or forget them."""
        return Scope(tenant=self._tenant, agent=self._partition(namespace).layer_id)

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Run operations: reads see what was there before, then all writes happen in one transaction.

        Of several puts under one key the last counts. If one is refused, nothing is written.
        """
        ops = list(ops)
        for op in ops:
            _check(op)
        puts = [self._put_of(op) for op in ops if isinstance(op, base.PutOp)]
        got = self._items.get((self._partition(op.namespace), op.key) for op in ops if isinstance(op, base.GetOp))
        results = [self._answer(op, got) for op in ops]
        if puts:
            self._items.put(puts)
            self._items.drop_empty(put.partition for put in puts if put.value is None)
        return results

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Run operations on a thread, so that the event loop is never held up."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _answer(self, op: base.Op, got: Mapping[tuple[Partition, str], StoredItem]) -> base.Result:
        if isinstance(op, base.GetOp):
            item = got.get((self._partition(op.namespace), op.key))
            return None if item is None else base.Item(**_fields_of(item))
        if isinstance(op, base.SearchOp):
            return [base.SearchItem(**_fields_of(item), score=score) for item, score in self._search(op)]
        return self._namespaces(op) if isinstance(op, base.ListNamespacesOp) else None

    def _put_of(self, op: base.PutOp) -> PutItem:
        paths = self._fields if op.index is None else () if op.index is False else _checked_paths("index", op.index)
        return PutItem(
            partition=self._partition(op.namespace),
            key=op.key,
            value=op.value,
            text="" if op.value is None else _text(op.value, paths),
        )

    def _search(self, op: base.SearchOp) -> list[tuple[StoredItem, float | None]]:
        """With a query, the best come first, then what is not indexed; without one, the newest come first."""
        end = op.offset + op.limit
        partitions = self._under(op.namespace_prefix)
        query = (op.query or "").strip()[:MAX_QUERY_CHARS]

        def keep(item: StoredItem) -> bool:
            return matches(item.value, op.filter or {})

        def accepted(hit: Hit) -> tuple[StoredItem, float | None] | None:
            item = self._items.item(hit.entry)
            return (item, hit.score) if item is not None and keep(item) else None

        found = self._items.search(query, partitions=partitions, want=end, accept=accepted) if query else []
        if len(found) < end:
            newest = self._items.newest(partitions=partitions)
            rest = (item for item in newest if not (query and item.indexed) and keep(item))
            found += [(item, None) for item in islice(rest, end - len(found))]
        return found[op.offset :]

    # -- namespaces ----------------------------------------------------------------------------------------------

    def _partition(self, namespace: Namespace) -> Partition:
        name = _MARK + ".".join(namespace)  # LangGraph forbids a full stop in a label
        if len(name) > MAX_NAME_CHARS:
            raise base.InvalidNamespaceError(
                f"Namespace {'.'.join(namespace)[:60]!r}… has {len(name) - len(_MARK)} characters with the full stops "
                f"between its labels; use at most {MAX_NAME_CHARS - len(_MARK)}"
            )
        if well_formed(name) != name:
            raise base.InvalidNamespaceError(
                f"Namespace {tuple(namespace)!r} holds half a character; decode it as UTF-8"
            )
        return Partition(tenant=self._tenant, layer=_LAYER, layer_id=name)

    def _under(self, prefix: Sequence[str]) -> list[Partition]:
        """Return the partitions of all namespaces that begin with these labels."""
        stem = _MARK + ".".join(prefix)
        partitions = self._store.partitions(self._tenant, layer=_LAYER, prefix=stem)
        return [one for one in partitions if _namespace(one)[: len(prefix)] == tuple(prefix)]

    def _namespaces(self, op: base.ListNamespacesOp) -> list[Namespace]:
        """List the namespaces that hold an item, cut at the depth, each once, in order."""
        wanted = op.match_conditions or ()
        found: dict[Namespace, None] = {}
        for partition in sorted(self._under(()), key=_namespace):
            if not all(_fits(_namespace(partition), condition) for condition in wanted):
                continue
            cut = _namespace(partition)[: op.max_depth]
            if cut not in found and not self._items.is_empty(partition):
                found[cut] = None
                if len(found) == op.offset + op.limit:
                    break
        return [*found][op.offset : op.offset + op.limit]


def _check(op: base.Op) -> None:
    """Refuse a bad operation before any other has run."""
    if not isinstance(op, base.GetOp | base.SearchOp | base.PutOp | base.ListNamespacesOp):
        raise InvalidInput("op", f"a {type(op).__name__} is no operation of a store")
    base.validate_op_namespace(op)
    if isinstance(op, base.SearchOp | base.ListNamespacesOp):
        checked_count("limit", op.limit)
        checked_count("offset", op.offset)
    if isinstance(op, base.SearchOp) and op.filter is not None:
        check_filter(op.filter)
    if isinstance(op, base.PutOp) and op.ttl is not None:
        raise InvalidInput("ttl", "items of this store do not expire", "delete them, or put with ttl=None")


def _checked_paths(name: str, paths: object) -> list[str]:
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
        raise InvalidInput(name, f"{paths!r:.60} is not a list of paths", "as in ['text', 'notes[*].body'], or ['$']")
    return list(paths)


def _text(value: Mapping[str, Any], paths: Sequence[str]) -> str:
    """Return the text at these paths, one below the other."""
    try:
        return "\n".join(text for path in paths for text in base.get_text_at_path(value, path) if text)
    except (TypeError, ValueError, RecursionError):
        encoded(value)  # says what is wrong with it
        raise


def _namespace(partition: Partition) -> Namespace:
    name = partition.layer_id.removeprefix(_MARK)
    return tuple(name.split(".")) if name else ()


def _fits(namespace: Namespace, condition: base.MatchCondition) -> bool:
    """Whether a namespace begins or ends like the path; `*` stands for any label."""
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type!r}; use prefix or suffix")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _fields_of(item: StoredItem) -> dict[str, Any]:
    return {
        "namespace": _namespace(item.partition),
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }
