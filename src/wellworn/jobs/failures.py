"""What is kept of an error that ended an attempt: enough to act on, nothing that anybody said."""

from __future__ import annotations

import re
import traceback
from pathlib import PurePath

from wellworn.core.errors import EmbedderMismatch, InvalidInput, MissingExtra, NotFound, WellwornError
from wellworn.core.lazy import regex

MOST_CHARS = 200
PERMANENT = (InvalidInput, NotFound, MissingExtra, EmbedderMismatch)
"""What another attempt will not change."""

_QUOTED = regex(r"'[^'\n]*'|\"[^\"\n]*\"|‘[^’\n]*’|“[^”\n]*”")
_ANSWER = regex(r"(HTTP \d{3}):.*", re.DOTALL)


def is_permanent(error: BaseException) -> bool:
    """Whether trying again is of no use: by its type, or because it says so (`retryable`)."""
    return isinstance(error, PERMANENT) or not getattr(error, "retryable", True)


def told(error: BaseException) -> str:
    """The error in one line. Of ours the message, but for what it quotes and what a provider answered; of any other
    only its type and where it came from, because its words may be anybody's."""
    name = type(error).__name__
    if isinstance(error, WellwornError):
        message = _QUOTED.sub("'…'", _ANSWER.sub(r"\1", str(error)))
        line = f"{name}: {' '.join(message.split())}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        line = f"{name} in {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else name
    return line if len(line) <= MOST_CHARS else line[: MOST_CHARS - 1] + "…"
