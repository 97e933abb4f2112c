# SPDX-License-Identifier: Apache-2.0
"""Which next hop a flowcut takes: ECMP first, then the least loaded, not those that were drained (Flowcut
§II-A).

Run one case: scripts/run_ptf.py --target native test_flowcut_path.FirstPathTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.l2 import Ether

from ptf_tests.fabric import (
    DOWNLINK,
    FLOW,
    HOST,
    HOST_PORT,
    MIXED_GROUP,
    MIXED_REMOTE,
    REMOTE,
    UPLINK_GROUP,
    UPLINKS,
)
from ptf_tests.flowcut import CANDIDATES, FlowcutTest, Sent
from ptf_tests.frames import DRAINED, Flow, PauseOp, pause, roce, shimmed
from ptf_tests.slow_port import ATTEMPTS, FILLER_BYTES, FILLERS, SlowPortTest
from tailrace.codec.layers.data_shim import DataShim


@group("flowcut")
class FirstPathTest(FlowcutTest):
    """A flow's first flowcut takes the path that ECMP gives it."""

    def runTest(self) -> None:
        flows = [Flow(HOST, REMOTE, sport=7000 + i) for i in range(24)]
        self.mode = "OFF"
        self.configure()
        ecmp = []
        for flow in flows:
            self.send(HOST_PORT, roce(flow))
            ecmp.append(self.receive()[0])
        self.assertEqual(set(UPLINKS), set(ecmp))
        self.mode = "FULL"
        self.configure()
        for flow, port in zip(flows, ecmp, strict=True):
            self.assertEqual(port, self.make_known(flow))
        # Nothing waits anywhere, so the second flowcut has no reason to go elsewhere.
        self.assertEqual(ecmp, [self.make_known(flow) for flow in flows])
        self.expect_count("flowcut_rerouted", 0)


class LoadTest(SlowPortTest, FlowcutTest):
    """The slow port is the flow's ECMP path; an idle uplink is the other candidate."""

    flow = Flow(HOST, MIXED_REMOTE)

    def send_under_load(self) -> Sent:
        """A packet of the flow, sent while others wait for the slow port."""
        for _ in range(ATTEMPTS):
            self.fill()
            self.send(HOST_PORT, roce(self.flow))
            self.eventually(True, lambda: self.flow.sport in self.entries())
            entry = self.entries()[self.flow.sport]
            by_slow_port = entry["out_port"] == self.slow_port
            # More than the packet itself waits now, so others waited before it.
            was_loaded = self.waiting() >= FILLER_BYTES + by_slow_port * entry["in_flight_bytes"]
            self.drain(FILLERS + by_slow_port)
            if not by_slow_port:
                self.receive(entry["out_port"])
            sent = Sent(self.flow, entry["out_port"], entry["in_flight_bytes"], 1, ((0, HOST_PORT),))
            if was_loaded:
                return sent
            self.send_ack(sent)
        raise AssertionError("the machine is too slow: the slow port was never loaded at the right time")


@group("flowcut")
class LeastLoadedTest(LoadTest):
    """A known flow leaves the loaded path for the idle one, and stays there while no other is less loaded."""

    def runTest(self) -> None:
        self.assertEqual(self.slow_port, self.make_known(self.flow))
        sent = self.send_under_load()
        self.assertEqual(UPLINKS[0], sent.port)
        self.expect_count("flowcut_rerouted", 1)
        # In flight it stays, also when the load is gone.
        again = self.send_data(self.flow)
        self.assertEqual(UPLINKS[0], again.port)
        self.send_ack(sent)
        self.send_ack(again)
        self.assertEqual(UPLINKS[0], self.send_data(self.flow).port)
        self.expect_count("flowcut_rerouted", 1)


@group("flowcut")
class ManyNextHopsTest(LeastLoadedTest):
    """The same where the idle one is the last of as many as there is room for."""

    def setUp(self) -> None:
        super().setUp()
        many = len(self.named("actions", CANDIDATES[-1]).params) - 1
        self.change_candidates(MIXED_GROUP, *[self.slow_port] * (many - 1), UPLINKS[0])


@group("flowcut")
class FirstPathUnderLoadTest(LoadTest):
    """An unknown flow takes its ECMP path though it is loaded, unless the configuration says otherwise."""

    def runTest(self) -> None:
        self.assertEqual(self.slow_port, self.send_under_load().port)
        self.flow = Flow(HOST, MIXED_REMOTE, sport=5)
        self.configure(first_path="LEAST_LOADED")
        self.assertEqual(UPLINKS[0], self.send_under_load().port)


@group("flowcut")
class AvoidDrainedTest(FlowcutTest):
    """Drained ports are left alone while there are others; where a flowcut ended by itself, it stays."""

    def drain_flow(self) -> int:
        """A flowcut that is drained; returns its port."""
        self.configure_drain(rtt_threshold=0)
        sent = [self.send_data(), self.send_data()]
        self.send_ack(sent[0])
        self.expect(HOST_PORT, pause(FLOW, PauseOp.XOFF))
        self.finish(sent[1])
        self.expect(HOST_PORT, pause(FLOW, PauseOp.XON))
        self.configure_drain()
        return sent[0].port

    def runTest(self) -> None:
        ecmp = self.drain_flow()
        second = self.drain_flow()
        self.assertNotEqual(ecmp, second)
        third = self.make_known()
        self.assertNotIn(third, (ecmp, second))
        # The third was not drained: among equals the flow stays where it did well.
        self.assertEqual(third, self.make_known())
        self.expect_count("xoff_sent", 2)


@group("flowcut")
class CongestedEndTest(FlowcutTest):
    """A flowcut that is over before its drain could begin has spoken against its port all the same."""

    def runTest(self) -> None:
        self.configure_drain(rtt_threshold=0)
        port = self.make_known()
        self.assertNotEqual(port, self.send_data().port)
        self.expect_count("xoff_sent", 0)
        self.expect_count("flowcut_rerouted", 1)


@group("flowcut")
class OnlyPathTest(AvoidDrainedTest):
    """Where there is no other next hop, the drained one is taken again."""

    def runTest(self) -> None:
        port = UPLINKS[0]
        for slot in range(len(UPLINKS)):
            self.move_slot(UPLINK_GROUP, slot, port)
        self.change_candidates(UPLINK_GROUP, port)
        self.assertEqual(port, self.drain_flow())
        first, second = self.send_data(), self.send_data()
        self.assertEqual((port, DRAINED), (first.port, self.flags(first)))
        self.assertEqual((port, 0), (second.port, self.flags(second)))
        self.expect_count("flowcut_rerouted", 0)


@group("flowcut")
class DrainedElsewhereTest(FlowcutTest):
    """A switch that measures nothing leaves, once, the port of a flow that the switch before it drained."""

    def flowcut(self, flags: int) -> int:
        """A flowcut of two packets from the switch below; returns its port."""
        sent = [self.pass_on(flags), self.pass_on(0)]
        self.assertEqual(sent[0].port, sent[1].port)
        self.finish(*sent)
        for _ in sent:
            self.receive(DOWNLINK)  # their ACKs, on their way
        return sent[0].port

    def pass_on(self, flags: int) -> Sent:
        frame = roce(FLOW, ttl=63)
        below = (1, HOST_PORT | flags)
        self.send(DOWNLINK, shimmed(frame, 1, [below]))
        port, received = self.receive()
        stamp = Ether(received)[DataShim].stack[0]
        self.assertEqual((DOWNLINK, 0), (stamp.in_port, stamp.drained))
        return Sent(FLOW, port, len(frame), 2, ((int(stamp.ticks), DOWNLINK), below))

    def runTest(self) -> None:
        first = self.flowcut(DRAINED)  # an unknown flow has no port to leave
        self.assertEqual(first, self.flowcut(0))
        second = self.flowcut(DRAINED)
        self.assertNotEqual(first, second)
        self.assertEqual(second, self.flowcut(0))
        self.assertNotIn(self.flowcut(DRAINED), (first, second))


@group("flowcut")
class StaysOnPathTest(FlowcutTest):
    """In flight a flow keeps its port when the controller moves its slot; a new flow takes the new one."""

    def runTest(self) -> None:
        first = self.send_data()
        other = next(port for port in UPLINKS if port != first.port)
        for slot in range(len(UPLINKS)):
            self.move_slot(UPLINK_GROUP, slot, other)
        second = self.send_data()
        self.assertEqual(first.port, second.port)
        self.finish(first, second)
        self.assertEqual(other, self.send_data(Flow(HOST, REMOTE, sport=9)).port)


@group("flowcut")
class WithdrawnPathTest(FlowcutTest):
    """A path withdrawn under a flow whose age is too long for stamps to tell the order: nothing of it
    is sent until it has drained or aged; others go on."""

    def setUp(self) -> None:
        super().setUp()
        self.sent = [self.send_data(), self.send_data()]
        self.rest = tuple(port for port in UPLINKS if port != self.sent[0].port)
        self.change_candidates(UPLINK_GROUP, *self.rest)
        for slot in range(len(UPLINKS)):
            self.move_slot(UPLINK_GROUP, slot, self.rest[0])
        for _ in range(2):
            self.send(HOST_PORT, roce(FLOW))
        self.expect_drops(PATH_WITHDRAWN=2)

    def runTest(self) -> None:
        self.expect_flows({FLOW.sport: 2 * self.sent[0].frame_bytes})
        other = self.send_data(Flow(HOST, REMOTE, sport=9))
        self.assertEqual(self.rest[0], other.port)
        self.finish(*self.sent, other)
        # Known by now and idle everywhere: any next hop that is left.
        self.assertIn(self.send_data().port, self.rest)


@group("flowcut")
class WithdrawnAndLostTest(WithdrawnPathTest):
    """What was on the path is lost: the flow's age sets it free, and what was refused has not put it off."""

    def runTest(self) -> None:
        self.configure(age_ticks=0)
        sent = self.send_data()
        self.configure()
        self.assertEqual(self.rest[0], sent.port)
        self.expect_flows({FLOW.sport: sent.frame_bytes})


@group("flowcut")
class WithdrawnAndBackTest(WithdrawnPathTest):
    """The path comes back while the flow is in flight: it goes on there."""

    def runTest(self) -> None:
        self.change_candidates(UPLINK_GROUP, *UPLINKS)
        self.assertEqual(self.sent[0].port, self.send_data().port)
