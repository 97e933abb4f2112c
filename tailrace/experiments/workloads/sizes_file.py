# SPDX-License-Identifier: Apache-2.0
"""Measured distributions of flow sizes by name (workloads/cdf/NAME.toml), or from a user's file."""

from __future__ import annotations

from pathlib import Path

from tailrace.experiments.workloads.sizes import SizeCdf
from tailrace.spec import SpecError
from tailrace.spec.files import text_of
from tailrace.spec.spec_string import is_file

FOLDER = Path(__file__).resolve().parent / "cdf"
NAMES = ("websearch", "enterprise", "alibaba", "datamining", "hadoop", "webserver", "cachefollower")


def find_cdf(text: str) -> SizeCdf:
    """The distribution with a name of NAMES, or that of a user's file in any format of `tailrace.formats`.

    Raises:
        SpecError: `text` is neither a known name nor a file name, which contains a dot or slash.
        FileError: the file cannot be read, or its content is invalid.
    """
    from tailrace.formats.registry import Kind, Source, read_file

    if text in NAMES:
        from tailrace.formats.sizes_toml import read_sizes

        path = FOLDER / f"{text}.toml"
        return SizeCdf(read_sizes(Source(path, text=text_of(path))))
    if not is_file(text):
        raise SpecError(f"cdf {text!r} is not known; expected {', '.join(NAMES)} or FILE")
    return SizeCdf(read_file(Path(text), Kind.SIZES)[1])


def name_of(sizes: SizeCdf) -> str:
    """The name of a distribution of NAMES; a fixed description for any other distribution."""
    return next((name for name in NAMES if find_cdf(name) == sizes), "a custom distribution")
