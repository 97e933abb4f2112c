# SPDX-License-Identifier: Apache-2.0
"""Flowcut in a Dragonfly: a flowcut keeps its detour while it is in flight, at the first router and behind.

Run one case: scripts/run_ptf.py --target native test_flowcut_dragonfly.KeepsDetourTest
"""

from __future__ import annotations

from ptf.testutils import group
from scapy.layers.l2 import Ether

from ptf_tests.dragonfly import FOURTH_GROUP, ONWARD_GROUP, THIRD_GROUP, DragonflyTest, Link, detoured
from ptf_tests.fabric import DOWNLINK, FLOW, HOST_PORT, SLOW_GROUP, UPLINK_GROUP, UPLINKS, FabricTest
from ptf_tests.flowcut import FlowcutTest, Sent
from ptf_tests.frames import DRAINED, MOVED, roce, shimmed, tagged
from ptf_tests.slow_port import ATTEMPTS, FILLER_BYTES, FILLERS, SlowPortTest
from tailrace.codec.layers.data_shim import DataShim

A, B, C = UPLINKS


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


@group("dragonfly")
class WithdrawnDetourTest(FlowcutDragonflyTest):
    """A detour that the controller takes away, where the age is too long for stamps to tell the order:
    nothing of the flow is sent until nothing is in flight."""

    def runTest(self) -> None:
        self.set_paths("VALIANT", "FLOW")
        sent = self.send_detoured()
        self.remove_entry("next_hop_ports", {"toward": THIRD_GROUP, "port": B})
        self.send(HOST_PORT, roce(FLOW))
        self.expect_drops(PATH_WITHDRAWN=1)
        self.finish(sent)
        self.set_paths("MINIMAL", "FLOW")
        self.assertEqual(A, self.send_data().port)


@group("dragonfly")
class MovedBySourceTest(FlowcutDragonflyTest):
    """A router behind the first one lets a flow go on that comes on another detour than the one it counts,
    and says that it has."""

    def runTest(self) -> None:
        self.add_onward(THIRD_GROUP, (C,), ONWARD_GROUP)
        self.add_onward(FOURTH_GROUP, (A,), ONWARD_GROUP + 1)
        self.add_next_hops(ONWARD_GROUP, C)
        self.add_next_hops(ONWARD_GROUP + 1, A)
        for number, port, moved in (
            (THIRD_GROUP, C, 0),
            (THIRD_GROUP, C, 0),
            (FOURTH_GROUP, A, MOVED),
            (THIRD_GROUP, C, MOVED),
        ):
            arriving = shimmed(roce(FLOW, ttl=63), 1, [(1, HOST_PORT)])
            self.send(DOWNLINK, detoured(arriving, number))
            received = self.receive(port)[1]
            first, second = Ether(received)[DataShim].stack
            expected = shimmed(
                roce(FLOW, ttl=62, tag=tagged(0, port)),
                2,
                [(int(first.ticks), DOWNLINK | moved), (1, HOST_PORT)],
            )
            self.assertEqual(1, int(second.ticks))
            self.assertEqual(bytes(detoured(expected, number)).hex(), received.hex())
        self.expect_count("flowcut_expired", 2)
        self.expect_drops()


@group("dragonfly")
class LearntPathTest(SlowPortTest, FlowcutDragonflyTest):
    """What a flow has learnt of its two ports comes before UGAL-L: where just one was found congested, it
    takes the other one, whatever waits there; UGAL-L decides where neither was, or both.
    """

    def setUp(self) -> None:
        super().setUp()
        minimal = self.entry("minimal_paths", {"toward": UPLINK_GROUP, "slot": 0})
        minimal.action.action.CopyFrom(self.action("minimal", port=self.slow_port, links=2))
        self.modify(minimal)
        self.add_next_hops(SLOW_GROUP, self.slow_port)  # fillers are flows as well
        self.set_paths("UGAL_L")

    def end(self, sent: Sent, *, congested: bool) -> None:
        """The flowcut ends, and speaks for its port or against it."""
        self.configure_drain(**({"rtt_threshold": 0} if congested else {}))
        self.send_ack(sent)

    def minimal(self, flags: int = 0) -> Sent:
        """A flowcut begins on the minimal path."""
        sent = self.send_data()
        self.assertEqual((self.slow_port, flags), (sent.port, self.flags(sent)))
        return sent

    def left(self) -> int:
        """Packets that have left by either port."""
        return self.count("port_tx", self.slow_port) + self.count("port_tx", B)

    def try_behind_fillers(self) -> tuple[Sent, bool]:
        """A flowcut begins while fillers wait for the minimal port; returns its packet, and whether they
        waited long enough."""
        before, received, detours = self.left(), self.count("port_rx", HOST_PORT), self.count("port_tx", B)
        self.fill()
        self.send(HOST_PORT, roce(FLOW))
        self.expect_count("port_rx", received + 1, HOST_PORT)
        was_loaded = self.waiting() >= FILLER_BYTES + len(roce(FLOW))
        self.eventually(before + FILLERS + 1, self.left)
        detoured_now = self.count("port_tx", B) - detours
        frame = self.drain(FILLERS + 1 - detoured_now)[-1]
        if detoured_now:
            frame = self.receive(B)[1]
        (stamp,) = Ether(frame)[DataShim].stack
        port = B if detoured_now else self.slow_port
        return Sent(FLOW, port, len(roce(FLOW)), 1, ((int(stamp.ticks), HOST_PORT),)), was_loaded

    def end_behind_fillers(self, port: int) -> None:
        """A flowcut that begins while fillers wait for the minimal port takes this port, and ends well."""
        for _ in range(ATTEMPTS):
            sent, was_loaded = self.try_behind_fillers()
            self.end(sent, congested=False)
            if was_loaded:
                self.assertEqual(port, sent.port)
                return
        raise AssertionError("the machine is too slow: the slow port was never loaded at the right time")

    def runTest(self) -> None:
        self.end_behind_fillers(B)
        self.end(self.minimal(), congested=True)
        # nothing waits anywhere, and yet
        self.end(self.send_detoured(), congested=True)
        self.end(self.minimal(DRAINED), congested=False)
        # of the two, the detour was congested last
        self.end_behind_fillers(self.slow_port)
        self.nothing_else()
