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
        digest_id = self.named("digests", "mac_learn_t").preamble.id
        digest = p4runtime_pb2.DigestEntry(digest_id=digest_id)
        digest.config.max_list_size = 1
        digest.config.ack_timeout_ns = 10**9
        self.write(digest_entry=digest)
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
