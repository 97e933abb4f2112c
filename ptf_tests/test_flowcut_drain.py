# SPDX-License-Identifier: Apache-2.0
"""Draining (Flowcut §II-B, §IV-C): when it starts, what the source is told, and when it ends.

Run one case: scripts/run_ptf.py --target native test_flowcut_drain.PauseTest

Real time is no exact RTT. So a threshold of 0 stands for "every RTT is too long", and an RTT that must be
long has a stamp that is 1000 s old. The exact arithmetic is tested in virtual time (tests/p4src).
"""

from __future__ import annotations

from p4.v1 import p4runtime_pb2
from ptf.testutils import group

from ptf_tests.base import TIMEOUT_S
from ptf_tests.fabric import FLOW, HOST, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, REMOTE
from ptf_tests.flowcut import ALWAYS_GROWING, FlowcutTest, Sent
from ptf_tests.frames import Flow, PauseOp, mac_of, pause
from tailrace.codec.layers.pfc import pfc_frame

LONG_AGO_TICKS = 10**9
QUANTA = 0x1234
DATA = 0  # the priority that is paused
RTT_64, GROWTH_32 = 64 << 8, 32 << 8  # normalised RTT ends at 128
RTT_1_25 = 5 << 6


class DrainTest(FlowcutTest):
    """Three packets of a flow are in flight."""

    flow = FLOW
    in_port = HOST_PORT
    left = 0

    def setUp(self) -> None:
        super().setUp()
        self.sent = [self.send_data(self.flow, in_port=self.in_port, left=self.left) for _ in range(3)]

    def expect_pause(self, op: PauseOp, credit_bytes: int = 0) -> None:
        """The source gets exactly this."""
        self.expect(self.in_port, pause(self.flow, op, credit_bytes))

    def expect_class_pause(self, quanta: int) -> None:
        """The source gets exactly this."""
        self.expect(self.in_port, pfc_frame(mac_of(self.flow.dst), {DATA: quanta}))

    def slow_ack(self, sent: Sent) -> None:
        """An ACK whose round trip took 1000 s."""
        ((ticks, in_port),) = sent.stamps
        self.send_ack(sent, stamps=[((ticks - LONG_AGO_TICKS) % 2**32, in_port)])


@group("flowcut")
class PauseTest(DrainTest):
    """XOFF once, where the data came in; the rest drains on its path; then the entry goes, XON comes."""

    flow = Flow(OTHER_HOST, REMOTE)
    in_port = OTHER_HOST_PORT

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0)
        self.send_ack(self.sent[0])
        self.expect_pause(PauseOp.XOFF)
        self.assertEqual("DRAINING", self.state_of(self.flow))
        late = self.send_data(self.flow, in_port=self.in_port)  # was under way when the XOFF came
        self.assertEqual(self.sent[0].port, late.port)
        self.send_ack(self.sent[1])
        self.send_ack(self.sent[2])
        self.nothing_else()
        self.assertEqual("DRAINING", self.state_of(self.flow))
        self.finish(late)
        self.expect_pause(PauseOp.XON)
        self.nothing_else()
        for counter in ("xoff_sent", "xon_sent", "flowcut_created", "flowcut_deleted"):
            self.expect_count(counter, 1)
        self.expect_drops()


@group("flowcut")
class CreditTest(DrainTest):
    """With a credit the XOFF grants it; the XON grants none."""

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0)
        self.configure_pauses(credit_bytes=0x12345678)
        self.send_ack(self.sent[0])
        self.expect_pause(PauseOp.XOFF_CREDIT, 0x12345678)
        self.finish(*self.sent[1:])
        self.expect_pause(PauseOp.XON)
        self.nothing_else()


@group("flowcut")
class DisobeyedTest(DrainTest):
    """A source that sends more than obey_bytes of a flow after its XOFF has its class paused by each further
    ACK, until the flow is drained. Less than that is what was under way.
    """

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0)
        self.configure_pauses(quanta=QUANTA, obey_bytes=self.sent[0].frame_bytes)
        self.send_ack(self.sent[0])
        self.expect_pause(PauseOp.XOFF)
        late = [self.send_data(self.flow)]
        self.send_ack(self.sent[1])
        self.nothing_else()  # so much may come
        late.append(self.send_data(self.flow))
        self.assertEqual({self.sent[0].port}, {sent.port for sent in late})
        for sent in (self.sent[2], late[0]):
            self.send_ack(sent)
            self.expect_class_pause(QUANTA)
        self.finish(late[1])
        self.expect_pause(PauseOp.XON)
        self.nothing_else()
        # the next drain begins anew
        again = [self.send_data(self.flow) for _ in range(2)]
        self.send_ack(again[0])
        self.expect_pause(PauseOp.XOFF)
        self.finish(again[1])
        self.expect_pause(PauseOp.XON)
        self.nothing_else()
        for counter in ("xoff_sent", "xon_sent", "class_pauses_sent"):
            self.expect_count(counter, 2)
        self.expect_drops()


@group("flowcut")
class ByClassTest(DrainTest):
    """Pauses by class: PFC for XOFF, again with each ACK, and PFC of no quanta for XON."""

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0)
        self.configure_pauses(by_class=True, quanta=QUANTA)
        for sent in self.sent[:2]:
            self.send_ack(sent)
            self.expect_class_pause(QUANTA)
        self.assertEqual("DRAINING", self.state_of())
        self.finish(self.sent[2])
        self.expect_class_pause(0)
        self.nothing_else()
        for counter, count in (("xoff_sent", 0), ("xon_sent", 0), ("class_pauses_sent", 3)):
            self.expect_count(counter, count)
        self.expect_drops()


@group("flowcut")
class OffTest(DrainTest):
    """Without thresholds nobody is told anything, however long the round trip."""

    def runTest(self) -> None:
        self.send_ack(self.sent[0])
        self.slow_ack(self.sent[1])
        self.assertEqual("TRACKED", self.state_of())
        self.finish(self.sent[2])
        self.expect_count("xoff_sent", 0)
        self.expect_count("xon_sent", 0)
        self.nothing_else()


@group("flowcut")
class RttTriggerTest(DrainTest):
    """The first RTT is the smallest, so its ratio is 1; only one far above it drains."""

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=RTT_64)
        self.send_ack(self.sent[0])
        self.assertEqual("TRACKED", self.state_of())
        self.assertEqual(1 << 8, self.entries()[FLOW.sport]["rtt_avg"])
        self.slow_ack(self.sent[1])
        self.expect_pause(PauseOp.XOFF)
        self.finish(self.sent[2])
        self.expect_pause(PauseOp.XON)
        self.nothing_else()


@group("flowcut")
class KnownBaselineTest(DrainTest):
    """Where the controller says what an idle round trip of so many links takes, the first RTT is compared
    with that, too, and what the hosts' links take is added to both.
    """

    def baseline(self, before_ticks: int) -> p4runtime_pb2.Action:
        """An idle round trip of half the time that a slow ACK is older than it should be."""
        return self.action("set_rtt_baseline", least_ticks=LONG_AGO_TICKS // 2, before_ticks=before_ticks)

    def rtt_of(self, sent: Sent) -> float:
        """Normalised RTT of a slow ACK."""
        self.slow_ack(sent)
        return self.entries()[FLOW.sport]["rtt_last"] / (1 << 8)

    def runTest(self) -> None:
        # The ACK is no more than TIMEOUT_S older than it says.
        above = 2 * TIMEOUT_S * 10**6 / LONG_AGO_TICKS
        self.add_entry("rtt_baseline", {"hops": 2}, self.baseline(0))
        self.assertEqual(1, self.rtt_of(self.sent[0]))
        self.add_entry("rtt_baseline", {"hops": 1}, self.baseline(0))
        self.assertTrue(2 <= self.rtt_of(self.sent[1]) <= 2 + above)
        known = self.entry("rtt_baseline", {"hops": 1})
        known.action.action.CopyFrom(self.baseline(LONG_AGO_TICKS // 2))
        self.modify(known)
        more = [self.send_data() for _ in range(2)]
        self.assertTrue(1.5 <= self.rtt_of(self.sent[2]) <= 1.5 + above)
        self.nothing_else()
        self.configure_drain(rtt_threshold=RTT_1_25)
        self.slow_ack(more[0])
        self.expect_pause(PauseOp.XOFF)
        self.finish(more[1])
        self.expect_pause(PauseOp.XON)
        self.nothing_else()


@group("flowcut")
class GrowthTriggerTest(DrainTest):
    """The second trigger looks at growth alone: none at the first sample, much at a far longer second."""

    def runTest(self) -> None:
        self.configure_drain(growth_threshold=GROWTH_32)
        self.send_ack(self.sent[0])
        self.assertEqual("TRACKED", self.state_of())
        self.slow_ack(self.sent[1])
        self.expect_pause(PauseOp.XOFF)
        self.assertGreater(self.entries()[FLOW.sport]["rtt_growth"], GROWTH_32)
        self.finish(self.sent[2])
        self.expect_pause(PauseOp.XON)


@group("flowcut")
class NegativeGrowthTest(DrainTest):
    """The growth is a signed number: a threshold below zero is met by a growth of zero."""

    def runTest(self) -> None:
        self.configure_drain(growth_threshold=ALWAYS_GROWING)
        self.send_ack(self.sent[0])
        self.expect_pause(PauseOp.XOFF)


@group("flowcut")
class AverageTest(DrainTest):
    """The trigger looks at the average: with a small alpha one long RTT does not make it."""

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=RTT_64, alpha=64)
        self.send_ack(self.sent[0])
        self.slow_ack(self.sent[1])
        entry = self.entries()[FLOW.sport]
        # A quarter of 127.996 and three quarters of 1, as 8.8.
        self.assertEqual(
            (0x7FFF, (64 * 0x7FFF + 192 * 0x0100 + 128) >> 8), (entry["rtt_last"], entry["rtt_avg"])
        )
        self.assertEqual(2, entry["samples"])
        self.assertEqual("TRACKED", self.state_of())
        self.nothing_else()


@group("flowcut")
class LastPacketTest(FlowcutTest):
    """When the ACK that would start a drain is the last one, there is nothing left to drain."""

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0)
        self.finish(self.send_data())
        self.expect_count("flowcut_deleted", 1)
        self.expect_count("xoff_sent", 0)
        self.expect_count("xon_sent", 0)
        self.nothing_else()


@group("flowcut")
class FewLeftTest(DrainTest):
    """§IV-C: a source with no more than min_left packets left is let go."""

    left = 10

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0, min_left=10)
        self.send_ack(self.sent[0])
        self.assertEqual("TRACKED", self.state_of())
        self.nothing_else()
        self.configure_drain(rtt_threshold=0, min_left=9)
        self.send_ack(self.sent[1])
        self.expect_pause(PauseOp.XOFF)


@group("flowcut")
class LeftUnknownTest(DrainTest):
    """A source that does not say how much is left (0) is drained."""

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0, min_left=127)
        self.send_ack(self.sent[0])
        self.expect_pause(PauseOp.XOFF)


@group("flowcut")
class CongestedBehindTest(DrainTest):
    """A switch behind this one may ask for the drain; this one asks the source, unless too little is left."""

    left = 3

    def runTest(self) -> None:
        self.configure_drain(min_left=3)
        self.send_ack(self.sent[0], congested=True)
        self.assertEqual("TRACKED", self.state_of())
        self.configure_drain()
        self.send_ack(self.sent[1], congested=True)
        self.expect_pause(PauseOp.XOFF)
        self.finish(self.sent[2])
        self.expect_pause(PauseOp.XON)
        self.nothing_else()


@group("flowcut")
class OthersGoOnTest(DrainTest):
    """One flow's drain is no other's: the flow beside it keeps its entry and its state."""

    def runTest(self) -> None:
        other = Flow(HOST, REMOTE, sport=7)
        sent = self.send_data(other)
        self.configure_drain(rtt_threshold=0)
        self.send_ack(self.sent[0])
        self.expect_pause(PauseOp.XOFF)
        self.assertEqual("TRACKED", self.state_of(other))
        self.send_ack(sent)
        for packet in self.sent[1:]:
            self.send_ack(packet)
        self.expect_pause(PauseOp.XON)
        self.expect_flows({})
        self.nothing_else()
