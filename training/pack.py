"""Pack what `train` wrote into what ships: `python -m training.pack OUT`.

Matrices become bytes with a scale for each row, the rest halves. The graph holds no weights. Beside them goes how much each piece of
a word says, from how often it occurs in `evals/sentences`; and into `recorded.json` go the vectors of some texts, with which a
test compares the shipped file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper
from safetensors.torch import load_file, save_file
from torch import Tensor

from training.examples import spoken
from training.model import HEADS, INNER, LAYERS, WIDTH
from training.train import joined
from wellworn.language import answers, reader
from wellworn.language.wordpiece import WordPiece

MOST_PLACES = 256
OFTEN = 1e-3
"""A piece that has this share of all counts half."""
RECORDED = Path(__file__).parent / "recorded.json"
TEXTS = [
    "who is my dentist?",
    "had the braces off in March, Dr Okonkwo did it, cant stop smiling. can you write her a thank you card",
    "Unser Hund heißt Bruno und mag keine Karotten.",
    "def parse(raw): raises ValueError for ids of fewer than 9 digits",
    "日本語の文です。",
]

READ = [
    (
        "had the braces off in March, Dr Okonkwo did it, cant stop smiling. can you write her a thank you card",
        "user",
        90,
    ),
    ("Dear Dr Okonkwo, thank you for two years of patience.", "assistant", 90),
    ("my sister starts with Dr Lund next week, hers are the invisible ones", "user", 10),
    ("Unser Hund heißt Bruno und mag keine Karotten.", "note", 400),
]
"""Texts, who says them, and how many days ago."""
QUESTIONS = ["who did my teeth?", "what does Bruno not eat?", "what is the rent?"]


def packed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The arrays that `wellworn.language.reader` reads."""
    found: dict[str, Tensor] = {}

    trunk = {name.removeprefix("trunk."): value for name, value in weights.items() if name.startswith("trunk.")}
    found |= as_bytes("words", trunk["words.weight"])
    found["places"] = (trunk["positions.weight"][:MOST_PLACES] + trunk["types.weight"][0]).half()
    found |= {name: trunk[name].half() for name in ("norm.weight", "norm.bias")}
    for number in range(LAYERS):
        for name in ("qkv", "out", "up", "down"):
            found |= as_bytes(f"{number}.{name}.weight", trunk[f"layers.{number}.{name}.weight"])
            found[f"{number}.{name}.bias"] = trunk[f"layers.{number}.{name}.bias"].half()
        for name in ("norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"):
            found[f"{number}.{name}"] = trunk[f"layers.{number}.{name}"].half()
    found |= {name: weights[name].half() for name in ("asks.weight", "asks.bias")}
    share = shares()
    found["pieces.weight"] = (OFTEN / (OFTEN + share)).half()
    found["pieces.mean"] = (trunk["words.weight"] * share[:, None]).sum(0).half()
    return {name: value.contiguous() for name, value in found.items()}


def as_bytes(name: str, matrix: Tensor) -> dict[str, Tensor]:
    """A matrix as bytes with a scale for each row."""
    scale = (matrix.abs().amax(1, keepdim=True) / 127).clamp(min=1e-6).half()
    return {f"{name}.q": (matrix / scale.float()).round().clamp(-127, 127).to(torch.int8), f"{name}.s": scale}


def packed_answers(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The arrays that `wellworn.language.answers` reads."""
    found = {name: weights[f"{name}.weight"] for name in ("voices", "ages")}
    found |= {name: weights[name] for name in ("score.weight", "score.bias")}
    for name, value in weights.items():
        if name.startswith("trunk.layers."):
            found |= as_bytes(name.removeprefix("trunk.layers."), value.float())
    return {name: (value if value.dtype == torch.int8 else value.half()).contiguous() for name, value in found.items()}


def shares() -> Tensor:
    """How often each piece of a word occurs in what people say."""
    pieces, counts = WordPiece(reader.vocabulary()), np.ones(len(reader.vocabulary()))
    for text in spoken():
        np.add.at(counts, pieces.ids(text), 1)
    return torch.from_numpy(counts / counts.sum()).float()


def graph() -> onnx.ModelProto:
    """The layers, in operators that onnxruntime has for them; every weight is given by name when it is opened."""
    nodes, weights = [], []

    def weight(name: str, *shape: int) -> str:
        tensor = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=shape)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="reader.safetensors")
        weights.append(tensor)
        return name

    def add(kind: str, inputs: list[str], output: str, *, ours: bool = False, **settings: float) -> None:
        nodes.append(helper.make_node(kind, inputs, [output], domain="com.microsoft" if ours else "", **settings))

    x = "x"
    for number in range(LAYERS):
        one = f"{number}."
        qkv = [weight(f"{one}qkv.weight", WIDTH, 3 * WIDTH), weight(f"{one}qkv.bias", 3 * WIDTH)]
        add("Attention", [x, *qkv, "mask"], f"{one}seen", ours=True, num_heads=HEADS)
        for name, came, size, norm in (("out", f"{one}seen", WIDTH, "norm1"), ("down", f"{one}inner", INNER, "norm2")):
            if name == "down":
                add("MatMul", [x, weight(f"{one}up.weight", WIDTH, INNER)], f"{one}upped")
                add("BiasGelu", [f"{one}upped", weight(f"{one}up.bias", INNER)], came, ours=True)
            add("MatMul", [came, weight(f"{one}{name}.weight", size, WIDTH)], f"{one}{name}")
            gain = [weight(f"{one}{norm}.{part}", WIDTH) for part in ("weight", "bias")]
            out = "states" if (number, name) == (LAYERS - 1, "down") else f"{one}{norm}"
            bias = weight(f"{one}{name}.bias", WIDTH)
            add("SkipLayerNormalization", [f"{one}{name}", x, *gain, bias], out, ours=True, epsilon=1e-12)
            x = out
    shape = ["texts", "tokens", WIDTH]
    given = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("mask", onnx.TensorProto.INT32, shape[:2]),
    ]
    made = helper.make_tensor_value_info("states", onnx.TensorProto.FLOAT, shape)
    whole = helper.make_graph(nodes, "reader", given, [made], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(whole, opset_imports=opsets, ir_version=9)


def record(**what: Any) -> None:
    """Write down what the shipped files give, for a test."""
    known = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    RECORDED.write_text(json.dumps(known | what) + "\n", encoding="utf-8")


def recorded_answers() -> list[dict[str, Any]]:
    contenders = [answers.Contender(text, voice, days, 0) for text, voice, days in READ]
    return [
        {"question": question, "logits": [round(float(one), 2) for one in answers.scores(question, contenders)]}
        for question in QUESTIONS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Pack a trained reader into the package.")
    parser.add_argument("out", type=Path, help="where `train` wrote it, or `answers` with --answers")
    parser.add_argument("--answers", action="store_true", help="pack the head that reads question and text together")
    given = parser.parse_args()
    if given.answers:
        save_file(packed_answers(load_file(given.out / "answers.safetensors")), answers.WEIGHTS)
        record(read=READ, answers=recorded_answers())
        print(f"{answers.WEIGHTS.stat().st_size:,} bytes")
        return
    save_file(packed(joined(given.out)), reader.WEIGHTS)
    reader.GRAPH.write_bytes(graph().SerializeToString())
    digest = hashlib.sha256(reader.WEIGHTS.read_bytes()).hexdigest()
    readings = reader.Reader().read(TEXTS)
    vectors = [[round(float(one), 4) for one in reading.vector] for reading in readings]
    record(sha256=digest, texts=TEXTS, vectors=vectors)
    print(f"{reader.WEIGHTS.stat().st_size:,} bytes, sha256 {digest}")
    if not reader.NAME.endswith(digest[:8]):
        print(f"set NAME in {reader.__file__} to 'reader:{digest[:8]}'")


if __name__ == "__main__":
    main()
