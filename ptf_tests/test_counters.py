# SPDX-License-Identifier: Apache-2.0
"""Counters: indirect and direct, packets and bytes (counters.p4).

Run one case: scripts/run_ptf.py --target native test_counters.CountTest
"""

from __future__ import annotations

import ptf.testutils as testutils
from p4.v1 import p4runtime_pb2
from ptf.testutils import group

from ptf_tests.base import P4RuntimeTest

ETHERNET = bytes.fromhex("0000000000000000000000aa88b5")
GROUP, INDEX, PORT = 4, 200, 3


@group("counters")
class CountTest(P4RuntimeTest):
    """Three frames of 60 and one of 100 bytes for group 4, and one that hits no entry."""

    program = "counters"

    def cell(self, counter: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of one cell."""
        entry = p4runtime_pb2.CounterEntry(counter_id=self.named("counters", counter).preamble.id)
        entry.index.index = index
        (entity,) = self.read(counter_entry=entry)
        return entity.counter_entry.data.packet_count, entity.counter_entry.data.byte_count

    def runTest(self) -> None:
        self.add_entry("by_group", {"group": GROUP}, self.action("forward", port=PORT))
        payload = bytes([GROUP, INDEX])
        for size in (60, 60, 60, 100):
            sent = (ETHERNET + payload).ljust(size, b"\0")
            testutils.send_packet(self, 1, sent)
            expected = (ETHERNET + bytes([GROUP + 1, INDEX])).ljust(size, b"\0")
            testutils.verify_packet(self, expected, PORT)
        testutils.send_packet(self, 2, (ETHERNET + bytes([99, 1])).ljust(60, b"\0"))
        testutils.verify_no_other_packets(self)
        self.assertEqual((4, 280), self.cell("both_by_port", 1))
        self.assertEqual((1, 60), self.cell("both_by_port", 2))
        self.assertEqual(4, self.cell("packets_by_index", INDEX)[0])
        self.assertEqual(280, self.cell("bytes_by_index", INDEX)[1])
        self.assertEqual((4, 280), self.cell("egress_port_count", PORT))
        direct = p4runtime_pb2.DirectCounterEntry(table_entry=self.entry("by_group", {"group": GROUP}))
        (entity,) = self.read(direct_counter_entry=direct)
        data = entity.direct_counter_entry.data
        self.assertEqual((4, 280), (data.packet_count, data.byte_count))
