# SPDX-License-Identifier: Apache-2.0
"""IPv4 forwarding: longest prefix, next hop's MAC, TTL and header checksum (tests/programs/basic_l3.p4).

Run one case: scripts/run_ptf.py --target native test_l3_forwarding.RouteTest
"""

from __future__ import annotations

import ptf.testutils as testutils
from ptf.testutils import group

from ptf_tests.base import P4RuntimeTest

NEXT_HOP = "00:00:00:00:0a:01"
ROUTER = "00:00:00:00:0b:02"


def mac(text: str) -> int:
    return int(text.replace(":", ""), 16)


class L3Test(P4RuntimeTest):
    """10.1.0.0/16 by port 2, 10.1.1.0/24 by port 3, all else dropped."""

    program = "basic_l3"

    def setUp(self) -> None:
        super().setUp()
        for prefix, length, port in ((0x0A010000, 16, 2), (0x0A010100, 24, 3)):
            forward = self.action("forward", next_hop=mac(NEXT_HOP), port=port)
            self.add_entry("route", {"dst": (prefix, length)}, forward)
            self.add_entry("port_mac", {"port": port}, self.action("rewrite_source", src=mac(ROUTER)))


@group("l3")
class RouteTest(L3Test):
    """The longest prefix wins; TTL goes down by one and the checksum follows."""

    def runTest(self) -> None:
        for destination, port in (("10.1.2.3", 2), ("10.1.1.7", 3)):
            sent = testutils.simple_udp_packet(ip_dst=destination, ip_ttl=64)
            expected = testutils.simple_udp_packet(
                eth_dst=NEXT_HOP, eth_src=ROUTER, ip_dst=destination, ip_ttl=63
            )
            testutils.send_packet(self, 0, sent)
            testutils.verify_packet(self, expected, port)
        testutils.verify_no_other_packets(self)
