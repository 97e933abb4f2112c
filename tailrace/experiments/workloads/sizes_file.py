# SPDX-License-Identifier: Apache-2.0
"""Files of measured flow sizes: a user's, or those of this package (workloads/cdf/NAME.toml).

    name = "websearch"
    unit = "bytes"                            required, so that sizes in packets are not mistaken for bytes
    measured = "who measured it, and where"
    source = "where the numbers were taken from"
    points = [[4000, 0.0], [5971, 0.077], ..., [28589215, 1.0]]

A point is a size and the share of flows that are no larger; sizes.py interpolates between points.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from tailrace.experiments.workloads.sizes import SizeCdf
from tailrace.hosts.flows.flow import MAX_FLOW_BYTES
from tailrace.spec import SpecError
from tailrace.spec.schema import KeyProblemError, convert, in_file, read_toml

FOLDER = Path(__file__).resolve().parent / "cdf"
NAMES = ("websearch", "enterprise", "alibaba", "datamining", "hadoop", "webserver", "cachefollower")

_Text = Annotated[str, msgspec.Meta(min_length=1, description="a string")]
_Points = Annotated[
    tuple[tuple[int, float], ...],
    msgspec.Meta(min_length=1, description="points such as [[100, 0.0], [2000, 0.5], [9000, 1.0]]"),
]


class CdfFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file; `points` form a valid cumulative distribution."""

    name: _Text
    unit: Annotated[Literal["bytes"], msgspec.Meta(description="'bytes'")]
    measured: _Text
    source: _Text
    points: _Points

    @property
    def sizes(self) -> SizeCdf:
        return SizeCdf(self.points)


def find_cdf(text: str) -> SizeCdf:
    """The distribution with a name of NAMES, or that of a user's FILE.toml.

    Raises:
        SpecError: `text` is neither a known name nor a file name that ends in .toml.
        FileError: the file cannot be read, or its content is invalid.
    """
    if text in NAMES:
        return read_cdf(FOLDER / f"{text}.toml").sizes
    if not text.endswith(".toml"):
        raise SpecError(f"cdf {text!r} is not known; expected {', '.join(NAMES)} or FILE.toml")
    return read_cdf(Path(text)).sizes


def name_of(sizes: SizeCdf) -> str:
    """The name of a distribution of NAMES; a fixed description for any other distribution."""
    return next((name for name in NAMES if find_cdf(name) == sizes), "a custom distribution")


def read_cdf(path: Path) -> CdfFile:
    """Reads a file of a distribution.

    Raises:
        FileError: the file cannot be read, or its content is invalid.
    """
    try:
        file = convert(read_toml(path), CdfFile)
        _check(file.points)
    except KeyProblemError as error:
        raise in_file(path, error) from error
    return file


def _check(points: tuple[tuple[int, float], ...]) -> None:
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
