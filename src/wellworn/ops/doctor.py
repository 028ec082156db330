"""Verification of a whole store, and repair of what follows from the entries. The rules are in `checks`.

Goes partition by partition and page by page; only the edges of `supersedes` and `derived_from` are held for the whole store.
Verification changes nothing. Repair rebuilds counts, hashes, index records and vectors from the text, and lets the
store mend its own tables; jobs that run for nobody are queued again. It removes no entry and changes no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from wellworn.core.errors import StoreError
from wellworn.core.values import JOB_STATES, Entry, Partition, Progress, Turn
from wellworn.ingest.terms import embedding_text, record_of
from wellworn.jobs.queue import list_jobs, put_job
from wellworn.models.port import Embedder
from wellworn.ops import checks
from wellworn.ops.checks import LinkKey
from wellworn.ops.lines import settled
from wellworn.ops.reembed import model_of
from wellworn.ops.walk import PAGE, entry_total, homes, pages, step
from wellworn.store.port import Flaw, IndexRecord, Store, Tx, Vector

# What reading a damaged row ends in.
_ALL = 1_000_000  # jobs of one partition; there is one for a stretch of turns
_DAMAGE = (StoreError, ValueError, TypeError, OverflowError)

_Page = Sequence[tuple[int, Entry]]
_Stored = dict[int, tuple[IndexRecord | None, Vector | None]]


@dataclass(frozen=True, kw_only=True)
class Report:
    """What verification found; true when it found nothing. `mended` are flaws that a repair took away."""

    flaws: list[Flaw]
    mended: list[Flaw] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.flaws

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        checked = ", ".join(f"{count:,} {name}" for name, count in self.checked.items())
        mended = f", {len(self.mended):,} mended" if self.mended else ""
        if self.ok:
            return f"no flaws in {checked}{mended}"
        repairable = sum(flaw.repairable for flaw in self.flaws)
        lines = [f"  {flaw.check}: {flaw.subject}: {flaw.problem}" for flaw in self.flaws]
        return "\n".join([f"{len(lines):,} flaws ({repairable:,} repairable) in {checked}{mended}", *lines])


def verify(store: Store, embedder: Embedder | None, *, progress: Progress | None = None) -> Report:
    """Check every entry, link and turn of the store, and what the engine can see of itself."""
    return _Examination(store, embedder, progress).report()


def repair(store: Store, embedder: Embedder | None, *, progress: Progress | None = None) -> Report:
    """Rebuild what can be rebuilt; the report says what was mended and what is left."""
    before = verify(store, embedder, progress=step(progress, 0, 2))
    mended = _mended(store)
    for partition in store.partitions():
        _rebuild_partition(store, embedder, partition)
        _reset_work(store, partition)
    after = verify(store, embedder, progress=step(progress, 1, 2))
    gone = [flaw for flaw in dict.fromkeys([*before.flaws, *mended]) if flaw not in after.flaws]
    return Report(flaws=after.flaws, mended=gone, checked=after.checked)


# -- verification ------------------------------------------------------------------------------------------------


class _Examination:
    """One walk over a store."""

    def __init__(self, store: Store, embedder: Embedder | None, progress: Progress | None) -> None:
        self._store = store
        self._progress = progress
        self._model = store.model()
        self._can_embed = can_embed(store, embedder)
        self._edges: dict[str, list[tuple[str, str]]] = {type_: [] for type_ in checks.ACYCLIC_TYPES}
        self._checked = dict.fromkeys(("partitions", "entries", "vectors", "links", "sessions", "turns", "jobs"), 0)
        self._view = lru_cache(maxsize=20_000)(self._links_at)

    def report(self) -> Report:
        flaws = list(self._engine())
        partitions = self._store.partitions()
        total = entry_total(self._store, partitions)
        for partition in partitions:
            self._checked["partitions"] += 1
            flaws += self._partition(partition, total)
        for type_, edges in self._edges.items():
            flaws += checks.check_cycles(edges, type_)
        return Report(flaws=flaws, checked=self._checked)

    def _engine(self) -> Iterator[Flaw]:
        try:
            yield from self._store.check()
        except _DAMAGE as error:
            yield _unreadable("the store", error)

    def _partition(self, partition: Partition, total: int) -> Iterator[Flaw]:
        for page in readable_pages(self._store, partition):
            if isinstance(page, Flaw):
                yield page
                continue
            yield from self._page(partition, page)
            if self._progress is not None:
                self._progress(min(self._checked["entries"], total), total)
        yield from self._sessions(partition)
        yield from self._jobs(partition)

    def _page(self, partition: Partition, page: _Page) -> Iterator[Flaw]:
        stored = stored_with(self._store, page)
        for no, entry in page:
            index, vector = stored[no]
            yield from checks.check_entry(entry)
            yield from checks.check_index(entry, index)
            yield from checks.check_vector(entry, vector, self._model, repairable=self._can_embed)
            self._checked["vectors"] += vector is not None
        self._checked["entries"] += len(page)
        yield from self._links(partition, {entry.id for _, entry in page})

    def _links(self, partition: Partition, ids: set[str]) -> Iterator[Flaw]:
        """Links that start on this page, and those that end on it and start nowhere."""
        links = self._store.links(sorted(ids))
        tenants = self._tenants({end for link in links for end in (link.source, link.target)}, partition, ids)
        for link in links:
            if link.source not in ids and link.source in tenants:
                continue
            self._checked["links"] += 1
            yield from checks.check_link(link, tenants)
            if link.source in tenants and link.target in tenants:
                yield from checks.check_link_views(link, self._view(link.source), self._view(link.target))
            if link.type in self._edges:
                self._edges[link.type].append((link.source, link.target))

    def _tenants(self, ends: set[str], partition: Partition, here: set[str]) -> dict[str, str]:
        """The tenant of each end that exists; most are on the page or at least on the partition."""
        found = dict.fromkeys(ends & here, partition.tenant)
        found |= dict.fromkeys(self._store.get([partition], sorted(ends - found.keys())), partition.tenant)
        elsewhere = homes(self._store, sorted(ends - found.keys()))
        return found | {entry_id: entry.tenant for entry_id, entry in elsewhere.items()}

    def _links_at(self, entry_id: str) -> frozenset[LinkKey]:
        return frozenset((link.source, link.target, link.type) for link in self._store.links([entry_id]))

    def _sessions(self, partition: Partition) -> Iterator[Flaw]:
        for head in self._store.sessions(partition):
            try:
                turns = self._store.turns(partition, head.id)
            except _DAMAGE as error:
                yield _unreadable(f"session {head.id}", error)
                continue
            self._checked["sessions"] += 1
            self._checked["turns"] += len(turns)
            yield from checks.check_turns(turns)
            yield from checks.check_session(head, turns)
            yield from self._episodes(partition, turns)

    def _jobs(self, partition: Partition) -> Iterator[Flaw]:
        try:
            jobs = list_jobs(self._store, partition=partition, limit=_ALL)
        except _DAMAGE as error:
            yield _unreadable(f"the jobs of partition {partition.tenant}/{partition.layer}/{partition.layer_id}", error)
            return
        self._checked["jobs"] += len(jobs)
        for job in jobs:
            yield from checks.check_job(job)

    def _episodes(self, partition: Partition, turns: Sequence[Turn]) -> Iterator[Flaw]:
        """An entry that is not there was forgotten and its turn kept, as `forget(ids=…)` does."""
        for start in range(0, len(turns), PAGE):
            part = turns[start : start + PAGE]
            entries = self._store.get([partition], [turn.entry_id for turn in part if turn.entry_id is not None])
            for turn in part:
                if turn.entry_id in entries:
                    yield from checks.check_episode(turn, entries[turn.entry_id], self._older)

    def _older(self, entry_id: str) -> list[Entry]:
        return [old.entry for old in self._store.replaced(entry_id)]


def can_embed(store: Store, embedder: Embedder | None) -> bool:
    """Whether this embedder makes the store's vectors."""
    return embedder is not None and store.model() == model_of(embedder)


def stored_with(store: Store, page: _Page) -> _Stored:
    """Index record and vector of every row of a page; unreadable ones count as missing."""
    nothing: _Stored = {no: (None, None) for no, _ in page}
    try:
        return nothing | store.index_of([no for no, _ in page])
    except _DAMAGE:
        pass
    for no, _ in page:
        try:
            nothing |= store.index_of([no])
        except _DAMAGE:
            continue
    return nothing


def readable_pages(store: Store, partition: Partition) -> Iterator[_Page | Flaw]:
    """The pages of a partition up to the first that cannot be read, and the flaw that this is."""
    last = "its first entry"
    walk = pages(store, partition)
    while True:
        try:
            page = next(walk, None)
        except _DAMAGE as error:
            yield _unreadable(
                f"partition {partition.tenant}/{partition.layer}/{partition.layer_id} from {last} on", error
            )
            return
        if page is None:
            return
        yield page
        last = f"entry {page[-1][1].id}"


def _unreadable(subject: str, error: Exception) -> Flaw:
    problem = f"cannot be read ({error}); restore it from a backup or an export"
    return Flaw(check="readable", subject=subject, problem=problem, repairable=False)


# -- repair ------------------------------------------------------------------------------------------------------


def _mended(store: Store) -> list[Flaw]:
    """What the store mended of itself: nothing, where it cannot even read itself."""
    try:
        return store.check(mend=True)
    except _DAMAGE:
        return []


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fix:
    """What is to be written for one entry, as far as it differs from what is there."""

    no: int
    entry: Entry
    settled: Entry | None
    index: IndexRecord | None
    vector: Vector | None = None


def _rebuild_partition(store: Store, embedder: Embedder | None, partition: Partition) -> None:
    for page in readable_pages(store, partition):
        fixes = [] if isinstance(page, Flaw) else _fixes(store, embedder, page)
        if fixes:
            with store.transact() as tx:
                _apply(tx, partition, fixes)


def _fixes(store: Store, embedder: Embedder | None, page: _Page) -> list[_Fix]:
    """Everything that a page needs, vectors included: made here, outside any transaction."""
    stored = stored_with(store, page)
    model = store.model()
    lacking = [(no, entry) for no, entry in page if checks.vector_problem(stored[no][1], model)]
    vectors: dict[int, Vector] = {}
    if embedder is not None and lacking and can_embed(store, embedder):
        made = embedder.embed([embedding_text(entry) for _, entry in lacking])
        vectors = {no: vector for (no, _), vector in zip(lacking, made, strict=True)}
    fixes = []
    for no, entry in page:
        index, right = stored[no][0], settled(entry)
        wanted = record_of(entry) if any(checks.check_index(entry, index)) else None
        fix = _Fix(no=no, entry=entry, settled=right if right != entry else None, index=wanted, vector=vectors.get(no))
        if fix.settled is not None or fix.index is not None or fix.vector is not None:
            fixes.append(fix)
    return fixes


def _apply(tx: Tx, partition: Partition, fixes: Sequence[_Fix]) -> None:
    """Write the fixes of entries that nobody has changed since they were read."""
    now = tx.get([partition], [fix.entry.id for fix in fixes])
    current = [fix for fix in fixes if now.get(fix.entry.id) == fix.entry]
    for fix in current:
        if fix.settled is not None and not _would_repeat(tx, fix.settled):
            tx.update(fix.settled, change=None)
    tx.put_index(
        [(fix.no, fix.index, fix.vector) for fix in current if fix.index is not None or fix.vector is not None]
    )


def _would_repeat(tx: Tx, entry: Entry) -> bool:
    """Whether another entry of the partition has this hash already: a store keeps the same words only once."""
    same = tx.find_same(entry.partition, entry.content_hash) if entry.state in ("active", "flagged") else None
    return same is not None and same.id != entry.id


def _reset_work(store: Store, partition: Partition) -> None:
    """Queue jobs again that run for nobody, and take back marks of reflection on turns that are not there."""
    try:
        jobs = [job for job in list_jobs(store, partition=partition, limit=_ALL) if any(checks.check_job(job))]
        heads = store.sessions(partition)
    except _DAMAGE:
        return
    ahead = [head for head in heads if not 0 <= head.reflected <= head.turns]
    if not jobs and not ahead:
        return
    with store.transact() as tx:
        for job in jobs:
            if job.state in JOB_STATES:
                state = "queued" if job.state == "running" else job.state
                put_job(tx, replace(job, state=state, worker=None, lease_until=None, attempts=max(job.attempts, 0)))
        for head in ahead:
            tx.mark_session(partition, head.id, reflected=min(max(head.reflected, 0), head.turns))
