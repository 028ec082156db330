"""Files, handled with suspicion: written whole or not at all, read only where the user pointed and only so much.

Names come from the folder's own listing or from ids that are known to be UUIDs, never from the content of a file.
Symbolic links are not followed. Knows nothing about what the files mean.
"""

from __future__ import annotations

import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO

from wellworn.core.errors import TransferError
from wellworn.core.lazy import regex
from wellworn.core.locks import process_runs
from wellworn.store.port import Store
from wellworn.store.sql.db import maker
from wellworn.store.sqlite import SqliteStore
from wellworn.store.sqlite.connection import fold

MAX_FILE_BYTES = 8_000_000  # text and evidence of one megabyte each, the latter escaped, still fit
MAX_FILES = 1_000_000

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # not on Windows, where making a link needs rights of its own
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a named pipe must not wait for a writer
_MAKER = regex(r"\.(\d{1,9})-[^.]*\.part$")
_OURS = ".wellworn"
"""How names of unfinished files begin that have none of their own."""
_BINARY = getattr(os, "O_BINARY", 0)
_BESIDE = ("-wal", "-shm", "-journal")
"""How the names of files end that may lie beside a database."""
BEFORE_RESTORE, DAMAGED = "before-restore", "damaged"
"""How the names of databases end that another one replaced and that are kept."""


def part_of(path: Path) -> str:
    """How the name of an unfinished file of this process begins. Those that dead processes left there are removed."""
    begin = _begin(path)
    sweep(path.parent, begin)
    return f"{begin}{maker()}-"


def _begin(path: Path) -> str:
    return f".{path.name[:100]}."


def sweep(folder: Path, begin: str = ".") -> None:
    """Remove unfinished files whose names begin like this, of processes that are dead; and what notes of theirs lead to.

    On Windows nobody can tell, and they stay.
    """
    if os.name != "posix":
        return
    names: list[str] = []
    with suppress(OSError):
        names = [name for name in os.listdir(folder) if name.startswith(begin) and name.endswith(".part")]
    for name in names:
        made = _MAKER.search(name)
        if made is None or _runs(int(made[1]), made[0]):
            continue
        with suppress(OSError):
            left = folder / name
            if left.is_symlink() and left.lstat().st_uid == os.geteuid():  # anybody may put one among temporary files
                part = Path(os.readlink(left))
                if part.name.endswith(made[0]) and part.exists():
                    _remove(part)
            _remove(left)


def _runs(pid: int, name: str) -> bool:
    """Whether the process runs that gave a file this name. One before us may have had our number."""
    return name.startswith(f".{maker()}-") if pid == os.getpid() else process_runs(pid)


def _remove(left: Path) -> None:
    """Raises `BlockingIOError` where a process holds it after all: one of another container."""
    if left.is_symlink():
        left.unlink()
        return
    os.close(_hold(left))
    shutil.rmtree(left) if left.is_dir() else left.unlink()


def _hold(path: Path) -> int:
    """A handle by which this process alone holds a file or folder, until it closes the handle or ends."""
    import fcntl

    handle = os.open(path, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:  # a file system without locks
        pass
    return handle


@contextmanager
def _under_way(part: Path, note: Path | None) -> Iterator[None]:
    """Hold an unfinished file or folder. With `note` a link that is named like it leads here: whoever sweeps there finds
    what this process leaves wherever it lies, if it is killed."""
    handle: int | None = None
    link: Path | None = None
    try:
        with suppress(OSError):
            handle = _hold(part) if os.name == "posix" else None
        if note is not None and os.name == "posix":
            with suppress(OSError):
                at = note.with_name(f"{part_of(note)}{part.name.rpartition('-')[2]}")
                at.symlink_to(part)
                link = at
        yield
    finally:
        with suppress(OSError):
            if link is not None:
                link.unlink()
        if handle is not None:
            os.close(handle)


def notes_of(store: Store | None = None) -> Path:
    """Where notes of the unfinished exports of a store lie: beside its file, or among the temporary files."""
    if isinstance(store, SqliteStore) and store.location != ":memory:":
        return store.path
    return Path(tempfile.gettempdir()) / _OURS[1:]


def clean_up(store: Store) -> None:
    """Remove what dead processes left of exports, restores and loads: it may hold what was forgotten since."""
    place, anywhere = notes_of(store), notes_of()
    sweep(place.parent, _begin(place))
    sweep(place.parent, _OURS)
    if place != anywhere:
        sweep(anywhere.parent, _OURS)


def scratch(place: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    """A folder for a while, named like this place; without one, among the temporary files. What dead processes left of
    the same name is removed: it may hold in plain text what is encrypted elsewhere."""
    place = place or notes_of()
    return tempfile.TemporaryDirectory(dir=place.parent, prefix=part_of(place), suffix=".part")


@contextmanager
def explained(problem: str) -> Iterator[None]:
    """What the file system refuses inside the block is a `TransferError` that begins like this."""
    try:
        yield
    except OSError as error:
        raise TransferError(f"{problem}: {error.strerror or error}") from error


@contextmanager
def beside(path: Path, note: Path | None = None) -> Iterator[BinaryIO]:
    """A file to write that takes the name `path` when the block ends well, and vanishes when it does not.

    It is readable by its owner only, as memories are private. `note` is where a later process looks for it if this one is
    killed, see `notes_of`.
    """
    if path.exists() and not path.is_file():
        raise TransferError(f"cannot write {path}: there is something that is not a plain file; give another path")
    with explained(f"cannot write to {path.parent}"):
        handle, name = tempfile.mkstemp(prefix=part_of(path), suffix=".part", dir=path.parent)
    try:
        with explained(f"cannot write {path}"), _under_way(Path(name), note):
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


@contextmanager
def folder_beside(path: Path, note: Path | None = None) -> Iterator[Path]:
    """A folder to fill that takes the name `path` when the block ends well, and vanishes when it does not. `note` as in
    `beside`."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise TransferError(f"{path} is not an empty folder; name a new one to export to")
    with explained(f"cannot write to {path.parent}"):
        made = tempfile.mkdtemp(prefix=part_of(path), suffix=".part", dir=path.parent.absolute())
    try:
        with explained(f"cannot write {path}"), _under_way(Path(made), note):
            yield Path(made)
            os.replace(made, path)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def free_name(kept: Path, path: Path) -> Path:
    """The name under which a file is kept: this one, or with a number where another file or its log is kept already."""
    for name in chain([kept], (kept.with_name(f"{kept.name}-{number}") for number in count(2))):
        is_free = not any(os.path.lexists(f"{name}{ending}") for ending in ("", *_BESIDE))
        if is_free or (path.exists() and name.exists() and name.samefile(path)):
            break
    return name


def kept_copies(path: Path) -> list[Path]:
    """What a restore or a repair has kept beside a database."""
    name = glob.escape(path.name)
    found = (one for ending in (BEFORE_RESTORE, DAMAGED) for one in path.parent.glob(f"{name}.{ending}*"))
    return sorted(found) if path.is_file() else []


def take_place(made: Path, path: Path, kept: Path) -> None:
    """Put a new database in the place of one that nobody has open, which is kept under another name.

    At every moment there is a whole file at `path`: the old one takes its log in first, so that nothing lies beside it. A
    crash before the end leaves the old one there and also as `kept`.
    """
    if path.exists():
        fold(path)
        if not kept.exists():
            try:
                os.link(path, kept)
            except OSError:  # a file system without links
                shutil.copy2(path, kept)
    for ending in _BESIDE:  # of no file, or of one that is cut off: they must not be applied to the new one
        if Path(f"{path}{ending}").exists():
            os.replace(f"{path}{ending}", f"{kept}{ending}")
    os.replace(made, path)


def files_in(root: Path, *suffixes: str) -> list[Path]:
    """Every file below a folder with one of these suffixes, sorted; hidden folders are left out. A link stands
    there by its own name, whatever it leads to: it is not followed, and `read_text` refuses it."""
    found: list[Path] = []
    for folder, folders, names in os.walk(root, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        wanted = [name for name in names if name.endswith(suffixes) and not name.startswith(".")]
        wanted += (name for name in folders if Path(folder, name).is_symlink())
        found += (Path(folder, name) for name in wanted)
        if len(found) > MAX_FILES:
            raise TransferError(f"{root} has more than {MAX_FILES:,} files; load it in parts")
    return sorted(found)


def open_plain(path: Path, *, follow: bool = True) -> BinaryIO:
    """A plain file to read. A named pipe or a device is refused: reading one may never end."""
    handle = os.open(path, os.O_RDONLY | _NO_WAIT | _BINARY | (0 if follow else _NO_FOLLOW))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise TransferError(f"cannot read {path}: it is not a plain file")
    return os.fdopen(handle, "rb")


def read_text(path: Path) -> str:
    """The text of a file, every line end as it is; anything but UTF-8 without NUL is an error."""
    if path.is_symlink():
        raise TransferError(f"{path} is a symbolic link; put the files themselves in the folder")
    with explained(f"cannot read {path}"), open_plain(path, follow=False) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise TransferError(f"{path} is not UTF-8 text: byte {error.start} cannot be read") from None
    if len(content) > MAX_FILE_BYTES:
        raise TransferError(f"{path} has more than {MAX_FILE_BYTES:,} bytes")
    if "\x00" in text:
        raise TransferError(f"{path} has a NUL character at position {text.index(chr(0))}")
    return text


def _refuse(error: OSError) -> None:
    raise TransferError(f"cannot read {error.filename}: {error.strerror or error}") from error
