"""The demo runs on the real product and stops if something is not as it says."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from wellworn.cli import demo

from .conftest import Cli

RECORDING = Path(__file__).parents[2] / "docs" / "demo.svg"


def told() -> str:
    page = io.StringIO()
    demo.tell(Console(file=page, width=100))
    return page.getvalue()


def test_the_demo_answers_its_questions_and_forgets() -> None:
    page = told()
    for answer in ("Tokio.", "Raising the connection pool to sixty", "happen on Wednesdays", "walnuts"):
        assert answer in page.split("2. Recall")[1]
    assert "Words of bruno left in the file: none. The store is sound." in page
    assert len(page.splitlines()) < 36
    assert page == told()  # so that the recording does not change by itself


def test_the_demo_fails_if_a_word_of_the_forgotten_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "WORDS_OF_BRUNO", ("tokio",))
    with pytest.raises(SystemExit, match="should be gone"):
        told()


@pytest.mark.parametrize("recording", [None, RECORDING])
def test_the_recording_is_a_picture_that_fetches_nothing(cli: Cli, tmp_path: Path, recording: Path | None) -> None:
    if recording is None:
        recording = tmp_path / "demo.svg"
        cli.ok("demo", "--svg", str(recording))
    picture = recording.read_text(encoding="utf-8")
    words = " ".join(element.text or "" for element in ElementTree.fromstring(picture).iter())
    assert "Tokio." in words.replace("\xa0", " ")
    assert not any(fetch in picture for fetch in ("@font-face", "url(http", "@import", 'href="http', "<script"))
