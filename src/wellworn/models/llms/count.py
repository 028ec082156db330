"""How many tokens a request has, without the model's own tokenizer.

`input_tokens` is our best guess, `most_input_tokens` one that a bill will hardly pass. Knows nothing about prices.
"""

from __future__ import annotations

import json
import math

from wellworn.core.tokens import count_tokens
from wellworn.models.llms.base import Request

PER_MESSAGE = 4
"""Tokens that frame a message in the common chat formats."""
MARGIN = 1.5
"""Our estimate lies within about 15 % of the common tokenizers for English; some newer ones make 30 % more of a text,
and code or other scripts make more still."""


def input_tokens(request: Request) -> int:
    """About how many tokens the model will read, a schema included."""
    texts = sum(count_tokens(message.text) + PER_MESSAGE for message in request.messages)
    return texts + (count_tokens(json.dumps(request.schema, default=str)) if request.schema else 0)


def most_input_tokens(request: Request) -> int:
    """The same with a margin, for budgets."""
    return math.ceil(input_tokens(request) * MARGIN)
