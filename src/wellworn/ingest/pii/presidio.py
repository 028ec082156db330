"""Microsoft Presidio as a further finder: names, places and whatever else its recognisers know.

Imported on first use, with the extra `presidio`. Names and places need a model of the language (a spaCy package), which
has to be installed: Presidio itself would download half a gigabyte at the first text, and a list of domains for e-mail
addresses, which our own rules find. Here nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.ingest.pii.detectors import Finding

_OUR_TYPES = {
    "EMAIL_ADDRESS": "EMAIL",
    "PHONE_NUMBER": "PHONE",
    "US_SSN": "SSN",
    "CREDIT_CARD": "CARD",
    "IBAN_CODE": "IBAN",
    "IP_ADDRESS": "IP",
}
_LEFT_OUT = frozenset({"DATE_TIME", "URL"})
"""Dates are what memories are about, and links are read by our own rules."""
_FETCHING = ("EmailRecognizer", "UrlRecognizer")
"""Recognisers that ask the network for a list of domains."""
BLANK = "blank"
"""In the place of a model's name: no model, only the recognisers that go by patterns."""


class PresidioFinder:
    """Asks an `AnalyzerEngine`; without one, makes it when the first text comes."""

    def __init__(
        self,
        analyzer: Any = None,
        *,
        language: str = "en",
        model: str | None = None,
        entities: Sequence[str] | None = None,
        min_score: float = 0.6,
    ) -> None:
        """`analyzer` is anything with Presidio's `analyze`; `entities` are Presidio's names of types, None for all.

        `model` is an installed spaCy model of the language, `"blank"` for patterns alone; None takes the largest of
        the language's usual ones that is installed.
        """
        if not 0 <= min_score <= 1:
            raise InvalidInput("min_score", f"{min_score!r} is not a number from 0 to 1")
        self._analyzer = analyzer
        self._language = language
        self._model = model
        self._entities = None if entities is None else [*entities]
        self._min_score = min_score

    def __call__(self, text: str) -> Iterator[Finding]:
        if self._analyzer is None:
            self._analyzer = _engine(self._language, self._model)
        results = self._analyzer.analyze(
            text=text, language=self._language, entities=self._entities, score_threshold=self._min_score
        )
        for one in results:
            if one.score >= self._min_score and one.entity_type not in _LEFT_OUT:
                value = " ".join(text[one.start : one.end].casefold().split())
                type_ = _OUR_TYPES.get(one.entity_type, one.entity_type)
                yield Finding(start=one.start, end=one.end, type=type_, value=value)


def _engine(language: str, model: str | None) -> Any:  # Presidio's AnalyzerEngine
    try:
        import spacy
        from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
        from presidio_analyzer.nlp_engine import SpacyNlpEngine
    except ImportError:
        raise MissingExtra("PresidioFinder", "presidio") from None
    name = _installed(spacy, language, model)
    reader = SpacyNlpEngine(models=[{"lang_code": language, "model_name": name}])
    reader.nlp = {language: spacy.blank(language) if name == BLANK else spacy.load(name)}  # loaded: it fetches nothing
    registry = RecognizerRegistry(supported_languages=[language])
    registry.load_predefined_recognizers(languages=[language], nlp_engine=reader)
    for fetching in _FETCHING:
        registry.remove_recognizer(fetching)
    return AnalyzerEngine(registry=registry, nlp_engine=reader, supported_languages=[language])


def _installed(spacy: Any, language: str, model: str | None) -> str:  # the module
    """The name of a model that is there."""
    corpus = "web" if language in ("en", "zh") else "news"
    usual = [f"{language}_core_{corpus}_{size}" for size in ("trf", "lg", "md", "sm")]
    for name in usual if model is None else [model]:
        if name == BLANK or spacy.util.is_package(name):
            return name
    wanted = model or usual[1]
    raise InvalidInput(
        "model", f"{wanted!r} is not installed", f"`python -m spacy download {wanted}`, or 'blank' for patterns alone"
    )
