"""Logs of the service as JSON, one object a line, each with the id of the request that it belongs to.

No line holds memory text: of an error it has the type and where it came from, not its words; of a request the route, not
the path or the query.
"""

from __future__ import annotations

import logging
import secrets
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import msgspec

from wellworn.core.lazy import regex

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""Of the request that is being answered; sent back as `x-request-id`."""
ACCESS = "wellworn.access"
FIELDS = ("method", "route", "status", "ms", "actor")
"""What an access line has beside the usual."""
_GIVEN = regex(r"[A-Za-z0-9._-]{1,64}")


def request_id(given: str | None) -> str:
    """The id that a proxy or client gave the request, if it is plain; else a new one."""
    return given if given is not None and _GIVEN.fullmatch(given) else secrets.token_hex(8)


def log_json() -> None:
    """Write the logs of this process to standard error as JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("wellworn").setLevel(logging.INFO)


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if REQUEST_ID.get():
            line["request_id"] = REQUEST_ID.get()
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)
            line["error"] = type(error).__name__
            line["trace"] = [f"{PurePath(one.filename).name}:{one.lineno} {one.name}" for one in frames]
        return msgspec.json.encode(line).decode()


def _message(record: logging.LogRecord) -> str:
    """The message; an error that it is about is told by its type, because its words may be anybody's."""
    if not isinstance(record.args, tuple):
        return record.getMessage()
    told = tuple(type(one).__name__ if isinstance(one, BaseException) else one for one in record.args)
    return str(record.msg) % told if told else str(record.msg)
