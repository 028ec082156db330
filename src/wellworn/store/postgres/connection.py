"""Connections to one Postgres database: a small pool, one writer at a time, driver errors translated.

The pool is our own because it must survive a fork, drop every idle connection when the server went away, and wait no
longer than the present call may. Knows nothing about what the tables mean. No password ever leaves this file.
"""

from __future__ import annotations

import os
import re
import select
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from weakref import WeakValueDictionary

from wellworn.core.errors import InvalidInput, MissingExtra, StoreBusy, StoreClosed, StoreError, StoreUnreachable
from wellworn.core.locks import patience_left

try:
    import psycopg
    from psycopg import conninfo, errors
except ImportError:
    raise MissingExtra("a memory in Postgres", "postgres") from None

from wellworn.core.wellformed import without_password
from wellworn.store.postgres.db import PostgresDb, fetch_vector_type, register_vector
from wellworn.store.postgres.seal import Sealer

BUSY_TIMEOUT_S = 60.0
"""How long one waits for the writer before it, or for a free connection."""
CONNECT_TIMEOUT_S = 10.0
"""How long one waits for a server that does not answer; it may be restarting."""
TRUST_IDLE_S = 1.0
"""A connection that was idle for longer is asked whether it still lives before it is used."""
POOL_SIZE = 16
SCHEMA = "wellworn"
_OPTIONS = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "30000"}
"""A server that vanished without a word is noticed within half a minute."""
_SCAN = "-c hnsw.iterative_scan=relaxed_order -c hnsw.ef_search=200 -c hnsw.max_scan_tuples=50000"
"""How an index of vectors is searched: on and on, until it has named as many rows as were asked for. The first search finds enough
(150), also if every fifth row is gone and not yet vacuumed: a second one would double the time."""
_LOCK_CLASS = 0x77656C6C
"""Our advisory locks, so that they do not meet those of other programs: `well` is the writer's, one more for
migrations, two more for partitions that are being tended, three more for the writers of a tenant."""
_SERVER_BACK_WAITS = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow)


class ConnectionLost(StoreUnreachable):
    """The server ended a connection, or went away. Whoever only read may read again."""


class Address:
    """A URL taken apart: what libpq needs, our own options, and a name without secrets."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.schema = query.pop("schema", SCHEMA)
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", self.schema):
            raise InvalidInput("schema", f"{self.schema!r} is not a name", "use lower-case letters, digits and _")
        size = query.pop("pool_size", str(POOL_SIZE))
        if not size.isdigit() or not 2 <= int(size) <= 1000:
            raise InvalidInput("pool_size", f"{size!r} is not a number of connections", "use 2 to 1000")
        self.pool_size = int(size)
        half = query.pop("halfvec", "off")
        if half not in ("on", "off"):
            raise InvalidInput("halfvec", f"{half!r} is unknown", "use one of on, off")
        self.half = half == "on"
        try:
            bare = urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(query), ""))
            self.given = {k: str(v) for k, v in conninfo.conninfo_to_dict(bare).items() if v is not None}
        except psycopg.Error:  # its message may quote the password
            raise InvalidInput(
                "location",
                "is not a URL that Postgres understands",
                "use postgresql://user:password@host:5432/database; write special characters of the password as %XX",
            ) from None
        self.secrets = [value for key, value in self.given.items() if "password" in key and value]
        self.name = without_password(url)

    def without_secrets(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


class Pool:
    """See `store.sql.SqlConnections`; of one open store in this process. A forked child begins with none."""

    def __init__(self, address: Address, *, durability: str) -> None:
        self._address = address
        self._commit = {"full": "on", "normal": "off"}[durability]
        self._closed = False
        self.sealer = Sealer()
        self._vector: Any = None  # psycopg.types.TypeInfo, once it is known
        self._of_parent: list[object] = []
        self._begin_anew()
        _pools.add(self)

    def _begin_anew(self) -> None:
        self._free = threading.BoundedSemaphore(self._address.pool_size)
        self._lock = threading.Lock()
        self._idle: list[tuple[PostgresDb, float]] = []
        self._writers: WeakValueDictionary[str | None, threading.Lock] = WeakValueDictionary()
        self._writing: set[int] = set()
        """Threads that are in a transaction."""

    def after_fork(self) -> None:
        """In the child: the parent's connections are neither used nor closed here."""
        self._of_parent.append(self._idle)
        self._begin_anew()

    # -- connections ---------------------------------------------------------------------------------------------

    def connect(self) -> PostgresDb:
        """A new connection; waits a bounded time for a server that is starting."""
        until = time.monotonic() + patience_left(CONNECT_TIMEOUT_S)
        pause_s = 0.05
        while True:
            try:
                return self._connect(max(1.0, until - time.monotonic()))
            except psycopg.OperationalError as error:
                refused = error.sqlstate is not None and not isinstance(error, _SERVER_BACK_WAITS)
                if refused or time.monotonic() + pause_s > until:
                    raise self._unreachable(error) from None  # its cause may quote the password
            time.sleep(pause_s)
            pause_s = min(1.0, 2 * pause_s)

    def _connect(self, timeout_s: float) -> PostgresDb:
        settings = (
            f"-c search_path={self._address.schema},public,extensions -c synchronous_commit={self._commit} {_SCAN}"
        )
        given = {"connect_timeout": str(int(timeout_s)), "application_name": "wellworn", **_OPTIONS}
        given |= self._address.given
        given["options"] = f"{self._address.given.get('options', '')} {settings}".strip()
        connection = PostgresDb.connect(conninfo.make_conninfo(**given), autocommit=True)
        if self._vector is not None:
            register_vector(connection, self._vector)
        return connection

    def know_vectors(self, connection: PostgresDb) -> None:
        """Learn the number that pgvector's type has in this database; call it once the extension is there."""
        self._vector = fetch_vector_type(connection)
        register_vector(connection, self._vector)

    def _unreachable(self, error: psycopg.Error) -> StoreError:
        said = " ".join(self._address.without_secrets(str(error)).split())
        remedy = "check that the server runs, and host, port, database, user and password"
        return (StoreUnreachable if _is_away(error) else StoreError)(
            f"cannot reach {self._address.name}: {said} ({remedy})"
        )

    def check_open(self) -> None:
        if self._closed:
            raise StoreClosed("this memory was closed; open it again")

    def _take(self) -> PostgresDb:
        self.check_open()
        wait_s = patience_left(BUSY_TIMEOUT_S)
        if not self._free.acquire(timeout=wait_s):
            raise StoreBusy(
                f"all {self._address.pool_size} connections to {self._address.name} were in use for {wait_s:.1f} s: "
                "add ?pool_size=… to the URL, or run fewer threads"
            )
        try:
            while True:
                with self._lock:
                    connection, since = self._idle.pop() if self._idle else (None, 0.0)
                if connection is None:
                    connection, since = self.connect(), time.monotonic()
                trusted = time.monotonic() - since < TRUST_IDLE_S and not _told_something(connection)
                if trusted or _lives(connection):
                    connection.sealer = self.sealer
                    return connection
                self._drop_idle(connection)
        except BaseException:
            self._free.release()
            raise

    def _give_back(self, connection: PostgresDb) -> None:
        status = connection.info.transaction_status
        if connection.closed:
            self._drop_idle(connection)  # whatever ended it most likely ended the others
        elif self._closed or status != psycopg.pq.TransactionStatus.IDLE:
            connection.close()
        else:
            with self._lock:
                self._idle.append((connection, time.monotonic()))
        self._free.release()

    def _drop_idle(self, dead: PostgresDb) -> None:
        with self._lock:
            dropped, self._idle = self._idle, []
        for connection in (dead, *(one for one, _ in dropped)):
            with suppress(psycopg.Error):
                connection.close()

    # -- reading and writing -------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[PostgresDb]:
        connection = self._take()
        try:
            with self.translated():
                yield connection
        finally:
            self._give_back(connection)

    @contextmanager
    def snapshot(self) -> Iterator[PostgresDb]:
        with self.reading() as db:
            # BEGIN alone does not fix the moment
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1")
            try:
                yield db
            finally:
                _roll_back(db)

    @contextmanager
    def writing(self, tenant: str | None = None) -> Iterator[PostgresDb]:
        """Threads of this process wait here, so that they do not hold connections."""
        me, writing = threading.get_ident(), self._writing  # a fork replaces it
        if me in writing:
            raise StoreError("a transaction is open in this thread already")
        wait_s, began = patience_left(BUSY_TIMEOUT_S), time.monotonic()
        with self._lock:
            writer = self._writers.setdefault(tenant, threading.Lock())
        if not writer.acquire(timeout=wait_s):
            raise StoreBusy(f"another thread wrote for over {wait_s:.1f} s")
        writing.add(me)
        try:
            connection = self._begin(tenant, max(0.001, wait_s - (time.monotonic() - began)))
            try:
                with self.translated():
                    yield connection
                    self._commit_block(connection)
            finally:
                _roll_back(connection)
                self._give_back(connection)
        finally:
            writing.discard(me)
            writer.release()

    def _begin(self, tenant: str | None, wait_s: float) -> PostgresDb:
        """A connection inside a transaction that is alone in writing. Tries another one if it turns out to be dead."""
        begin = f"BEGIN; SET LOCAL lock_timeout = {int(1000 * wait_s) or 1}; {self._writer_locks(tenant)}"
        for last in (False, True):
            connection = self._take()
            try:
                with self.translated():
                    connection.execute(f"{begin}; SET LOCAL lock_timeout = 0")
                return connection
            except BaseException:
                dead = connection.closed
                _roll_back(connection)
                self._give_back(connection)
                if last or not dead:
                    raise
        raise AssertionError("unreachable")

    def _writer_locks(self, tenant: str | None) -> str:
        """Wait until nobody else writes to the schema; or nobody to a tenant, and nobody to the schema as a whole."""
        schema = f"{_LOCK_CLASS}, hashtext('{self._address.schema}')"
        if tenant is None:
            return f"SELECT pg_advisory_xact_lock({schema})"
        name = f"{self._address.schema} {tenant}".encode().hex()
        own = f"{_LOCK_CLASS + 3}, hashtext('{name}')"
        return f"SELECT pg_advisory_xact_lock_shared({schema}); SELECT pg_advisory_xact_lock({own})"

    def _commit_block(self, connection: PostgresDb) -> None:
        try:
            if connection.execute("COMMIT").statusmessage != "COMMIT":  # a statement failed, and the block went on
                raise StoreError("the transaction was rolled back because one of its statements had failed")
        except psycopg.OperationalError as error:
            if connection.closed:
                raise StoreError(
                    f"the connection to {self._address.name} was lost while a transaction was being committed: it may "
                    "or may not have been kept; read before you write it again"
                ) from error
            raise

    @contextmanager
    def migrating(self) -> Iterator[PostgresDb]:
        """A transaction that is alone in changing the tables."""
        with self.reading() as db:
            schema = self._address.schema
            db.execute(f"BEGIN; SELECT pg_advisory_xact_lock({_LOCK_CLASS + 1}, hashtext('{schema}'))")
            try:
                yield db
                db.execute("COMMIT")
            finally:
                _roll_back(db)

    @contextmanager
    def tending(self, number: int) -> Iterator[PostgresDb | None]:
        """A connection for long work on a partition (removing it, making its index); None: another process is at it."""
        with self.reading() as db:
            lock = f"({_LOCK_CLASS + 2}, {number % 2**31})"
            ((free,),) = db.ask(f"SELECT pg_try_advisory_lock{lock}")
            try:
                yield db if free else None
            finally:
                if free and not db.closed:
                    db.execute(f"SELECT pg_advisory_unlock{lock}")

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Driver errors as `StoreError`s: nothing of psycopg escapes the store."""
        try:
            yield
        except psycopg.Error as error:
            raise self._translation(error) from error

    def _translation(self, error: psycopg.Error) -> StoreError:
        text = self._address.without_secrets(error.diag.message_primary or str(error)).strip()
        if isinstance(error, errors.LockNotAvailable):
            return StoreBusy(f"another writer held {self._address.name} for too long ({text})")
        if isinstance(error, errors.QueryCanceled):
            remedy = "try again when the database has less to do, or raise statement_timeout"
            return StoreBusy(f"{self._address.name} was too slow: {text}; nothing was written ({remedy})")
        if isinstance(error, errors.InsufficientPrivilege):
            return StoreError(f"{self._address.name}: {text}; grant it to the user of the URL")
        if isinstance(error, psycopg.IntegrityError | psycopg.DataError | errors.RaiseException):
            return StoreError(f"refused by the store: {text}")
        if isinstance(error, errors.DeadlockDetected | errors.SerializationFailure):
            return StoreBusy(f"another writer was in the way in {self._address.name}: {text}; nothing was written")
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and _is_away(error):
            return ConnectionLost(f"the connection to {self._address.name} was lost: {text}; nothing was written")
        return StoreError(f"the store could not be read or written: {text}")

    def close(self) -> None:
        self._closed = True
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()


def _is_away(error: psycopg.Error) -> bool:
    """Whether the server cannot be reached, not whether it refuses: by the classes of its error codes."""
    return error.sqlstate is None or error.sqlstate[:2] in ("08", "57") or error.sqlstate == "53300"


def _told_something(connection: PostgresDb) -> bool:
    """Whether an idle connection has something to read: most often that the server has ended it."""
    if not hasattr(select, "poll"):  # Windows
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _lives(connection: PostgresDb) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


def _roll_back(connection: PostgresDb) -> None:
    """If a transaction is still open."""
    if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for pool in [*_pools]:
        pool.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
