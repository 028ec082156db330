"""The vectors of large partitions in Qdrant, which names the rows that are probably nearest: the extra `qdrant`.

A tenant has a collection of its own, and each point names its partition, which every call filters by. Points are numbered
like the rows of the store, and have a vector and no text. The store stays the truth: a partition is compared with it when it
is loaded, and what is forgotten is deleted here before the forgetting is acknowledged. While Qdrant fails, vectors are
multiplied in this process, and the partition is compared again afterwards.
"""

from __future__ import annotations

import hashlib
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from wellworn.core.errors import MissingExtra
from wellworn.core.values import Partition
from wellworn.models.port import Matrix
from wellworn.search.mapped import anonymous_name
from wellworn.search.partition import PartitionIndex
from wellworn.store.port import Delta

LEAST_ROWS = 200_000
"""Rows of a partition from which its vectors are kept there: fewer are multiplied in 15 ms."""
TIMEOUT_S = 5
REST_S = 30.0
_PAGE = 1000
_log = logging.getLogger("wellworn.search")
T = TypeVar("T")


class QdrantVectors:
    """Vectors of one store in a Qdrant: a URL, a client, or a folder for its local mode."""

    def __init__(self, client: Any, *, store: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`store` names the store: several may use one Qdrant."""
        try:
            from qdrant_client import QdrantClient, models
        except ImportError:
            raise MissingExtra("vectors in Qdrant", "qdrant") from None
        self._owned = isinstance(client, str)
        if isinstance(client, str):
            client = QdrantClient(**({"url": client, "timeout": TIMEOUT_S} if "://" in client else {"path": client}))
        self._client, self._models, self._store, self._clock = client, models, store, clock
        self._current: set[Partition] = set()
        """Partitions whose points are those of the store, as far as this process knows."""
        self._rest_until = float("-inf")

    def close(self) -> None:
        """Close a client that was made here."""
        if self._owned:
            self._client.close()

    def relieve(self, partition: Partition, index: PartitionIndex) -> None:
        """Nothing: points are compared with an index that has the vectors."""

    def follow(self, partition: Partition, index: PartitionIndex, delta: Delta) -> None:
        """Bring the points of a partition up to date with its index, to which a delta was just applied."""
        index.elsewhere = None
        if index.held < LEAST_ROWS or not index.width:
            return
        known = partition in self._current
        self._current.discard(partition)
        if self._try(lambda: self._follow(partition, index, delta if known else None), False):
            self._current.add(partition)
            index.elsewhere = partial(self.nearest, partition)

    def _follow(self, partition: Partition, index: PartitionIndex, delta: Delta | None) -> bool:
        """Without a delta every point is compared."""
        if delta is not None:
            self._remove(partition, delta.removed)
            changed = [slim.no for slim in delta.rows]
        else:
            self._make(partition, index.width)
            rows = np.flatnonzero(index.alive)
            held = dict(zip(index.no[rows].tolist(), index.seq[rows].tolist(), strict=True))
            there = dict(self._points(partition))
            self._remove(partition, [no for no in there if no not in held])
            changed = [no for no, seq in held.items() if there.get(no) != seq]
        for start in range(0, len(changed), _PAGE):
            places = np.array(index.rows_of(changed[start : start + _PAGE]), dtype=np.intp)
            nos, seqs = index.no[places].tolist(), index.seq[places].tolist()
            payloads = [{"partition": anonymous_name(partition), "seq": seq} for seq in seqs]
            points = self._models.Batch(ids=nos, vectors=index.vectors_of(places).tolist(), payloads=payloads)
            self._client.upsert(self._collection(partition), points=points, wait=True)
        return True

    def erase(self, partition: Partition, there: Callable[[Sequence[int]], Any] | None) -> None:
        """Delete the points whose rows are gone: those that `there` does not give back; None: all of the partition."""
        self._current.discard(partition)
        self._try(lambda: self._erase(partition, there), None)

    def _erase(self, partition: Partition, there: Callable[[Sequence[int]], Any] | None) -> None:
        if not self._client.collection_exists(self._collection(partition)):
            return
        if there is None:
            selected = self._models.FilterSelector(filter=self._of(partition))
            self._client.delete(self._collection(partition), points_selector=selected, wait=True)
            return
        nos = [no for no, _ in self._points(partition)]
        for start in range(0, len(nos), _PAGE):
            page = nos[start : start + _PAGE]
            kept = set(there(page))
            self._remove(partition, [no for no in page if no not in kept])

    def nearest(
        self, partition: Partition, vector: Matrix, count: int, *, among: Sequence[int] | None = None
    ) -> list[int] | None:
        """About the `count` row numbers of the highest cosine; None: nobody knows."""
        if partition not in self._current:
            return None

        def found() -> list[int]:
            wanted = self._of(partition)
            if among is not None:
                wanted.must.append(self._models.HasIdCondition(has_id=[*among]))
            asked = {"query": np.asarray(vector).tolist(), "query_filter": wanted, "limit": count}
            answer = self._client.query_points(self._collection(partition), **asked, with_payload=False)
            return [int(point.id) for point in answer.points]

        return self._try(found, None)

    def _make(self, partition: Partition, width: int) -> None:
        name, models = self._collection(partition), self._models
        if not self._client.collection_exists(name):
            config = models.VectorParams(size=width, distance=models.Distance.DOT)
            self._client.create_collection(name, vectors_config=config)
            with warnings.catch_warnings(action="ignore"):  # the local mode warns that it has no indexes
                self._client.create_payload_index(name, "partition", models.PayloadSchemaType.KEYWORD)

    def _points(self, partition: Partition) -> Iterator[tuple[int, int]]:
        """Number and change count of the points of a partition."""
        after = None
        while True:
            page, after = self._client.scroll(
                self._collection(partition), scroll_filter=self._of(partition), limit=_PAGE, offset=after
            )
            yield from ((int(point.id), int(point.payload["seq"])) for point in page)
            if after is None:
                return

    def _remove(self, partition: Partition, nos: Sequence[int]) -> None:
        for start in range(0, len(nos), _PAGE):
            selected = self._models.PointIdsList(points=[*nos[start : start + _PAGE]])
            self._client.delete(self._collection(partition), points_selector=selected, wait=True)

    def _of(self, partition: Partition) -> Any:
        match = self._models.MatchValue(value=anonymous_name(partition))
        return self._models.Filter(must=[self._models.FieldCondition(key="partition", match=match)])

    def _collection(self, partition: Partition) -> str:
        named = f"{self._store}\x1f{partition.tenant}"
        return f"wellworn-{hashlib.blake2b(named.encode(), digest_size=12).hexdigest()}"

    def _try(self, ask: Callable[[], T], otherwise: T) -> T:
        """The answer, or `otherwise` while Qdrant fails or rests."""
        if self._clock() < self._rest_until:
            return otherwise
        try:
            return ask()
        except Exception as error:  # of the client, its transport, or whatever client was given
            self._current.clear()
            self._rest_until = self._clock() + REST_S
            _log.warning("vectors are searched in this process, Qdrant failed: %s", type(error).__name__)
            return otherwise
