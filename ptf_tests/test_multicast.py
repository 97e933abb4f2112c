# SPDX-License-Identifier: Apache-2.0
"""Multicast: every replica with its port and id; an unknown group drops (multicast.p4).

Run one case: scripts/run_ptf.py --target native test_multicast.ReplicaTest
"""

from __future__ import annotations

import ptf.testutils as testutils
from ptf.testutils import group

from ptf_tests.base import TIMEOUT_S, P4RuntimeTest

ETHERNET = bytes.fromhex("0000000000000000000000aa88b5")
REPLICATION = 5


def order(multicast_group: int, instance_type: int = 0, rid: int = 0, port: int = 0) -> bytes:
    """A frame with the header of multicast.p4: group, flags, instance type, replication id, port."""
    numbers = multicast_group.to_bytes(2, "big") + bytes([0, instance_type])
    return ETHERNET + numbers + rid.to_bytes(2, "big") + port.to_bytes(2, "big") + b"payload" * 6


@group("multicast")
class ReplicaTest(P4RuntimeTest):
    """Group 9 copies to ports 1, 2 (twice) and 4."""

    program = "multicast"

    def runTest(self) -> None:
        replicas = [(1, 11), (2, 21), (2, 22), (4, 41)]
        self.add_multicast_group(9, replicas)
        testutils.send_packet(self, 0, order(9))
        # The order of replicas is not specified, so all are collected first.
        polls = [testutils.dp_poll(self, timeout=TIMEOUT_S) for _ in replicas]
        received = sorted((poll.port, bytes(poll.packet)) for poll in polls)
        expected = [(port, order(9 + rid, REPLICATION, rid, port)) for port, rid in replicas]
        self.assertEqual(expected, received)
        testutils.send_packet(self, 0, order(33))
        testutils.verify_no_other_packets(self)
