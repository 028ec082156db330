"""Where vectors are kept behind the process: a small port, and one way to name texts.

A level keeps vectors under keys that are hashes, never texts. It may lose anything at any time and may never fail its
caller: what it cannot answer is a miss.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

from wellworn.models.embedders.base import Matrix

TEXT, QUERY = b"text", b"query"


class Level(Protocol):
    """A place for vectors that outlives the process, or that several processes share."""

    @property
    def label(self) -> str:
        """`l2`, `l3`: what metrics call it."""
        ...

    @property
    def errors(self) -> int:
        """How often it could not be asked or told."""
        ...

    def get(self, keys: Sequence[bytes], *, width: int) -> dict[bytes, Matrix]:
        """Those of the vectors that are there, by key."""
        ...

    def put(self, vectors: Mapping[bytes, Matrix]) -> None:
        """Keep these."""
        ...

    def drop(self, keys: Sequence[bytes]) -> int:
        """Let go of these; returns how many there were."""
        ...

    def clear(self) -> int:
        """Let go of all; returns how many there were."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


def key_of(role: bytes, text: str) -> bytes:
    """16 bytes that stand for a text in a role: texts and questions are embedded differently by some models."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=role).digest()


def model_tag(name: str, width: int) -> str:
    """Eight letters for a model, so that vectors of two models never meet under one key."""
    return hashlib.blake2b(f"{name}\x1f{width}".encode(), digest_size=4).hexdigest()
