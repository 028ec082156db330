"""Train the reader: `python -m training.train EXAMPLES BASE OUT` on a machine with an accelerator and PyTorch.

In each step questions are held against all texts of some rooms, or against those of a batch of pairs; a question's vector shall be
nearer to the texts that answer it than to any other (InfoNCE). A second term keeps texts as near to each other as the untrained
model has them, which keeps what it knows of the rest of the world.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from training.model import KINDS, Reader, Trunk, best_of, unit

MIX = {
    "life": 0.28,
    "talk": 0.10,
    "note": 0.07,
    "messages": 0.20,
    "made_up": 0.12,
    "persona": 0.05,
    "topical": 0.05,
    "dstc9": 0.03,
    "disfl": 0.02,
    "letta": 0.02,
    "qmsum": 0.02,
    "tatoeba": 0.05,
}
"""How often each kind of data is drawn."""
ROOMS = {"life": 6, "talk": 3, "note": 4}
PAIRS, TEMPERATURE, KEEP, ASKS, HIDDEN = 256, 0.05, 1.5, 0.2, 0.1
MOST_ASKED = 24
PART_BYTES = 16_000_000


class Data:
    """The examples on the device."""

    def __init__(self, folder: Path, device: str) -> None:
        arrays, told = np.load(folder / "examples.npz"), json.loads((folder / "examples.json").read_text())
        self.device = device
        lengths, counts = (torch.from_numpy(arrays[name].astype(np.int64)) for name in ("lengths", "counts"))
        self.lengths, self.counts = lengths.to(device), counts.to(device)
        self.tokens = self._padded(arrays["tokens"], lengths).to(device)
        self.ends = self._padded(arrays["ends"], counts).to(device)
        self.rooms: list[dict[str, Any]] = told["rooms"]
        self.pairs: dict[str, list[Any]] = told["pairs"]

    @staticmethod
    def _padded(flat: Any, lengths: Tensor) -> Tensor:
        rows = torch.zeros(len(lengths), int(lengths.max()), dtype=torch.int32)
        rows[torch.arange(rows.shape[1])[None] < lengths[:, None]] = torch.from_numpy(flat.astype(np.int32))
        return rows

    def texts(self, places: list[int], hidden: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens, mask and ends of sentences of these texts; a share of the tokens is hidden, so that none is learned by heart."""
        which = torch.tensor(places, device=self.device)
        longest, most = int(self.lengths[which].max()), int(self.counts[which].max())
        tokens = self.tokens[which, :longest].long()
        mask = torch.arange(longest, device=self.device)[None] < self.lengths[which, None]
        if hidden:
            mask &= torch.rand(mask.shape, device=self.device) >= hidden
            mask[:, 0] = True
        return tokens, mask, self.ends[which, :most].long()


def vectors(reader: Reader, data: Data, places: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Of each text and of its sentences, with which there are."""
    tokens, mask, ends = data.texts(places, HIDDEN if reader.training else 0.0)
    with torch.autocast(data.device, dtype=torch.bfloat16, enabled=data.device == "cuda"):
        whole, parts = reader.vectors(tokens, mask, ends)
    return whole, parts, ends > 0


def loss_of(
    reader: Reader,
    teacher: Reader,
    data: Data,
    asked: list[int],
    texts: list[int],
    right: Tensor,
    out: Tensor,
    kinds: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """InfoNCE of questions and texts. `right` and `out` (questions, texts): which answer, and which are not looked at."""
    questions, _, _ = vectors(reader, data, asked)
    whole, parts, there = vectors(reader, data, texts)
    total = torch.zeros((), device=data.device)
    question, text, part = (unit(rows) for rows in (questions, whole, parts))
    for scores, share in ((best_of(question, text, part, there), 1.0), (question @ text.T, 0.5)):
        scores = (scores / TEMPERATURE).masked_fill(out, -1e4)
        found = torch.logsumexp(scores.masked_fill(~right, -1e4), 1)
        lost = (torch.logsumexp(scores, 1) - found).mean()
        if len(asked) == right.sum():  # one text each: also the other way round
            back = torch.logsumexp(scores, 0)[right.any(0)] - scores.T[right.T]
            lost = (lost + back.mean()) / 2
        total = total + share * lost
    if kinds is not None:
        total = total + ASKS * torch.nn.functional.cross_entropy(reader.asks(question), kinds)
    with torch.no_grad():
        known, _, _ = vectors(teacher, data, texts)
    known, now = unit(known), unit(whole)
    kept = ((now @ now.T) - (known @ known.T)).pow(2).mean()
    return total, kept


def batch_of_rooms(data: Data, rooms: list[Any], kind: str) -> tuple[list[int], list[int], Tensor, Tensor, Tensor]:
    kinds: list[int] = []
    asked: list[int] = []
    texts: list[int] = []
    right: list[tuple[int, int]] = []
    out: list[tuple[int, int]] = []
    for room in random.sample(rooms, min(ROOMS[kind], len(rooms))):
        start = len(texts)
        texts += room["texts"]
        answered = [one for one in room["questions"] if one[2]]
        for text, asks, at, former in random.sample(answered, min(MOST_ASKED, len(answered))):
            right += [(len(asked), start + place) for place in at]
            out += [(len(asked), start + place) for place in former]
            asked.append(text)
            kinds.append(KINDS.index(asks) if asks in KINDS else 0)
    right_mask, out_mask = _masks(data, len(asked), len(texts), right, out)
    return asked, texts, right_mask, out_mask, torch.tensor(kinds, device=data.device)


def batch_of_pairs(data: Data, pairs: list[Any]) -> tuple[list[int], list[int], Tensor, Tensor]:
    some = random.sample(pairs, min(PAIRS, len(pairs)))
    asked, texts = [one[0] for one in some], [one[1] for one in some]
    near = [one[2] for one in some if one[2] >= 0]
    held = [set(one[3].split()) for one in some]
    out = [
        (one, other)
        for one, (_, text, _, _) in enumerate(some)
        for other in range(len(some))
        if one != other and (texts[other] == text or asked[other] == asked[one] or held[one] & held[other])
    ]
    right = [(place, place) for place in range(len(some))]
    return asked, [*texts, *near], *_masks(data, len(asked), len(texts) + len(near), right, out)


def _masks(data: Data, rows: int, columns: int, *places: list[tuple[int, int]]) -> list[Tensor]:
    found = []
    for some in places:
        mask = np.zeros((rows, columns), dtype=bool)
        if some:
            mask[tuple(np.array(some).T)] = True
        found.append(torch.from_numpy(mask).to(data.device))
    return found


def train(data: Data, base: dict[str, Tensor], *, steps: int, rate: float, seed: int = 0) -> Reader:
    """The trained reader: a running mean of its weights."""
    random.seed(seed)
    torch.manual_seed(seed)
    teacher = Reader(Trunk.of_base(base)).to(data.device).eval()
    reader = Reader(Trunk.of_base(base)).to(data.device).train()
    mean = copy.deepcopy(reader).eval()
    heads = [*reader.asks.parameters(), *reader.answers.parameters()]
    groups = [{"params": reader.trunk.parameters(), "lr": rate}, {"params": heads, "lr": 10 * rate}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, [rate, 10 * rate], total_steps=steps, pct_start=0.08)
    by_kind = {
        kind: [room for room in data.rooms if room["kind"] == kind and not room["name"].startswith("held")]
        for kind in ROOMS
    }
    known = {name: share for name, share in MIX.items() if by_kind.get(name) or data.pairs.get(name)}
    began = time.time()
    for step in range(steps):
        (name,) = random.choices([*known], [*known.values()])
        batch = batch_of_rooms(data, by_kind[name], name) if name in ROOMS else batch_of_pairs(data, data.pairs[name])
        lost, kept = loss_of(reader, teacher, data, *batch)
        (lost + KEEP * kept).backward()
        torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        with torch.no_grad():
            share = min(0.998, (step + 1) / (step + 20))
            for own, new in zip(mean.parameters(), reader.parameters(), strict=True):
                own.lerp_(new, 1 - share)
        if step % 250 == 0:
            print(f"{step:6} {name:9} {lost.item():.3f} {kept.item():.4f} {time.time() - began:.0f} s", flush=True)
    return mean


# -- looking at it -----------------------------------------------------------------------------------------------------


@torch.no_grad()
def looked_at(reader: Reader, data: Data, prefix: str) -> None:
    """Print how often the right text is first, in five and in ten, in the rooms of that name; by cosine and nothing else."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for room in data.rooms:
        if not room["name"].startswith(prefix):
            continue
        asked = [one for one in room["questions"] if one[2]]
        whole, parts, there = vectors(reader, data, room["texts"])
        questions, _, _ = vectors(reader, data, [one[0] for one in asked])
        person = torch.tensor([who != "assistant" for who, _ in room["said"]], device=data.device)
        question, text, part = (unit(rows) for rows in (questions, whole, parts))
        both = best_of(question, text, part, there)
        guessed = reader.asks(question).argmax(1).tolist()
        for name, scores in (("turn", question @ text.T), ("both", both), ("both+person", both + 0.07 * person)):
            order = scores.argsort(1, descending=True).tolist()
            for one, row, guess in zip(asked, order, guessed, strict=True):
                ranks = [row.index(place) for place in one[2]]
                rank = [rank < 5 for rank in ranks]
                known = guess == (KINDS.index(one[1]) if one[1] in KINDS else 0)
                figures = (*(min(ranks) < k for k in (1, 5, 10)), sum(rank) / len(ranks), known)
                for key in (name, one[1]), (name, "all"):
                    found.setdefault(key, []).append(figures)
    for (name, kind), figures in sorted(found.items()):
        mean = 100 * np.mean(figures, axis=0)
        print(f"{prefix:13} {name:18} {kind:10} {len(figures):5}", *(f"{one:5.1f}" for one in mean), flush=True)


def base_weights(path: Path) -> dict[str, Tensor]:
    """Those of the base; its word vectors may be kept as bytes, with a scale for each."""
    found = load_file(path)
    for name in [name for name in found if name.endswith(".q")]:
        found[name[:-2]] = found.pop(name).float() * found.pop(f"{name[:-2]}.s").float()
    return found


def save(reader: Reader, out: Path) -> None:
    """The weights as halves, in parts that are small enough to be carried."""
    parts: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, value in reader.state_dict().items():
        for number, piece in enumerate(value.half().cpu().split(10_000)):
            if size + piece.nbytes > PART_BYTES:
                parts.append({})
                size = 0
            parts[-1][f"{name}#{number}"] = piece.contiguous().clone()
            size += piece.nbytes
    for number, part in enumerate(parts):
        save_file(part, out / f"reader-{number}.safetensors")


def joined(folder: Path) -> dict[str, Tensor]:
    """What `save` wrote."""
    pieces: dict[str, dict[int, Tensor]] = {}
    for path in sorted(folder.glob("reader-*.safetensors")):
        for name, value in load_file(path).items():
            whole, _, number = name.partition("#")
            pieces.setdefault(whole, {})[int(number)] = value
    return {name: torch.cat([some[n] for n in sorted(some)]).float() for name, some in pieces.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the reader.")
    parser.add_argument("examples", type=Path)
    parser.add_argument("base", type=Path, help="a safetensors file of all-MiniLM-L6-v2")
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--rate", type=float, default=5e-5)
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    data, base = Data(given.examples, device), base_weights(given.base)
    prefixes = sorted({"-".join(room["name"].split("-")[:2]) for room in data.rooms if room["name"].startswith("held")})
    reader = train(data, base, steps=given.steps, rate=given.rate)
    for prefix in prefixes:
        looked_at(reader, data, prefix)
    given.out.mkdir(parents=True, exist_ok=True)
    save(reader, given.out)


if __name__ == "__main__":
    main()
