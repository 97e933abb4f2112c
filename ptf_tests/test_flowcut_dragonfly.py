# SPDX-License-Identifier: Apache-2.0
"""Flowcut in a Dragonfly: a flowcut keeps its detour while it is in flight, at the first router and behind.

Run one case: scripts/run_ptf.py --target native test_flowcut_dragonfly.KeepsDetourTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.l2 import Ether

from ptf_tests.dragonfly import THIRD_GROUP, DragonflyTest, Link, detoured
from ptf_tests.fabric import FLOW, HOST_PORT, UPLINKS, FabricTest
from ptf_tests.flowcut import FlowcutTest, Sent
from ptf_tests.frames import roce, shimmed, tagged
from tailrace.codec.layers.local import DataShim

A, B = UPLINKS[:2]


class FlowcutDragonflyTest(DragonflyTest, FlowcutTest):
    """A router that runs Flowcut in its full-switch variant; a flow's first packets may take a detour."""

    program = "flowcut_dragonfly"

    def setUp(self) -> None:
        FabricTest.setUp(self)
        self.make_router()
        self.add_clone_session(self.number("ack_session"), self.number("mirror_port"))
        self.add_paths([Link(A, 2)], [Link(B, 4, THIRD_GROUP)])
        self.add_next_hops(THIRD_GROUP, B)
        self.configure(first_path="LEAST_LOADED")

    def add_next_hops(self, toward: int, *ports: int) -> None:
        """Where a flow in flight may stay."""
        for port in ports:
            self.add_entry("next_hop_ports", {"toward": toward, "port": port}, self.action("next_hop"))

    def send_detoured(self) -> Sent:
        """A data packet from a host leaves by B with detour and shim, right in every byte but its ticks."""
        frame = roce(FLOW)
        self.send(HOST_PORT, frame)
        received = self.receive(B)[1]
        (stamp,) = Ether(received)[DataShim].stack
        stamps = ((int(stamp.ticks), HOST_PORT),)
        expected = shimmed(roce(FLOW, ttl=63, tag=tagged(0, B)), 1, list(stamps))
        self.assertEqual(bytes(detoured(expected, THIRD_GROUP)).hex(), received.hex())
        return Sent(FLOW, B, len(frame), 1, stamps)


@group("dragonfly")
class KeepsDetourTest(FlowcutDragonflyTest):
    """Though the rule has changed, packets follow the detour in flight; the next flowcut is minimal."""

    def runTest(self) -> None:
        self.set_paths("VALIANT", "FLOW")
        sent = [self.send_detoured()]
        self.set_paths("MINIMAL", "FLOW")
        sent.append(self.send_detoured())
        self.expect_flows({FLOW.sport: sum(packet.frame_bytes for packet in sent)})
        self.finish(*sent)
        self.assertEqual(A, self.send_data().port)
        self.expect_count("flowcut_rerouted", 1)
