# SPDX-License-Identifier: Apache-2.0
"""How large the table in a parquet file is, told by the file's footer, before anything is unpacked.

    PAR1   data   footer   size of the footer (4 bytes)   PAR1

A footer is a `FileMetaData` of parquet.thrift in Thrift's compact protocol: structs of numbered fields, of
which these are looked at.

    FileMetaData   3 num_rows   4 row_groups: RowGroup   3 num_rows   1 columns: ColumnChunk   3 meta_data:
    ColumnMetaData   6 total_uncompressed_size
"""

from __future__ import annotations

from typing import Any, NamedTuple

MAGIC = b"PAR1"
_TAIL_BYTES = 8

MOST_FOOTER_BYTES = 4 << 20
"""A footer has some 100 bytes for each column of a million rows."""

_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
"""The types of Thrift."""


class Size(NamedTuple):
    """Of a table, when it is unpacked."""

    rows: int
    octets: int


def footer(content: bytes) -> int:
    """Where the footer of a file begins."""
    return len(content) - _TAIL_BYTES - int.from_bytes(content[-_TAIL_BYTES : -len(MAGIC)], "little")


def size_of(content: bytes) -> Size:
    """The size of the table in a file, as the file tells it.

    Raises:
        ValueError: the footer is none, or too large.
    """
    start, end = footer(content), len(content) - _TAIL_BYTES
    if not 0 < start <= end or end - start > MOST_FOOTER_BYTES:
        raise ValueError("no footer")
    try:
        whole = _Thrift(content[start:end]).struct()
        groups = whole[4]
        rows = max(whole[3], sum(group[3] for group in groups))
        return Size(rows, sum(chunk[3][6] for group in groups for chunk in group[1]))
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError("no footer") from error


class _Thrift:
    """Reads values of the compact protocol one after the other; IndexError at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> dict[int, Any]:
        """The values of a struct by the numbers of its fields."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._octet():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_SHORT, _INT, _LONG):
            return self._integer()
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._octet()
        if kind in (_DOUBLE, _BINARY):
            return self._skip(8 if kind == _DOUBLE else self._varint())
        if kind in (_LIST, _SET):
            head = self._octet()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15) for _ in range(count)]
        if kind == _MAP:
            count = self._varint()
            kinds = self._octet() if count else 0
            return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct()
        raise LookupError(kind)

    def _octet(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            octet = self._octet()
            value |= (octet & 127) << shift
            if octet < 128:
                return value
            shift += 7
            if shift > 63:
                raise LookupError("no integer")

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _skip(self, count: int) -> None:
        self._at += count
        if self._at > len(self._data):
            raise IndexError
