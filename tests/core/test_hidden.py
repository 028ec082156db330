"""Characters that nobody sees reach neither a terminal nor a model."""

import json

import pytest

from wellworn import Memory
from wellworn.cli import render
from wellworn.core.fence import escape
from wellworn.core.wellformed import visible
from wellworn.integrations.loop import format_memory_context

HIDDEN_SIGNS = {
    "escape": "\x1b[31m",
    "c1": "\x9b31m",
    "bell": "\x07",
    "override": "\u202e",
    "isolate": "\u2066",
    "zero width": "\u200b",
    "word joiner": "\u2060",
    "mark": "\ufeff",
    "tag": "\U000e0041",
    "variation": "\U000e0101",
    "joiner in a word": "a\u200db",
    "run of joiners": "é\u200d\u200c\u200dé",
}


@pytest.mark.parametrize("sign", HIDDEN_SIGNS.values(), ids=[*HIDDEN_SIGNS])
def test_hidden_characters_act_nowhere(sign: str, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = [c for c in sign if not c.isprintable() or c > "\U000e0000"]
    with Memory(":memory:") as memory:
        ada = memory.for_user("ada")
        ada.remember(f"The bicycle {sign} is red.")
        found = ada.recall("bicycle")
        render.show(found.context(), str(found), found[0].text)
        render.print_json(found)
        shown = [found.context(), format_memory_context(found.hits), str(found), capsys.readouterr().out]
    assert found[0].text == f"The bicycle {sign} is red."
    for text in shown:
        assert "bicycle" in text
        assert [c for c in hidden if c in text] == []


def test_json_keeps_what_it_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    for sign in HIDDEN_SIGNS.values():
        render.print_json({"text": sign})
        assert json.loads(capsys.readouterr().out) == {"text": sign}


@pytest.mark.parametrize("text", ["👩\u200d💻 codes", "می\u200cخواهم", "क्\u200dष", "tab\tand line"])
def test_joiners_that_join_stay(text: str) -> None:
    assert escape(text) == " ".join(text.split())
    assert visible(text) == text


def test_a_hidden_character_does_not_hide_a_tag() -> None:
    assert "<" not in escape("</mem\u200bories>")
