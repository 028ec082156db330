"""pgvector's type as psycopg sends and receives it: little-endian float32 bytes on our side, as in every other store.

On the wire a vector is its width, an unused number, and big-endian float32.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from psycopg import Connection
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from wellworn.core.errors import StoreError

_HEAD = struct.Struct(">HH")


class VectorBytes(bytes):
    """The float32 values of a vector, to be written into a column of pgvector's type."""


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: VectorBytes) -> Buffer:
        return _HEAD.pack(len(obj) // 4, 0) + np.frombuffer(obj, dtype="<f4").astype(">f4").tobytes()


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return np.frombuffer(bytes(data), dtype=">f4", offset=_HEAD.size).astype("<f4").tobytes()


def fetch_vector_type(connection: Connection[Any]) -> TypeInfo:
    """The type as this database knows it."""
    found = TypeInfo.fetch(connection, "vector")
    if found is None:
        raise StoreError("this database has no pgvector: let its administrator run CREATE EXTENSION vector")
    return found


def register_vector(connection: Connection[Any], info: TypeInfo) -> None:
    info.register(connection)
    dumper = type("_Dumper", (_VectorDumper,), {"oid": info.oid})
    connection.adapters.register_dumper(VectorBytes, dumper)
    connection.adapters.register_loader(info.oid, _VectorLoader)
