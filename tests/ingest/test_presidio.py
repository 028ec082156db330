"""The adapter for Presidio, against an analyzer with Presidio's interface: the real one brings a language model."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from recollect import Memory, Scope
from recollect.errors import InvalidInput, MissingExtra
from recollect.ingest.pii.mask import scrub_text
from recollect.ingest.pii.presidio import PresidioFinder
from recollect.ingest.pii.scrubbing import Scrub


@dataclass
class RecognizerResult:
    """As `presidio_analyzer.RecognizerResult`."""

    entity_type: str
    start: int
    end: int
    score: float


class Analyzer:
    """Knows two names, a date, and one thing it is not sure of."""

    KNOWN = (("PERSON", "Ada Lovelace", 0.85), ("PERSON", "Bo", 0.85), ("DATE_TIME", "Friday", 0.9),
             ("LOCATION", "Rome", 0.3),
             ("EMAIL_ADDRESS", "ada@example.com", 1.0), ("PERSON", "EMAIL_1", 0.9))  # fmt: skip

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def analyze(self, text: str, language: str, entities: list[str] | None = None,
                score_threshold: float | None = None) -> list[RecognizerResult]:  # fmt: skip
        self.asked.append({"language": language, "entities": entities, "score_threshold": score_threshold})
        return [
            RecognizerResult(type_, found.start(), found.end(), score)
            for type_, name, score in self.KNOWN
            for found in re.finditer(rf"\b{re.escape(name)}\b", text)
        ]


def test_names_are_masked_besides_what_the_rules_find() -> None:
    analyzer = Analyzer()
    finder = PresidioFinder(analyzer, language="en", entities=["PERSON"])
    masked = scrub_text("Ada Lovelace (ada@example.com) met Bo on Friday in Rome; Bo left.", finders=[finder])
    assert masked.text == "[PERSON_1] ([EMAIL_1]) met [PERSON_2] on Friday in Rome; [PERSON_2] left."
    assert analyzer.asked[0] == {"language": "en", "entities": ["PERSON"], "score_threshold": 0.6}
    assert scrub_text(masked.text, finders=[finder]).text == masked.text


def test_a_memory_takes_it_as_a_further_finder() -> None:
    scope = Scope(tenant="acme", user="u")
    with Memory.open(":memory:", embedder="hash", scrubber=Scrub(finders=[PresidioFinder(Analyzer())])) as mem:
        (entry_id,) = mem.remember("Ada Lovelace likes tea.", scope=scope)
        assert mem.get(entry_id, scope=scope).text == "[PERSON_1] likes tea."


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(MissingExtra, match=r"recollect\[presidio\]"):
        scrub_text("x", finders=[PresidioFinder()])
    with pytest.raises(InvalidInput, match="min_score"):
        PresidioFinder(min_score=2)
