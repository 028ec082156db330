"""Which embedding model a store's vectors come from, and moving all of them to another one.

A move writes the new vectors beside the old ones, batch by batch, and serves them only when every entry has one. So
recall works all the while, a move that was stopped goes on where it was, and no text is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wellworn.core.clock import Clock, system_clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, StoreError
from wellworn.core.values import Entry, Job, Progress, unwatched
from wellworn.ingest.terms import embedding_text
from wellworn.jobs.queue import Queue, job_of_store
from wellworn.language.parts import embedded
from wellworn.models.port import Embedder, fits, renews
from wellworn.store.events import Event, audit
from wellworn.store.port import EmbeddingModel, Selection, Store, Tx, Vector

BATCH = 256
RENEWED_AT_ONCE = 500
"""Entries up to which vectors of a former bundled model are renewed when the store is opened: about five seconds."""
RENEWAL = "reembed"
"""The kind of job that renews those of a larger store."""
PART = 128
"""Entries between which that job lets others go first, and whoever closes the store."""


@dataclass(frozen=True, kw_only=True)
class Reembedded:
    """What a move did: entries embedded now, and those that had their vector of the model already."""

    entries: int
    skipped: int
    model: EmbeddingModel


def model_of(embedder: Embedder) -> EmbeddingModel:
    return EmbeddingModel(name=embedder.name, width=embedder.width)


def adopt_model(store: Store, embedder: Embedder | None, *, clock: Clock = system_clock) -> bool:
    """Make the embedder the store's if it has none yet, or if the store is small and of a former bundled model; False if such
    a store is large or cannot be changed now, see `Renewal`. One that does not fit is an `EmbedderMismatch`."""
    if embedder is None:
        return True
    stored = store.model()
    choose = getattr(getattr(embedder, "inner", embedder), "choose", None)
    if choose is not None:  # a list of embedders, perhaps behind a cache
        choose(None if stored is None else stored.name)
    given = model_of(embedder)
    if stored is None:
        with store.transact() as tx:
            stored = store.model()  # again: another process may have been first
            if stored is None:
                tx.use_model(given)
                stored = given
    if fits(embedder, stored.key):
        return True
    if _entries(store) > RENEWED_AT_ONCE:
        return False
    try:
        reembed(store, embedder, clock=clock)
    except StoreError:  # of Postgres: a role of one tenant cannot
        return False
    return True


class Renewal:
    """The job that renews the vectors of a former bundled model, part by part. Whoever has a part does it alone."""

    def __init__(self, store: Store, embedder: Embedder, queue: Queue, clock: Clock) -> None:
        self._store, self._embedder, self._queue, self._clock = store, embedder, queue, clock

    def begin(self, *, again: bool = False) -> None:
        """Queue the job where it is needed; `again`: even if it was given up."""
        if self._is_needed():
            self._queue.begin(RENEWAL, again=again)

    def _is_needed(self) -> bool:
        served = self._store.model()
        return served is not None and renews(self._embedder, served.key)

    def run(self, job: Job) -> None:
        """Do the next part."""
        model = model_of(self._embedder)
        said = job.result or {"done": 0, "total": _entries(self._store), "after": 0}
        needed = self._is_needed()
        if needed and (page := self._store.select(None, _lacking(model), after=said["after"], limit=PART)):
            put = _embedded(self._embedder, page)
            with self._store.transact() as tx:
                done = said["done"] + put(tx, model)
                self._queue.pause(tx, job, {**said, "done": min(done, said["total"]), "after": page[-1][0]})
            return
        if needed and not _take_over(self._store, model, 1, self._clock):  # entries were added or changed meanwhile
            with self._store.transact() as tx:
                self._queue.pause(tx, job, {**said, "after": 0})
            return
        with self._store.transact() as tx:
            self._queue.finish(tx, job, {**said, "done": said["total"]})


def renewed(store: Store) -> tuple[int, int]:
    """How many vectors the job has renewed, and of how many."""
    job = job_of_store(store, RENEWAL)
    return (0, _entries(store)) if job is None or not job.result else (job.result["done"], job.result["total"])


def _entries(store: Store) -> int:
    return store.counts(store.partitions(), only=["entries"])["entries"]


def _lacking(model: EmbeddingModel) -> Selection:
    return Selection(without_vector_of=model)


def reembed(
    store: Store, embedder: Embedder | None, *, clock: Clock = system_clock, progress: Progress = unwatched
) -> Reembedded:
    """Give every entry a vector of this model, then serve those and drop the others.

    `progress(done, total)` counts what this run embeds against all entries, and ends with (total, total).
    """
    if embedder is None:
        raise InvalidInput("embedder", "is None, so there is nothing to embed with", "open the memory with an embedder")
    model = model_of(embedder)
    done = 0
    while True:
        done += _fill(store, embedder, model, done, progress)
        if _take_over(store, model, done, clock):
            break  # else entries were added or changed meanwhile
    total = store.counts(store.partitions())["entries"]
    progress(total, total)
    return Reembedded(entries=done, skipped=max(0, total - done), model=model)


def _fill(store: Store, embedder: Embedder, model: EmbeddingModel, before: int, progress: Progress) -> int:
    """One pass over the entries without a vector of this model; returns how many have one now."""
    done = 0
    total = _entries(store)
    for page in store.pages(None, _lacking(model), size=BATCH):
        put = _embedded(embedder, page)
        with store.transact() as tx:
            done += put(tx, model)
        progress(min(before + done, total), total)
    return done


def _embedded(embedder: Embedder, page: Sequence[tuple[int, Entry]]) -> Callable[[Tx, EmbeddingModel], int]:
    """Embed the entries; what comes writes the vectors and says how many."""
    vectors, parts = embedded(embedder, [embedding_text(entry) for _, entry in page])
    of_no = {no: blob for (no, _), blob in zip(page, parts, strict=True) if blob is not None}
    return lambda tx, model: tx.put_index(_still_true(tx, page, vectors), model=model, parts=of_no)


def _still_true(tx: Tx, page: Sequence[tuple[int, Entry]], vectors: Sequence[Vector]) -> list[tuple[int, None, Vector]]:
    """The vectors of entries whose words have not changed since they were read; the others get theirs next time."""
    now = tx.get(None, [entry.id for _, entry in page])
    return [
        (no, None, vector)
        for (no, entry), vector in zip(page, vectors, strict=True)
        if entry.id in now and embedding_text(now[entry.id]) == embedding_text(entry)
    ]


def _take_over(store: Store, model: EmbeddingModel, done: int, clock: Clock) -> bool:
    """Serve the model's vectors, unless some entry still has none."""
    lacking = _lacking(model)
    if store.model() == model and not done:
        return not store.select(None, lacking, limit=1)
    with store.transact() as tx:
        if tx.select(None, lacking, limit=1):
            return False
        tx.use_model(model)
        now = clock()
        for tenant in sorted({partition.tenant for partition in store.partitions()}):
            detail: dict[str, int | float | str] = {"model": model.name, "width": model.width}
            audit(tx, Event(at=now, tenant=tenant, action="reembed", detail=detail))
    return True
