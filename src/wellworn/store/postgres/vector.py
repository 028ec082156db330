"""Vectors and lists of row numbers as psycopg sends and receives them.

A vector is little-endian float32 bytes on our side, as in every other store. On the wire pgvector's type is its width, an
unused number, and big-endian float32.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from psycopg import Connection
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from wellworn.core.errors import StoreError

_HEAD = struct.Struct(">HH")
_ARRAY = struct.Struct(">iiIii")
"""Dimensions, whether there are NULLs, type of the items, how many, number of the first."""
_ITEM = np.dtype([("bytes", ">i4"), ("number", ">i8")])
_INT8, _INT8_ARRAY = 20, 1016
_SIZE = struct.Struct(">i")
_NULL = _SIZE.pack(-1)


class Numbers(list[int]):
    """Row numbers, to be sent as one array; psycopg would look at each of them several times."""


class _NumbersDumper(Dumper):
    format, oid = Format.BINARY, _INT8_ARRAY

    def dump(self, obj: Numbers) -> Buffer:
        items = np.empty(len(obj), dtype=_ITEM)
        items["bytes"], items["number"] = 8, obj
        return _ARRAY.pack(1, 0, _INT8, len(obj), 1) + items.tobytes()


class ColumnValues(list[Any]):
    """Values of one type or None, to be sent as one array; psycopg would look at each of them several times."""

    def __init__(self, values: Sequence[Any], type_: str, kind: int) -> None:
        """`kind` is the number of the type in the database."""
        super().__init__(values)
        self.type, self.kind = type_, kind


class _ColumnDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: ColumnValues) -> Buffer:
        size, some = _SIZE.pack, None in obj
        if obj.type in _OF_NUMBERS and not some:
            numbers = np.empty(len(obj), dtype=[("bytes", ">i4"), ("number", _OF_NUMBERS[obj.type])])
            numbers["bytes"], numbers["number"] = 8, obj
            items = numbers.tobytes()
        else:
            read = _BYTES[obj.type]
            sent = [None if value is None else read(value) for value in obj] if some else [*map(read, obj)]
            items = b"".join([_NULL if item is None else size(len(item)) + item for item in sent])
        return _ARRAY.pack(1, some, obj.kind, len(obj), 1) + items


class VectorBytes(bytes):
    """The float32 values of a vector, to be written into a column of pgvector's type."""


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: VectorBytes) -> Buffer:
        return as_sent(obj)


def as_sent(vector: VectorBytes) -> bytes:
    return _HEAD.pack(len(vector) // 4, 0) + np.frombuffer(vector, dtype="<f4").astype(">f4").tobytes()


_OF_NUMBERS = {"bigint": ">i8", "float8": ">f8"}
_BYTES: dict[str, Callable[[Any], bytes]] = {
    "text": str.encode,
    "bytea": bytes,
    "bigint": struct.Struct(">q").pack,
    "float8": struct.Struct(">d").pack,
    "vector": as_sent,
}


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        numbers = array("f", bytes(data[_HEAD.size :]))  # a third of what numpy takes for so few
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()


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
    connection.adapters.register_dumper(Numbers, _NumbersDumper)
    connection.adapters.register_dumper(ColumnValues, _ColumnDumper)
