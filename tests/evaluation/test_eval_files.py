"""Data sets that are missing, damaged or of another kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from evals import locomo, multihop, realmem
from evals.run import parse_ks

from wellworn.core.errors import InvalidInput

SETS = pytest.mark.parametrize("module", [locomo, realmem, multihop])


@SETS
def test_a_missing_folder_says_where_to_get_the_set(module: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no folder.*Dataset not shipped.*public repository") as caught:
        module.load(tmp_path / "nowhere")  # type: ignore[attr-defined]
    assert caught.value.field == "--data"


@SETS
def test_an_empty_folder_says_so(module: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no \.json file"):
        module.load(tmp_path)  # type: ignore[attr-defined]


@SETS
@pytest.mark.parametrize("content", ["", "{", "[", "\x00"])
def test_a_file_that_is_not_json_is_named(module: object, tmp_path: Path, content: str) -> None:
    for name in ("a.json", "a_corpus.json"):
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"a(_corpus)?\.json' is not JSON"):
        module.load(tmp_path)  # type: ignore[attr-defined]


@SETS
@pytest.mark.parametrize("content", ["5", "[5]", '{"dialogues": 3}', '{"a": {"b": 1}}', '"text"', "null"])
def test_json_of_another_kind_is_refused(module: object, tmp_path: Path, content: str) -> None:
    for name in ("a.json", "a_corpus.json"):
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"is not a \w+ file"):
        module.load(tmp_path)  # type: ignore[attr-defined]


def test_multihop_needs_questions_beside_passages(tmp_path: Path) -> None:
    (tmp_path / "lonely.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"no pair NAME\.json and NAME_corpus\.json"):
        multihop.load(tmp_path)


@pytest.mark.parametrize(("text", "ks"), [("5", (5,)), ("10,5,5", (5, 10)), (" 1, 1000 ", (1, 1000))])
def test_cutoffs_are_sorted_and_distinct(text: str, ks: tuple[int, ...]) -> None:
    assert parse_ks(text) == ks


@pytest.mark.parametrize("text", ["", "five", "0", "-1", "1001", "5;10", "5.5", "5,,10"])
def test_unreadable_cutoffs_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--k"):
        parse_ks(text)
