"""What the model calls of one piece of work added up to."""

from __future__ import annotations

from wellworn.core.values import Cost
from wellworn.models.ledger import Meter
from wellworn.models.port import Reply, Request


class Tally:
    """A metered model that also counts what this piece of work asks of it."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._replies: list[Reply] = []

    @property
    def name(self) -> str:
        return self._meter.name

    def complete(self, request: Request) -> Reply:
        self._replies.append(self._meter.complete(request))
        return self._replies[-1]

    async def acomplete(self, request: Request) -> Reply:
        self._replies.append(await self._meter.acomplete(request))
        return self._replies[-1]

    def cost(self) -> Cost:
        """Calls, tokens and price so far."""
        tokens = [(reply.input_tokens, reply.output_tokens) for reply in self._replies]
        return Cost(
            model_calls=len(tokens),
            input_tokens=sum(read for read, _ in tokens),
            output_tokens=sum(written for _, written in tokens),
            usd=sum(self._meter.prices.usd(self.name, read, written) for read, written in tokens),
        )
