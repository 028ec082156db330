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
from wellworn.store.sqlite.connection import fold

MAX_FILE_BYTES = 8_000_000  # text and evidence of one megabyte each, the latter escaped, still fit
MAX_FILES = 1_000_000

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # not on Windows, where making a link needs rights of its own
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a named pipe must not wait for a writer
_MAKER = regex(r"\.(\d{1,9})-[^.]*\.part$")
_BINARY = getattr(os, "O_BINARY", 0)
_BESIDE = ("-wal", "-shm", "-journal")
"""How the names of files end that may lie beside a database."""
BEFORE_RESTORE, DAMAGED = "before-restore", "damaged"
"""How the names of databases end that another one replaced and that are kept."""


def part_of(path: Path) -> str:
    """How the name of an unfinished file of this process begins. Those that dead processes left there are removed."""
    begin = f".{path.name[:100]}."
    sweep(path.parent, begin)
    return f"{begin}{os.getpid()}-"


def sweep(folder: Path, begin: str = ".") -> None:
    """Remove unfinished files whose names begin like this, of processes that are dead."""
    for left in folder.glob(f"{glob.escape(begin)}*.part"):
        maker = _MAKER.search(left.name)
        if maker is not None and not process_runs(int(maker[1])):
            with suppress(OSError):
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()


def scratch(place: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    """A folder for a while, named like this place; without one, among the temporary files. What dead processes left of
    the same name is removed: it may hold in plain text what is encrypted elsewhere."""
    place = place or Path(tempfile.gettempdir()) / "wellworn"
    return tempfile.TemporaryDirectory(dir=place.parent, prefix=part_of(place), suffix=".part")


@contextmanager
def explained(problem: str) -> Iterator[None]:
    """What the file system refuses inside the block is a `TransferError` that begins like this."""
    try:
        yield
    except OSError as error:
        raise TransferError(f"{problem}: {error.strerror or error}") from error


@contextmanager
def beside(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the name `path` when the block ends well, and vanishes when it does not.

    It is readable by its owner only, as memories are private.
    """
    if path.exists() and not path.is_file():
        raise TransferError(f"cannot write {path}: there is something that is not a plain file; give another path")
    with explained(f"cannot write to {path.parent}"):
        handle, name = tempfile.mkstemp(prefix=part_of(path), suffix=".part", dir=path.parent)
    try:
        with explained(f"cannot write {path}"):
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
def folder_beside(path: Path) -> Iterator[Path]:
    """A folder to fill that takes the name `path` when the block ends well, and vanishes when it does not."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise TransferError(f"{path} is not an empty folder; name a new one to export to")
    with explained(f"cannot write to {path.parent}"):
        made = tempfile.mkdtemp(prefix=part_of(path), suffix=".part", dir=path.parent)
    try:
        with explained(f"cannot write {path}"):
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
