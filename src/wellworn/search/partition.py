"""One partition in memory: vectors, postings and slim columns, no text; kept current by the partition's count of changes.

A row is a place in these arrays. A changed text gets a new row and the old one is dead; dead rows are removed when there
are many. This module knows nothing about queries.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache, reduce
from hashlib import shake_128
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from wellworn.core.cache import LruCache
from wellworn.core.values import KINDS, STATES
from wellworn.ingest.terms import Trait
from wellworn.learning.past import source_code, tag_bits
from wellworn.search.postings import Mask, Postings, Rows
from wellworn.store.port import Delta, Slim, Vector

NONE = np.iinfo(np.int64).max
"""Stands for "no end" in `valid_to`, and for "no thread" in `thread`."""
OLDEST = np.iinfo(np.int64).min

_KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}
_STATE_CODES = {state: code for code, state in enumerate(STATES)}
PRUNED, SUPERSEDED = _STATE_CODES["pruned"], _STATE_CODES["superseded"]
EPISODE = _KIND_CODES["episode"]
SHORT_REPLY_CHARS = 80
"""A longer turn of an assistant explains something."""
MOST_TERMS = int(np.iinfo(np.uint16).max)

_NUMBERS: dict[str, tuple[npt.DTypeLike, str, Callable[[Any], Any] | None]] = {
    "no": (np.int64, "no", None),
    "seq": (np.int64, "seq", None),
    "kind": (np.int8, "kind", _KIND_CODES.__getitem__),
    "state": (np.int8, "state", _STATE_CODES.__getitem__),
    "at": (np.int64, "at", None),
    "valid_from": (np.int64, "valid_from", None),
    "valid_to": (np.int64, "valid_to", lambda end: NONE if end is None else end),
    "confidence": (np.float32, "confidence", None),
    "usage": (np.int32, "usage_count", None),
    "repeats": (np.int32, "repeats", None),
    "source": (np.int64, "source", source_code),
    "tags": (np.int64, "tags", tag_bits),
}
"""Columns that may change while the text stays: of which field of the store's row they are, and how that is turned into
a number."""
_OF_TEXT: dict[str, tuple[npt.DTypeLike, str, Callable[[Any], Any] | None]] = {
    "thread": (np.int64, "thread", lambda thread: NONE if thread is None else thread),
    "position": (np.int32, "position", lambda position: -1 if position is None else position),
    "length": (np.int32, "length", None),
    "distinct": (np.uint16, "terms", lambda terms: min(len(terms) // 8, MOST_TERMS)),
    "chars": (np.int32, "chars", None),
    "traits": (np.uint8, "traits", None),
    "speaker": (np.int64, "speaker", None),
}
"""Columns that never change; `distinct` counts each term of the row once."""
_OWN: dict[str, tuple[npt.DTypeLike, float]] = {
    "rare": (np.uint16, 0),
    "alive": (np.bool_, True),
    "before": (np.int32, -1),
    "after": (np.int32, -1),
    "before2": (np.int32, -1),
    "after2": (np.int32, -1),
    "blend_norm": (np.float32, 1.0),
}
"""Columns that are computed here, and what a new row begins with: how many of its terms few rows have (`few_of`), whether
the row is there, its neighbours in its thread at distance one and two (-1: none), and the length of its vector with its
neighbours' (`_measure_blends`)."""
_COLUMNS = {name: np.dtype(column[0]) for name, column in (_NUMBERS | _OF_TEXT | _OWN).items()}
_BESIDE = ("before", "after", "before2", "after2")
_WORDS_BYTES = 140
_ROW_BYTES = sum(dtype.itemsize for dtype in _COLUMNS.values()) + 110 + _WORDS_BYTES
"""Columns, the dictionary of rows and postings, about."""
_MOST_ANSWERS = 32
"""Masks that are kept until the partition changes."""
_BULK = 256
"""Rows in one delta from which sorting them in together beats adding one by one."""
NEAR_ROWS = 1000
"""Nearest rows that are named where an index is inexact: signs, or an engine."""
LEAST_SIGNED = 30_000
"""Rows from which signs are compared instead of vectors: fewer vectors are multiplied as quickly."""
_BLOCK = 32_768
"""Rows whose signs are compared at a time: they stay in the processor's cache."""
WORDED_ROWS = 300
"""Best rows by words that are looked at then: of 60,000 texts they gave the same first five as all rows."""
FETCHED_ROWS = 150
"""As many, where the vectors of all of them are fetched."""


def index_bytes(rows: int, width: int) -> int:
    """About how much memory the rows of a partition take."""
    return rows * (4 * width + width // 4 + _ROW_BYTES)


def few_of(entries: int) -> int:
    """In how many entries a rare term may be: 3, in a large partition about one in 200.

    By powers of two, so that rows are counted afresh only when the partition has doubled.
    """
    return max(3, 1 << max(0, (entries // 200).bit_length() - 1))


def signs_of(vectors: Vector) -> list[npt.NDArray[np.uint64]]:
    """One bit for each number of some vectors: whether it is positive; 64 of them in each of these columns.

    Few bits differ where the cosine is high: the thousand rows of a million that differ least hold .99 of the ten nearest. The
    numbers are mixed first, as many vectors have few that are not 0.
    """
    count, width = vectors.shape
    flips, across, along = _mixers(width)
    mixed = np.zeros((count, len(flips)), dtype=np.float32)
    mixed[:, :width] = vectors
    mixed *= flips
    halfway = (mixed.reshape(-1, len(along)) @ along).reshape(count, len(across), len(along)).swapaxes(1, 2)
    positive = (halfway.reshape(-1, len(across)) @ across).reshape(count, -1) > 0
    return [*np.ascontiguousarray(np.packbits(positive, axis=1).view(np.uint64).T)]


@cache
def _mixers(width: int) -> tuple[Vector, Vector, Vector]:
    """A sign for each of so many numbers, filled up to a power of two; and two Hadamard matrices, whose Kronecker product has
    that size: each number goes into all."""
    bits = max(6, (width - 1).bit_length())
    drawn = np.frombuffer(shake_128(b"signs").digest(2**bits // 8), dtype=np.uint8)
    flips = 1 - 2 * np.unpackbits(drawn).astype(np.float32)
    step = np.array([[1, 1], [1, -1]], dtype=np.float32)
    across, along = (reduce(np.kron, [step] * size) for size in (bits // 2, bits - bits // 2))
    return flips, across, along


class Nearest(Protocol):
    """The port of an engine outside: about the `count` row numbers of the highest cosine, of `among` only if given.

    None: it cannot tell now.
    """

    def __call__(self, vector: Vector, count: int, *, among: Sequence[int] | None = None) -> Sequence[int] | None: ...


class PartitionIndex:
    """The rows of one partition. Every column is an attribute: `index.confidence[row]`."""

    if TYPE_CHECKING:

        def __getattr__(self, column: str) -> npt.NDArray[Any]: ...

    def __init__(self, partition_no: int, width: int, neighbour_weights: tuple[float, float]) -> None:
        self.partition_no = partition_no
        self.width = width
        self.known_seq = 0
        self.speakers: set[int] = set()
        """Name hashes of everyone who ever spoke here."""
        self.postings = Postings()
        self.blind = False
        """Whether its rows came without vectors: those of the store wait to be renewed."""
        self.words_held = True
        """Whether the postings are here; else the store is asked."""
        self._few = few_of(0)
        self.neighbour_weights = neighbour_weights
        self.linked = True
        """Whether links made by hand may touch any row."""
        self.threaded = False
        """Whether any row has a neighbour."""
        self._size = 0
        self.dead: list[int] = []
        """Rows that are gone: empty, without postings, never to be returned."""
        self._row_of: dict[int, int] = {}
        self._tails: dict[int, int] = {}
        self.unsaved = 0
        """Rows that were added or changed since `known_seq` of the file that this index came from, or ever."""
        self.elsewhere: Nearest | None = None
        """Names the entries nearest to a vector, where an engine outside has the vectors."""
        self.fetch: Callable[[Sequence[int]], Mapping[int, Vector]] | None = None
        """Reads vectors by row number, where they are not held here."""
        self._answers: LruCache[Hashable, npt.NDArray[Any]] = LruCache(_MOST_ANSWERS)
        self._signs = [f"signs{number}" for number in range(len(_mixers(width)[0]) // 64 if width else 0)]
        names = _COLUMNS | dict.fromkeys(self._signs, np.dtype(np.uint64))
        self._columns = {name: np.zeros(0, dtype=dtype) for name, dtype in names.items()}
        self._vectors = np.zeros((0, width), dtype=np.float32)
        self._show()

    def arrays(self) -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
        """Everything that cannot be found again quickly, for `PartitionIndex.of`: one place a row, and other arrays."""
        by_row = {**{name: column[: self._size] for name, column in self._columns.items()}, "vectors": self.vectors}
        return by_row, self.postings.arrays()

    @classmethod
    def of(
        cls,
        partition_no: int,
        neighbour_weights: tuple[float, float],
        seq: int,
        size: int,
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> PartitionIndex:
        """An index over these arrays, which it may write to; those with a place for each row may have more places."""
        made = cls(partition_no, arrays["vectors"].shape[1], neighbour_weights)
        made.known_seq, made._size = seq, size
        made._columns, made._vectors = {name: arrays[name] for name in made._columns}, arrays["vectors"]
        made.postings = Postings.of(arrays, size)
        made.speakers = set(arrays["speaker"][:size].tolist()) - {0}
        made._tails = made._ordered()[1]
        alive = made._columns["alive"][:size]
        made.dead = np.flatnonzero(~alive).tolist()
        rows = np.flatnonzero(alive)
        made._row_of = dict(zip(made._columns["no"][:size][rows].tolist(), rows.tolist(), strict=True))
        made.threaded = bool((made._columns["before"][:size] >= 0).any() or (made._columns["after"][:size] >= 0).any())
        made._few = few_of(made.held)
        made._show()
        return made

    def __len__(self) -> int:
        return self._size

    @property
    def held(self) -> int:
        """Entries that are here."""
        return len(self._row_of)

    def nos(self) -> list[int]:
        """Row numbers of the entries that are here."""
        return [*self._row_of]

    @property
    def in_threads(self) -> bool:
        """Whether any row is of a thread."""
        return bool(self._tails)

    @property
    def nbytes(self) -> int:
        """About how much memory the rows take."""
        held = index_bytes(self._size, self.width if self.fetch is None else 0)
        return held if self.words_held else held - self._size * _WORDS_BYTES

    @property
    def signed(self) -> bool:
        """Whether the nearest rows are found by signs."""
        return self._size >= LEAST_SIGNED and self.width > 0 and self.fetch is None

    def likely(self, vector: Vector, least: int, *, passing: Mask) -> Rows | None:
        """The rows that are probably nearest, in no order, and of an engine gone ones among them; None: all must be looked at.

        `least` of them pass a filter, if so many do.
        """
        most, wanted = max(least, NEAR_ROWS), int(np.count_nonzero(passing))
        if self.elsewhere is not None:
            count = most if self.fetch is None else max(least, FETCHED_ROWS)
            rows = self._named(self.elsewhere(vector, min(most, count * self._size // max(1, wanted))))
            if rows is not None and np.count_nonzero(passing[rows]) < min(least, wanted):
                rows = self._named(self.elsewhere(vector, count, among=self.no[passing].tolist()))
            if rows is not None:
                return rows
        if self.fetch is not None:  # nobody knows: what the words find is looked at
            return np.empty(0, dtype=np.intp)
        return self._least_different(vector, most, passing) if self.signed else None

    def _least_different(self, vector: Vector, count: int, passing: Mask) -> Rows:
        """The rows whose signs differ least from a vector's: `count` of those that pass, and all that differ no more."""
        most = 64 * len(self._signs)
        # 256 is 0 in eight bits: that is one that differs in all, and is compared for nothing
        different: npt.NDArray[Any] = np.zeros(self._size, dtype=np.uint8 if most <= 256 else np.uint16)
        signs = [(self._columns[name], bits) for name, (bits,) in zip(self._signs, signs_of(vector[None]), strict=True)]
        for start in range(0, self._size, _BLOCK):
            part = different[start : start + _BLOCK]
            for column, bits in signs:
                part += np.bitwise_count(column[start : start + len(part)] ^ bits)
        different[~passing] = gone = 2 ** (8 * different.itemsize) - 1
        within, above = 0, min(most, gone)  # counting a few times is quicker than a histogram
        while within < above:
            halfway = (within + above) // 2
            within, above = (
                (within, halfway) if np.count_nonzero(different <= halfway) >= count else (halfway + 1, above)
            )
        rows = np.flatnonzero(different <= within)
        return rows if within < gone else rows[passing[rows]]

    def _named(self, nos: Sequence[int] | None) -> Rows | None:
        return None if nos is None else np.array(self.rows_of(nos), dtype=np.intp)

    def vectors_of(self, rows: Rows) -> Vector:
        """The vectors of some rows, from here or from where they are."""
        if self.fetch is None:
            return self.vectors[rows]
        nos = self.no[rows].tolist()
        fetched, found = self.fetch(nos), np.zeros((len(nos), self.width), dtype=np.float32)
        for place, no in enumerate(nos):
            if no in fetched and len(fetched[no]) == self.width:
                found[place] = fetched[no]
        return found

    def leave_vectors(self, fetch: Callable[[Sequence[int]], Mapping[int, Vector]]) -> None:
        """Hold vectors no longer: they are read where they are needed."""
        self.fetch = fetch
        self.vectors = self._vectors = np.zeros((0, self.width), dtype=np.float32)

    def leave_words(self, postings: Postings) -> None:
        """Hold words no longer: these postings ask for them."""
        self.postings, self.words_held = postings, False

    def places_of(self, nos: npt.NDArray[np.int64]) -> Rows:
        """The row of each row number; -1 where it is not here. Most rows lie in the order of their numbers."""
        rows = np.minimum(self.no.searchsorted(nos), self._size - 1)
        elsewhere = np.flatnonzero(self.no[rows] != nos) if self._size else np.arange(len(nos))
        rows[elsewhere] = [self._row_of.get(no, -1) for no in nos[elsewhere].tolist()]
        return rows

    def rows_of(self, nos: Sequence[int] | set[int]) -> list[int]:
        """Rows of those row numbers that are here."""
        return [self._row_of[no] for no in nos if no in self._row_of]

    def answer(self, what: Hashable, find: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Something of every row, found once and kept until the partition changes; not to be written to."""
        found = self._answers.get(what)
        if found is None or len(found) != self._size:
            found = find()
            self._answers.put(what, found)
        return found

    # -- keeping current -----------------------------------------------------------------------------------------

    def apply(self, delta: Delta, *, compact: bool = True) -> None:
        """Bring the rows up to date; without `compact` no row is moved."""
        self._answers.clear()
        gone = [row for no in delta.removed if (row := self._kill(no)) is not None]
        fresh: list[Slim] = []
        for slim in delta.rows:
            row = self._row_of.get(slim.no)
            if row is not None and slim.index_seq <= self.known_seq:
                for name, (_, field, number) in _NUMBERS.items():
                    value = getattr(slim, field)
                    self._columns[name][row] = value if number is None else number(value)
                continue
            if row is not None:
                self._kill(slim.no)
                gone.append(row)
            fresh.append(slim)
        if gone:
            self.postings.drop(gone)
            self._count_rare()
        relink = self._append(fresh) if fresh else False
        if relink or gone:
            self._link_threads()
        self.known_seq, self.linked = delta.seq, delta.linked
        self.unsaved += len(delta.rows)
        self._show()
        if compact and len(self.dead) > max(64, self._size // 4):
            self._compact()

    def load(self, pages: Iterable[Delta]) -> None:
        """Fill an empty index page by page, so that the rows are never held twice."""
        terms: list[bytes] = []
        counts: list[bytes] = []
        for page in pages:
            self.known_seq = self.known_seq or page.seq  # as of the first page: what changed since comes again
            self._fill(page.rows)
            terms += [slim.terms for slim in page.rows]
            counts += [slim.counts for slim in page.rows]
        self.postings.extend(range(self._size), terms, counts)
        self.unsaved = self._size
        self._count_rare()
        self._link_threads()
        self._show()

    def _append(self, fresh: Sequence[Slim]) -> bool:
        """Add rows at the end; says whether the threads must be linked anew."""
        start = self._size
        self._fill(fresh)
        if len(fresh) >= _BULK:
            self.postings.extend(range(start, self._size), [s.terms for s in fresh], [s.counts for s in fresh])
            self._count_rare()
            return True
        for row, slim in enumerate(fresh, start):
            terms, counts = np.frombuffer(slim.terms, dtype="<u8"), np.frombuffer(slim.counts, dtype="<u2")
            self._note_rare(row, terms)
            self.postings.add(row, terms.tolist(), counts.tolist())
        if few_of(self.held) != self._few:
            self._count_rare()
        return sum(self._link_to_tail(row) for row in range(start, self._size)) < len(fresh)

    def _reserve(self, size: int) -> None:
        capacity = len(self._columns["no"])
        if size <= capacity:
            return
        capacity = max(size, capacity + max(capacity // 4, 8))  # little to spare: many partitions are small
        for name, column in self._columns.items():
            grown = np.zeros(capacity, dtype=column.dtype)
            grown[: self._size] = column[: self._size]
            self._columns[name] = grown
        if self.fetch is not None:
            return
        vectors = np.zeros((capacity, self.width), dtype=np.float32)
        vectors[: self._size] = self._vectors[: self._size]
        self._vectors = vectors

    def _fill(self, fresh: Sequence[Slim]) -> None:
        """Add rows at the end, as far as each is known by itself."""
        start, end = self._size, self._size + len(fresh)
        self._reserve(end)
        place = slice(start, end)
        fields = dict(zip(Slim.__annotations__, zip(*fresh, strict=True), strict=True))
        for name, (_, field, number) in (_NUMBERS | _OF_TEXT).items():
            values = fields[field]
            self._columns[name][place] = values if number is None else [*map(number, values)]
        for name, (_, first) in _OWN.items():
            self._columns[name][place] = first
        self.speakers.update(slim.speaker for slim in fresh if slim.speaker)
        if self.width and self.fetch is None:
            empty = bytes(4 * self.width)
            blob = b"".join(slim.vector or empty for slim in fresh)
            vectors = np.frombuffer(blob, dtype="<f4").reshape(len(fresh), self.width)
            sound = np.isfinite(vectors).all(axis=1, keepdims=True)  # a damaged one would spoil every score
            self._vectors[place] = np.where(sound, vectors, np.float32(0))
            for name, column in zip(self._signs, signs_of(self._vectors[place]), strict=True):
                self._columns[name][place] = column
        self._row_of.update((slim.no, start + place) for place, slim in enumerate(fresh))
        self._size = end

    def _note_rare(self, row: int, terms: npt.NDArray[np.uint64]) -> None:
        """Count the rare terms of a row that is about to be added; a term of one too many is rare no longer."""
        rare, held_by = self._columns["rare"], self.postings.spread(terms)
        rare[row] = min(int((held_by < self._few).sum()), MOST_TERMS)
        for term in terms[held_by == self._few].tolist():
            rare[self.postings.find(term)[0]] -= 1

    def _count_rare(self) -> None:
        """Count every row's rare terms afresh."""
        self._few = few_of(self.held)
        self._columns["rare"][: self._size] = np.minimum(self.postings.count_rare(self._few, self._size), MOST_TERMS)

    def _kill(self, no: int) -> int | None:
        """Empty a row and return it; None when it is not here."""
        row = self._row_of.pop(no, None)
        if row is not None:
            for column in self._columns.values():
                column[row] = 0
            self._columns["valid_to"][row] = NONE
            self._columns["thread"][row] = NONE
            if self.fetch is None:
                self._vectors[row] = 0.0
            self.dead.append(row)
        return row

    def _compact(self) -> None:
        """Begin anew without the dead rows, from what is in memory."""
        keep = np.flatnonzero(self.alive)
        renumber = np.full(self._size + 1, -1, dtype=np.int32)
        renumber[keep] = np.arange(len(keep), dtype=np.int32)
        self.postings = self.postings.renumbered(renumber)
        self._columns = {name: column[: self._size][keep] for name, column in self._columns.items()}
        if self.fetch is None:
            self._vectors = self._vectors[: self._size][keep]
        self._size, self.dead = len(keep), []
        self._row_of = {int(no): row for row, no in enumerate(self._columns["no"])}
        self._link_threads()
        self._show()

    # -- neighbours ----------------------------------------------------------------------------------------------

    def _link_to_tail(self, row: int) -> bool:
        """Link a row that continues its thread; False when it does not come next."""
        thread, position = int(self._columns["thread"][row]), int(self._columns["position"][row])
        if thread == NONE:
            return True
        tail = self._tails.get(thread)
        if tail is not None and self._columns["position"][tail] != position - 1:
            return False
        self._tails[thread] = row
        if tail is None:
            return True
        self._columns["after"][tail], self._columns["before"][row] = row, tail
        changed = self._lean(np.array([tail, row]))
        self.threaded = True
        self._measure_blends(changed)
        return True

    def _link_threads(self) -> None:
        """Find every row's neighbours afresh."""
        size, columns = self._size, self._columns
        for name in _BESIDE:
            columns[name][:size] = -1
        order, self._tails = self._ordered()
        thread, position = columns["thread"][order], columns["position"][order]
        left, right = order[:-1], order[1:]
        beside = (thread[1:] == thread[:-1]) & (position[1:] - position[:-1] == 1)
        columns["after"][left[beside]], columns["before"][right[beside]] = right[beside], left[beside]
        columns["blend_norm"][:size] = 1.0
        self._lean(np.arange(size))
        linked = np.flatnonzero((columns["before"][:size] >= 0) | (columns["after"][:size] >= 0))
        self.threaded = len(linked) > 0
        self._measure_blends(linked)

    def _lean(self, rows: Rows) -> Rows:
        """Keep only those next to these rows that they lean on, and link the next but one through them. Returns the rows
        whose neighbours are other ones now."""
        columns = self._columns
        self._drop_unrelated(rows, ("before", "after"))
        last = rows[columns["before"][rows] >= 0]
        middle = columns["before"][last]
        last, first = last[columns["before"][middle] >= 0], columns["before"][middle[columns["before"][middle] >= 0]]
        columns["after2"][first], columns["before2"][last] = last, first
        self._drop_unrelated(np.concatenate([first, last]), ("before2", "after2"))
        return np.concatenate([rows, first])

    def _ordered(self) -> tuple[Rows, dict[int, int]]:
        """Rows of threads, one thread's after another's, and each thread's last row."""
        thread, position = self._columns["thread"][: self._size], self._columns["position"][: self._size]
        member = np.flatnonzero(self._columns["alive"][: self._size] & (thread != NONE))
        order = member[np.lexsort((position[member], thread[member]))]
        threads = thread[order]
        last = np.append(threads[1:] != threads[:-1], True) if len(order) else np.empty(0, dtype=bool)
        return order, dict(zip(threads[last].tolist(), order[last].tolist(), strict=True))

    def _drop_unrelated(self, rows: Rows, names: Sequence[str]) -> None:
        """Keep only neighbours that a row leans on: a short reply of an assistant neither gives context nor takes it, nor do
        two turns of a person in a row, who tells one thing after another, nor what somebody only asks near what the same one
        says."""
        columns = self._columns
        traits = (Trait.ASSISTANT, Trait.ASKS, Trait.TURN)
        of_assistant, asks, turn = ((columns["traits"] & np.uint8(trait)) != 0 for trait in traits)
        for name in names:
            beside = columns[name][rows]
            there = np.flatnonzero(beside >= 0)
            own, other = rows[there], beside[there]
            reply = np.where(of_assistant[own], own, other)
            short = columns["chars"][reply] < SHORT_REPLY_CHARS
            apart = (of_assistant[own] != of_assistant[other]) & short
            same = (columns["speaker"][own] == columns["speaker"][other]) & (of_assistant[own] == of_assistant[other])
            in_a_row = turn[own] & turn[other] & (name in ("before", "after"))
            apart |= same & ~of_assistant[own] & (in_a_row | (asks[own] != asks[other]))
            columns[name][own[apart]] = -1

    def _measure_blends(self, rows: Rows) -> None:
        """The length of each row's vector plus its weighted neighbours', which normalises the blended cosine."""
        near, far = self.neighbour_weights
        if not self.width or self.fetch is not None:
            return
        for start in range(0, len(rows), 4096):
            part = rows[start : start + 4096]
            blend = self._vectors[part]
            for name, weight in (("before", near), ("after", near), ("before2", far), ("after2", far)):
                beside = self._columns[name][part]
                there = beside >= 0
                blend[there] += np.float32(weight) * self._vectors[beside[there]]
            lengths = np.linalg.norm(blend, axis=1)
            self._columns["blend_norm"][part] = np.where(lengths > 0, lengths, 1.0)

    def _show(self) -> None:
        """Views of the filled part of each column, and what is true of all rows."""
        for name, column in self._columns.items():
            setattr(self, name, column[: self._size])
        self.vectors = self._vectors[: self._size]
        self.newest = int(self.at.max(initial=OLDEST, where=self.alive))
        always_valid = (self.valid_to == NONE).all() and not (self.state == PRUNED).any()
        self.all_valid_from = int(self.valid_from.max(initial=0)) if always_valid else NONE
        """From when on every row that is not dead is neither pruned nor outside its time, as is usual; `NONE`: never."""
