"""A model as the extractor that is measured: it is asked as reflection asks it, window by window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wellworn.core.values import Turn
from wellworn.models.port import Model, Reply, Request
from wellworn.reflection.candidate import Candidate
from wellworn.reflection.extract import by_model
from wellworn.reflection.group import group_same
from wellworn.reflection.settings import ReflectionSettings
from wellworn.reflection.window import windows


class ModelExtractor:
    """Extracts with a model, and counts what that took. Where rules answered in its stead, that is counted too."""

    def __init__(self, model: Model, settings: ReflectionSettings | None = None) -> None:
        self._model = model
        self._settings = settings or ReflectionSettings()
        self._replies: list[Reply] = []
        self._dropped: Counter[str] = Counter()
        self._fallbacks = 0

    @property
    def name(self) -> str:
        return self._model.name

    def __call__(self, turns: Sequence[Turn], user: str | None) -> list[Candidate]:
        found: list[Candidate] = []
        for window in windows(turns, 0, self._settings):
            part = by_model(self)(window, user=user, most=self._settings.max_memories)
            found += part.candidates
            self._dropped.update(part.dropped)
            self._fallbacks += bool(part.fallback)
        return group_same(found)

    def complete(self, request: Request) -> Reply:
        self._replies.append(self._model.complete(request))
        return self._replies[-1]

    async def acomplete(self, request: Request) -> Reply:
        self._replies.append(await self._model.acomplete(request))
        return self._replies[-1]

    def took(self) -> dict[str, int]:
        """Calls, tokens, answers that could not be read, and memories dropped by reason."""
        return {
            "calls": len(self._replies),
            "input_tokens": sum(reply.input_tokens for reply in self._replies),
            "output_tokens": sum(reply.output_tokens for reply in self._replies),
            "by_rules_instead": self._fallbacks,
            **{f"dropped: {reason}": count for reason, count in sorted((+self._dropped).items())},
        }
