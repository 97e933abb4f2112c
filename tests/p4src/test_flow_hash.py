# SPDX-License-Identifier: Apache-2.0
"""The flow hash and what follows from it: the slot, its spread, and that tiers do not agree (common/ecmp.p4)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from tests.p4src.flow_hash import flow_hash, key_hash
from tests.p4src.rig import HOST, HOST_PORT, REMOTE, UPLINKS, Rig, address_number

FLOWS = 4000


@pytest.fixture(scope="module")
def rig():
    with Rig("ecmp") as rig:
        yield rig


ends = {
    "src": st.integers(0, 255).map(lambda low: f"10.0.1.{low}"),
    "dst": st.integers(0, 255).map(lambda low: f"10.0.2.{low}"),
}
port_numbers = st.integers(0, 0xFFFF).filter(lambda port: port not in (4791, 4793))


@settings(max_examples=150)
@given(
    **ends,
    content=st.one_of(
        st.builds(lambda s, d: UDP(sport=s, dport=d, chksum=0), port_numbers, port_numbers),
        st.builds(lambda s, d: TCP(sport=s, dport=d), port_numbers, port_numbers),
        st.builds(lambda kind: ICMP(type=kind), st.integers(0, 18)),
    ),
    seed=st.integers(0, 2**32 - 1),
    switch_id=st.integers(0, 2**16 - 1),
)
def test_path_is_the_hash_of_the_5_tuple(rig, src, dst, content, seed, switch_id):
    """Of UDP and TCP the ports count, of all else they are zero; seed and number of the switch go in by XOR."""
    rig.default("switch_config", switch_id=switch_id, hash_seed=seed)
    frame = Ether() / IP(src=src, dst=dst) / content / Raw(bytes(24))
    assert rig.forward(HOST_PORT, frame, 0).port == UPLINKS[flow_hash(frame, seed, switch_id) % len(UPLINKS)]


@pytest.mark.parametrize("bit", range(32))
def test_each_bit_is_fair(bit):
    """Every bit of the hash is one for half of the flows: the slot, bucket and history take different bits."""
    set_bits = sum(value >> bit & 1 for value in sample())
    assert abs(set_bits - FLOWS / 2) < 5 * (FLOWS / 4) ** 0.5


@pytest.mark.parametrize("size", range(2, 17))
def test_slots_of_any_group_size_are_fair(size):
    """Each of 2 to 16 next hops has its share of flows that differ in one port only."""
    shares = Counter(value % size for value in sample())
    mean = FLOWS / size
    assert len(shares) == size
    assert max(abs(share - mean) for share in shares.values()) < 5 * mean**0.5


def test_tiers_do_not_agree():
    """Flows that one switch sends the same way part evenly at the next one (polarisation; CRC alone would not do)."""
    first, second = sample(switch_id=1), sample(switch_id=2)
    together = [other for at_first, other in zip(first, second, strict=True) if at_first % 2 == 0]
    odd = sum(value % 2 for value in together)
    assert abs(odd - len(together) / 2) < 5 * (len(together) / 4) ** 0.5


def sample(switch_id: int = 0) -> list[int]:
    """Hashes of flows between two hosts that differ in their source port."""
    src, dst = address_number(HOST), address_number(REMOTE)
    return [key_hash(src, dst, 20_000 + i, 4791, 17, switch_id=switch_id) for i in range(FLOWS)]
