"""Verification of a whole store, and repair of what follows from the entries.

| check          | holds when                                                                        | repaired |
|----------------|-----------------------------------------------------------------------------------|----------|
| `id`           | the id is a UUID in its usual spelling                                            | no       |
| `required`     | text and partition are not empty                                                      | no       |
| `lists`        | tags are distinct texts, turn references are numbers, counters are not negative   | no       |
| `times`        | created ≤ updated, valid_from < valid_to, all with a zone                         | no       |
| `confidence`   | a number from 0 to 1                                                              | no       |
| `vocabulary`   | kind, state, trust and layer are words we know                                    | no       |
| `superseded`   | a superseded entry has an end of validity                                         | no       |
| `token_count`  | the count is that of the text                                                     | yes      |
| `content_hash` | the hash is that of the text                                                      | yes      |
| `index`        | the stored index record is the one the text gives                                 | yes      |
| `vector`       | there is one when the store has a model: of its width, finite, of length one or 0 | yes (*)  |
| `link`         | both ends exist in one tenant, are not the same, and the type is one we know      | no       |
| `link_views`   | a link is listed at both of its ends                                              | no       |
| `cycle`        | following `supersedes`, or `derived_from`, never leads back                       | no       |
| `turns`        | the numbers of a session's turns ascend                                           | no       |
| `episode`      | an entry made from a turn says, or once said, what the turn says                  | no       |
| `session`      | no turn counts as reflected on that was never said                                | yes      |
| `job`          | its state is one we know; running, and only then, with a worker and a lease       | yes (+)  |

(*) with the embedder that the store's vectors come from. (+) queued again, unless the state is no known one. What the
engine itself can see (pages, references, side tables) is the store's own `check`.

Verification goes partition by partition and page by page and changes nothing; only the edges of `supersedes` and
`derived_from` are held for the whole store. Repair rebuilds counts, hashes, index records and vectors from the text,
and lets the store mend its own tables. It removes no entry and changes no text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from wellworn.core.errors import InvalidInput, StoreError
from wellworn.core.tokens import count_tokens
from wellworn.core.values import (
    JOB_STATES,
    KINDS,
    LAYERS,
    LINK_TYPES,
    STATES,
    Entry,
    Job,
    Link,
    Partition,
    Progress,
    Turn,
)
from wellworn.ingest.hashing import content_hash
from wellworn.ingest.terms import embedding_text, record_of
from wellworn.jobs.queue import job_problem, list_jobs, put_job
from wellworn.models.port import Embedder
from wellworn.ops.lines import checked_id, is_unit_or_zero, settled
from wellworn.ops.reembed import model_of
from wellworn.ops.walk import PAGE, entry_total, pages
from wellworn.store.port import EmbeddingModel, Flaw, IndexRecord, SessionHead, Store, Tx, Vector

_ALL = 1_000_000  # jobs of one partition; there is one for a stretch of turns
_DAMAGE = (StoreError, ValueError, TypeError, OverflowError)  # what reading a damaged row ends in
ACYCLIC_TYPES = ("supersedes", "derived_from")
_TRUSTS = ("trusted", "untrusted")

Found = Iterator[Flaw]
LinkKey = tuple[str, str, str]
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
    before = verify(store, embedder, progress=_half(progress, 0))
    mended = _mended(store)
    for partition in store.partitions():
        _rebuild_partition(store, embedder, partition)
        _reset_work(store, partition)
    after = verify(store, embedder, progress=_half(progress, 1))
    gone = [flaw for flaw in dict.fromkeys([*before.flaws, *mended]) if flaw not in after.flaws]
    return Report(flaws=after.flaws, mended=gone, checked=after.checked)


def _half(progress: Progress | None, part: int) -> Progress | None:
    """The progress of the first or second of two walks as progress of both."""
    return None if progress is None else lambda done, total: progress(part * total + done, 2 * total)


def _flaw(check: str, subject: str, problem: str, *, repairable: bool = False) -> Flaw:
    return Flaw(check=check, subject=subject, problem=problem, repairable=repairable)


# -- an entry by itself ------------------------------------------------------------------------------------------------


def check_entry(entry: Entry) -> Found:
    """Everything that an entry's own fields can tell."""
    try:
        checked_id(entry.id)
    except InvalidInput:
        yield _flaw("id", str(entry.id), "the id is not a UUID in its usual spelling")
    for check, problem in _entry_problems(entry):
        yield _flaw(check, entry.id, problem)
    counted = count_tokens(entry.text)
    if entry.token_count != counted:
        yield _flaw("token_count", entry.id, f"says {entry.token_count}, the text has {counted}", repairable=True)
    if entry.content_hash != content_hash(entry):
        yield _flaw("content_hash", entry.id, "the hash is not that of the text", repairable=True)


def _entry_problems(entry: Entry) -> Iterator[tuple[str, str]]:
    """What no repair can mend."""
    named = entry.partition.tenant and entry.partition.layer_id
    numbers = all(isinstance(number, int) and number >= 0 for number in entry.turn_refs)
    counters = (entry.repeats, entry.usage_count, entry.success_count, entry.failure_count)
    sure = isinstance(entry.confidence, int | float) and 0 <= entry.confidence <= 1
    moments = (entry.at, entry.created_at, entry.updated_at, entry.valid_from, entry.valid_to)
    zoned = all(moment is None or moment.tzinfo is not None for moment in moments)
    ends = entry.valid_to is None or not zoned or entry.valid_to > entry.valid_from
    vocabulary = {"kind": KINDS, "state": STATES, "trust": _TRUSTS, "layer": LAYERS}
    rules = [
        ("required", entry.text.strip(), "the text is empty"),
        ("required", named, "the tenant or the id of its layer is empty"),
        ("lists", well_formed_tags(entry), "the tags are not distinct texts"),
        ("lists", numbers, "the turn references are not turn numbers"),
        ("lists", min(counters) >= 0, "a counter is negative"),
        ("times", zoned, "a time has no zone"),
        ("times", not zoned or entry.created_at <= entry.updated_at, "it was updated before it was created"),
        ("times", ends, "its validity ends before it begins"),
        ("confidence", sure, f"the confidence {entry.confidence!r} is not from 0 to 1"),
        *(
            ("vocabulary", getattr(entry, name) in known, f"{getattr(entry, name)!r} is not a {name}")
            for name, known in vocabulary.items()
        ),
        ("superseded", entry.state != "superseded" or entry.valid_to, "it is superseded and has no end of validity"),
    ]
    yield from ((check, problem) for check, holds, problem in rules if not holds)


def well_formed_tags(entry: Entry) -> bool:
    tags = entry.tags
    return isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) and len(set(tags)) == len(tags)


# -- an entry and what is stored beside it -----------------------------------------------------------------------


def check_index(entry: Entry, stored: IndexRecord | None) -> Found:
    if not well_formed_tags(entry):
        return  # said already; there is no record to compare with
    if stored is None:
        yield _flaw("index", entry.id, "it has no index record, so words do not find it", repairable=True)
    elif not same_record(stored, record_of(entry)):
        yield _flaw("index", entry.id, "the index record is not the one its text gives", repairable=True)


def same_record(a: IndexRecord, b: IndexRecord) -> bool:
    return all(np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


def check_vector(entry: Entry, vector: Vector | None, model: EmbeddingModel | None, *, repairable: bool) -> Found:
    problem = vector_problem(vector, model)
    if problem is not None:
        yield _flaw("vector", entry.id, problem, repairable=repairable)


def vector_problem(vector: Vector | None, model: EmbeddingModel | None) -> str | None:
    """What is wrong with a stored vector, if anything."""
    if model is None:
        return None
    if vector is None:
        return f"it has no vector of {model.name}"
    if vector.shape != (model.width,):
        return f"its vector has {vector.size} numbers, {model.name} makes {model.width}"
    return None if is_unit_or_zero(vector) else "its vector is not finite or not of length one"


# -- links -------------------------------------------------------------------------------------------------------


def check_link(link: Link, tenants: Mapping[str, str]) -> Found:
    """`tenants`: the tenant of every entry that exists among the ends."""
    subject = f"{link.source} {link.type} {link.target}"
    if link.source == link.target:
        yield _flaw("link", subject, "it joins an entry to itself")
    if link.type not in LINK_TYPES:
        yield _flaw("link", subject, f"{link.type!r} is not a link type")
    missing = [end for end in (link.source, link.target) if end not in tenants]
    if missing:
        yield _flaw("link", subject, f"there is no entry {missing[0]}")
    elif tenants[link.source] != tenants[link.target]:
        yield _flaw("link", subject, "it leads from one tenant to another")


def check_link_views(link: Link, at_source: frozenset[LinkKey], at_target: frozenset[LinkKey]) -> Found:
    key = (link.source, link.target, link.type)
    for end, view in ((link.source, at_source), (link.target, at_target)):
        if key not in view:
            yield _flaw("link_views", " ".join((link.source, link.type, link.target)), f"it is not listed at {end}")


def check_cycles(edges: Sequence[tuple[str, str]], type_: str) -> Found:
    """One flaw for each edge that closes a circle, found by depth-first search with three colours."""
    follows: dict[str, list[str]] = {}
    for source, target in edges:
        follows.setdefault(source, []).append(target)
    finished: set[str] = set()
    for start in follows:
        path = {} if start in finished else {start: list(follows[start])}  # entry → where it still leads
        while path:
            name, targets = next(reversed(path.items()))
            if not targets:
                del path[name]
                finished.add(name)
            elif (target := targets.pop()) in path:
                yield _flaw("cycle", name, f"following {type_!r} from {target} leads back to it")
            elif target not in finished:
                path[target] = list(follows.get(target, ()))


# -- turns -------------------------------------------------------------------------------------------------------


def check_turns(turns: Sequence[Turn]) -> Found:
    for before, turn in pairwise(turns):
        if turn.number <= before.number:
            yield _flaw("turns", turn.session_id, f"turn {turn.number} comes after turn {before.number}")


def check_episode(turn: Turn, entry: Entry, older: Callable[[str], Sequence[Entry]]) -> Found:
    """`older` gives an entry's former states, and is asked only when the present one differs from the turn."""
    if entry.session_id != turn.session_id or turn.number not in entry.turn_refs:
        yield _flaw("episode", entry.id, f"turn {turn.number} of {turn.session_id!r} names it, it names another")
    elif turn.text not in (entry.text, entry.evidence) and not any(
        turn.text in (state.text, state.evidence) for state in older(entry.id)
    ):
        yield _flaw("episode", entry.id, f"it never said what turn {turn.number} of {turn.session_id!r} says")


# -- sessions and jobs -------------------------------------------------------------------------------------------


def check_session(head: SessionHead, turns: Sequence[Turn]) -> Found:
    said = max((turn.number for turn in turns), default=-1) + 1
    if not 0 <= head.reflected <= said:
        problem = f"{head.reflected} turns count as reflected on, {said} were said"
        yield _flaw("session", head.id, problem, repairable=True)


def check_job(job: Job) -> Found:
    problem = job_problem(job)
    if problem is not None:
        yield _flaw("job", job.id, f"it {problem}", repairable=job.state in JOB_STATES)


# -- verification ------------------------------------------------------------------------------------------------


class _Examination:
    """One walk over a store."""

    def __init__(self, store: Store, embedder: Embedder | None, progress: Progress | None) -> None:
        self._store = store
        self._progress = progress
        self._model = store.model()
        self._can_embed = can_embed(store, embedder)
        self._edges: dict[str, list[tuple[str, str]]] = {type_: [] for type_ in ACYCLIC_TYPES}
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
            flaws += check_cycles(edges, type_)
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
            yield from check_entry(entry)
            yield from check_index(entry, index)
            yield from check_vector(entry, vector, self._model, repairable=self._can_embed)
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
            yield from check_link(link, tenants)
            if link.source in tenants and link.target in tenants:
                yield from check_link_views(link, self._view(link.source), self._view(link.target))
            if link.type in self._edges:
                self._edges[link.type].append((link.source, link.target))

    def _tenants(self, ends: set[str], partition: Partition, here: set[str]) -> dict[str, str]:
        """The tenant of each end that exists; most are on the page or at least on the partition."""
        found = dict.fromkeys(ends & here, partition.tenant)
        found |= dict.fromkeys(self._store.get([partition], sorted(ends - found.keys())), partition.tenant)
        elsewhere = self._store.get(None, sorted(ends - found.keys()))
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
            yield from check_turns(turns)
            yield from check_session(head, turns)
            yield from self._episodes(partition, turns)

    def _jobs(self, partition: Partition) -> Iterator[Flaw]:
        try:
            jobs = list_jobs(self._store, partition=partition, limit=_ALL)
        except _DAMAGE as error:
            yield _unreadable(f"the jobs of partition {partition.tenant}/{partition.layer}/{partition.layer_id}", error)
            return
        self._checked["jobs"] += len(jobs)
        for job in jobs:
            yield from check_job(job)

    def _episodes(self, partition: Partition, turns: Sequence[Turn]) -> Iterator[Flaw]:
        """An entry that is not there was forgotten and its turn kept, as `forget(ids=…)` does."""
        for start in range(0, len(turns), PAGE):
            part = turns[start : start + PAGE]
            entries = self._store.get([partition], [turn.entry_id for turn in part if turn.entry_id is not None])
            for turn in part:
                if turn.entry_id in entries:
                    yield from check_episode(turn, entries[turn.entry_id], self._older)

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
    lacking = [(no, entry) for no, entry in page if vector_problem(stored[no][1], model)]
    vectors: dict[int, Vector] = {}
    if embedder is not None and lacking and can_embed(store, embedder):
        made = embedder.embed([embedding_text(entry) for _, entry in lacking])
        vectors = {no: vector for (no, _), vector in zip(lacking, made, strict=True)}
    fixes = []
    for no, entry in page:
        index, right = stored[no][0], settled(entry)
        wanted = record_of(entry) if any(check_index(entry, index)) else None
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
        jobs = [job for job in list_jobs(store, partition=partition, limit=_ALL) if any(check_job(job))]
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
