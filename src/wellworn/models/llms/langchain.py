"""Any LangChain chat model as a model.

Needs only its `invoke` and `ainvoke`, so LangChain itself is never imported here: whoever has the object has the
package. Temperature and output limit are the object's own: every integration names them differently.
"""

from __future__ import annotations

from typing import Any, Protocol

from wellworn.models.llms.base import Request
from wellworn.models.llms.http import joined
from wellworn.models.llms.provider import Provider, Said

_MODEL_FIELDS = ("model", "model_name", "model_id", "deployment_name")


class LangChainChat(Protocol):
    """The part of `langchain_core.language_models.BaseChatModel` that is used."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any: ...

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any: ...


class LangChainModel(Provider):
    """Wraps a chat model. The name is `langchain:CLASS:MODEL`, without the last part where the object does not tell."""

    def __init__(self, chat: LangChainChat, *, name: str | None = None) -> None:
        super().__init__(name or _name_of(chat))
        self._chat = chat

    def _ask(self, request: Request) -> Said:
        return _said(self._chat.invoke(_messages(request), config=_config(request)))

    async def _aask(self, request: Request) -> Said:
        return _said(await self._chat.ainvoke(_messages(request), config=_config(request)))


def _messages(request: Request) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in request.messages]


def _config(request: Request) -> dict[str, Any]:
    # Inside an agent that streams, our calls are nobody's answer: the tag keeps them out of its stream.
    return {"tags": ["nostream"], "run_name": f"wellworn:{request.purpose}"}


def _said(answer: Any) -> Said:
    """From an AIMessage, or the string of a plain LLM."""
    if isinstance(answer, str):
        return Said(text=answer)
    usage = getattr(answer, "usage_metadata", None) or {}
    return Said(
        text=joined(answer.content), input_tokens=usage.get("input_tokens"), output_tokens=usage.get("output_tokens")
    )


def _name_of(chat: LangChainChat) -> str:
    own = f"langchain:{type(chat).__qualname__}"
    models = (getattr(chat, field, None) for field in _MODEL_FIELDS)
    model = next((model for model in models if isinstance(model, str) and model), None)
    return f"{own}:{model}" if model else own
