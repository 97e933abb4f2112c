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


class CountersTest(P4RuntimeTest):
    """The program with counters of all kinds."""

    program = "counters"

    def cell(self, counter: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of one cell."""
        entry = p4runtime_pb2.CounterEntry(counter_id=self.named("counters", counter).preamble.id)
        entry.index.index = index
        (entity,) = self.read(counter_entry=entry)
        return entity.counter_entry.data.packet_count, entity.counter_entry.data.byte_count


@group("counters")
class CountTest(CountersTest):
    """Three frames of 60 and one of 100 bytes for group 4, and one that hits no entry."""

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


@group("counters")
class DirectCountTest(CountersTest):
    """A direct counter counts whichever action the entry has; an entry that drops is counted as well. A frame
    that ends within the header passes no table, and is counted before them alone.
    """

    def hits(self, group_number: int) -> int:
        """Packets of an entry."""
        entry = self.entry("by_group", {"group": group_number})
        (entity,) = self.read(direct_counter_entry=p4runtime_pb2.DirectCounterEntry(table_entry=entry))
        return int(entity.direct_counter_entry.data.packet_count)

    def runTest(self) -> None:
        self.add_entry("by_group", {"group": 0}, self.action("forward", port=PORT))
        self.add_entry("by_group", {"group": 1}, self.action("forward_counted", port=PORT))
        self.add_entry("by_group", {"group": 2}, self.action("drop"))
        for number in (1, 2, 2):
            sent = (ETHERNET + bytes([number, INDEX])).ljust(60, b"\0")
            testutils.send_packet(self, 1, sent)
        passed = (ETHERNET + bytes([2, INDEX])).ljust(60, b"\0")
        testutils.verify_packet(self, passed, PORT)
        # Half a header is none, though the field that is there has the number of a group that is forwarded.
        testutils.send_packet(self, 2, ETHERNET + bytes(1))
        testutils.verify_no_other_packets(self)
        self.assertEqual((0, 1, 2), (self.hits(0), self.hits(1), self.hits(2)))
        self.assertEqual((1, len(ETHERNET) + 1), self.cell("both_by_port", 2))
        self.assertEqual(0, self.cell("bytes_by_index", 0)[1])
