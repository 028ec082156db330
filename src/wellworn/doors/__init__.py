"""Ways in for programs that are not Python: an MCP server, and the settings of the clients that start it.

Everything here translates to `Memory` and `ReasoningBank`; no rule of memory lives here. Agents pass on whatever a person
pastes: what hooks and the MCP server write, log and show is without keys, tokens and passwords.
"""

from __future__ import annotations

import os


def without_secrets(text: str) -> str:
    """The text with a placeholder such as `[API_KEY]` for each secret; as it is with WELLWORN_SECRETS=keep."""
    from wellworn.ingest.pii.find import SECRETS, find  # here: the settings of clients do without it

    while found := [one for one in find(text) if one.type in SECRETS and os.environ.get("WELLWORN_SECRETS") != "keep"]:
        for start, end, type_, _ in reversed(found):
            text = f"{text[:start]}[{type_}]{text[end:]}"
    return text
