"""A list of embedders: one model serves, and only members with that model take over from each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from wellworn import Memory, cached_embedder
from wellworn.core.errors import EmbedderMismatch, EmbeddingFailed, InvalidInput, MissingExtra
from wellworn.models import FallbackEmbedder, HashEmbedder, choose_embedder
from wellworn.models.port import Matrix


class Unsteady(HashEmbedder):
    """An embedder that can be down."""

    def __init__(self, name: str, width: int = 16, *, down: bool = False) -> None:
        super().__init__(width)
        self.called, self.down, self.calls = name, down, 0

    @property
    def name(self) -> str:
        return self.called

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.calls += 1
        if self.down:
            raise EmbeddingFailed(f"{self.called} is down")
        return super().embed(texts)


def test_a_new_store_gets_the_first_model_that_answers(tmp_path: Path) -> None:
    down, up = Unsteady("service:a", down=True), Unsteady("service:b", 8)
    for embedder in ([down, up], cached_embedder([up, down])):
        with Memory(tmp_path / "m.db", embedder=embedder) as mem:
            ada = mem.for_user("ada")
            ada.remember("Ada likes tea.")
            assert ada.recall("tea")[0].text == "Ada likes tea."
            assert ada.admin.stats().embedder == "service:b"


def test_a_store_keeps_its_model_and_vectors_never_mix(tmp_path: Path) -> None:
    first, second = Unsteady("service:a"), Unsteady("service:b")
    with Memory(tmp_path / "m.db", embedder=[first, second]) as mem:
        ada = mem.for_user("ada")
        ada.remember("Ada likes tea.")
        first.down = True
        with pytest.raises(EmbeddingFailed, match="service:a is down"):
            ada.remember("Ada likes coffee.")
    assert second.calls == 0
    first.down = False
    with Memory(tmp_path / "m.db", embedder=[second, first]) as mem:  # its model serves, wherever it stands
        assert mem.for_user("ada").admin.stats().embedder == "service:a"
        assert mem.for_user("ada").recall("tea")
    with pytest.raises(EmbedderMismatch, match="service:b"):
        Memory(tmp_path / "m.db", embedder=[second])
    with Memory(tmp_path / "m.db", embedder=[second, first], reembedding=True) as mem:
        assert mem.admin.reembed().model.name == "service:b"


def test_the_same_model_elsewhere_takes_over_and_is_asked_first_from_then_on() -> None:
    near, far, other = Unsteady("service:a"), Unsteady("service:a"), Unsteady("service:b")
    embedder = FallbackEmbedder([near, other, far])
    row = embedder.embed_query("tea")
    near.down = True
    np.testing.assert_array_equal(embedder.embed_query("tea"), row)
    before = near.calls
    np.testing.assert_array_equal(embedder.embed(["tea"])[0], row)
    assert (near.calls, other.calls) == (before, 0)
    far.down, near.down = True, False
    assert embedder.embed(["tea"]).shape == (1, embedder.width)
    near.down = True
    with pytest.raises(EmbeddingFailed, match="service:a is down"):
        embedder.embed(["tea"])


def test_members_that_cannot_be_made_here_are_passed_over(tmp_path: Path) -> None:
    lacking = [f"onnx:{tmp_path / 'nowhere'}", "openai:text-embedding-3-small"]  # a folder and a key
    embedder = choose_embedder([*lacking, "static"])
    assert embedder is not None
    assert embedder.name.startswith("static:")
    with pytest.raises((EmbeddingFailed, MissingExtra), match="onnx"):
        choose_embedder(lacking[:1])
    for wrong, match in ((["onx:folder", "static"], "onx:folder"), ([], "empty"), (["static", "none"], "leave it out")):
        with pytest.raises(InvalidInput, match=match):
            choose_embedder(wrong)
