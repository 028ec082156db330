"""Someone's own `Model`, with its answers checked like any provider's."""

from __future__ import annotations

from wellworn.models.llms.base import Model, Reply, Request
from wellworn.models.llms.provider import Provider


class CheckedModel(Provider):
    """Wraps an object that has the `Model` methods; whatever it raises or returns otherwise is a `ModelFailed`."""

    def __init__(self, inner: Model) -> None:
        super().__init__(inner.name)
        self.inner = inner

    def _ask(self, request: Request) -> Reply:
        return self.inner.complete(request)

    async def _aask(self, request: Request) -> Reply:
        return await self.inner.acomplete(request)
