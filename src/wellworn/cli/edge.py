"""The edges of the process: text comes in as UTF-8, errors leave as one line or one JSON document, never a traceback.

Exit codes: 0 done; 1 not found, problems remain, or the answer was no; 2 bad input, or a store or model failed;
130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wellworn.core.errors import InvalidInput, NotFound, WellwornError
from wellworn.core.wellformed import visible

FAILED = 1
REFUSED = 2
INTERRUPTED = 130  # 128 + SIGINT, as in shells
DASH = "-"
SHAPES = 'give one object, as in {"prompt": …} or {"query": …, "steps": [{"tool": …, "args": {}, "ok": true}]}'


# -- out -------------------------------------------------------------------------------------------------------------


@contextmanager
def reported(*, as_json: bool = False, complete: Callable[[str], str] = str) -> Iterator[None]:
    """Report the errors of a command on standard error and exit with its code; `complete` is given their words."""
    try:
        yield
        sys.stdout.flush()  # here, not at exit, so that a closed pipe is met here
    except WellwornError as error:
        print_error(error, as_json=as_json, complete=complete)
        sys.exit(FAILED if isinstance(error, NotFound) else REFUSED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Point standard output at nothing, so that the interpreter's last flush stays quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except OSError as error:
        problem = f"{error.filename or 'input/output'}: {error.strerror or error}"
        print_error(error, problem, as_json=as_json)
        sys.exit(REFUSED)


def print_error(error: Exception, message: str = "", *, as_json: bool, complete: Callable[[str], str] = str) -> None:
    """One line, or `{"error": {"type", "message", "field", "remedy"}}`."""
    text = complete(" ".join((message or str(error)).split()))
    if not as_json:
        print(f"wellworn: {visible(text)}", file=sys.stderr)
        return
    details = {name: complete(getattr(error, name, None) or "") or None for name in ("field", "remedy")}
    print(json.dumps({"error": {"type": type(error).__name__, "message": text, **details}}), file=sys.stderr)


def utf8_streams() -> None:
    """Write UTF-8 whatever the locale says, and never fail on a character."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


# -- in --------------------------------------------------------------------------------------------------------------


def text_from(words: Sequence[str] | None, name: str = "TEXT") -> str:
    """The words as one text; standard input for `-`, or for no words when something is piped in."""
    if words and list(words) != [DASH]:
        return " ".join(words)
    text = "" if not words and sys.stdin.isatty() else read_stdin().removesuffix("\n").removesuffix("\r")
    if not text.strip():  # only the line end that `echo` adds, or nothing
        raise InvalidInput(name, "is missing", "give it as an argument, or pipe it in")
    return text


def read_stdin() -> str:
    """All of standard input."""
    return decoded(sys.stdin.buffer.read())


def decoded(data: bytes) -> str:
    """What was read from standard input as UTF-8, without a byte-order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("standard input", f"is not UTF-8 at byte {error.start}", "convert it first") from None


def json_lines(text: str) -> list[tuple[int, dict[str, Any]]]:
    """The object of each line with its line number from 1; blank lines are skipped."""
    found: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise InvalidInput(f"line {number}", "is not JSON", "write one JSON object per line") from None
        if not isinstance(value, dict):
            raise InvalidInput(f"line {number}", f"is a {type(value).__name__}", "write one JSON object per line")
        found.append((number, value))
    return found


def read_object(file: str, piped: str | None = None) -> Mapping[str, Any]:  # any JSON values
    """The JSON object of a file, or of standard input; a list is one of steps. Empty where there is nothing.

    `piped` is what standard input holds, where it was read before.
    """
    where = "standard input" if file == DASH else file
    try:
        if file == DASH and piped is None:
            piped = "" if sys.stdin.isatty() else read_stdin()
        text = Path(file).read_text("utf-8-sig") if piped is None else piped
        value = json.loads(text) if text.strip() else {}
    except OSError as error:
        raise InvalidInput("file", f"cannot read {file!r}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidInput(where, "is not JSON", SHAPES) from None
    value = {"steps": value} if isinstance(value, list) else value
    if not isinstance(value, Mapping):
        raise InvalidInput(where, f"is a {type(value).__name__}", SHAPES)
    return value


def confirm(command: str, question: str, *, no: str, yes: bool) -> None:
    """Go on if `yes` was given or the person agrees; otherwise say `no` and exit."""
    if yes:
        return
    if not can_ask():
        raise InvalidInput(command, "needs a confirmation and nobody can be asked", "add --yes")
    import typer

    if not typer.confirm(question, err=True):
        print(no, file=sys.stderr)
        sys.exit(FAILED)


def can_ask() -> bool:
    """Whether a person sits at the other end."""
    return sys.stdin.isatty()
