"""What was said, read from an agent's messages: the user's words and the final answers, nothing in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AnyMessage, HumanMessage

from wellworn.core.wellformed import well_formed
from wellworn.integrations.rmm.proxy import answered, text_of


@dataclass(frozen=True, kw_only=True)
class Said:
    """One turn of a dialogue."""

    role: str
    text: str
    message_id: str


def said(messages: Sequence[AnyMessage]) -> list[Said]:
    """The turns in messages: tools' answers, calls of tools and empty messages are none."""
    found = []
    for message in messages:
        human = isinstance(message, HumanMessage)
        if not human and not answered(message):
            continue
        text = clean(text_of(message))
        if text.strip():
            found.append(Said(role="user" if human else "assistant", text=text, message_id=message.id or ""))
    return found


def after(messages: Sequence[AnyMessage], anchor: str | None) -> Sequence[AnyMessage]:
    """The messages after the one of this id; all of them when it is not there (it may have been trimmed)."""
    for place in range(len(messages) - 1, -1, -1):
        if anchor is not None and messages[place].id == anchor:
            return messages[place + 1 :]
    return messages


def unkept(messages: Sequence[AnyMessage], kept: str | None) -> Sequence[AnyMessage]:
    """The messages of the turn that has just been answered.

    They begin after the last one kept. Where none was, or it is gone, they begin with the user's last words: a caller
    without a checkpointer sends the whole dialogue each time, and it must not be kept anew each time.
    """
    rest = after(messages, kept)
    if kept is not None and len(rest) < len(messages):
        return rest
    start = next((n for n in range(len(messages) - 1, -1, -1) if isinstance(messages[n], HumanMessage)), 0)
    while start > 0 and isinstance(messages[start - 1], HumanMessage):
        start -= 1
    return messages[start:]


def clean(text: str) -> str:
    """Text that every store takes: without NUL and halves of characters."""
    return well_formed(text).replace("\x00", "")
