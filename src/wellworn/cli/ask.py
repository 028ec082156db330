"""How a hook asks a server of its memory (`answer`) to run it, so that the hook loads neither the memory nor the parser.

Agents start hooks often, and somebody waits for each: nothing here may import more of the package. A hook sends one line of
JSON. The server writes a line end before it begins, and one JSON document when it is done.
"""

from __future__ import annotations

import io
import json
import os
import socket
import stat
import sys
from collections.abc import Sequence
from hashlib import blake2b

from wellworn import __version__

DEFAULT_DB = "memory.db"
FOLDER = ".wellworn"
"""Where `wellworn connect` keeps a memory, so that nobody commits it by accident."""
BEGUN_S = 2.0
"""How long a hook waits for a server to begin; after that it does the work itself."""
DONE_S = {"pre-task": 8.0, "post-task": 55.0, "session-end": 8.0}
"""How long it then waits for the answer: a little less than agents wait for the hook."""
MOST_BYTES = 16_000_000
"""The most that a request or an answer may hold."""
CARRIED = ("WELLWORN_DB", "WELLWORN_USER", "WELLWORN_TENANT", "WELLWORN_EMBEDDER")
FOR_SERVERS = ("WELLWORN_REDIS", "WELLWORN_SUMMARIZER")
"""Settings that a request carries, and settings that mean nothing to a hook. All others have to be the server's, too."""
_MOST_ROOM = 60
"""The address of a socket holds about 100 bytes."""


def served(args: Sequence[str]) -> bool:
    """Let a server run a hook and print what it answers; False where no server does."""
    if not args or args[0] not in DONE_S:
        return False
    try:
        asked = _request(args)
    except (OSError, UnicodeDecodeError):
        return False
    answer = asked and _answer(*asked, done_s=DONE_S[args[0]])
    if not answer:
        return False
    try:
        for stream, text in zip((sys.stdout, sys.stderr), answer, strict=True):
            stream.buffer.write(text.encode("utf-8", "backslashreplace"))
            stream.flush()
    except OSError:
        os._exit(1)  # nobody reads it; the interpreter would complain at its end
    return True


def _request(args: Sequence[str]) -> tuple[str, bytes] | None:
    """The address of a server, and what to ask it."""
    db = memory_file(_given(args, "--db") or os.environ.get("WELLWORN_DB"))
    place = place_of(db)
    if place is None or not os.path.exists(place) or not is_private(os.path.dirname(place)):
        return None
    data = b""
    if _given(args, "--query") is None and _given(args, "--trajectory-file") in (None, "-"):
        if sys.stdin is None or sys.stdin.isatty():
            return None
        data = sys.stdin.buffer.read()
        sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")  # for the case that no server takes it
    request = {
        "line": [*args],
        "db": os.path.realpath(db),
        "folder": os.getcwd(),
        "piped": data.decode("utf-8-sig"),
        "carried": {name: os.environ[name] for name in CARRIED if name in os.environ},
        "settings": settings(),
    }
    return place, json.dumps(request).encode() + b"\n"


def _answer(place: str, request: bytes, *, done_s: float) -> tuple[str, str] | None:
    """What a server wrote for standard output and for standard error; None where none has begun."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(BEGUN_S)
        try:
            line.connect(place)
            line.sendall(request)
            if line.recv(1) != b"\n":
                return None
        except OSError:
            return None
        try:  # work that has begun is not begun again
            line.settimeout(done_s)
            with line.makefile("rb") as lines:
                out, err = json.loads(lines.read(MOST_BYTES))
        except (OSError, ValueError):
            return "", "wellworn: continuing without memory: its server gave no answer\n"
    return out, err


def memory_file(named: str | None) -> str:
    """The file of the memory: the one that is named, or that of this folder."""
    connected = os.path.isdir(FOLDER) and not os.path.exists(DEFAULT_DB)  # by `wellworn connect`
    return os.path.expanduser(named or (os.path.join(FOLDER, DEFAULT_DB) if connected else DEFAULT_DB))


def place_of(db: str) -> str | None:
    """The address of the server of a memory; None where there can be none."""
    if sys.platform == "win32" or "://" in db or db == ":memory:":
        return None
    room = os.environ.get("XDG_RUNTIME_DIR", "")
    own = 0 < len(os.fsencode(room)) <= _MOST_ROOM and is_private(room)
    folder = os.path.join(room, "wellworn") if own else f"/tmp/wellworn-{os.geteuid()}"  # noqa: S108 - is_private looks
    name = blake2b(os.fsencode(f"{__version__}\0{os.path.realpath(db)}"), digest_size=12)
    return os.path.join(folder, name.hexdigest())


def is_private(folder: str) -> bool:
    """Whether a folder is this user's own, and nobody else may look into it."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def settings() -> str:
    """A hash of the environment's settings that the request does not carry, the key of the memory among them."""
    own = {*CARRIED, *FOR_SERVERS}
    found = sorted(one for one in os.environ.items() if one[0].startswith("WELLWORN_") and one[0] not in own)
    return blake2b(os.fsencode(repr(found)), digest_size=16).hexdigest()


def _given(args: Sequence[str], name: str) -> str | None:
    """The value of an option in a line; None where it is not there."""
    for number, word in enumerate(args):
        if word == name:
            return "".join(args[number + 1 : number + 2])
        if word.startswith(f"{name}="):
            return word[len(name) + 1 :]
    return None
