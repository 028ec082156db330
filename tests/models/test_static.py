from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn.core.errors import EmbeddingFailed, InvalidInput, MissingExtra
from wellworn.models.hashing import HashEmbedder
from wellworn.models.port import Matrix
from wellworn.models.static import StaticEmbedder, WordTokens, read_tokenizer

TEXTS = [
    "I moved to Lisbon in March.",
    "<s> markup </s>",
    "  spaces  and\n\nlines\t",
    "naïve café, 東京, Ελλάδα, 👩‍🚀",
    "x",
    " ",
    "cut \ufffd off",
    "a rather long text " * 500,
]


def wordllama_rows(texts: list[str]) -> Matrix:
    """What WordLlama itself answers, without touching the network or the root logger."""
    spec = importlib.util.find_spec("wordllama")
    assert spec is not None
    assert spec.submodule_search_locations
    root, level = logging.getLogger(), logging.getLogger().level
    handlers = list(root.handlers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its imports are not ours to judge
        from wordllama import WordLlama  # type: ignore[import-untyped,unused-ignore]
    root.handlers[:] = handlers
    root.setLevel(level)
    model = WordLlama.load(cache_dir=Path(spec.submodule_search_locations[0]), disable_download=True)
    rows: Matrix = model.embed(texts, norm=True, batch_size=1)
    return rows


def test_it_equals_wordllama() -> None:
    rows = StaticEmbedder().embed(TEXTS * 200)  # more than one internal batch
    np.testing.assert_allclose(rows[: len(TEXTS)], wordllama_rows(TEXTS), atol=1e-5)
    for place, text in enumerate(TEXTS):
        np.testing.assert_array_equal(rows[place - len(TEXTS)], StaticEmbedder().embed_query(text))


def test_a_text_without_tokens_gives_a_zero_row() -> None:
    rows = StaticEmbedder().embed(["", "word", ""])
    assert StaticEmbedder().embed([]).shape == (0, 256)
    assert not rows[[0, 2]].any()
    assert np.linalg.norm(rows[1]) == pytest.approx(1, abs=1e-6)


TOKENS = Path(next(iter(importlib.util.find_spec("wordllama").submodule_search_locations)))  # type: ignore[union-attr, arg-type]
FILE = TOKENS / "tokenizers" / "l2_supercat_tokenizer_config.json"
BY_WORD, WHOLE = WordTokens(FILE), read_tokenizer(FILE)
PIECES = [
    "a",
    "aa",
    "ab",
    "the",
    " t",
    " ",
    "\n",
    "=",
    "--",
    "_",
    "▁",
    "é",
    "東",
    "👩‍🚀",
    "<",
    "s>",
    "<0x41>",
    "0",
    "10",
]


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.sampled_from(TEXTS))
def test_words_are_split_as_the_tokenizer_splits_them(text: str) -> None:
    ids = BY_WORD.ids(text)
    assert ids is None or ids == WHOLE.encode(text, add_special_tokens=False).ids
    only_whole = any(mark in f" {text}" for mark in ("  ", "▁▁", " ▁", "▁ ", "<s>", "</s>", "<unk>"))
    assert (ids is None) == (only_whole or max(map(len, text.replace("▁", " ").split(" "))) >= 40)


def test_words_are_remembered_until_they_are_cleared() -> None:
    words = WordTokens(FILE)
    before = words.ids("a secret secret")
    assert [words.clear(), words.clear()] == [2, 0]
    assert words.ids("a secret secret") == before
    embedder = StaticEmbedder()
    embedder.embed_query("a secret")
    assert embedder.clear() == 0


def test_a_process_with_few_texts_loads_no_tokenizer() -> None:
    code = (
        "import sys; from wellworn.models.static import StaticEmbedder as S; e = S(); "
        "assert (e.name, e.width) == ('static:l2_supercat_256', 256); "
        "e.embed(['hello', 'you']); assert not {'tokenizers', 'safetensors'} & set(sys.modules); "
        "e.embed(['two  spaces']); assert 'tokenizers' in sys.modules; "
        "assert not {'wordllama', 'requests', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_tokenizers_cache_can_be_switched_off() -> None:
    # The switch is not part of tokenizers' documented interface: this fails should it disappear.
    from tokenizers.models import Unigram

    assert hasattr(Unigram(), "_resize_cache")


@pytest.mark.parametrize("weights", [None, b"damaged"])
def test_missing_or_damaged_weights_are_an_error_that_names_the_remedy(tmp_path: Path, weights: bytes | None) -> None:
    if weights is not None:
        (tmp_path / "weights").mkdir()
        (tmp_path / "weights" / "l2_supercat_256.safetensors").write_bytes(weights)
    with pytest.raises(EmbeddingFailed, match=r"l2_supercat_256\.safetensors.*pip install"):
        StaticEmbedder(tmp_path).embed(["x"])


def test_a_missing_package_is_an_error_that_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="static"):
        StaticEmbedder().embed(["x"])


# -- without weights ---------------------------------------------------------------------------------------------------


def test_similar_texts_are_nearer_than_unrelated_ones() -> None:
    pairs = [
        ("The cat sat on the mat", "A cat is sitting on a mat", "Quarterly revenue rose by nine percent"),
        ("deploy the postgres database", "database deployment with PostgreSQL", "my sister likes hiking"),
        ("東京に住んでいます", "東京に引っ越しました", "猫が好き"),
        ("colour of the house", "the houses' colours", "an unrelated remark"),
    ]
    for text, near, far in pairs:
        a, b, c = HashEmbedder().embed([text, near, far])
        assert a @ b > a @ c + 0.1, text


def test_vectors_are_the_same_in_every_version() -> None:
    gram = 0.222988  # one three- or four-character gram; the word itself adds 3.33 times as much to place 10
    expected = np.zeros(16)
    expected[[1, 3, 5, 7]] = -2 * gram, -gram, -gram, -gram
    expected[[10, 11, 14]] = 0.743294, gram, gram
    np.testing.assert_allclose(HashEmbedder(16).embed_query("memory"), expected, atol=1e-6)


@given(st.lists(st.text(st.characters(categories=["L", "N", "P", "Z", "S", "Cs", "Cc"])), max_size=5))
def test_a_text_has_the_same_vector_alone_and_in_company(texts: list[str]) -> None:
    embedder = HashEmbedder()
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), 256)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_array_equal(row, embedder.embed_query(text))


def test_blank_texts_give_zero_rows_and_symbols_do_not() -> None:
    rows = HashEmbedder().embed(["", " \n", "😀", "!?"])
    assert [bool(row.any()) for row in rows] == [False, False, True, True]
    with pytest.raises(InvalidInput, match="0 is not a vector width"):
        HashEmbedder(0)
