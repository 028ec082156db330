"""Which embedding model a store's vectors come from, and moving all of them to another one.

A move writes the new vectors beside the old ones, batch by batch, and serves them only when every entry has one. So
recall works all the while, a move that was stopped goes on where it was, and no text is touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from wellworn.core.clock import Clock, system_clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import EmbedderMismatch, InvalidInput
from wellworn.core.values import Entry, Progress, unwatched
from wellworn.ingest.terms import embedding_text
from wellworn.language.parts import embedded
from wellworn.language.reader import Reader
from wellworn.models.port import Embedder
from wellworn.store.events import Event, audit
from wellworn.store.port import EmbeddingModel, Selection, Store, Tx, Vector

BATCH = 256
FORMER = ("static:", "reader:")
"""What the names of bundled models begin with."""
RENEWED_AT_ONCE = 500
"""Entries up to which vectors of a former bundled model are renewed when the store is opened: about five seconds."""


@dataclass(frozen=True, kw_only=True)
class Reembedded:
    """What a move did: entries embedded now, and those that had their vector of the model already."""

    entries: int
    skipped: int
    model: EmbeddingModel


def model_of(embedder: Embedder) -> EmbeddingModel:
    return EmbeddingModel(name=embedder.name, width=embedder.width)


def adopt_model(store: Store, embedder: Embedder | None) -> None:
    """Make the embedder the store's if it has none yet; one that does not fit is an `EmbedderMismatch`."""
    if embedder is None:
        return
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
    if stored != given:
        raise EmbedderMismatch(stored.name, stored.width, given.name, given.width)


def renew_bundled(store: Store, embedder: Embedder, *, clock: Clock = system_clock) -> None:
    """Renew the vectors of a small store that an older release made with its own bundled model. No text is lost: a run that is
    interrupted is taken up again."""
    stored = store.model()
    if not isinstance(embedder, Reader) or stored is None or stored == model_of(embedder):
        return
    small = store.counts(store.partitions(), only=["entries"])["entries"] <= RENEWED_AT_ONCE
    if small and stored.name.startswith(FORMER):
        reembed(store, embedder, clock=clock)


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
    lacking = Selection(without_vector_of=model)
    total = store.counts(store.partitions())["entries"]
    for page in store.pages(None, lacking, size=BATCH):
        vectors, parts = embedded(embedder, [embedding_text(entry) for _, entry in page])
        of_no = {no: blob for (no, _), blob in zip(page, parts, strict=True) if blob is not None}
        with store.transact() as tx:
            done += tx.put_index(_still_true(tx, page, vectors), model=model, parts=of_no)
        progress(min(before + done, total), total)
    return done


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
    lacking = Selection(without_vector_of=model)
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
