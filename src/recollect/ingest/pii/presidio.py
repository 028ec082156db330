"""Microsoft Presidio as a further finder: names, places and whatever else its recognisers know.

Imported on first use, with the extra `presidio`. Its model of a language has to be installed too, see its own pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from recollect.errors import InvalidInput, MissingExtra
from recollect.ingest.pii.finding import Finding

_OUR_TYPES = {
    "EMAIL_ADDRESS": "EMAIL", "PHONE_NUMBER": "PHONE", "US_SSN": "SSN", "CREDIT_CARD": "CARD", "IBAN_CODE": "IBAN",
    "IP_ADDRESS": "IP",
}  # fmt: skip
_LEFT_OUT = frozenset({"DATE_TIME", "URL"})
"""Dates are what memories are about, and links are read by our own rules."""


class PresidioFinder:
    """Asks an `AnalyzerEngine`; without one, makes it when the first text comes."""

    def __init__(self, analyzer: Any = None, *, language: str = "en", entities: Sequence[str] | None = None,
                 min_score: float = 0.6) -> None:  # fmt: skip
        """`analyzer` is anything with Presidio's `analyze`; `entities` are Presidio's names of types, None for all."""
        if not 0 <= min_score <= 1:
            raise InvalidInput("min_score", f"{min_score!r} is not a number from 0 to 1")
        self._analyzer = analyzer
        self._language = language
        self._entities = None if entities is None else [*entities]
        self._min_score = min_score

    def __call__(self, text: str) -> Iterator[Finding]:
        if self._analyzer is None:
            self._analyzer = _engine()
        results = self._analyzer.analyze(
            text=text, language=self._language, entities=self._entities, score_threshold=self._min_score
        )
        for one in results:
            if one.score >= self._min_score and one.entity_type not in _LEFT_OUT:
                value = " ".join(text[one.start : one.end].casefold().split())
                type_ = _OUR_TYPES.get(one.entity_type, one.entity_type)
                yield Finding(start=one.start, end=one.end, type=type_, value=value)


def _engine() -> Any:  # Presidio's AnalyzerEngine
    try:
        from presidio_analyzer import AnalyzerEngine
    except ImportError:
        raise MissingExtra("PresidioFinder", "presidio") from None
    return AnalyzerEngine()
