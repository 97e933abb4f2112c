# SPDX-License-Identifier: Apache-2.0
"""The generator of random faults gives the published numbers, so that another language can."""

from __future__ import annotations

from tailrace.sim.network.prng import SplitMix64, threshold


def test_splitmix64_gives_its_published_numbers() -> None:
    """The first outputs for state 0, as the reference implementation prints them."""
    prng = SplitMix64()
    assert [prng.next() for _ in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_every_part_of_a_seed_matters() -> None:
    seeds = [(0,), (1,), (0, 1), (1, 0), (1, 1), (0, 0), (2**64 - 1,)]
    assert len({SplitMix64(*seed).next() for seed in seeds}) == len(seeds)


def test_a_threshold_is_the_share_of_all_numbers() -> None:
    assert (threshold(0), threshold(0.5), threshold(1)) == (0, 2**63, 2**64)
