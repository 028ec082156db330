"""Moving a whole memory to another engine: an export, a load, the other records, and a proof that all of it arrived.

What is there already is skipped, so a move that was cut short is finished by the same call. Row numbers are an engine's
own: the learning log carries entry ids instead, and learned states are made anew from it. Whoever writes to the source
meanwhile is not heard: stop them first.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from wellworn.core.clock import Clock
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, TransferError
from wellworn.core.values import Progress
from wellworn.ingest.remember import Writer
from wellworn.learning.records import OUTCOME, POLICY, RECALL
from wellworn.ops.bundle import Loaded
from wellworn.ops.transfer import export_to, load_from
from wellworn.store.port import Record, RecordFilter, Store

PAGE = 500
MOVED = "moved"
"""The kind of record that says how far the records of a source have come."""
_NOT_COPIED = frozenset({RECALL, OUTCOME, POLICY, MOVED, "index_file"})
"""Kinds that the export carries, that are made anew, or that tell of files of the source."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What a move brought, and the hash of the lines that are in both stores now."""

    entries: int
    skipped: int
    links: int
    turns: int
    versions: int
    records: int
    lines: int
    sha256: str


def move(
    source: Store, target: Store, writer: Writer, *, clock: Clock, plain: bool = False, progress: Progress | None = None
) -> Moved:
    """Copy everything of one store into another, whose writer is given; `plain` lets that of an encrypted store pass through a
    plain temporary file."""
    if source.location == target.location:
        raise InvalidInput("target", f"{target.location!r} is the source itself", "name another store")

    def part(number: int) -> Progress | None:
        """The progress of one of three walks as progress of all."""
        return None if progress is None else lambda done, total: progress(number * total + done, 3 * total)

    def exported(store: Store, path: Path, number: int, plain: bool) -> list[bytes]:
        export_to(
            store, path, format="jsonl", scope=None, vectors=True, clock=clock, plain=plain, progress=part(number)
        )
        with path.open("rb") as file:
            lines = file.readlines()[1:-1]  # without the header and the seal, which hold times and counts
        return sorted(hashlib.sha256(line).digest() for line in lines)

    with tempfile.TemporaryDirectory(prefix="wellworn-") as folder:
        wanted = exported(source, Path(folder) / "source.jsonl", 0, plain)
        loaded: Loaded = load_from(
            target, writer, Path(folder) / "source.jsonl", format="jsonl", scope=None, progress=part(1)
        )
        records = _copy_records(source, target)
        missing = {*wanted} - {*exported(target, Path(folder) / "target.jsonl", 2, True)}
    if missing:
        raise TransferError(
            f"{len(missing):,} of {len(wanted):,} lines of {source.location} are not in {target.location}: they were there "
            "already in another form, or changed meanwhile; move into a store that is empty"
        )
    return Moved(
        entries=loaded.entries,
        skipped=loaded.skipped,
        links=loaded.links,
        turns=loaded.turns,
        versions=loaded.versions,
        records=records,
        lines=len(wanted),
        sha256=hashlib.sha256(b"".join(wanted)).hexdigest(),
    )


def _copy_records(source: Store, target: Store) -> int:
    """Jobs, tasks, events, model calls and settings, a page a transaction; it goes on where it was cut short."""
    copied, tenant = 0, "default"
    while True:
        done = next(iter(target.records(RecordFilter(kinds=[MOVED], keys=[source.location], tenant=tenant))), None)
        after = 0 if done is None else int(done.body["after"])
        page = source.records(RecordFilter(after=after, order="oldest", limit=PAGE))
        if not page:
            return copied
        chosen = [record for record in page if record.kind not in _NOT_COPIED and not record.rows]
        mark = Record(
            tenant=tenant,
            kind=MOVED,
            key=source.location,
            body={"after": page[-1].no},
            created_at=page[-1].created_at,
            updated_at=page[-1].updated_at,
        )
        with target.transact() as tx:
            copied += sum(no is not None for no in tx.put_records(chosen, replace=False))
            tx.put_records([mark])
