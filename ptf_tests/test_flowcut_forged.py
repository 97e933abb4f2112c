# SPDX-License-Identifier: Apache-2.0
"""ACKs that no switch of ours makes: they change nothing, or no more than a lost or doubled one could.

Run one case: scripts/run_ptf.py --target native test_flowcut_forged.StampsTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST, REMOTE
from ptf_tests.flowcut import FlowcutTest
from ptf_tests.frames import Flow


class ForgedTest(FlowcutTest):
    """One packet of the flow is in flight."""

    def setUp(self) -> None:
        super().setUp()
        self.sent = self.send_data()
        self.still = {FLOW.sport: self.sent.frame_bytes}


@group("flowcut")
class StampsTest(ForgedTest):
    """No stamp, more stamps than hops, more stamps said than there are."""

    def runTest(self) -> None:
        stamp = self.sent.stamps[0]
        forgeries = [
            self.sent.ack(stamps=[]),
            self.sent.ack(hops=0),
            self.sent.ack(hops=1, stamps=[stamp] * 2),
            self.sent.ack(hops=6, stamps=[stamp] * 7),
            self.sent.ack(hops=15, stamps=[stamp] * 15),
        ]
        short = self.sent.ack(hops=3)
        short["FlowcutAck"].stamps = 3
        forgeries.append(short)
        for forgery in forgeries:
            self.send(self.sent.port, forgery)
        self.expect_drops(MALFORMED=len(forgeries))
        self.expect_flows(self.still)
        self.assertEqual(0, self.entries()[FLOW.sport]["samples"])


@group("flowcut")
class TooManyBytesTest(ForgedTest):
    """More bytes than are in flight: the count ends at zero, not below."""

    def runTest(self) -> None:
        self.send_ack(self.sent, frame_bytes=0xFFFFFF)
        self.expect_flows({})
        self.expect_count("flowcut_deleted", 1)
        other = Flow(HOST, REMOTE, sport=1)
        self.send_ack(self.sent)
        again = self.send_data(other)
        self.expect_flows({other.sport: again.frame_bytes})
        self.assertEqual(0, self.untracked_bytes())


@group("flowcut")
class OffTest(FlowcutTest):
    """A switch that tracks nothing expects no ACK."""

    mode = "OFF"

    def runTest(self) -> None:
        self.mode = "FULL"
        self.configure()
        sent = self.send_data()
        self.mode = "OFF"
        self.configure()
        self.send(sent.port, sent.ack())
        self.expect_drops(MALFORMED=1)
        self.expect_flows({FLOW.sport: sent.frame_bytes})
