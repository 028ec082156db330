"""What the reader is trained on can be built, and, where PyTorch is present, a few steps of training lower the loss."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training import examples

RANKING = Path(examples.__file__).parent / "data" / "ranking"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("examples")
    examples.build(out, None, made=200, held=())
    return out


@pytest.mark.slow
def test_the_examples_can_be_built(built: Path) -> None:
    arrays, told = np.load(built / "examples.npz"), json.loads((built / "examples.json").read_text())
    assert {room["kind"] for room in told["rooms"]} == {"life", "talk", "note"}
    assert len(told["rooms"]) > 100
    assert len(arrays["tokens"]) == arrays["lengths"].sum()
    for room in told["rooms"]:
        for text, _, right, former in room["questions"]:
            assert 0 <= text < len(arrays["lengths"])
            assert all(0 <= place < len(room["texts"]) for place in (*right, *former))


@pytest.mark.slow
def test_no_life_of_the_ranking_is_trained_on() -> None:
    trained = {text for room in examples.lives() for text in room.texts}
    held = [examples.life_of_text(path) for path in sorted(RANKING.glob("*.txt"))]
    assert len(held) == 25
    for room in held:
        assert sum(len(text) > 60 and text in trained for text in room.texts) == 0


@pytest.mark.slow
def test_a_few_steps_lower_the_loss(built: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    answers: Any = import_module("training.answers")
    train: Any = import_module("training.train")
    torch.manual_seed(0)
    data = train.Data(built, "cpu")
    data.rooms = [room for room in data.rooms if room["kind"] == "life"][:1]
    data.pairs = {}
    batches = answers.Batches(data, import_module("training.model").Reader(answers.shipped_trunk()).eval())
    model = answers.Answers(answers.shipped_trunk(), layers=1, rank=4).train()
    some = batches.room_batch(data.rooms)[:4]
    rows = [row for one in some for row in one]
    learned = [one for one in model.parameters() if one.requires_grad]
    optimizer, losses = torch.optim.AdamW(learned, lr=1e-2), list[float]()
    for _ in range(20):
        lost = answers.loss_of(model(*batches.tensors(rows, hidden=0.0)).float(), some)
        lost.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(lost.item())
    assert losses[-1] < losses[0]
