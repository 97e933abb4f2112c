# SPDX-License-Identifier: Apache-2.0
"""The way of an ACK: back along its stamps in the full-switch variant, by its route in the ingress variant
(§II-C).

Run one case: scripts/run_ptf.py --target native test_flowcut_reverse_path.StampsLeadBackTest
"""

from __future__ import annotations

import struct
from typing import Any

from ptf.testutils import group
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from ptf_tests.fabric import DOWNLINK, FLOW, HOST, OTHER_HOST, REMOTE, SLOW_REMOTE
from ptf_tests.flowcut import FlowcutTest, Sent
from ptf_tests.frames import Flow, flowcut_ack, roce, shimmed
from ptf_tests.slow_port import SlowPortTest
from tailrace.codec.layers.local import DataShim

BELOW = (77, 3)  # the stamp of the switch below: its clock, the port of its host


@group("flowcut")
class StampsLeadBackTest(FlowcutTest):
    """Each switch takes its own stamp off and sends the ACK to the port in it; bytes and hops stay."""

    def transit(self) -> Sent:
        """Data from the switch below passes; the result's stamps are this switch's and that one's."""
        frame = roce(FLOW)
        self.send(DOWNLINK, shimmed(frame, 1, [BELOW]))
        port, received = self.receive()
        shim = Ether(received)[DataShim]
        stamps = tuple(struct.unpack(">IH", bytes(stamp)) for stamp in shim.stack)
        return Sent(FLOW, port, len(frame), int(shim.hops), stamps)

    def expect_below(self, sent: Sent) -> None:
        """The ACK goes on to the switch below, with one stamp less."""
        self.expect(DOWNLINK, sent.ack(stamps=list(sent.stamps[1:])))

    def runTest(self) -> None:
        sent = [self.transit(), self.transit()]
        self.assertEqual(2, len(sent[0].stamps))
        self.expect_flows({FLOW.sport: 2 * sent[0].frame_bytes})
        self.send_ack(sent[0])
        self.expect_below(sent[0])
        self.expect_flows({FLOW.sport: sent[1].frame_bytes})
        self.send_ack(sent[1])
        self.expect_below(sent[1])
        self.expect_flows({})
        self.expect_count("flowcut_deleted", 1)
        self.expect_drops()


class RoutedAckTest(FlowcutTest):
    """The ingress variant: an ACK of data whose source is behind another switch."""

    mode = "INGRESS"

    def ack(self, flow: Flow, **forged: Any) -> Packet:
        return flowcut_ack(flow, frame_bytes=1000, hops=2, stamps=[BELOW], **forged)


@group("flowcut")
class RoutedAckEndsTest(RoutedAckTest):
    """It ends at the source's switch, whatever port it came by; a loop or a missing route ends it, too."""

    def runTest(self) -> None:
        sent = self.send_data()
        self.send(DOWNLINK, sent.ack())  # the data left by an uplink
        self.expect_flows({})
        self.expect_count("flowcut_deleted", 1)
        self.expect_drops()
        self.send(DOWNLINK, self.ack(Flow(REMOTE, OTHER_HOST), hops_back=15))
        self.expect_drops(TTL_EXPIRED=1)
        self.send(DOWNLINK, self.ack(Flow("192.0.2.1", OTHER_HOST)))
        self.expect_drops(TTL_EXPIRED=1, NO_ROUTE=1)


@group("flowcut")
class AckPriorityTest(SlowPortTest, RoutedAckTest):
    """On its way it overtakes the data that waits."""

    def runTest(self) -> None:
        ack = self.ack(Flow(SLOW_REMOTE, HOST))
        frames = self.behind_fillers(DOWNLINK, ack)
        (place,) = [i for i, frame in enumerate(frames) if len(frame) == len(ack)]
        self.assertLess(place, len(frames) - 1)
