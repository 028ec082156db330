"""The store in one SQLite file: opening it, transactions, care."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Hashable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from wellworn.core.errors import StoreCorrupt, WrongKey
from wellworn.core.locks import process_runs
from wellworn.store.port import Flaw, Removed
from wellworn.store.sql import SqlStore
from wellworn.store.sql.db import maker, remover
from wellworn.store.sqlite.check import check_tables, mend_tables
from wellworn.store.sqlite.connection import Connections
from wellworn.store.sqlite.db import translated
from wellworn.store.sqlite.driver import Key, connect, explained, key_of
from wellworn.store.sqlite.schema import STALE_INDEX

if TYPE_CHECKING:
    from wellworn.store.sqlite.salvage import Salvaged

_LOG_MISSING = Flaw(
    check="log",
    subject="file",
    problem="it was copied while in use, without its -wal file, or renamed while open: what was written last may be missing; "
    "copy it again with `wellworn backup create`, or accept the loss with `wellworn doctor --repair`",
    repairable=True,
)


class SqliteStore(SqlStore):
    """A memory in one file. Several threads and processes may use it at once.

    The path `:memory:` stands for a private temporary file that is deleted when the store is closed, or with the
    process. It is a real file because only a file gives readers a snapshot while somebody writes.
    """

    _connections: Connections

    def __init__(self, path: str | Path, *, durability: str = "full", key: Key | None = None) -> None:
        super().__init__(durability)
        self.location = str(path)
        self.path = Path(os.path.realpath(path))
        """The file itself: where a link leads, and the same after a change of the folder."""
        self._drop_files: Callable[[], object] = lambda: None
        if self.location == ":memory:":
            import tempfile

            folder, durability = tempfile.mkdtemp(prefix=f".wellworn.{maker()}-", suffix=".part"), "off"
            self.path = Path(folder) / "memory.db"
            self._drop_files = weakref.finalize(self, _drop_folder, folder, os.getpid())
        self._secret = key_of(key)
        self.encrypted = self._secret is not None
        try:
            self._connections = Connections(self.path, durability=durability, secret=self._secret)
        except StoreCorrupt as error:
            raise explained(Path(path), self._secret, error) from error
        if not self._connections.read_only:
            for number in self._hidden():
                self.clear_hidden(number)

    def moment(self) -> Hashable:
        return self._connections.moment()

    @property
    def stale_index(self) -> bool:
        """Whether it must be made anew, and can."""
        with self._connections.reading() as db:
            made = db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (STALE_INDEX,)).fetchone()
        return made is not None and not self._connections.read_only

    @stale_index.setter
    def stale_index(self, stale: bool) -> None:
        if not stale:
            with self._connections.writing() as db:
                db.execute(f"DROP TABLE IF EXISTS {STALE_INDEX}")

    def _hidden(self) -> list[int]:
        """Partitions that a crash left half removed."""
        with self._connections.reading() as db:
            rows = db.execute("SELECT no, layer_id FROM partitions WHERE layer = ''").fetchall()
        return [no for no, name in rows if self._is_left_behind(name.partition(" ")[2])]

    def _is_left_behind(self, by: str) -> bool:
        """Whether whoever hid a partition is gone, so that somebody else must remove it."""
        pid = by.partition(" ")[0]
        if pid == str(os.getpid()):
            return self._connections.alone or by != remover()
        return not (pid.isdigit() and process_runs(int(pid)))

    def clear_hidden(self, number: int) -> Removed:
        removed = self._clear(number)
        self._connections.return_space()
        return removed

    def check(self, *, mend: bool = False) -> list[Flaw]:
        self.damage.clear()
        missing = [_LOG_MISSING] if self._connections.log_missing else []
        if mend:
            with self._connections.writing() as db:
                mended = mend_tables(db)
            self._connections.accept_loss()
            return [*missing, *mended]
        with self._connections.snapshot() as db:
            return [*missing, *check_tables(db)]

    def copy_to(self, path: Path) -> int:
        with self._connections.reading() as db:
            db.execute("VACUUM INTO ?", (str(path),))
        path.chmod(0o600)
        with closing(connect(path, self._secret)) as copy, translated():
            return int(copy.execute("SELECT count(*) FROM entries").fetchone()[0])

    def salvage_to(self, path: Path) -> Salvaged:
        """Copy what is readable of a damaged file into a new one."""
        from wellworn.store.sqlite.salvage import salvage

        return salvage(self.path, path, secret=self._secret)

    def rekey(self, key: Key) -> None:
        """Encrypt an encrypted store with another key, in one transaction."""
        secret = key_of(key)
        if secret is None or self._secret is None:
            raise WrongKey("only an encrypted store can be given another key in place")
        self._connections.rekey(secret)
        self._secret = secret

    def scrub(self) -> bool:
        return self._connections.checkpoint()

    def close(self) -> None:
        self._connections.close()
        self._drop_files()


def _drop_folder(folder: str, pid: int) -> None:
    """Delete a temporary folder, in the process that made it: a forked child leaves it to its parent."""
    if os.getpid() == pid:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
