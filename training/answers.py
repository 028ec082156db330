"""Train the head that reads a question and a text together: `python -m training.answers EXAMPLES OUT`, after the reader is packed.

The shipped reader stays as it is. Each of its matrices gets a small addition (two thin matrices), so both readings share the file.
A question is held against the texts that answer it and those which the reader finds nearest to it. A question that nothing answers
shall find nothing: the softmax has one more place, whose logit is 0.
"""

from __future__ import annotations

import argparse
import random
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from training.model import INNER, WIDTH, Layer, Reader, Trunk, unit
from training.train import Data
from wellworn.language import reader as shipped
from wellworn.language.answers import AGES, MOST_ASKED, MOST_READ, VOICES, age_of, around, voice_of

CLS, SEP = 101, 102
MIX = {
    "life": 0.50,
    "talk": 0.12,
    "note": 0.08,
    "messages": 0.15,
    "made_up": 0.05,
    "persona": 0.03,
    "topical": 0.03,
    "dstc9": 0.02,
    "letta": 0.01,
    "qmsum": 0.01,
}
"""How often each kind of data is drawn."""
QUESTIONS, CANDIDATES, NEAREST, POOL = 64, 16, 24, 512
HIDDEN, DROPOUT = 0.1, 0.1
MATRICES = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, INNER), "down": (INNER, WIDTH)}


class Added(nn.Module):
    """A frozen matrix with a thin addition that is learned."""

    def __init__(self, frozen: nn.Linear, rank: int) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, frozen.in_features) / frozen.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(frozen.out_features, rank))

    def forward(self, states: Tensor) -> Tensor:
        return self.frozen(states) + (states @ self.down.T) @ self.up.T  # type: ignore[no-any-return]


class Answers(nn.Module):
    """The reader's trunk with additions, and a score of how well the text answers the question."""

    def __init__(self, trunk: Trunk, *, layers: int, rank: int) -> None:
        super().__init__()
        self.trunk = trunk.requires_grad_(False)
        del self.trunk.layers[layers:]
        self.trunk.dropout = DROPOUT
        if rank:
            for layer in self.trunk.layers:
                assert isinstance(layer, Layer)
                for name in MATRICES:
                    setattr(layer, name, Added(getattr(layer, name), rank))
        else:  # every weight: the bound of what can be had
            self.trunk.layers.requires_grad_(True)
        self.voices, self.ages = nn.Embedding(len(VOICES), WIDTH), nn.Embedding(AGES, WIDTH)
        for one in (self.voices, self.ages):
            nn.init.normal_(one.weight, std=0.01)
        self.score = nn.Linear(2 * WIDTH, 1)

    def forward(self, tokens: Tensor, mask: Tensor, second: Tensor, voice: Tensor, age: Tensor) -> Tensor:
        """A logit for each row; `second` is 1 for the tokens of the text."""
        trunk = self.trunk
        told = (self.voices(voice) + self.ages(age))[:, None] * second[..., None]
        states = trunk.norm(
            trunk.words(tokens) + trunk.positions.weight[: tokens.shape[1]] + trunk.types.weight[0] + told
        )
        states = torch.nn.functional.dropout(states, trunk.dropout, self.training)
        for layer in trunk.layers:
            states = layer(states, mask[:, None, None, :], trunk.dropout)
        states = states.float()
        shares = second * mask
        mean = (states * shares[..., None]).sum(1) / shares.sum(1, keepdim=True).clamp(min=1)
        return self.score(torch.cat([states[:, 0], mean], -1)).squeeze(-1)  # type: ignore[no-any-return]


def shipped_trunk() -> Trunk:
    """The trunk as it ships: what the additions are learned on is what they will stand on."""
    given, trunk = shipped.read_weights(shipped.WEIGHTS), Trunk()
    state = {name: torch.zeros_like(value) for name, value in trunk.state_dict().items()}
    state["words.weight"] = torch.from_numpy(given["words.q"].astype(np.float32) * given["words.s"].astype(np.float32))
    state["positions.weight"][: len(given["places"])] = torch.from_numpy(given["places"])
    for name, value in given.items():
        number, _, rest = name.partition(".")
        if name.startswith("norm."):
            state[name] = torch.from_numpy(value)
        elif number.isdigit():
            matrix = rest.split(".")[0] in MATRICES and rest.endswith("weight")
            state[f"layers.{number}.{rest}"] = torch.from_numpy(np.ascontiguousarray(value.T) if matrix else value)
    trunk.load_state_dict(state)
    return trunk


class Batches:
    """Questions with candidates, as tokens."""

    def __init__(self, data: Data, reader: Reader) -> None:
        self.data, self.device = data, data.device
        self.tokens, self.lengths = data.tokens.cpu().numpy(), data.lengths.cpu().numpy()
        self.ends = data.ends.cpu().numpy()
        self._reader = reader
        self.near: dict[str, list[Any]] = {}

    @torch.no_grad()
    def likeness(self, asked: list[int], texts: list[int]) -> tuple[Any, Any]:
        """How near each text is to each question, and its nearest sentence."""
        questions, _, _ = self._vectors(asked)
        whole, parts, there = self._vectors(texts)
        question, text, part = (unit(rows) for rows in (questions, whole, parts))
        of_parts = torch.einsum("qw,tsw->qts", question, part).masked_fill(~there[None], -9.0)
        best, place = of_parts.max(-1)
        return ((question @ text.T + best) / 2).cpu().numpy(), place.cpu().numpy()

    def _vectors(self, places: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        found: list[tuple[Tensor, Tensor, Tensor]] = []
        for start in range(0, len(places), 512):
            tokens, mask, ends = self.data.texts(places[start : start + 512])
            with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
                whole, parts = self._reader.vectors(tokens, mask, ends)
            found.append((whole, parts, ends > 0))
        most = max(one[1].shape[1] for one in found)
        pad = torch.nn.functional.pad
        return (
            torch.cat([one[0] for one in found]),
            torch.cat([pad(one[1], (0, 0, 0, most - one[1].shape[1])) for one in found]),
            torch.cat([pad(one[2], (0, most - one[2].shape[1])) for one in found]),
        )

    def of_room(self, room: dict[str, Any]) -> list[Any]:
        """For each question: its text, places of right texts, the nearest others, and the best sentence of each text."""
        likeness, sentence = self.likeness([one[0] for one in room["questions"]], room["texts"])
        found = []
        for number, (text, _, at, former) in enumerate(room["questions"]):
            order = [int(place) for place in np.argsort(-likeness[number]) if place not in at and place not in former]
            found.append((text, at, order[:NEAREST], sentence[number], likeness[number]))
        return found

    def room_batch(self, rooms: list[Any]) -> list[Any]:
        """Rows (question, text, best sentence, voice, days, right) of each question."""
        found = []
        for room in random.choices(rooms, k=4):
            asked = self.near.setdefault(room["name"], [])
            if not asked:
                asked += self.of_room(room)
            for text, at, near, sentence, _ in random.sample(asked, min(QUESTIONS // 4, len(asked))):
                right = random.sample(at, min(4, len(at)))
                others = random.sample(near, min(CANDIDATES - len(right), len(near)))
                shift = random.choice((0, 0, 0, 30, 200))
                found.append(
                    [
                        (
                            text,
                            room["texts"][one],
                            int(sentence[one]),
                            room["said"][one][0],
                            room["said"][one][1] + shift,
                            one in at,
                        )
                        for one in (*right, *others)
                    ]
                )
        return found

    def pair_batch(self, pairs: list[Any]) -> list[Any]:
        some = random.sample(pairs, min(POOL, len(pairs)))
        asked = some[:QUESTIONS]
        texts = [one[1] for one in some] + [one[2] for one in asked if one[2] >= 0]
        same = [set(one[3].split()) for one in some]
        likeness, sentence = self.likeness([one[0] for one in asked], texts)
        found, extra = [], len(some)
        for number, one in enumerate(asked):
            near = []
            if one[2] >= 0:
                near, extra = [extra], extra + 1
            for place in np.argsort(-likeness[number]):
                if len(near) >= CANDIDATES - 1:
                    break
                other = place < len(some) and place != number and place not in near and texts[place] != one[1]
                if other and not same[place] & same[number] and some[place][0] != one[0]:
                    near.append(int(place))
            voice = random.choice(("user", "user", "note", "assistant"))
            days = random.randrange(400)
            found.append(
                [
                    (one[0], texts[place], int(sentence[number][place]), voice, days, place == number)
                    for place in (number, *near)
                ]
            )
        return found

    def tensors(self, rows: list[Any], *, hidden: float) -> tuple[Tensor, ...]:
        """Tokens, mask, which belong to the text, voices and ages of some rows."""
        several = []
        for text, other, sentence, *_ in rows:
            asked = self.tokens[text, 1 : self.lengths[text] - 1][:MOST_ASKED]
            ends = [1, *(int(end) for end in self.ends[other] if end)]
            begin, end = around([after - before for before, after in pairwise(ends)], sentence, MOST_READ)
            read = self.tokens[other, 1 + begin : 1 + end]
            several.append((asked, read))
        longest = max(len(asked) + len(read) for asked, read in several) + 3
        tokens, mask, second = (np.zeros((len(rows), longest), dtype=np.int64) for _ in range(3))
        for row, (asked, read) in enumerate(several):
            own = [CLS, *asked, SEP, *read, SEP]
            tokens[row, : len(own)], mask[row, : len(own)] = own, 1
            second[row, len(asked) + 2 : len(own)] = 1
        if hidden:
            gone = np.random.default_rng(random.randrange(1 << 30)).random(mask.shape) < hidden
            gone[:, 0] = False
            mask[gone] = 0
        voices, ages = [voice_of(one[3]) for one in rows], [age_of(one[4]) for one in rows]
        to = [torch.from_numpy(tokens), torch.from_numpy(mask).bool(), torch.from_numpy(second)]
        return tuple(one.to(self.device) for one in [*to, torch.tensor(voices), torch.tensor(ages)])


def loss_of(logits: Tensor, some: list[Any]) -> Tensor:
    """Cross entropy over the candidates of each question and one more place: nothing answers it."""
    most = max(map(len, some)) + 1
    place, right = np.full((len(some), most), -1), np.zeros((len(some), most), dtype=bool)
    start = 0
    for row, one in enumerate(some):
        place[row, : len(one)] = range(start, start + len(one))
        right[row, : len(one)] = [other[5] for other in one]
        right[row, -1] = not right[row].any()
        start += len(one)
    where = torch.from_numpy(place).to(logits.device)
    each = torch.where(where >= 0, logits[where.clamp(min=0)], -1e4)
    each = torch.cat([each[:, :-1], torch.zeros_like(each[:, :1])], 1)
    mask = torch.from_numpy(right).to(logits.device)
    return (torch.logsumexp(each, 1) - torch.logsumexp(each.masked_fill(~mask, -1e4), 1)).mean()


def train(
    data: Data, batches: Batches, *, layers: int, rank: int, rate: float, seconds: float, seed: int = 0
) -> Answers:
    random.seed(seed)
    torch.manual_seed(seed)
    model = Answers(shipped_trunk(), layers=layers, rank=rank).to(data.device).train()
    learned = [one for one in model.parameters() if one.requires_grad]
    print(f"{sum(one.numel() for one in learned):,} weights are learned", flush=True)
    mean = [one.detach().clone() for one in learned]
    optimizer = torch.optim.AdamW(learned, lr=rate, weight_decay=0.01)
    by_kind: dict[str, list[Any]] = {}
    for room in data.rooms:
        if not room["name"].startswith("held"):
            by_kind.setdefault(room["kind"], []).append(room)
    known = {name: share for name, share in MIX.items() if by_kind.get(name) or data.pairs.get(name)}
    began, step, lost_lately = time.time(), 0, 0.0
    while (gone := (time.time() - began) / seconds) < 1:
        for group in optimizer.param_groups:
            group["lr"] = rate * min(gone / 0.05, 1.0, (1 - gone) / 0.95 + 0.02)
        (name,) = random.choices([*known], [*known.values()])
        some = batches.room_batch(by_kind[name]) if name in by_kind else batches.pair_batch(data.pairs[name])
        rows = [row for one in some for row in one]
        with torch.autocast(data.device, dtype=torch.bfloat16, enabled=data.device == "cuda"):
            logits = model(*batches.tensors(rows, hidden=HIDDEN))
        lost = loss_of(logits.float(), some)
        lost.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        share = min(0.998, step / (step + 20))
        with torch.no_grad():
            for own_mean, new in zip(mean, learned, strict=True):
                own_mean.lerp_(new, 1 - share)
        lost_lately = 0.99 * lost_lately + 0.01 * lost.item()
        if step % 100 == 0:
            print(f"{step:6} {lost_lately:.3f} {time.time() - began:.0f} s", flush=True)
    with torch.no_grad():
        for own_mean, new in zip(mean, learned, strict=True):
            new.copy_(own_mean)
    return model.eval()


@torch.no_grad()
def looked_at(model: Answers, data: Data, batches: Batches, out: Path, most: int = 32) -> None:
    """Print how often the right text is first and in five once the nearest were read; write every score."""
    written: dict[str, Any] = {}
    found: dict[tuple[str, str], list[Any]] = {}
    for room in data.rooms:
        if not room["name"].startswith("held"):
            continue
        person = np.array([who != "assistant" for who, _ in room["said"]])
        for number, (text, at, _, sentence, likeness) in enumerate(batches.of_room(room)):
            near = np.argsort(-(likeness + 0.07 * person))[:most]
            rows = [
                (text, room["texts"][one], int(sentence[one]), room["said"][one][0], room["said"][one][1], False)
                for one in near
            ]
            with torch.autocast(data.device, dtype=torch.bfloat16, enabled=data.device == "cuda"):
                scores = model(*batches.tensors(rows, hidden=0.0)).float().cpu().numpy()
            written[f"{room['name']}|{number}"] = np.stack([near, likeness[near], scores])
            if at:
                for weight in (0.0, 0.02, 0.05, 0.1, 1.0):
                    for read in (12, 16, 32):
                        both = (
                            likeness[near]
                            + 0.07 * person[near]
                            + np.where(
                                np.arange(most)[: len(near)] < read, weight * np.maximum(scores, -9), -9 * weight
                            )
                        )
                        order = near[np.argsort(-both, kind="stable")]
                        ranks = [int(np.flatnonzero(order == one)[0]) if one in order else 99 for one in at]
                        figures = [min(ranks) < k for k in (1, 5, 10)] + [np.mean([rank < 5 for rank in ranks])]
                        found.setdefault(("-".join(room["name"].split("-")[:2]), f"{read:3} {weight}"), []).append(
                            figures
                        )
    for (name, weight), figures in sorted(found.items()):
        print(
            f"{name:14} {weight:9} {len(figures):5}", *(f"{one:5.1f}" for one in 100 * np.mean(figures, 0)), flush=True
        )
    np.savez_compressed(out / "scores.npz", **written)


def save(model: Answers, out: Path) -> None:
    kept = {name: value.half().cpu().contiguous() for name, value in model.named_parameters() if value.requires_grad}
    save_file(kept, out / "answers.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the head that reads question and text together.")
    parser.add_argument("examples", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--rank", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seconds", type=float, default=240)
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    data = Data(given.examples, device)
    batches = Batches(data, Reader(shipped_trunk()).to(device).eval())
    model = train(data, batches, layers=given.layers, rank=given.rank, rate=given.rate, seconds=given.seconds)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.rank:
        save(model, given.out)
    looked_at(model, data, batches, given.out)


if __name__ == "__main__":
    main()
