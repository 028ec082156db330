"""Writing vectors, index records and the model that they are of."""

from __future__ import annotations

from collections.abc import Sequence

from wellworn.core.errors import StoreError
from wellworn.store.port import IndexRecord, Model, Vector
from wellworn.store.sqlite.rows import index_row, vector_blob
from wellworn.store.sqlite.tx_numbers import NumbersTx


class VectorsTx(NumbersTx):
    """What is searched by, of rows that are there."""

    def put_vectors(self, model: Model, vectors: Sequence[tuple[int, Vector]]) -> int:
        current = self._current()
        if current is not None and current[1] == model:
            return sum(self._put_current_vector(no, vector) for no, vector in vectors)
        model_no = self._model_no(model)
        for _, vector in vectors:
            if vector.shape != (model.width,):
                raise StoreError(f"a vector of shape {vector.shape} does not fit {model.name} ({model.width})")
        return sum(
            self._db.execute(
                "INSERT OR REPLACE INTO new_vectors SELECT no, ?, ? FROM entries WHERE no = ?",
                (model_no, vector_blob(vector), no),
            ).rowcount
            for no, vector in vectors
        )

    def _put_current_vector(self, no: int, vector: Vector) -> int:
        self._check_width(vector)
        changed = self._db.execute("UPDATE index_records SET vector = ? WHERE entry = ?", (vector_blob(vector), no))
        if changed.rowcount:
            self._touch_index(no)
        return changed.rowcount

    def _model_no(self, model: Model) -> int:
        self._db.execute("INSERT OR IGNORE INTO models (name, width) VALUES (?, ?)", (model.name, model.width))
        row = self._db.execute(
            "SELECT no FROM models WHERE name = ? AND width = ?", (model.name, model.width)
        ).fetchone()
        return int(row[0])

    def put_index(self, records: Sequence[tuple[int, IndexRecord]]) -> None:
        for no, record in records:
            *values, _ = index_row(record, None)
            self._db.execute(
                """
                INSERT INTO index_records (entry, partition, near_a, near_b, length, chars, traits, speaker, terms, counts)
                SELECT no, partition, ?, ?, ?, ?, ?, ?, ?, ? FROM entries WHERE no = ?
                ON CONFLICT (entry) DO UPDATE SET near_a = excluded.near_a, near_b = excluded.near_b,
                  length = excluded.length, chars = excluded.chars, traits = excluded.traits,
                  speaker = excluded.speaker, terms = excluded.terms, counts = excluded.counts
                """,
                (*values, no),
            )
            self._touch_index(no)

    def _touch_index(self, no: int) -> None:
        row = self._db.execute("SELECT partition FROM entries WHERE no = ?", (no,)).fetchone()
        if row is not None:
            seq = self._seq(row[0])
            self._db.execute("UPDATE entries SET seq = ?, index_seq = ? WHERE no = ?", (seq, seq, no))

    def use_model(self, model: Model) -> None:
        current = self._current()
        model_no = self._model_no(model)
        if current is None or current[1] != model:
            self._db.execute(
                "UPDATE index_records SET vector = (SELECT vector FROM new_vectors v "
                "WHERE v.entry = index_records.entry AND v.model = ?)",
                (model_no,),
            )
            for (partition_no,) in self._db.execute("SELECT no FROM partitions").fetchall():
                seq = self._seq(partition_no)
                self._db.execute(
                    "UPDATE entries SET seq = ?, index_seq = ? WHERE partition = ?", (seq, seq, partition_no)
                )
        self._db.execute("DELETE FROM new_vectors")
        self._db.execute("DELETE FROM models WHERE no <> ?", (model_no,))
        self._db.execute("UPDATE models SET current = 1 WHERE no = ?", (model_no,))
        self._model_known = False
