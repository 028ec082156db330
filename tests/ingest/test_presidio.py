"""The adapter for Presidio: against the real library where it is installed, without a model of a language.

Names are found by such a model, which is half a gigabyte: for them alone there is a double with Presidio's interface.
"""

from __future__ import annotations

import re
import socket
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import pytest

from wellworn import Memory, Scope
from wellworn.core.errors import InvalidInput, MissingExtra
from wellworn.ingest.pii.mask import Scrub, scrub_text
from wellworn.ingest.pii.presidio import PresidioFinder


@dataclass
class RecognizerResult:
    """As `presidio_analyzer.RecognizerResult`."""

    entity_type: str
    start: int
    end: int
    score: float


class Analyzer:
    """Knows two names, a date, and one thing it is not sure of."""

    KNOWN = (
        ("PERSON", "Ada Lovelace", 0.85),
        ("PERSON", "Bo", 0.85),
        ("DATE_TIME", "Friday", 0.9),
        ("LOCATION", "Rome", 0.3),
        ("EMAIL_ADDRESS", "ada@example.com", 1.0),
        ("PERSON", "EMAIL_1", 0.9),
    )

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def analyze(
        self, text: str, language: str, entities: list[str] | None = None, score_threshold: float | None = None
    ) -> list[RecognizerResult]:
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


# -- the real one ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> PresidioFinder:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its imports
        pytest.importorskip("presidio_analyzer", reason="needs the extra `presidio`, some 200 MB installed")
        finder = PresidioFinder(model="blank")
        [*finder("warm")]
    return finder


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)


WALLET = "16Yeky6GMjeNkAiNcBY7ZhrLoMSgg1BoyZ"
TEXT = f"ada@example.com paid 4111111111111111 from 1.2.3.4 to {WALLET}, see https://x.org on 2026-05-01."


@pytest.mark.usefixtures("offline")
def test_the_real_library_adds_what_the_rules_do_not_know(real: PresidioFinder) -> None:
    masked = scrub_text(TEXT, finders=[real])
    assert masked.text == ("[EMAIL_1] paid [CARD_1] from [IP_1] to [CRYPTO_1], see https://x.org on 2026-05-01.")
    assert scrub_text(masked.text, finders=[real]).text == masked.text
    found = {one.type: TEXT[one.start : one.end] for one in real(TEXT)}
    assert found["CARD"] == "4111111111111111"
    assert not {"URL", "DATE_TIME", "EMAIL"} & {*found}


@pytest.mark.usefixtures("offline")
def test_a_memory_on_the_real_library_keeps_nothing_of_what_it_finds(real: PresidioFinder) -> None:
    scope = Scope(tenant="acme", user="u")
    with Memory.open(":memory:", embedder="hash", scrubber=Scrub(finders=[real])) as mem:
        (entry_id,) = mem.remember(TEXT, scope=scope)
        assert WALLET not in mem.get(entry_id, scope=scope).text
        assert mem.admin.stats(scope=scope).scrubbed["CRYPTO"] == 1
        assert WALLET not in mem.recall(f"whose is {WALLET}?", scope=scope).query


@pytest.mark.usefixtures("real", "offline")
def test_a_model_that_is_not_installed_is_named_and_never_fetched() -> None:
    with pytest.raises(InvalidInput, match=r"'xx_no_model' is not installed.*'blank'"):
        scrub_text("x", finders=[PresidioFinder(model="xx_no_model")])
    assert scrub_text("4111111111111111", finders=[PresidioFinder(language="de", model="blank")]).text == "[CARD_1]"


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(MissingExtra, match=r"wellworn\[presidio\]"):
        scrub_text("x", finders=[PresidioFinder()])
    with pytest.raises(InvalidInput, match="min_score"):
        PresidioFinder(min_score=2)
