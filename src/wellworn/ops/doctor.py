"""Verification of a whole store, and repair of what follows from the entries.

docs/backup.md lists what is looked at and compared. Vectors are made again to compare: all of them with the bundled
embedder, `SAMPLE` with another. What the engine itself can see (pages, references, side tables) is the store's own
`check`; broken pages are for `rescue`.

Repair rebuilds counts, hashes, index records and vectors from the texts. Unreadable fields get defaults; records, links
and old versions are dropped; an entry whose text cannot be read stays as it is. Jobs are queued again. Of learning what
makes no sense is dropped, and rebuilt from the log.

Verification reads page by page and changes nothing; only the edges of `supersedes` and `derived_from` are held for the
whole store. Repair removes no entry.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, fields, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import StoreCorrupt
from wellworn.core.plain import from_plain, to_plain
from wellworn.core.values import JOB_STATES, LINK_TYPES, Entry, Link, Partition, Progress, Turn, unwatched
from wellworn.core.wellformed import counted
from wellworn.ingest.terms import embedding_text, record_of
from wellworn.jobs.queue import JOB, job_from, job_problem, put_job, readable_jobs
from wellworn.language.parts import embedded, has_several, reader_of, unpacked
from wellworn.learning.records import learning_problem
from wellworn.models.port import Embedder, renews
from wellworn.ops.files import DAMAGED, free_name, scratch, take_place
from wellworn.ops.lines import checked, is_unit_or_zero, settled
from wellworn.ops.reembed import model_of
from wellworn.search.mapped import IndexFiles
from wellworn.store.events import EVENT
from wellworn.store.port import PAGE, Flaw, Store, Tx
from wellworn.store.sqlite.driver import Key, is_plain, key_of
from wellworn.store.sqlite.salvage import Salvaged, salvage
from wellworn.store.values import EmbeddingModel, IndexRecord, Record, RecordFilter, Selection, Vector

SAMPLE = 200
"""How many vectors are made again to compare, where making them costs time or money."""
UNKNOWN = 1_000_000
_QUICK = ("static:", "hash")
_DIFFERENCE = 0.15
"""How far two vectors of the same text may be apart: providers do not answer with the same bits every time."""
ACYCLIC_TYPES = ("supersedes", "derived_from")

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
        checked = ", ".join(counted(count, name) for name, count in self.checked.items()) or "what can be opened"
        mended = f", {len(self.mended):,} mended" if self.mended else ""
        if self.ok:
            return f"no flaws in {checked}{mended}"
        repairable = sum(flaw.repairable for flaw in self.flaws)
        lines = [f"  {flaw.check}: {flaw.subject}: {flaw.problem}" for flaw in self.flaws]
        return "\n".join([f"{counted(len(lines), 'flaws')} ({repairable:,} repairable) in {checked}{mended}", *lines])


def verify(store: Store, embedder: Embedder | None, *, progress: Progress = unwatched) -> Report:
    """Check every entry, link and turn of the store, and what the engine can see of itself."""
    return _Examination(store, embedder, progress).report()


def repair(store: Store, embedder: Embedder | None, *, progress: Progress = unwatched) -> Report:
    """Rebuild what can be rebuilt; the report says what was mended and what is left."""

    def half(part: int) -> Progress:
        """The progress of the first or second of two walks as progress of both."""
        return lambda done, total: progress(part * total + done, 2 * total)

    before = verify(store, embedder, progress=half(0))
    try:
        mended, files = store.check(mend=True), IndexFiles(store)
        for partition in store.partitions():
            files.drop(partition)
            for page in store.pages([partition]):
                _rebuild(store, embedder, partition, page)
        _reset_work(store)
    except StoreCorrupt:  # broken pages: the walk below says so
        mended = []
    after = verify(store, embedder, progress=half(1))
    gone = [flaw for flaw in dict.fromkeys([*before.flaws, *mended]) if flaw not in after.flaws]
    return Report(flaws=after.flaws, mended=gone, checked=after.checked)


def rescue(location: str | Path, key: Key | None = None, *, progress: Progress = unwatched) -> tuple[Salvaged, Path]:
    """Put a copy with everything readable in the place of a file with broken pages; returns what was copied, and the
    name under which the damaged file is kept. Close every memory on it first."""
    path = Path(os.path.realpath(location))
    kept = free_name(path.with_name(f"{path.name}.{DAMAGED}"), path)
    begun = path.exists() and kept.exists() and kept.samefile(path)  # and cut short: the log is there already
    with scratch(path) as folder:
        made = Path(folder) / "salvaged.db"
        salvaged = salvage(kept if begun else path, made, secret=key_of(key), progress=progress)
        if not any(salvaged.rows.values()) and not is_plain(path):
            problem = f"nothing of {str(path)!r} can be read, so it is left as it is: give its key if it has one"
            raise StoreCorrupt(problem)
        take_place(made, path, kept)
    return salvaged, kept


# -- verification ------------------------------------------------------------------------------------------------


class _Examination:
    """One walk over a store."""

    def __init__(self, store: Store, embedder: Embedder | None, progress: Progress) -> None:
        self._store = store
        self._progress = progress
        self._embedder = embedder
        self._flaws: list[Flaw] = []
        self._model: EmbeddingModel | None = None
        self._can_embed = False
        self._edges: dict[str, list[tuple[str, str]]] = {type_: [] for type_ in ACYCLIC_TYPES}
        parts = ("partitions", "entries", "vectors", "versions", "links", "sessions", "turns", "jobs", "records")
        self._checked = dict.fromkeys(parts, 0)
        self._gaps: Counter[str] = Counter()
        """By tenant, how many numbers of turns have no turn."""

    def report(self) -> Report:
        for part in (self._pages, self._entries, self._records):
            try:
                part()
            except StoreCorrupt as error:
                problem = f"cannot be read ({error}); run `wellworn doctor --repair`, or restore a backup"
                self._add("readable", "the file", problem)
        for type_, edges in self._edges.items():
            self._flaws += check_cycle(edges, type_)
        for row, problem in self._store.damaged().items():
            self._add("readable", row, f"cannot be read: {problem}", repairable=True)
        return Report(flaws=[*dict.fromkeys(self._flaws)], checked=self._checked)

    def _add(self, check: str, subject: str, problem: str | None, *, repairable: bool = False) -> None:
        if problem is not None:
            self._flaws.append(Flaw(check=check, subject=subject, problem=problem, repairable=repairable))

    def _pages(self) -> None:
        self._flaws += self._store.check()
        served = self._store.model()
        self._model = None if served is not None and renews(self._embedder, served.key) else served
        """None: there is none, or its vectors wait to be renewed."""
        self._can_embed = _can_embed(self._store, self._embedder)

    def _entries(self) -> None:
        partitions = self._store.partitions()
        total = self._store.counts(partitions)["entries"]
        embedder = self._embedder if self._can_embed else None
        every = 1 if embedder is None or embedder.name.startswith(_QUICK) else max(1, total // SAMPLE)
        files = IndexFiles(self._store)
        for partition in partitions:
            self._checked["partitions"] += 1
            if files.differs(partition):
                problem = "its index file has other vectors than the store"
                self._add("index_file", f"{partition.layer} {partition.layer_id}", problem, repairable=True)
            for page in self._store.pages([partition]):
                stored = self._store.index_of([no for no, _ in page])
                for no, entry in page:
                    self._entry(entry, *stored.get(no, (None, None)))
                for _, entry in _unreadable_parts(self._store, page, self._model):
                    self._add(
                        "vector", entry.id, "the vectors of its sentences are damaged", repairable=self._can_embed
                    )
                for _, entry in _misplaced(embedder, page, stored, every):
                    self._add("vector", entry.id, "its vector is not the one its text gives", repairable=True)
                self._checked["entries"] += len(page)
                self._links(partition, {entry.id for _, entry in page})
                self._progress(min(self._checked["entries"], total), total)
            self._sessions(partition)

    def _entry(self, entry: Entry, index: IndexRecord | None, vector: Vector | None) -> None:
        for check, problem in _entry_problems(entry):
            self._add(check, entry.id, problem)
        right = settled(entry)
        if entry.token_count != right.token_count:
            problem = f"says {entry.token_count}, the text has {right.token_count}"
            self._add("token_count", entry.id, problem, repairable=True)
        if entry.content_hash != right.content_hash:
            self._add("content_hash", entry.id, "the hash is not that of the text", repairable=True)
        self._add("index", entry.id, _index_problem(entry, index), repairable=True)
        self._add("vector", entry.id, _vector_problem(vector, self._model), repairable=self._can_embed)
        self._checked["vectors"] += vector is not None
        self._checked["versions"] += len(self._store.replaced(entry.id))

    def _links(self, partition: Partition, ids: set[str]) -> None:
        """Links that start on this page, and those that end on it and start nowhere."""
        links = self._store.links(sorted(ids))
        ends = {end for link in links for end in (link.source, link.target)}
        tenants = dict.fromkeys(ends & ids, partition.tenant)
        elsewhere = self._store.get(None, sorted(ends - ids))
        tenants |= {entry_id: entry.tenant for entry_id, entry in elsewhere.items()}
        for link in links:
            if link.source not in ids and link.source in tenants:
                continue
            self._checked["links"] += 1
            for problem in _link_problems(link, tenants):
                self._add("link", f"{link.source} {link.type} {link.target}", problem)
            if link.type in self._edges:
                self._edges[link.type].append((link.source, link.target))

    def _sessions(self, partition: Partition) -> None:
        for head in self._store.sessions(partition):
            turns = self._store.turns(partition, head.id)
            self._checked["sessions"] += 1
            self._checked["turns"] += len(turns)
            spoken = max((turn.number for turn in turns), default=-1) + 1
            if not 0 <= head.reflected <= spoken:
                problem = f"{head.reflected} turns count as reflected on, {spoken} were said"
                self._add("session", head.id, problem, repairable=True)
            for start in range(0, len(turns), PAGE):
                self._episodes(partition, turns[start : start + PAGE])
            if any(row.endswith(f"of session {head.id}") for row in self._store.damaged()):
                continue  # those that cannot be read are not missing
            said = {turn.number for turn in turns}
            self._gaps[partition.tenant] += spoken - len(said)
            for _, entry in self._store.select([partition], Selection(session_id=head.id, kinds=["episode"])):
                if len(entry.turn_refs) == 1 and not said.issuperset(entry.turn_refs):
                    problem = f"turn {entry.turn_refs[0]} of {head.id!r} is missing, it was said there"
                    self._add("turns", entry.id, problem)

    def _episodes(self, partition: Partition, turns: Sequence[Turn]) -> None:
        """An entry that is not there was forgotten and its turn kept, as `forget(ids=…)` does."""
        entries = self._store.get([partition], [turn.entry_id for turn in turns if turn.entry_id is not None])
        for turn in turns:
            entry = entries.get(turn.entry_id or "")
            if entry is None:
                continue
            place = f"turn {turn.number} of {turn.session_id!r}"
            if entry.session_id != turn.session_id or turn.number not in entry.turn_refs:
                self._add("episode", entry.id, f"{place} names it, it names another")
            elif turn.text not in (entry.text, entry.evidence) and not any(
                turn.text in (old.entry.text, old.entry.evidence) for old in self._store.replaced(entry.id)
            ):
                self._add("episode", entry.id, f"it never said what {place} says")

    def _records(self) -> None:
        """Jobs, logs and whatever else mechanisms wrote down."""
        forgotten: Counter[str] = Counter()
        for record in self._store.every_record(RecordFilter()):
            self._checked["records"] += 1
            self._checked["jobs"] += record.kind == JOB
            if record.kind == EVENT and record.state in ("forget", "load"):  # an export may have had gaps already
                detail = record.body.get("detail", {})
                forgotten[record.tenant] += detail.get("turns", 0) if record.state == "forget" else UNKNOWN
            if (found := _record_problem(record)) is not None:
                check, problem, repairable = found
                self._add(check, f"{record.kind} {record.key or record.no}", problem, repairable=repairable)
        for tenant, gaps in self._gaps.items():
            if gaps > forgotten[tenant]:
                problem = f"{gaps - forgotten[tenant]} turns are missing, nobody forgot them"
                self._add("turns", f"tenant {tenant}", problem)


def _record_problem(record: Record) -> tuple[str, str, bool] | None:
    """Which check a record fails, why, and whether dropping or resetting it mends that."""
    if record.kind == JOB:
        try:
            problem = job_problem(job_from(record))
        except StoreCorrupt as error:
            return "job", str(error), True
        return None if problem is None else ("job", f"it {problem}", record.state in JOB_STATES)
    problem = learning_problem(record)
    return None if problem is None else ("learning", problem, True)


def _entry_problems(entry: Entry) -> Iterator[tuple[str, str]]:
    """What the fields of an entry tell and no repair can mend."""
    try:
        checked(from_plain(Entry, to_plain(entry)))
    except ValueError as error:
        yield "value", str(error)
    if entry.created_at > entry.updated_at:
        yield "times", "it was updated before it was created"
    if entry.valid_to is not None and entry.valid_to <= entry.valid_from:
        yield "times", "its validity ends before it begins"
    if entry.state == "superseded" and entry.valid_to is None:
        yield "superseded", "it is superseded and has no end of validity"


def _index_problem(entry: Entry, stored: IndexRecord | None) -> str | None:
    tags = entry.tags
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags) or len(set(tags)) < len(tags):
        return None  # said already; there is no record to compare with
    if stored is None:
        return "it has no index record, so words do not find it"
    right = record_of(entry)
    same = all(np.array_equal(getattr(stored, f.name), getattr(right, f.name)) for f in fields(stored))
    return None if same else "the index record is not the one its text gives"


def _vector_problem(vector: Vector | None, model: EmbeddingModel | None) -> str | None:
    if model is None:
        return None
    if vector is None:
        return f"it has no vector of {model.name}"
    if vector.shape != (model.width,):
        return f"its vector has {vector.size} numbers, {model.name} makes {model.width}"
    return None if is_unit_or_zero(vector) else "its vector is not finite or not of length one"


def _link_problems(link: Link, tenants: dict[str, str]) -> Iterator[str]:
    """`tenants`: the tenant of every end that can be read."""
    if link.source == link.target:
        yield "it joins an entry to itself"
    if link.type not in LINK_TYPES:
        yield f"{link.type!r} is not a link type"
    if len({tenants[end] for end in (link.source, link.target) if end in tenants}) > 1:
        yield "it leads from one tenant to another"


def check_cycle(edges: Iterable[tuple[str, str]], type_: str) -> Iterator[Flaw]:
    """The first circle that the edges make, if they make one."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for source, target in edges:
        sorter.add(target, source)
    try:
        sorter.prepare()
    except CycleError as error:
        circle = error.args[1]
        problem = f"following {type_!r} leads back to it: {' → '.join(circle)}"
        yield Flaw(check="cycle", subject=circle[0], problem=problem, repairable=False)


def _can_embed(store: Store, embedder: Embedder | None) -> bool:
    """Whether this embedder makes the store's vectors."""
    return embedder is not None and store.model() == model_of(embedder)


def _misplaced(embedder: Embedder | None, page: _Page, stored: _Stored, every: int) -> _Page:
    """Entries whose vector is not the one that the embedder makes of their text: zeroed, or swapped with another."""
    if embedder is None:
        return []
    model = model_of(embedder)
    there = [(no, entry, stored[no][1]) for no, entry in page[::every] if no in stored and entry.state != "pruned"]
    given = [
        (no, entry, vector) for no, entry, vector in there if vector is not None and not _vector_problem(vector, model)
    ]
    if not given:
        return []
    made = embedder.embed([embedding_text(entry) for _, entry, _ in given])
    return [
        (no, entry)
        for (no, entry, vector), right in zip(given, made, strict=True)
        if float(np.linalg.norm(vector - right)) > _DIFFERENCE
    ]


def _unreadable_parts(store: Store, page: _Page, model: EmbeddingModel | None) -> _Page:
    """Entries that have vectors of sentences which cannot be read."""
    if model is None:
        return []
    parts = store.parts([no for no, _ in page])
    return [(no, entry) for no, entry in page if no in parts and not unpacked(parts[no], model.width)[0]]


# -- repair ------------------------------------------------------------------------------------------------------


def renew_index(store: Store) -> None:
    """Make the index records of an older release anew; vectors stay."""
    for partition in store.partitions():
        for page in store.pages([partition]):
            _rebuild(store, None, partition, page)


def _rebuild(store: Store, embedder: Embedder | None, partition: Partition, page: _Page) -> None:
    """Counts, hashes, index records and vectors of entries that nobody changes meanwhile."""
    stored, model = store.index_of([no for no, _ in page]), store.model()
    vectors: dict[int, Vector] = {}
    parts: dict[int, bytes] = {}
    if embedder is not None and _can_embed(store, embedder):
        lacking = [(no, entry) for no, entry in page if _vector_problem(stored.get(no, (None, None))[1], model)]
        lacking += _misplaced(embedder, page, stored, 1 if embedder.name.startswith(_QUICK) else PAGE)
        lacking += _unreadable_parts(store, page, model)
        if reader_of(embedder) is not None:  # those that an import or another embedder left without
            there = store.parts([no for no, _ in page])
            lacking += [(no, entry) for no, entry in page if no not in there and has_several(embedding_text(entry))]
        lacking = [*dict(lacking).items()]
        made, of_each = embedded(embedder, [embedding_text(entry) for _, entry in lacking])  # outside any transaction
        vectors = {no: vector for (no, _), vector in zip(lacking, made, strict=True)}
        parts = {no: blob for (no, _), blob in zip(lacking, of_each, strict=True) if blob is not None}
    indexes = {no: record_of(entry) for no, entry in page if _index_problem(entry, stored.get(no, (None, None))[0])}
    wrong = [(no, entry) for no, entry in page if no in vectors or no in indexes or settled(entry) != entry]
    if not wrong:
        return
    with store.transact() as tx:
        now = tx.get([partition], [entry.id for _, entry in wrong])
        current = [(no, entry) for no, entry in wrong if now.get(entry.id) == entry]
        for _, entry in current:
            right = settled(entry)
            if right != entry and not _would_repeat(tx, right):
                tx.update(right, change=None)
        made_anew = [(no, indexes.get(no), vectors.get(no)) for no, _ in current if no in indexes or no in vectors]
        tx.put_index(made_anew, parts=parts)


def _would_repeat(tx: Tx, entry: Entry) -> bool:
    """Whether another entry of the partition has this hash already: a store keeps the same words only once."""
    same = tx.find_same(entry.partition, entry.content_hash) if entry.state in ("active", "flagged") else None
    return same is not None and same.id != entry.id


def _reset_work(store: Store) -> None:
    """Queue jobs again that run for nobody, drop learning records that make no sense, and take back marks of
    reflection on turns that are not there."""
    wrong = [record for record in store.every_record(RecordFilter()) if (found := _record_problem(record)) and found[2]]
    heads = [head for partition in store.partitions() for head in store.sessions(partition)]
    ahead = [head for head in heads if not 0 <= head.reflected <= head.turns]
    if not wrong and not ahead:
        return
    with store.transact() as tx:
        for record in wrong:
            if jobs := [*readable_jobs([record])] if record.kind == JOB else []:
                (job,) = jobs
                state = "queued" if job.state == "running" else job.state
                put_job(tx, replace(job, state=state, worker=None, lease_until=None, attempts=max(job.attempts, 0)))
            else:
                only = RecordFilter(kinds=[record.kind], keys=[record.key], tenant=record.tenant)
                tx.drop_records(replace(only, partition=record.partition, of_tenant=record.partition is None))
        for head in ahead:
            tx.mark_session(head.partition, head.id, reflected=min(max(head.reflected, 0), head.turns))
