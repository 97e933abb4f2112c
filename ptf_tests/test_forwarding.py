# SPDX-License-Identifier: Apache-2.0
"""IPv4 forwarding in the programs of p4src: routes, next hop's MAC, TTL, checksum, and what has no route.

Run one case: scripts/run_ptf.py --target native test_forwarding.ToHostTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import (
    DOWNLINK,
    HOST,
    HOST_PORT,
    OTHER_HOST,
    OTHER_HOST_PORT,
    REMOTE,
    FabricTest,
)
from ptf_tests.frames import Flow, mac_of, roce


@group("forwarding")
class ToHostTest(FabricTest):
    """A host of this switch gets the frame with its own MAC, one hop less and a right checksum."""

    def runTest(self) -> None:
        flow = Flow(HOST, OTHER_HOST)
        self.send(HOST_PORT, roce(flow, ttl=64))
        self.expect(OTHER_HOST_PORT, roce(flow, ttl=63, dst_mac=mac_of(OTHER_HOST)))
        flow = Flow(REMOTE, HOST)
        self.send(DOWNLINK, roce(flow, ttl=2, tag=37))
        self.expect(HOST_PORT, roce(flow, ttl=1, tag=37, dst_mac=mac_of(HOST)))
        self.nothing_else()


@group("forwarding")
class NoRouteTest(FabricTest):
    """No prefix, an empty slot, a group without slots, and routes that say discard, one for a reason that
    there is not and that no counter may be looked for."""

    def runTest(self) -> None:
        for destination in ("192.0.2.1", "10.0.4.1", "10.0.5.1"):
            self.send(HOST_PORT, roce(Flow(HOST, destination)))
        self.expect_drops(NO_ROUTE=3)
        unsupported = self.enum("DropReason_t", "UNSUPPORTED")
        self.add_route("10.0.9.0", 24, self.action("discard", reason=unsupported))
        self.send(HOST_PORT, roce(Flow(HOST, "10.0.9.1")))
        self.expect_drops(NO_ROUTE=3, UNSUPPORTED=1)
        self.add_route("10.0.99.0", 24, self.action("discard", reason=255))
        self.send(HOST_PORT, roce(Flow(HOST, "10.0.99.1")))
        self.expect_drops(NO_ROUTE=4, UNSUPPORTED=1)


@group("forwarding")
class PortCountersTest(FabricTest):
    """Every port counts what it received and what it sent."""

    def runTest(self) -> None:
        flow = Flow(HOST, OTHER_HOST)
        for _ in range(3):
            self.send(HOST_PORT, roce(flow))
            self.receive(OTHER_HOST_PORT)
        self.send(OTHER_HOST_PORT, roce(Flow(OTHER_HOST, "192.0.2.1")))
        self.expect_count("port_rx", 3, HOST_PORT)
        self.expect_count("port_rx", 1, OTHER_HOST_PORT)
        self.expect_count("port_tx", 3, OTHER_HOST_PORT)
        self.expect_count("port_tx", 0, HOST_PORT)
