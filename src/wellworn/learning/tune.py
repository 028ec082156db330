"""The low-rank residual of people in a store: learned from every chunk of a person's outcomes, in a row of its own.

A chunk is the same 32 outcomes whether it is learned as the last of them is told or when the log is replayed, and
is judged with the person's weights as they were just after it. Queries are embedded anew, so outside of transactions;
vectors of rows are read from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from wellworn.core.values import Partition, filled
from wellworn.ingest.hashing import hash64
from wellworn.learning.exact import Array
from wellworn.learning.example import example_of
from wellworn.learning.lowrank import CHUNK, ROWS, LowRank, Pairs
from wellworn.learning.policy import Person
from wellworn.store.port import LoggedOutcome, LoggedRecall, Store, Vector

EmbedQuery = Callable[[str], Vector]


class Tuner:
    """Makes chunks of outcomes into matrices. `width` is that of the embedder's vectors."""

    def __init__(self, store: Store, embed_query: EmbedQuery, width: int) -> None:
        self._store = store
        self._embed_query = embed_query
        self._width = width
        self._held: tuple[int, LowRank] | None = None
        self._last: tuple[str | None, LowRank] | None = None

    def due(self, person: Person) -> bool:
        """Whether a chunk ended with this person's last outcome."""
        return person.outcomes % CHUNK == 0

    def fresh(self) -> LowRank:
        return LowRank.fresh(self._width)

    def loads(self, text: str | None) -> LowRank:
        """The state in this text, which most often was written last."""
        last = self._last
        return last[1] if last is not None and last[0] == text else LowRank.loads(text, self._width)

    def dumps(self, state: LowRank) -> str:
        text = state.dumps()
        self._last = (text, state)
        return text

    def serving(self, person: Person, text: Callable[[], str | None]) -> LowRank | None:
        """The matrices that serve a person, read only when they are not those at hand; None when none do."""
        if not person.residual:
            return None
        if self._held is None or self._held[0] != person.residual:
            found = text() or ""
            if hash64(found) != person.residual:  # replaced a moment ago: next time
                return None
            self._held = (person.residual, self.loads(found))
        return self._held[1]

    def after(self, state: LowRank, person: Person, chunk: Sequence[LoggedOutcome]) -> LowRank:
        """The state after a chunk; distrusted feedback teaches nothing."""
        last = chunk[-1].no if chunk else state.last
        if not person.guard.trusted:
            return replace(state, chunks=state.chunks + 1, last=last)
        vectors = self._store.vectors(list({no for one in chunk for no in _near(one.recall)}))
        rows = {no: vector for no, vector in vectors.items() if len(vector) == self._width}
        places = {no: place for place, no in enumerate(rows)}
        matrix = np.array([*rows.values()], dtype=np.float64).reshape(len(rows), self._width)  # once for all recalls
        pairs = [self._pairs(one.recall, set(one.value.get("nos", ())), places, matrix, person) for one in chunk]
        seen = state.seen([one for one in pairs if one is not None], float(person.own.theta[0]))
        return replace(seen, last=last)

    def _pairs(
        self, recall: LoggedRecall, cited: set[int], places: dict[int, int], matrix: Array, person: Person
    ) -> Pairs | None:
        """A recall with its vectors; None when its words were forgotten, or nothing of what it showed is left.

        `places` are those of rows in the matrix of vectors.
        """
        nos = [no for no in _near(recall) if no in places]
        example = example_of(_cut(recall), cited, set(nos)) if recall.query else None
        if example is None or len(example.base) != len(nos) or example.features.shape[1] != person.own.width:
            return None
        return Pairs(
            query=np.asarray(self._embed_query(recall.query), dtype=np.float64),
            rows=matrix.take([places[no] for no in nos], axis=0),
            ahead=example.base + person.own.correction(example.base, example.features, example.best),
            shown=example.shown,
            cited=example.cited,
        )


def _near(recall: LoggedRecall) -> list[int]:
    """The rows of a recall that teach."""
    return recall.nos[: max(ROWS, recall.shown)]


def _cut(recall: LoggedRecall) -> LoggedRecall:
    """The recall with these rows alone."""
    nos = _near(recall)
    cut = {"nos": nos, "base": recall.base[: len(nos)], "features": recall.features[: len(nos)]}
    return filled(LoggedRecall, **{**vars(recall), **cut})


def served(state: LowRank, text: str) -> int:
    """What a person's state says of matrices that serve: the hash of their text, 0 for none."""
    return hash64(text) if state.beats else 0


class Chunks:
    """Chunks of a log that is replayed, person by person."""

    def __init__(self, tuner: Tuner) -> None:
        self._tuner = tuner
        self._open: dict[Partition, list[LoggedOutcome]] = {}
        self.states: dict[Partition, LowRank] = {}

    def add(self, told: LoggedOutcome, person: Person) -> LowRank | None:
        """One more outcome with the person after it; the new state when it ends a chunk."""
        partition = told.recall.partition
        chunk = self._open.setdefault(partition, [])
        chunk.append(told)
        if not self._tuner.due(person):
            return None
        state = self._tuner.after(self.states.get(partition) or self._tuner.fresh(), person, chunk)
        self.states[partition] = state
        self._open[partition] = []
        return state
