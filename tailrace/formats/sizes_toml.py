# SPDX-License-Identifier: Apache-2.0
"""Distributions of flow sizes in TOML, with their origin; those of this project are in this form.

    name = "websearch"
    unit = "bytes"                            required, so that sizes in packets are not mistaken for bytes
    measured = "who measured it, and where"
    source = "where the numbers were taken from"
    points = [[4000, 0.0], [5971, 0.077], ..., [28589215, 1.0]]

A point is a size and the share of flows that are no larger; sizes between points are interpolated.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from tailrace.formats.registry import HEAD_CHARACTERS, Format, Kind, Source, register
from tailrace.formats.sizes_columns import Points
from tailrace.spec.constants import MAX_FLOW_BYTES
from tailrace.spec.schema import KeyProblemError, convert, parse_toml

_Text = Annotated[str, msgspec.Meta(min_length=1, description="a string")]
_Points = Annotated[
    tuple[tuple[int, float], ...],
    msgspec.Meta(min_length=1, description="points such as [[100, 0.0], [2000, 0.5], [9000, 1.0]]"),
]


class SizesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file; `points` form a valid cumulative distribution."""

    name: _Text
    unit: Annotated[Literal["bytes"], msgspec.Meta(description="'bytes'")]
    measured: _Text
    source: _Text
    points: _Points


_KEY = re.compile(rf"^\s*(?:{'|'.join(SizesFile.__struct_fields__)})\s*=", re.MULTILINE)


def _recognises(source: Source) -> bool:
    return _KEY.search(source.text[:HEAD_CHARACTERS]) is not None


def read_sizes(source: Source) -> SizesFile:
    """The content of a file; raises FormatError if it is invalid."""
    try:
        file = convert(parse_toml(source.path, source.text), SizesFile)
        _check(file.points)
    except KeyProblemError as error:
        raise source.error(f"key '{error.key}'" if error.key else "", error.problem) from error
    return file


def _check(points: Points) -> None:
    """Raises KeyProblemError unless the points form a cumulative distribution."""
    last_size, last_share = 0, 0.0
    for index, (size, share) in enumerate(points):
        where = f"points[{index}]"
        if not last_size <= size <= MAX_FLOW_BYTES:
            expected = f"expected a size from {last_size} to {MAX_FLOW_BYTES}"
            raise KeyProblemError(where, f"{expected}, found {size}")
        if not last_share <= share <= 1:
            raise KeyProblemError(where, f"expected a share from {last_share:g} to 1, found {share:g}")
        last_size, last_share = size, share
    if last_share != 1:
        where = f"points[{len(points) - 1}]"
        raise KeyProblemError(where, f"expected 1 as the last share, found {last_share:g}")


def _write(points: Points) -> str:
    rows = ", ".join(f"[{size}, {share!r}]" for size, share in points)
    return (
        f'name = "converted"\nunit = "bytes"\nmeasured = "unknown"\nsource = "unknown"\npoints = [{rows}]\n'
    )


def _read(source: Source) -> Points:
    return read_sizes(source).points


register(Format("sizes-toml", Kind.SIZES, "TOML with points", _recognises, _read, _write))
