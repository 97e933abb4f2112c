# SPDX-License-Identifier: Apache-2.0
"""Distributions of flow sizes: what is drawn follows the curve, and files are checked."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.experiments.workloads.sizes import FOLDER, NAMES, SizeCdf, find_cdf

COUNT = 20_000
CERTAIN = 1e-9
"""Chance that a correct sampler fails a test here, were its seed not fixed."""


def mean_square(cdf: SizeCdf) -> float:
    """The mean of the squares: on each straight piece sizes are uniform."""
    total = cdf.points[0][0] ** 2 * cdf.points[0][1]
    for (low, below), (high, above) in zip(cdf.points, cdf.points[1:], strict=False):
        total += (above - below) * (low * low + low * high + high * high) / 3
    return total


def share_of(cdf: SizeCdf, size_bytes: float) -> float:
    """The share of flows that are no larger than this, by the points of the curve."""
    if size_bytes < cdf.points[0][0]:
        return 0.0
    index = next((i for i, (size, _) in enumerate(cdf.points) if size > size_bytes), None)
    if index is None:
        return 1.0
    (low, below), (high, above) = cdf.points[index - 1 : index + 1]
    return below + (size_bytes - low) / (high - low) * (above - below)


@pytest.mark.parametrize("name", NAMES)
def test_drawn_sizes_follow_the_curve(name: str) -> None:
    """Everywhere within the bound of Dvoretzky, Kiefer and Wolfowitz; the mean within 6 standard errors."""
    cdf = find_cdf(name)
    rng = random.Random(1)
    drawn = sorted(cdf.draw(rng) for _ in range(COUNT))
    bound = math.sqrt(math.log(2 / CERTAIN) / (2 * COUNT))
    for rank, size in enumerate(drawn):
        # a drawn size is rounded: the curve at either side of it
        assert share_of(cdf, size - 0.5) - bound <= (rank + 1) / COUNT
        assert rank / COUNT <= share_of(cdf, size + 0.5) + bound
    error = math.sqrt((mean_square(cdf) - cdf.mean_bytes**2) / COUNT)
    assert abs(sum(drawn) / COUNT - cdf.mean_bytes) < 6 * error


@pytest.mark.parametrize(
    ("name", "mean_bytes", "most_bytes"),
    [
        ("websearch", 1.49e6, 28_589_215),
        ("enterprise", 1.59e5, 1_773_379_248),
        ("alibaba", 4.09e4, 2_000_000),
        ("datamining", 5.04e6, 1_000_000_000),
        ("hadoop", 1.20e5, 10_000_000),
        ("webserver", 6.30e4, 1_000_000),
        ("cachefollower", 6.87e5, 3_837_698),
    ],
)
def test_known_means(name: str, mean_bytes: float, most_bytes: int) -> None:
    """The means and largest flows of the tables that come with the package."""
    cdf = find_cdf(name)
    assert cdf.mean_bytes == pytest.approx(mean_bytes, rel=0.005)
    assert cdf.points[-1] == (most_bytes, 1.0)
    assert f'name = "{name}"' in (FOLDER / f"{name}.toml").read_text()


shares = st.lists(st.floats(0, 1), max_size=8).map(sorted)


@st.composite
def curves(draw: st.DrawFn) -> SizeCdf:
    below = draw(shares)
    sizes = sorted(draw(st.lists(st.integers(0, 1 << 31), min_size=len(below) + 1, max_size=len(below) + 1)))
    return SizeCdf(tuple(zip(sizes, [*below, 1.0], strict=True)))


@settings(max_examples=200)
@given(curves(), st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted))
def test_quantile_of_any_curve(cdf: SizeCdf, at: list[float]) -> None:
    """Quantiles rise, stay within the curve, and no smaller a share of flows is as small as they are."""
    low, high = (cdf.quantile(share) for share in at)
    assert cdf.points[0][0] <= low <= high <= cdf.points[-1][0]
    # of a steep piece one size covers a range of shares: the next larger size is above all of it
    assert share_of(cdf, low + 1) >= at[0] - 1e-6
    if cdf.points[0][1] < at[1]:
        assert share_of(cdf, high - 1) <= at[1] + 1e-6


@settings(max_examples=50)
@given(curves(), st.integers(0, 1 << 30))
def test_drawn_sizes_can_be_sent(cdf: SizeCdf, seed: int) -> None:
    """Whole numbers from 1 to the largest size."""
    rng = random.Random(seed)
    for _ in range(20):
        assert 1 <= cdf.draw(rng) <= max(1, cdf.points[-1][0])


def test_one_size_draws_nothing() -> None:
    """A constant size leaves the random numbers to others."""
    rng = random.Random(1)
    before = rng.getstate()
    assert SizeCdf.always(7).draw(rng) == 7
    assert rng.getstate() == before
    assert SizeCdf.always(7).mean_bytes == 7


def test_jump() -> None:
    """Two points of one size: that share of flows has exactly this size; the first share is the first size's."""
    cdf = SizeCdf(((10, 0.25), (100, 0.5), (100, 0.75), (200, 1.0)))
    assert [cdf.quantile(share) for share in (0.1, 0.25, 0.375, 0.5, 0.6, 0.75, 1.0)] == [
        10,
        10,
        55,
        100,
        100,
        100,
        200,
    ]
    assert (share_of(cdf, 9), share_of(cdf, 10), share_of(cdf, 100), share_of(cdf, 999)) == (
        0.0,
        0.25,
        0.75,
        1.0,
    )
    assert share_of(cdf, 99) == pytest.approx(0.25 + 0.25 * 89 / 90)
    assert cdf.mean_bytes == 0.25 * 10 + 0.25 * 55 + 0.25 * 100 + 0.25 * 150


@settings(max_examples=100)
@given(curves(), st.integers(1, 1 << 31), st.floats(0, 1))
def test_clipped(cdf: SizeCdf, most_bytes: int, at: float) -> None:
    """Every quantile is what it was, or `most` where that was larger."""
    clipped = cdf.clipped(most_bytes)
    assert clipped.quantile(at) == pytest.approx(min(cdf.quantile(at), most_bytes), rel=1e-6, abs=1e-3)
    assert clipped.mean_bytes <= min(most_bytes, cdf.mean_bytes * (1 + 1e-9))


def test_file_of_ones_own(tmp_path: Path) -> None:
    """cdf=FILE.toml, with whole numbers as shares, too."""
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\nunit = "bytes"\nmeasured = "us"\nsource = "here"\npoints = [[100, 0.0], [200, 1]]\n'
    )
    assert find_cdf(str(path)) == SizeCdf(((100, 0.0), (200, 1.0)))
