# SPDX-License-Identifier: Apache-2.0
"""Draining (Flowcut §II-B, §IV-C): when it starts, what the source is told, and when it ends.

Run one case: scripts/run_ptf.py --target native test_flowcut_drain.PauseTest

A threshold of 0 stands for "every RTT is too long": real time is no exact RTT. When a drain starts is
tested in virtual time (tests/p4src, tests/flowcut).
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, REMOTE
from ptf_tests.flowcut import FlowcutTest
from ptf_tests.frames import Flow, PauseOp, mac_of, pause
from tailrace.codec.layers.pfc import pfc_frame

QUANTA = 0x1234
DATA = 0  # the priority that is paused


class DrainTest(FlowcutTest):
    """Three packets of a flow are in flight."""

    flow = FLOW
    in_port = HOST_PORT

    def setUp(self) -> None:
        super().setUp()
        self.sent = [self.send_data(self.flow, in_port=self.in_port) for _ in range(3)]

    def expect_pause(self, op: PauseOp, credit_bytes: int = 0) -> None:
        """The source gets exactly this."""
        self.expect(self.in_port, pause(self.flow, op, credit_bytes))

    def expect_class_pause(self, quanta: int) -> None:
        """The source gets exactly this."""
        self.expect(self.in_port, pfc_frame(mac_of(self.flow.dst), {DATA: quanta}))


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
