"""A LangGraph `BaseStore` on a memory: items under keys in namespaces, found by wellworn's own ranking.

Translates LangGraph's operations; what an item is and how it is kept is for `wellworn.integrations.items` to know. Needs the extra
`langchain`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.core.values import Partition, Scope
from wellworn.ingest.chunk import chunk
from wellworn.ingest.validate import MAX_QUERY_CHARS, checked_count
from wellworn.integrations import conditions
from wellworn.integrations.engine import engine_of
from wellworn.integrations.items.item import Item, Put, checked_ttl
from wellworn.integrations.items.value import encode
from wellworn.memory import Memory

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
    from langgraph.store.base import Item as StoreItem

    from wellworn.integrations.langgraph.namespaces import (
        LAYER,
        Namespace,
        is_under,
        literal_prefix,
        matches,
        namespace_of,
        partition_of,
        stem,
    )
    from wellworn.integrations.langgraph.sweeper import Sweeper
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornStore", "langchain") from error

SOURCE = "langgraph"
WHOLE = "$"
"""The path that stands for all of a value."""
DEFAULT_SWEEP_MINUTES = 5.0


class WellwornStore(BaseStore):
    """LangGraph's long-term memory in a wellworn file, one tenant to an object.

    `fields` are the paths of a value that a search looks at, `["$"]` for all of it; `put(index=…)` says otherwise for
    one item. `ttl` is LangGraph's `TTLConfig`. Expired items are never returned, swept or not. Safe to share between
    threads and event loops; the memory stays the caller's to close.
    """

    supports_ttl = True

    def __init__(
        self, memory: Memory, *, tenant: str, fields: Sequence[str] = (WHOLE,), ttl: TTLConfig | None = None
    ) -> None:
        super().__init__()
        engine = engine_of(memory, source=SOURCE)
        self._store = engine.store
        self._items = engine.items
        self._tenant = Scope(tenant=tenant).tenant
        self._fields = _checked_paths("fields", fields)
        self.ttl_config = ttl
        checked_ttl((ttl or {}).get("default_ttl"))
        self._sweeper = Sweeper(self.sweep_ttl)

    def scope(self, namespace: Namespace) -> Scope:
        """The scope under which `Memory` sees the items of a namespace, to export, count or forget them."""
        return Scope(tenant=self._tenant, agent=self._partition(namespace).layer_id)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations: reads see what was there before, then all writes happen in one transaction.

        Of several puts under one key the last counts. None is written when one is refused.
        """
        ops = list(ops)
        for op in ops:
            _check(op)
        puts = [self._put_of(op) for op in ops if isinstance(op, PutOp)]
        got = self._items.get((self._partition(op.namespace), op.key) for op in ops if isinstance(op, GetOp))
        read: list[Item] = []
        results = [self._answer(op, got, read) for op in ops]
        self._items.refresh(read)
        if puts:
            self._items.put(puts)
            self._items.drop_empty(put.partition for put in puts if put.value is None)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same on a worker thread, so that the event loop is never held up."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _answer(self, op: Op, got: Mapping[tuple[Partition, str], Item], read: list[Item]) -> Result:
        """The result of an operation that reads; items whose time to live begins anew are added to `read`."""
        if isinstance(op, GetOp):
            item = got.get((self._partition(op.namespace), op.key))
            read += [item] if item is not None and op.refresh_ttl else []
            return None if item is None else _store_item(item)
        if isinstance(op, SearchOp):
            found = self._search(op)
            read += [item for item, _ in found] if op.refresh_ttl else []
            return [_search_item(item, score) for item, score in found]
        return self._namespaces(op) if isinstance(op, ListNamespacesOp) else None

    # -- putting -------------------------------------------------------------------------------------------------

    def _put_of(self, op: PutOp) -> Put:
        texts = [] if op.value is None else _texts(op.value, self._paths(op.index))
        return Put(
            partition=self._partition(op.namespace),
            key=op.key,
            value=op.value,
            texts=texts,
            ttl_minutes=checked_ttl(op.ttl),
        )

    def _paths(self, index: object) -> Sequence[str]:
        if index is None:
            return self._fields
        return () if index is False else _checked_paths("index", index)

    def _partition(self, namespace: Namespace) -> Partition:
        return partition_of(self._tenant, namespace)

    # -- searching -----------------------------------------------------------------------------------------------

    def _search(self, op: SearchOp) -> list[tuple[Item, float | None]]:
        """With a query the best first, then what is not indexed; without one the newest first."""
        end = op.offset + op.limit
        partitions = self._under(op.namespace_prefix)
        query = (op.query or "").strip()[:MAX_QUERY_CHARS]

        def keep(item: Item) -> bool:
            return conditions.passes(item.value, op.filter)

        found: list[tuple[Item, float | None]] = []
        if query:
            found += self._items.search(query, partitions=partitions, want=end, keep=keep)
        if len(found) < end:
            rest = (
                item
                for item in self._items.newest(partitions=partitions)
                if not (query and item.indexed) and keep(item)
            )
            found += [(item, None) for item in islice(rest, end - len(found))]
        return found[op.offset :]

    def _under(self, prefix: Namespace) -> list[Partition]:
        partitions = self._store.partitions(self._tenant, layer=LAYER, prefix=stem(prefix))
        return [partition for partition in partitions if is_under(namespace_of(partition), prefix)]

    # -- namespaces ----------------------------------------------------------------------------------------------

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        wanted = op.match_conditions or ()
        partitions = self._store.partitions(self._tenant, layer=LAYER, prefix=stem(literal_prefix(wanted)))
        fitting = sorted(
            namespace
            for namespace in map(namespace_of, partitions)
            if all(matches(namespace, condition) for condition in wanted)
        )
        return list(islice(self._in_use(fitting, op.max_depth), op.offset, op.offset + op.limit))

    def _in_use(self, namespaces: Iterable[Namespace], max_depth: int | None) -> Iterator[Namespace]:
        """Those that hold an item that has not expired, cut at the depth, each once. They come in order."""
        last: Namespace | None = None
        for namespace in namespaces:
            cut = namespace[:max_depth]
            if cut != last and self._items.holds_any(self._partition(namespace)):
                last = cut
                yield cut

    # -- expiry --------------------------------------------------------------------------------------------------

    def sweep_ttl(self) -> int:
        """Remove the tenant's expired items for good; returns how many there were."""
        swept = self._items.sweep(self._under(()))
        self._items.drop_empty(swept)
        return len(swept)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Sweep on a thread, at this interval, the one of the `TTLConfig`, or every five minutes."""
        configured = (self.ttl_config or {}).get("sweep_interval_minutes")
        interval = checked_ttl(sweep_interval_minutes or configured or DEFAULT_SWEEP_MINUTES)
        self._sweeper.start(interval or DEFAULT_SWEEP_MINUTES)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End that thread; False when a sweep under way took longer than the time-out in seconds."""
        return self._sweeper.stop(timeout)


def _check(op: Op) -> None:
    """Refuse a bad operation before any other has run."""
    if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
        raise InvalidInput("op", f"a {type(op).__name__} is no operation of a store")
    validate_op_namespace(op)
    if isinstance(op, SearchOp | ListNamespacesOp):
        checked_count("limit", op.limit)
        checked_count("offset", op.offset)
    if isinstance(op, SearchOp) and op.filter is not None:
        conditions.check(op.filter)


def _checked_paths(name: str, paths: object) -> list[str]:
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
        raise InvalidInput(name, f"{paths!r:.60} is not a list of paths", "as in ['text', 'notes[*].body'], or ['$']")
    return list(paths)


def _texts(value: Mapping[str, Any], paths: Sequence[str]) -> list[list[str]]:
    """What a search finds the value by: a run of chunks for each text at each path."""
    try:
        return [
            [piece.text for piece in chunk(text)] for path in paths for text in get_text_at_path(value, path) if text
        ]
    except (TypeError, ValueError, RecursionError):
        encode(value)  # says what is wrong with it
        raise


def _store_item(item: Item) -> StoreItem:
    return StoreItem(
        value=item.value,
        key=item.key,
        namespace=namespace_of(item.partition),
        created_at=item.created_at,
        updated_at=item.updated_at,
    )


def _search_item(item: Item, score: float | None) -> SearchItem:
    return SearchItem(namespace_of(item.partition), item.key, item.value, item.created_at, item.updated_at, score=score)
