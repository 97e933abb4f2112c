# SPDX-License-Identifier: Apache-2.0
"""Hermes' switch (hermes/selector.p4) in virtual time: it follows the tag at the sender's switch, and nowhere else."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP

from tailrace.codec.numbers import Opcode
from tests.p4src.flow_hash import flow_hash
from tests.p4src.frames import roce
from tests.p4src.rig import DOWNLINK, HOST_PORT, UPLINKS, Rig
from tests.p4src.selectors import hermes

FEW_REMOTE, FEW_GROUP, FEW_PORTS = "10.0.7.2", 9, (5, 3, 6)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 0xFFFF), st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_every_packet_goes_where_the_model_says(order):
    """Any tag, in groups of three and four, from a host and from a switch."""
    with Rig("hermes") as rig:
        rig.group(FEW_REMOTE, FEW_GROUP, FEW_PORTS)
        for at, (sport, in_few, from_host) in enumerate(order):
            ports, dst = (FEW_PORTS, FEW_REMOTE) if in_few else (UPLINKS, "10.0.2.2")
            frame = roce(sport, dst=dst)
            slot = hermes(sport, flow_hash(frame), len(ports), from_host=from_host)
            assert rig.forward(HOST_PORT if from_host else DOWNLINK, frame, at).port == ports[slot]


def test_one_tag_does_not_bundle_flows_further_on():
    """Flows whose tags are alike at the first switch take all next hops of the next one."""
    tags = range(0, 100 * len(UPLINKS), len(UPLINKS))
    with Rig("hermes") as rig:
        assert {rig.forward(HOST_PORT, roce(tag), at).port for at, tag in enumerate(tags)} == {UPLINKS[0]}
        spread = {rig.forward(DOWNLINK, roce(tag), 1000 + at).port for at, tag in enumerate(tags)}
    assert spread == set(UPLINKS)


def test_what_has_no_tag_takes_its_ecmp_path():
    """TCP and ACKs go by the hash, whatever their source port."""
    ack = roce(7, opcode=int(Opcode.ACK), payload=bytes(4))
    tcp = roce(7)
    tcp[IP].remove_payload()
    tcp[IP].proto = 6
    with Rig("hermes") as rig:
        for at, sport in enumerate(range(7, 47)):
            ack["UDP"].sport = sport
            segment = tcp / TCP(sport=sport, dport=80)
            for frame in (ack, segment):
                assert rig.forward(HOST_PORT, frame, at).port == UPLINKS[flow_hash(frame) % len(UPLINKS)]
