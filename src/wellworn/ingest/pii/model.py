"""A language model that is never told what the scrubbing takes out."""

from __future__ import annotations

from dataclasses import replace

from wellworn.ingest.scrub import Scrubber
from wellworn.models.port import Model, Reply, Request


class ScrubbedModel:
    """A model whose every message is scrubbed before it is sent; its answers come as they are."""

    def __init__(self, model: Model, scrub: Scrubber) -> None:
        self._model = model
        self._scrub = scrub

    @property
    def name(self) -> str:
        return self._model.name

    def complete(self, request: Request) -> Reply:
        return self._model.complete(self._clean(request))

    async def acomplete(self, request: Request) -> Reply:
        """The same, awaited; numbers are given in a thread, as that may wait for the store."""
        import asyncio

        return await self._model.acomplete(await asyncio.to_thread(self._clean, request))

    def _clean(self, request: Request) -> Request:
        messages = tuple(replace(message, text=self._scrub(message.text)) for message in request.messages)
        return replace(request, messages=messages)
