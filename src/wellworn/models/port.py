"""The two ports of this room: an embedder turns texts into vectors, a language model answers a prompt.

Knows nothing about storage, ranking, prompts or money. An embedder's name and width are recorded beside every vector,
so that vectors of two models never mix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import EmbedderMismatch, EmbeddingFailed

Matrix = npt.NDArray[np.float32]
Role = Literal["system", "user", "assistant"]


@runtime_checkable
class Embedder(Protocol):
    """Anything that turns texts into vectors."""

    @property
    def name(self) -> str:
        """Provider and model, as recorded in the store: `static:l2_supercat_256`."""

    @property
    def width(self) -> int:
        """Numbers per vector."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text, shape (len(texts), width); a text without content gives a zero row."""

    def embed_query(self, text: str) -> Matrix:
        """One unit vector for a question, shape (width,)."""


class ReadText(NamedTuple):
    """What an embedder that reads sentences makes of one text."""

    vector: Matrix
    """Of the whole text, of length one; zeros where there is nothing to read."""
    spans: list[tuple[int, int]]
    """Where each sentence begins and ends in the text."""
    parts: Matrix
    """A vector of length one for each sentence."""


@runtime_checkable
class ReadsSentences(Protocol):
    """What an embedder may do besides: read the vectors of a text's sentences in the same pass."""

    def read(self, texts: Sequence[str]) -> Sequence[ReadText]:
        """The vector of each text, as `embed` gives it, and those of its sentences."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message of a prompt."""

    role: Role
    text: str


@cache
def read_prompt(module: str, name: str) -> str:
    """The text of `prompts/NAME.md` beside a module: constant instructions, into which nothing is ever spliced."""
    return Path(module).with_name("prompts").joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a language model is asked, and how."""

    messages: tuple[Message, ...]
    purpose: str
    """What the call is for (`extract`, `merge`, …). The ledger sums by it; only the scripted model reads it."""
    max_output_tokens: int = 1024
    temperature: float = 0.0
    json: bool = False
    """Ask the provider for a JSON object where it can; the text still has to be read with `read_json`."""
    schema: Mapping[str, Any] | None = None
    """A JSON schema of that object, for providers that can enforce one. Implies `json`."""

    @classmethod
    def of(cls, system: str, told: str, **options: Any) -> Request:  # the other fields
        """Instructions, and what the model is told."""
        return cls(messages=(Message(role="system", text=system), Message(role="user", text=told)), **options)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a language model answered, and what it took."""

    text: str
    model: str
    """The name of the model that was asked, as in the ledger."""
    input_tokens: int
    output_tokens: int
    seconds: float
    estimated: bool
    """The tokens were counted by us, because the provider did not report them."""


@runtime_checkable
class Model(Protocol):
    """Any language model."""

    @property
    def name(self) -> str:
        """Provider and model: `openai:gpt-4o-mini`. Prices and the ledger use it."""

    def complete(self, request: Request) -> Reply:
        """The answer. A model that cannot give one raises `ModelFailed`, and nothing else."""


READERS = "reader:"
"""What the name of the bundled model begins with."""
_BUNDLED = ("static:", READERS)
"""The same of all that a release has had."""


def renews(embedder: Embedder | None, stored: tuple[str, int] | None) -> bool:
    """Whether the store's vectors (name, width) are of a former bundled model, and the embedder is the bundled one of today."""
    if embedder is None or stored is None or stored == (embedder.name, embedder.width):
        return False
    return embedder.name.startswith(READERS) and stored[0].startswith(_BUNDLED)


def fits(embedder: Embedder | None, stored: tuple[str, int] | None) -> bool:
    """Whether the store's vectors (name, width) can be compared with the embedder's: not while they wait to be renewed.
    Those of any other model are an `EmbedderMismatch`."""
    if renews(embedder, stored):
        return False
    if embedder is not None and stored is not None and stored != (embedder.name, embedder.width):
        raise EmbedderMismatch(*stored, embedder.name, embedder.width)
    return True


def unit_rows(matrix: npt.ArrayLike, *, width: int | None, name: str, count: int | None = None) -> Matrix:
    """Rows scaled to length one; zero rows stay zero. Rows that are misshapen or not finite are an error."""
    with np.errstate(over="ignore"):
        try:
            rows = np.ascontiguousarray(matrix, dtype=np.float32)
        except (TypeError, ValueError) as error:  # ragged rows, or no numbers at all
            raise EmbeddingFailed(f"embedder {name!r} did not return a matrix of numbers") from error
        if rows.ndim != 2 or 0 in rows.shape[1:] or (count is not None and len(rows) != count):
            texts = "each text" if count is None else f"each of {count} texts"
            raise EmbeddingFailed(f"embedder {name!r} returned shape {rows.shape}, expected one vector for {texts}")
        if width is not None and rows.shape[1] != width:
            raise EmbeddingFailed(f"embedder {name!r} returned shape {rows.shape}, expected (texts, {width})")
        # As np.linalg.norm, in half its time.
        lengths: npt.NDArray[np.floating] = np.sqrt(np.add.reduce(rows * rows, axis=1, keepdims=True))
    if not np.isfinite(lengths).all():  # squares of very large numbers leave the range of float32
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            raise EmbeddingFailed(f"embedder {name!r} returned a vector that is not finite; nothing was stored")
    lengths[lengths == 0] = 1.0
    scaled: Matrix = rows / lengths
    return scaled
