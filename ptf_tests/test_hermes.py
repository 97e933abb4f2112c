# SPDX-License-Identifier: Apache-2.0
"""Hermes: the switch of the sender follows the UDP source port; further on the hash decides.

Run one case: scripts/run_ptf.py --target native test_hermes.TagTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import HOST, HOST_PORT, REMOTE, UPLINKS, FabricTest
from ptf_tests.frames import Flow, roce

TAGS = 32


class HermesTest(FabricTest):
    program = "hermes"

    def port_of(self, port: int, frame: object) -> int:
        """Where a frame leaves that comes in at a port."""
        self.send(port, frame)
        return self.receive()[0]


@group("hermes")
class TagTest(HermesTest):
    """From a host: tag modulo the size of the group."""

    def runTest(self) -> None:
        for tag in (*range(49152, 49152 + TAGS), 0, 1, 65535):
            expected = UPLINKS[tag % len(UPLINKS)]
            self.assertEqual(expected, self.port_of(HOST_PORT, roce(Flow(HOST, REMOTE, sport=tag))))
        self.expect_drops()
