"""Every write of the in-memory store, as a function over its tables.

Each checks first and changes afterwards, so that a refused write leaves nothing behind; and each depends on its
arguments and the tables alone, so that it can be played again on a second copy of them (`store`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellworn.core.errors import StoreError
from wellworn.core.values import Entry, Link, Partition, Turn
from wellworn.store.inmemory.learning_log import Told
from wellworn.store.inmemory.tables import (
    OFFERED_STATES,
    Board,
    LinkKey,
    Mark,
    PostingKey,
    Row,
    Said,
    Tables,
    next_number,
)
from wellworn.store.port import Call, Event, IndexRecord, Job, LoggedRecall, Model, Record, Removed, Replaced


def add(tables: Tables, entry: Entry, index: IndexRecord, vector: bytes | None) -> None:
    """A new row, at the end of its partition."""
    if entry.id in tables.row_of:
        raise StoreError(f"entry {entry.id!r} is in this store already; ids are unique over all partitions")
    _check_content(tables, entry)
    if vector is not None:
        _check_width(tables.model, vector)
    board = _board(tables, entry.partition)
    seq = _advance(tables, board)
    tables.last_row_no += 1
    no = tables.last_row_no
    row = Row(no=no, partition_no=board.no, entry=entry, index=index, seq=seq, index_seq=seq)
    tables.rows[no] = row
    tables.row_of[entry.id] = no
    board.rows[no] = None
    _post(tables, no, row.posting_keys())
    _replace_vectors(tables, no, vector)


def update(tables: Tables, entry: Entry, change: str | None, index: IndexRecord | None, vector: bytes | None) -> None:
    """Replace the row of this id; its number stays."""
    no = tables.row_of.get(entry.id)
    old = None if no is None else tables.rows[no]
    if old is None or old.entry.partition != entry.partition:
        raise StoreError(f"no entry {entry.id!r} on partition {entry.partition}; nothing was changed")
    _check_content(tables, entry)
    if vector is not None:
        _check_width(tables.model, vector)
    seq = _advance(tables, tables.boards[entry.partition])
    reindexed = index is not None or vector is not None
    index_seq = seq if reindexed else old.index_seq
    row = replace(old, entry=entry, index=index or old.index, seq=seq, index_seq=index_seq)
    tables.rows[row.no] = row
    _repost(tables, old, row)
    if change is not None:
        add_replaced(tables, Replaced(entry=old.entry, change=change, changed_at=entry.updated_at))
    if reindexed:
        _replace_vectors(tables, row.no, vector)


def count_use(tables: Tables, nos: Sequence[int], at: datetime) -> None:
    """One more use of each row that is there."""
    for no in nos:
        row = tables.rows.get(no)
        if row is not None:
            seq = _advance(tables, tables.boards[row.entry.partition])
            used = replace(row.entry, usage_count=row.entry.usage_count + 1, updated_at=max(at, row.entry.updated_at))
            tables.rows[no] = replace(row, entry=used, seq=seq)


def remove(tables: Tables, partition: Partition, nos: Sequence[int]) -> Removed:
    """These rows of one partition with all that hangs on them."""
    if not nos:
        return Removed()
    board = tables.boards[partition]
    seq = _advance(tables, board)
    board.gone |= dict.fromkeys(nos, seq)
    for no in nos:
        del board.rows[no]
    tables.log.blank_queries(partition.tenant, set(nos))
    return _take(tables, nos)


def remove_turns(
    tables: Tables, partition: Partition, session_id: str | None, entry_nos: frozenset[int] | None
) -> Removed:
    """Turns of a session or of all, of some entries or of all; then those of the sessions that have none left."""
    board = tables.boards.get(partition) or Board(no=0)
    turns, emptied, cut = 0, set(), set()
    for name in [name for name in board.sessions if session_id in (None, name)]:
        said_at = board.sessions[name]
        gone = [number for number, said in said_at.items() if entry_nos is None or said.entry_no in entry_nos]
        for number in gone:
            del said_at[number]
        turns += len(gone)
        if not said_at:
            del board.sessions[name], board.marks[name]
            emptied.add(name)
        elif gone:
            mark = board.marks[name]
            board.marks[name] = mark._replace(reflected=min(mark.reflected, max(said_at) + 1))
            cut.add(name)
    _forget_sessions(tables, partition, emptied)
    jobs = tables.jobs.forget_sessions(partition, emptied, cut)
    records = tables.records.forget_sessions(partition, emptied)
    return Removed(turns=turns, sessions=len(emptied), jobs=jobs, records=records)


def drop_partition(tables: Tables, partition: Partition) -> Removed:
    """The partition with all that is on it; a later one of the same name is a new partition with a new number."""
    board = tables.boards.pop(partition, None)
    if board is None:
        return Removed()
    del tables.partition_of[board.no]
    turns = sum(len(said_at) for said_at in board.sessions.values())
    tables.log.blank_queries(partition.tenant, set(board.rows))
    recalls = tables.log.drop_partition(partition)
    _forget_sessions(tables, partition, set(board.sessions))
    jobs, records = tables.jobs.drop_partition(partition), tables.records.drop_partition(partition)
    taken = _take(tables, list(board.rows))
    return replace(
        taken, turns=turns, sessions=len(board.sessions), recalls=recalls, jobs=jobs, records=taken.records + records
    )


def add_links(tables: Tables, links: Sequence[Link]) -> int:
    """The links that are new, after all have been checked; one by hand replaces an automatic one."""
    fresh: dict[LinkKey, Link] = {}
    for link in links:
        key = _link_key(tables, link)
        there = fresh.get(key) or tables.links.get(key)
        if there is None or (there.automatic and not link.automatic):
            fresh[key] = link
    for key, link in fresh.items():
        tables.links[key] = link
        for end in key[:2]:
            tables.links_at.setdefault(end, set()).add(key)
    return len(fresh)


def remove_link(tables: Tables, source: str, target: str, type_: str) -> bool:
    """False when there is no such link."""
    if source not in tables.row_of or target not in tables.row_of:
        return False
    key = (tables.row_of[source], tables.row_of[target], type_)
    return key in tables.links and _unlink(tables, [key]) == 1


def open_session(tables: Tables, partition: Partition, session_id: str, at: datetime) -> int:
    """The next free turn number."""
    board = _board(tables, partition)
    board.marks.setdefault(session_id, Mark(touched_at=at))
    return next_number(board.sessions.setdefault(session_id, {}))


def mark_session(
    tables: Tables, partition: Partition, session_id: str, reflected: int | None, ended_at: datetime | None
) -> None:
    """How far reflection has come, and whether the session has ended; what is None stays."""
    there = tables.session(partition, session_id)
    if there is None:
        raise StoreError(f"no session {session_id!r} on partition {partition} to mark")
    if reflected is not None and not 0 <= reflected <= there.turns:
        raise StoreError(f"session {session_id!r} has turns below {there.turns}, none below {reflected} to reflect on")
    marks = tables.boards[partition].marks
    marks[session_id] = marks[session_id]._replace(
        reflected=there.reflected if reflected is None else reflected, ended_at=ended_at or there.ended_at
    )


def add_turn(tables: Tables, partition: Partition, turn: Turn, touched_at: datetime) -> None:
    """A turn of a session that was opened, at a number that is not taken. An entry that is not there is not named."""
    said_at = tables.boards[partition].sessions.get(turn.session_id) if partition in tables.boards else None
    if said_at is None:
        raise StoreError(f"no session {turn.session_id!r} on partition {partition}; open it first")
    if turn.number in said_at:
        raise StoreError(f"turn {turn.number} of session {turn.session_id!r} is there already; turns are not rewritten")
    entry_no = None if turn.entry_id is None else tables.row_of.get(turn.entry_id)
    said_at[turn.number] = Said(turn=turn, entry_no=entry_no)
    marks = tables.boards[partition].marks
    marks[turn.session_id] = marks[turn.session_id]._replace(touched_at=touched_at, ended_at=None)


def put_vectors(tables: Tables, model: Model, vectors: Sequence[tuple[int, bytes]]) -> int:
    """Vectors of a model; only those of the store's own count as a change."""
    for _, vector in vectors:
        _check_width(model, vector)
    kept = {no: vector for no, vector in vectors if no in tables.rows}
    tables.vectors.setdefault(model, {}).update(kept)
    if model == tables.model:
        _touch(tables, kept)
    return len(kept)


def put_index(tables: Tables, records: Sequence[tuple[int, IndexRecord]]) -> None:
    """Index records for rows that are there."""
    kept = {no: index for no, index in records if no in tables.rows}
    for no, index in kept.items():
        old = tables.rows[no]
        tables.rows[no] = replace(old, index=index)
        _repost(tables, old, tables.rows[no])
    _touch(tables, kept)


def use_model(tables: Tables, model: Model) -> None:
    """Serve this model's vectors and drop all others; with another model every partition and row counts as changed."""
    before, tables.model = tables.model, model
    tables.vectors = {model: tables.vectors.get(model, {})}
    if before == model:
        return
    for board in tables.boards.values():
        _advance(tables, board)
    _touch(tables, tables.rows)


def add_replaced(tables: Tables, replaced: Replaced) -> None:
    """An older state, after those that are there."""
    no = tables.row_of.get(replaced.entry.id)
    if no is None:
        raise StoreError(f"no entry {replaced.entry.id!r} to hang an older state on; add the entry first")
    tables.left_behind.setdefault(no, []).append(replaced)


def audit(tables: Tables, event: Event) -> None:
    tables.events.setdefault(event.tenant, []).append(event)


def add_recalls(tables: Tables, recalls: Sequence[LoggedRecall]) -> None:
    """Those that are not in the log yet."""
    for recall in recalls:
        if recall.id not in tables.log.recalls:
            _board(tables, recall.partition)
            tables.log.recalls[recall.id] = recall


def add_outcome(tables: Tables, told: Told) -> int | None:
    return tables.log.tell(told)


def put_policy(tables: Tables, tenant: str, partition: Partition | None, state: str, profile: str) -> None:
    """The learned state of a partition, or of the tenant."""
    if partition is not None:
        if partition.tenant != tenant:
            raise StoreError(f"partition {partition} is not of tenant {tenant!r}")
        _board(tables, partition)
    tables.log.policies[tenant, partition, profile] = state


def drop_policies(tables: Tables, tenant: str, profile: str | None) -> int:
    return tables.log.drop_policies(tenant, profile)


def add_calls(tables: Tables, calls: Sequence[Call]) -> None:
    tables.calls.extend(calls)


def add_job(tables: Tables, job: Job) -> bool:
    """False when its partition has one of this kind and key."""
    if (job.partition, job.kind, job.key) in tables.jobs.by_key:
        return False
    if job.id in tables.jobs.by_id:
        raise StoreError(f"job {job.id!r} is in this store already; ids are unique over all partitions")
    _board(tables, job.partition)
    tables.jobs.add(job)
    return True


def put_job(tables: Tables, job: Job) -> None:
    tables.jobs.put(job)


def prune_jobs(tables: Tables, before: datetime) -> int:
    return tables.jobs.prune(before)


def put_record(tables: Tables, record: Record) -> bool:
    """False when an entry that it names is gone, or of another tenant."""
    named = [tables.rows[no].entry for name in record.names if (no := tables.row_of.get(name)) is not None]
    if sum(entry.partition.tenant == record.partition.tenant for entry in named) < len(record.names):
        return False
    _board(tables, record.partition)
    tables.records.put(record)
    return True


def put_bodies(
    tables: Tables, partition: Partition, kind: str, bodies: Mapping[str, dict[str, Any]], at: datetime
) -> None:
    _board(tables, partition)
    for key, body in bodies.items():
        tables.records.put(Record(partition=partition, kind=kind, key=key, body=body, created_at=at, updated_at=at))


def drop_record(tables: Tables, partition: Partition, kind: str, key: str) -> bool:
    return tables.records.drop(partition, kind, key)


# -- steps ---------------------------------------------------------------------------------------------------------


def _check_width(model: Model | None, vector: bytes) -> None:
    """A vector needs a model, and the model's width."""
    if model is None:
        raise StoreError("the store has no embedding model yet; call use_model before adding vectors")
    if len(vector) != 4 * model.width:
        raise StoreError(f"a vector of {len(vector) // 4} numbers is not of {model.name!r}, which makes {model.width}")


def _check_content(tables: Tables, entry: Entry) -> None:
    """A partition holds the same content once among its active and flagged entries."""
    same = tables.find_same(entry.partition, entry.content_hash) if entry.state in OFFERED_STATES else None
    if same is not None and same.id != entry.id:
        raise StoreError(f"entry {same.id!r} on partition {entry.partition} has the content of {entry.id!r} already")


def _board(tables: Tables, partition: Partition) -> Board:
    """The partition, made when new."""
    if partition not in tables.boards:
        tables.last_partition_no += 1
        tables.boards[partition] = Board(no=tables.last_partition_no)
        tables.partition_of[tables.last_partition_no] = partition
    return tables.boards[partition]


def _advance(tables: Tables, board: Board) -> int:
    """The partition's count for this transaction: one more than before it, however much it changes."""
    if board.no not in tables.advanced:
        tables.advanced.add(board.no)
        board.seq += 1
    return board.seq


def _touch(tables: Tables, nos: Iterable[int]) -> None:
    """Mark rows as changed in index or vector."""
    for no in nos:
        row = tables.rows[no]
        seq = _advance(tables, tables.boards[row.entry.partition])
        tables.rows[no] = replace(row, seq=seq, index_seq=seq)


def _replace_vectors(tables: Tables, no: int, vector: bytes | None) -> None:
    """The row's vector, or none. Those it had, of any model, were made from the text before, so they go."""
    for vectors in tables.vectors.values():
        vectors.pop(no, None)
    if tables.model is not None and vector is not None:
        tables.vectors.setdefault(tables.model, {})[no] = vector


def _post(tables: Tables, no: int, keys: set[PostingKey]) -> None:
    for key in keys:
        tables.postings.setdefault(key, set()).add(no)


def _unpost(tables: Tables, no: int, keys: set[PostingKey]) -> None:
    for key in keys:
        tables.postings[key].remove(no)
        if not tables.postings[key]:
            del tables.postings[key]


def _repost(tables: Tables, old: Row, new: Row) -> None:
    before, after = old.posting_keys(), new.posting_keys()
    _unpost(tables, old.no, before - after)
    _post(tables, old.no, after - before)


def _take(tables: Tables, nos: Sequence[int]) -> Removed:
    """Rows out of every table but the partition's own."""
    ids = [tables.rows[no].entry.id for no in nos]
    links = _unlink(tables, tables.link_keys(nos))
    versions = sum(len(tables.left_behind.pop(no, ())) for no in nos)
    vectors = sum(held.pop(no, None) is not None for held in tables.vectors.values() for no in nos)
    for no in nos:
        row = tables.rows.pop(no)
        del tables.row_of[row.entry.id]
        _unpost(tables, no, row.posting_keys())
    return Removed(
        ids=ids,
        entries=len(ids),
        index_records=len(ids),
        vectors=vectors,
        links=links,
        versions=versions,
        records=tables.records.forget_entries(set(ids)),
    )


def _forget_sessions(tables: Tables, partition: Partition, gone: set[str]) -> None:
    """Take the names of sessions that are gone out of the tenant's calls; what they cost stays."""
    for place, call in enumerate(tables.calls):
        if call.tenant == partition.tenant and call.session in gone:
            tables.calls[place] = replace(call, session=None)


def _link_key(tables: Tables, link: Link) -> LinkKey:
    if link.source == link.target:
        raise StoreError(f"entry {link.source!r} cannot be linked to itself")
    for end in (link.source, link.target):
        if end not in tables.row_of:
            raise StoreError(f"a link needs two entries, and there is no {end!r} in this store")
    return tables.row_of[link.source], tables.row_of[link.target], link.type


def _unlink(tables: Tables, keys: Sequence[LinkKey]) -> int:
    for key in keys:
        del tables.links[key]
        for end in key[:2]:
            tables.links_at[end].remove(key)
            if not tables.links_at[end]:
                del tables.links_at[end]
    return len(keys)
