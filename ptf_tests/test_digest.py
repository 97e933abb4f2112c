# SPDX-License-Identifier: Apache-2.0
"""Digests: unknown sources are learned, known ones are not (digests.p4).

Run one case: scripts/run_ptf.py --target native test_digest.LearnTest
"""

from __future__ import annotations

import ptf.testutils as testutils
from p4.v1 import p4runtime_pb2
from ptf.testutils import group

from ptf_tests.base import P4RuntimeTest


@group("digest")
class LearnTest(P4RuntimeTest):
    """One digest of source and port; after the entry is there, none."""

    program = "digests"

    def runTest(self) -> None:
        self.subscribe("mac_learn_t")
        first = testutils.simple_eth_packet(eth_dst="00:00:00:00:00:09", eth_src="00:00:00:00:00:21")
        second = testutils.simple_eth_packet(eth_dst="00:00:00:00:00:09", eth_src="00:00:00:00:00:22")
        self.assertEqual((0x21, 5), self.learn(first, 5))
        self.add_entry("known", {"src": 0x21}, self.action("NoAction"))
        testutils.send_packet(self, 5, first)
        testutils.verify_packet(self, first, 7)
        # The next digest is of the second source: the first was not learned again.
        self.assertEqual((0x22, 6), self.learn(second, 6))
        testutils.verify_no_other_packets(self)

    def learn(self, packet: object, port: int) -> tuple[int, int]:
        """Send a frame, acknowledge its digest, and give back what was learned."""
        testutils.send_packet(self, port, packet)
        testutils.verify_packet(self, packet, 7)
        digests = self.receive_message("digest")
        self.send_message(
            digest_ack=p4runtime_pb2.DigestListAck(digest_id=digests.digest_id, list_id=digests.list_id)
        )
        self.assertEqual(1, len(digests.data))
        source, ingress = digests.data[0].struct.members
        return int.from_bytes(source.bitstring, "big"), int.from_bytes(ingress.bitstring, "big")


@group("digest")
class WideTest(P4RuntimeTest):
    """Fields of 129, 7 and 1 bits; of a frame that nobody learns from there is none."""

    program = "digests"

    def runTest(self) -> None:
        self.subscribe("wide_learn_t")
        self.add_entry("destinations", {"dst": 0x0B}, self.action("forward", port=3))
        wide, narrow = 1 << 128 | 0x1234567890ABCDEF, 0x55
        for number in (wide, 0):
            head = bytes.fromhex("00000000000b00000000002188b5")
            testutils.send_packet(self, 5, head + (number << 7 | narrow).to_bytes(17, "big") + b"x" * 40)
            other = (1 << 129) - 1 - number
            testutils.verify_packet(self, head + (other << 7 | narrow).to_bytes(17, "big") + b"x" * 40, 3)
            (data,) = self.receive_message("digest").data
            fields = [int.from_bytes(member.bitstring, "big") for member in data.struct.members]
            self.assertEqual([number, narrow, 1], fields)
        testutils.verify_no_other_packets(self)
