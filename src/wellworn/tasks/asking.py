"""A model asked about a trajectory: one that refuses it as a whole, as small ones do, is shown less of it."""

from __future__ import annotations

from collections.abc import Callable

from wellworn.core.errors import ModelFailed
from wellworn.models.port import Model, Request
from wellworn.tasks.shown import MAX_SHOWN_CHARS, SHORT_SHOWN_CHARS

RequestOf = Callable[[int], Request]
"""The request that shows so many characters of the steps."""


def asked(model: Model, request_of: RequestOf) -> str:
    """The answer. A refusal that waiting would not cure is tried once more with less, if there is less to show."""
    whole = request_of(MAX_SHOWN_CHARS)
    try:
        return model.complete(whole).text
    except ModelFailed as error:
        short = request_of(SHORT_SHOWN_CHARS)
        if error.retryable or short == whole:
            raise
    return model.complete(short).text
