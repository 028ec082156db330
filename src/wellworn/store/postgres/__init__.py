"""The store in a Postgres database: opening it, transactions, care."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from wellworn.core.errors import WrongKey
from wellworn.core.values import Partition
from wellworn.store.convert import SEALED_COLUMNS, numbers_blob
from wellworn.store.port import Flaw, Head, Now, Removed, StoreReader, TermRows, Vector
from wellworn.store.postgres.connection import Address, ConnectionLost, Pool
from wellworn.store.postgres.db import Numbers, PostgresDb
from wellworn.store.postgres.schema import migrate
from wellworn.store.postgres.seal import put_key, sealer_of
from wellworn.store.sql import SqlStore
from wellworn.store.sql.db import HIDDEN, Row, names_of
from wellworn.store.sql.reader import MOST_AT_ONCE, heads_query
from wellworn.store.sqlite import SqliteStore
from wellworn.store.sqlite.check import ORPHANS
from wellworn.store.sqlite.driver import Key, connect, key_of

_CHECKS = {
    # as in SQLite; references Postgres itself keeps
    **{check: ORPHANS[check] for check in ("turn_count", "removed_but_there")},
    "count_behind": (
        *ORPHANS["count_behind"][:3],
        "UPDATE partitions SET seq = greatest(seq, (SELECT coalesce(max(greatest(e.seq, e.index_seq)), 0) + 1 "
        "FROM entries e WHERE e.partition = partitions.no))",
    ),
    "tags": (
        "the tag index disagrees",
        "id",
        'entries e WHERE ARRAY(SELECT jsonb_array_elements_text(e.tags::jsonb) COLLATE "C" ORDER BY 1) '
        '<> ARRAY(SELECT t.tag COLLATE "C" FROM entry_tags t WHERE t.entry = e.no AND t.partition = e.partition '
        "ORDER BY 1)",
        "WITH gone AS (DELETE FROM entry_tags RETURNING entry) INSERT INTO entry_tags "
        "SELECT e.partition, jsonb_array_elements_text(e.tags::jsonb), e.no FROM entries e ON CONFLICT DO NOTHING",
    ),
}


_VECTORS = """
SELECT string_agg(int8send(entry), ''), string_agg(vector_send(vector), '') FROM index_records WHERE entry = ANY(?) AND vector IS NOT NULL
GROUP BY vector_dims(vector)
"""
_FULL, _HALF = ("vector", "vector_ip_ops", "<#>", 2000), ("halfvec", "halfvec_l2_ops", "<->", 4000)
"""How vectors are indexed: type, operators, order, and the most numbers of a vector. Of unit vectors both orders are the same;
inner products of halves end the server where a build of pgvector was made for newer processors."""
_UNUSED_INDEXES = """
SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname ~ '^(near|words)_[0-9_]+$'
AND (split_part(relname, '_', 2) NOT IN (SELECT no::text FROM partitions WHERE layer <> '') OR relname = ANY(?))
"""
"""The indexes of partitions that are gone, and those that were not finished."""
_VALID_INDEXES = """
SELECT relname, pg_get_indexdef(oid) LIKE '%%halfvec%%' FROM pg_class JOIN pg_index ON indexrelid = oid AND indisvalid
WHERE relname = ANY(?) AND relnamespace = current_schema()::regnamespace
"""
"""Those that are finished, and whether they have half precision."""
_MOMENT = "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()"
"""Which transactions are over and which are not, on this server since it began."""
_NOW = "SELECT * FROM ({}) AS m LEFT JOIN ({}) AS h ON TRUE"
_WORDED = """
SELECT string_agg(int8send(entry), ''), string_agg(int4send(length(terms) / 8), ''), string_agg(terms, ''),
       string_agg(counts, ''), string_agg(float4send(coalesce({product}, 0)::real), '')
FROM ({rows}) AS found
"""
_FREQUENT = """
SELECT word, count(*) FROM index_records, unnest(words_of(terms)) AS w (word) WHERE partition = ?
GROUP BY word HAVING count(*) > ?
"""


def _indexed(partition_no: int, width: int) -> str:
    """The rows of a partition's index. Small partitions have none and pay for none."""
    return f"partition = {int(partition_no)} AND vector_dims(vector) = {int(width)}"


def _word(term: int) -> str:
    """A term as the function `words_of` gives it."""
    return term.to_bytes(8, "little").hex()


class PostgresStore(SqlStore):
    """A memory in one schema of a Postgres database. Several threads, processes and machines may use it at once."""

    remote = searches_large = True
    _connections: Pool

    def __init__(self, url: str, *, durability: str = "full", key: Key | None = None) -> None:
        super().__init__(durability)
        address = Address(url)
        self._secret = key_of(key)
        self.location = address.name
        self._connections = Pool(address, durability=durability)
        self._precision = _HALF if address.half else _FULL
        self._made: dict[int, tuple[str, str, str, int]] = {}
        """How the vectors of a partition are indexed."""
        try:
            migrate(self._connections, address.schema)
            with self._connections.migrating() if key is not None else self._connections.reading() as db:
                self._connections.sealer = sealer_of(db, key, self.location)
            self.encrypted = self._connections.sealer.on
            with self._connections.reading() as db:
                hidden = db.ask(HIDDEN[1:-1])
            for (number,) in hidden:  # a crash left it half removed
                self.clear_hidden(number)
        except BaseException:
            self._connections.close()
            raise

    def clear_hidden(self, number: int) -> Removed:
        with self._connections.tending(number) as db:
            return Removed() if db is None else self._clear(number)

    def moment(self) -> Hashable:
        return self.now([]).moment

    def now(self, partitions: Sequence[Partition], known: Now | None = None) -> Now:
        if not 0 < len(partitions) <= MOST_AT_ONCE:
            with self._connections.reading() as db:
                (moment,) = db.ask(_MOMENT)
            return Now(moment, self.heads(partitions))
        with self._connections.reading() as db:  # in one trip
            rows = db.ask(_NOW.format(_MOMENT, heads_query(len(partitions))), names_of(partitions))
        heads = {place: Head(partition_no=no, seq=seq) for *_, place, no, seq in rows if no is not None}
        return Now(rows[0][:2], [heads.get(place) for place in range(len(partitions))])

    # -- large partitions ----------------------------------------------------------------------------------------

    def large_index(self, partition_no: int, *, make: bool = False) -> bool:
        model = self.model()
        kind, operators, _, widest = self._precision
        if model is None or model.width > widest:
            return False
        with self._connections.tending(partition_no) if make else self._connections.reading() as db:
            if db is None:
                return False
            near, where = f"near_{int(partition_no)}_{model.width}", _indexed(partition_no, model.width)
            at_once = "WITH (fastupdate = off)"  # else every search reads the list of those that wait
            wanted = {
                near: f"hnsw ((vector::{kind}({model.width})) {operators}) WHERE {where}",
                f"words_{int(partition_no)}": f"gin (words_of(terms)) {at_once} WHERE partition = {int(partition_no)}",
            }
            valid: dict[str, bool] = dict(db.ask(_VALID_INDEXES, ([*wanted],)))
            missing = {*wanted}.difference(valid)
            self._made[partition_no] = _HALF if valid.get(near, self._precision is _HALF) else _FULL
            if not missing or not make:
                return not missing
            for (old,) in db.ask(_UNUSED_INDEXES, ([*missing],)):
                db.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {old}")
            db.execute("SET max_parallel_maintenance_workers = 0")  # the server has other work
            for name in sorted(missing):
                db.execute(f"CREATE INDEX CONCURRENTLY {name} ON index_records USING {wanted[name]}")
        return True

    def vectors(self, nos: Sequence[int]) -> dict[int, Vector]:
        # In one value each width: rows of their own took longer than finding them.
        with self._connections.reading() as db:
            groups = db.ask(_VECTORS, (Numbers(nos),))
        found: dict[int, Vector] = {}
        for entries, blob in groups:  # a vector is sent as two short numbers, then its own
            numbers = np.frombuffer(entries, dtype=">i8").tolist()
            rows = np.frombuffer(blob, dtype=">f4").reshape(len(numbers), -1)[:, 1:].astype("<f4")
            found.update(zip(numbers, rows, strict=True))
        return found

    def nearest(
        self, partition_no: int, vector: Vector, count: int, *, among: Sequence[int] | None = None
    ) -> list[int] | None:
        # Numbers are written out, so that the planner sees which index it is. Rows that are given are compared exactly.
        where, order = _indexed(partition_no, len(vector)), self._order(partition_no, len(vector))
        values: list[object] = []
        with self._connections.reading() as db:
            if among is not None:
                where += " AND entry = ANY(?)"
                order = "vector <#> ?"
                values.append(Numbers(among))
            query = f"SELECT entry FROM index_records WHERE {where} ORDER BY {order} LIMIT {int(count)}"
            return [no for (no,) in db.ask(query, (*values, db.vector(vector)))]

    def _order(self, partition_no: int, width: int) -> str:
        """The order in which the index of a partition names rows."""
        kind, _, order, _ = self._made.get(partition_no, self._precision)
        return f"vector::{kind}({int(width)}) {order} ?::{kind}({int(width)})"

    def worded(
        self,
        partition_no: int,
        sets: Sequence[Sequence[int]],
        limit: int,
        nos: Sequence[int],
        vector: Vector | None,
        near: int = 0,
    ) -> TermRows:
        here, product = f"partition = {int(partition_no)}", "0"
        rows, values = list[str](), list[Any]()
        with self._connections.reading() as db:
            if vector is not None:
                product = f"CASE WHEN vector_dims(vector) = {len(vector)} THEN -(vector <#> ?) END"
                values.append(db.vector(vector))
                if near:
                    where, order = _indexed(partition_no, len(vector)), self._order(partition_no, len(vector))
                    rows.append(f"(SELECT * FROM index_records WHERE {where} ORDER BY {order} LIMIT {int(near)})")
                    values.append(values[0])
            if sets:
                having = " OR ".join(f"words_of(terms) @> '{{{','.join(map(_word, one))}}}'" for one in sets)
                rows.append(f"(SELECT * FROM index_records WHERE {here} AND ({having}) LIMIT {int(limit)})")
            if nos or not rows:
                rows.append(f"(SELECT * FROM index_records WHERE {here} AND entry = ANY(?))")
                values.append(Numbers(nos))
            (columns,) = db.ask(_WORDED.format(product=product, rows=" UNION ALL ".join(rows)), values)
        kinds = (">i8", ">i4", "<u8", "<u2", ">f4")
        arrays = [np.frombuffer(blob or b"", dtype=kind) for blob, kind in zip(columns, kinds, strict=True)]
        return TermRows(*(array.astype(array.dtype.newbyteorder("=")) for array in arrays))

    def frequent_terms(self, partition_no: int, more_than: int) -> dict[int, int]:
        with self._connections.reading() as db:
            found = db.ask(_FREQUENT, (partition_no, more_than))
        return {int.from_bytes(bytes.fromhex(word), "little"): count for word, count in found}

    def check(self, *, mend: bool = False) -> list[Flaw]:
        self.damage.clear()
        with self._connections.writing() if mend else self._connections.snapshot() as db:
            found = [
                Flaw(check=check, subject=f"row {subject}", problem=problem, repairable=True)
                for check, (problem, column, where, _) in _CHECKS.items()
                for (subject,) in db.ask(f"SELECT {column} FROM {where}")
            ]
            for check in {flaw.check for flaw in found} if mend else ():
                _, _, where, statement = _CHECKS[check]
                db.execute(statement or f"DELETE FROM {where}")
        return found

    def rekey(self, key: Key) -> None:
        """Seal the data key with another key; the texts stay as they are."""
        secret = key_of(key)
        if secret is None or not self.encrypted:
            raise WrongKey("only an encrypted store can be given another key in place")
        with self._connections.writing() as db:
            put_key(db, secret, self._connections.sealer.data_key)
        self._secret = secret

    def copy_to(self, path: Path) -> int:
        with self._connections.snapshot() as db:
            return _copied(db, path, self._secret)

    def scrub(self) -> bool:
        """Always False: Postgres overwrites what was removed when it needs the place, and keeps it in its own log and
        backups until those are gone."""
        self._connections.check_open()
        return False

    def close(self) -> None:
        self._connections.close()


# -- one moment as a SQLite file, row by row: both engines have the same tables and columns -----------------------------

_TABLES = (
    *("partitions", "models", "entries", "index_records", "new_vectors", "entry_tags", "links", "replaced", "sessions"),
    *("turns", "removed", "records", "record_entries"),
)
_SEALED = {"entries": SEALED_COLUMNS, "replaced": ("snapshot",), "turns": ("speaker", "text"), "records": ("body",)}
_COUNTED = ("partitions", "entries", "records")
"""Tables whose numbers are never used again."""
_PAGE = 1000


def _copied(db: PostgresDb, path: Path, secret: bytes | None) -> int:
    """Write what this connection sees to a new file, encrypted with this key; returns its number of entries."""
    SqliteStore(path, durability="normal", key=secret).close()
    with closing(connect(path, secret, isolation_level=None)) as file:
        file.execute("PRAGMA secure_delete = ON")
        file.execute("PRAGMA foreign_keys = OFF")  # links may lead to rows that come later
        file.execute("BEGIN")
        for table in _TABLES:
            columns = [name for _, name, *_ in file.execute(f"PRAGMA table_info({table})")]
            into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
            for page in _pages(db, table, columns):
                file.executemany(into, page)
        for table in _COUNTED:
            ((last,),) = db.ask(f"SELECT pg_sequence_last_value(pg_get_serial_sequence('{table}', 'no'))")
            file.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            file.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last or 0))
        file.execute("COMMIT")
        file.execute("PRAGMA foreign_keys = ON")
        for row in db.ask(HIDDEN[1:-1]):  # what is being forgotten is not copied
            file.execute("DELETE FROM partitions WHERE no = ?", row)
        path.chmod(0o600)
        return int(file.execute("SELECT count(*) FROM entries").fetchone()[0])


def _pages(db: PostgresDb, table: str, columns: list[str]) -> Iterator[list[Row]]:
    """The rows of a table as SQLite has them."""
    sealed = [columns.index(name) for name in _SEALED.get(table, ())]
    with db.cursor(name="copied", binary=True) as cursor:
        cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")
        while rows := cursor.fetchmany(_PAGE):
            yield [tuple(map(_plain, row)) for row in db.opened(rows, sealed)]


def _plain(value: Any) -> Any:  # a value of either driver
    """A text that cannot be opened becomes a value of another type: its row is damaged there, too."""
    if isinstance(value, list):
        return numbers_blob(value)
    return b"" if isinstance(value, Exception) else value


def _again(read: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(read)
    def twice(*args: Any, **how: Any) -> Any:
        try:
            return read(*args, **how)
        except ConnectionLost:
            return read(*args, **how)

    return twice


# A read that a restart cut is made again, on a connection to the server that is back; a transaction is not.
for _name in (*StoreReader.__abstractmethods__, "find_same", "now", "vectors", "nearest", "worded"):
    setattr(PostgresStore, _name, _again(getattr(PostgresStore, _name)))
