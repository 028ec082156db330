"""The reader's transformer in PyTorch: BERT with six layers, mean pooling of a text and of each of its sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

WIDTH, HEADS, LAYERS, INNER = 384, 12, 6, 1536
KINDS = ("is", "past", "assistant")
"""What a question asks for: what is so, what was so before, what the assistant said."""


class Layer(nn.Module):
    """Attention and a feed-forward step, each added to what came in and normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, eps=1e-12), nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, states: Tensor, mask: Tensor, dropout: float) -> Tensor:
        """`states` (texts, tokens, width), `mask` (texts, 1, 1, tokens), true where there is a token."""
        texts, tokens, _ = states.shape
        query, key, value = self.qkv(states).view(texts, tokens, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        seen = self.out(seen.transpose(1, 2).reshape(texts, tokens, WIDTH))
        states = self.norm1(states + functional.dropout(seen, dropout, self.training))
        added = self.down(functional.gelu(self.up(states)))
        return self.norm2(states + functional.dropout(added, dropout, self.training))  # type: ignore[no-any-return]


class Trunk(nn.Module):
    """Tokens in, one state for each token out."""

    def __init__(self, vocabulary: int = 30_522, positions: int = 512, dropout: float = 0.1) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, WIDTH), nn.Embedding(positions, WIDTH)
        self.types = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.dropout = dropout

    def forward(self, tokens: Tensor, mask: Tensor, second: Tensor | None = None) -> Tensor:
        """`tokens` and `mask` (texts, tokens); `second` is 1 for tokens of the second of two texts."""
        places = self.positions.weight[: tokens.shape[1]]
        kind = self.types.weight[0] if second is None else self.types(second)
        states = self.norm(self.words(tokens) + places + kind)
        states = functional.dropout(states, self.dropout, self.training)
        for layer in self.layers:
            states = layer(states, mask[:, None, None, :], self.dropout)
        return states  # type: ignore[no-any-return]

    @classmethod
    def of_base(cls, weights: Mapping[str, Tensor]) -> Trunk:
        """The trunk with the weights of a BERT model as published."""
        trunk, given = cls(), {name: value.float() for name, value in weights.items() if "position_ids" not in name}
        named = {"words": "word_embeddings", "positions": "position_embeddings", "types": "token_type_embeddings"}
        state = {f"{ours}.weight": given[f"embeddings.{theirs}.weight"] for ours, theirs in named.items()}
        for part in ("weight", "bias"):
            state[f"norm.{part}"] = given[f"embeddings.LayerNorm.{part}"]
            for number in range(LAYERS):
                one, theirs = f"layers.{number}", f"encoder.layer.{number}"
                several = [given[f"{theirs}.attention.self.{name}.{part}"] for name in ("query", "key", "value")]
                state[f"{one}.qkv.{part}"] = torch.cat(several)
                for ours, name in (
                    ("out", "attention.output.dense"),
                    ("norm1", "attention.output.LayerNorm"),
                    ("up", "intermediate.dense"),
                    ("down", "output.dense"),
                    ("norm2", "output.LayerNorm"),
                ):
                    state[f"{one}.{ours}.{part}"] = given[f"{theirs}.{name}.{part}"]
        trunk.load_state_dict(state)
        return trunk


class Reader(nn.Module):
    """The trunk with its heads: what a question asks for, and whether a text answers it."""

    def __init__(self, trunk: Trunk) -> None:
        super().__init__()
        self.trunk = trunk
        self.asks = nn.Linear(WIDTH, len(KINDS))
        self.answers = nn.Linear(WIDTH, 1)

    def vectors(self, tokens: Tensor, mask: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Means of the states of each text, shape (texts, width), and of each sentence, (texts, sentences, width).

        `ends` (texts, sentences) are the places after each sentence; 0: there is none.
        """
        states = self.trunk(tokens, mask).float() * mask[..., None]
        whole = states.sum(1) / mask.sum(1, keepdim=True)
        sums = functional.pad(states.cumsum(1), (0, 0, 1, 0))
        begins = functional.pad(ends[:, :-1], (1, 0), value=1)
        before, after = (
            sums.gather(1, places.clamp(min=0)[..., None].expand(-1, -1, states.shape[-1])) for places in (begins, ends)
        )
        length = (ends - begins).clamp(min=1)[..., None]
        return whole, (after - before) / length

    def judged(self, tokens: Tensor, mask: Tensor, second: Tensor) -> Tensor:
        """How likely the second text of each row answers the first, as a logit."""
        states = self.trunk(tokens, mask, second).float() * mask[..., None]
        return self.answers(states.sum(1) / mask.sum(1, keepdim=True)).squeeze(-1)  # type: ignore[no-any-return]


def unit(rows: Tensor) -> Tensor:
    return functional.normalize(rows, dim=-1, eps=1e-6)


def best_of(questions: Tensor, whole: Tensor, parts: Tensor, there: Tensor) -> Tensor:
    """The mean of the cosine of a text and that of its best sentence, shape (questions, texts)."""
    of_parts = torch.einsum("qw,tsw->qts", questions, parts)
    of_parts = of_parts.masked_fill(~there[None], -math.inf).amax(-1)
    return (questions @ whole.T + of_parts) / 2
