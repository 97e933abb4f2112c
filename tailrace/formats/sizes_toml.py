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

from tailrace.formats.registry import HEAD_CHARACTERS, Kind, Source, register
from tailrace.formats.sizes_columns import Points, check_points
from tailrace.spec.schema import KeyProblemError, convert, parse_toml

_Text = Annotated[str, msgspec.Meta(min_length=1, description="a string")]
_Points = Annotated[
    tuple[tuple[int, float], ...],
    msgspec.Meta(min_length=1, description="points such as [[100, 0.0], [2000, 0.5], [9000, 1.0]]"),
]


class _SizesFile(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a file."""

    name: _Text
    unit: Annotated[Literal["bytes"], msgspec.Meta(description="'bytes'")]
    measured: _Text
    source: _Text
    points: _Points


_KEY = re.compile(rf"^\s*(?:{'|'.join(_SizesFile.__struct_fields__)})\s*=", re.MULTILINE)


def _recognises(source: Source) -> bool:
    return _KEY.search(source.text[:HEAD_CHARACTERS]) is not None


def read_sizes(source: Source) -> Points:
    """The points of a file; raises FileError if it is invalid."""
    try:
        points = convert(parse_toml(source.path, source.text), _SizesFile).points
    except KeyProblemError as error:
        raise source.error(f"key '{error.key}'", error.problem) from error
    check_points(source, [f"key 'points[{index}]'" for index in range(len(points))], points, (1,))
    return points


def _write(points: Points) -> str:
    rows = ", ".join(f"[{size}, {share!r}]" for size, share in points)
    return (
        f'unit = "bytes"\nname = "converted"\nmeasured = "unknown"\nsource = "unknown"\npoints = [{rows}]\n'
    )


register("sizes-toml", Kind.SIZES, "TOML with points", _recognises, read_sizes, _write)
