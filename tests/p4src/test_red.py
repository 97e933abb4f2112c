# SPDX-License-Identifier: Apache-2.0
"""RED in P4 (common/red.p4): the chance of a mark at exact loads, against the straight line from Kmin to Kmax."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from tests.p4src.frames import roce
from tests.p4src.rig import HOST_PORT, UPLINKS, Rig

ECT0, CE = 2, 3
PACKETS = 4000
KMIN, KMAX = 20_000, 100_000


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with Rig("ecmp", seed=7) as rig:
        yield rig


def marks(rig: Rig, load_bytes: int, packets: int = PACKETS, ecn: int = ECT0) -> int:
    """How many of so many packets are marked while so much waits for every uplink."""
    for port in UPLINKS:
        rig.set_load(port, load_bytes)
    frame = bytes(roce(tos=ecn))
    sent = Counter(rig.forward(HOST_PORT, frame, 0).data for _ in range(packets))
    by_tos = {Ether(data)[IP].tos: count for data, count in sent.items()}
    assert set(by_tos) <= {ecn, CE}
    return by_tos.get(CE, 0)


@pytest.mark.parametrize(
    ("load_bytes", "pmax_permille"),
    [(20_001, 1000), (30_000, 500), (60_000, 1), (60_000, 500), (60_000, 1000), (99_999, 1), (99_999, 1000)],
)
def test_chance_grows_in_a_straight_line(rig, load_bytes, pmax_permille):
    """P = pmax * (load - Kmin) / (Kmax - Kmin), within four standard deviations."""
    rig.default("red_config", kmin_bytes=KMIN, kmax_bytes=KMAX, pmax_permille=pmax_permille)
    chance = pmax_permille / 1000 * (load_bytes - KMIN) / (KMAX - KMIN)
    expected, deviation = PACKETS * chance, (PACKETS * chance * (1 - chance)) ** 0.5
    assert abs(marks(rig, load_bytes) - expected) <= 4 * deviation + 1


@pytest.mark.parametrize("load_bytes", [0, 1, KMIN - 1, KMIN])
def test_never_up_to_kmin(rig, load_bytes):
    rig.default("red_config", kmin_bytes=KMIN, kmax_bytes=KMAX, pmax_permille=1000)
    assert marks(rig, load_bytes) == 0


@pytest.mark.parametrize("load_bytes", [KMAX, KMAX + 1, 2**31, 2**32 - 1])
def test_always_from_kmax(rig, load_bytes):
    """Whatever pmax says."""
    rig.default("red_config", kmin_bytes=KMIN, kmax_bytes=KMAX, pmax_permille=1)
    assert marks(rig, load_bytes, 50) == 50


def test_not_what_cannot_be_marked(rig):
    """Not-ECT stays not-ECT, also far above Kmax."""
    rig.default("red_config", kmin_bytes=KMIN, kmax_bytes=KMAX, pmax_permille=1000)
    assert marks(rig, 2 * KMAX, 50, ecn=0) == 0


def test_one_threshold_for_both(rig):
    """Kmin = Kmax is a step, as DCTCP has it."""
    rig.default("red_config", kmin_bytes=KMIN, kmax_bytes=KMIN, pmax_permille=1000)
    assert [marks(rig, load, 50) for load in (KMIN - 1, KMIN, KMIN + 1)] == [0, 0, 50]


def test_widest_span(rig):
    """The largest numbers that fit do not overflow: half of the span, half of the packets."""
    rig.default("red_config", kmin_bytes=0, kmax_bytes=2**32 - 1, pmax_permille=1000)
    assert abs(marks(rig, 2**31) - PACKETS / 2) <= 5 * (PACKETS / 4) ** 0.5
