# SPDX-License-Identifier: Apache-2.0
"""Flowcut in a Dragonfly: a flowcut keeps its detour while it is in flight, at the first router and behind.

Run one case: scripts/run_ptf.py --target native test_flowcut_dragonfly.KeepsDetourTest
"""

from __future__ import annotations

from p4.v1 import p4runtime_pb2
from ptf.testutils import group
from scapy.layers.l2 import Ether

from ptf_tests.dragonfly import FOURTH_GROUP, ONWARD_GROUP, THIRD_GROUP, DragonflyTest, Link, detoured
from ptf_tests.fabric import DOWNLINK, FLOW, HOST_PORT, UPLINKS, FabricTest
from ptf_tests.flowcut import FlowcutTest, Sent
from ptf_tests.frames import MOVED, roce, shimmed, tagged
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
        found = self.receive(B)[1]
        (stamp,) = Ether(found)[DataShim].stack
        stamps = ((int(stamp.ticks), HOST_PORT),)
        expected = shimmed(roce(FLOW, ttl=63, tag=tagged(0, B)), 1, list(stamps))
        self.assertEqual(bytes(detoured(expected, THIRD_GROUP)).hex(), found.hex())
        return Sent(FLOW, B, len(frame), 1, stamps)


@group("dragonfly")
class KeepsDetourTest(FlowcutDragonflyTest):
    """Though the rule has changed, packets follow the detour in flight; the next flowcut is minimal."""

    def runTest(self) -> None:
        self.set_paths("VALIANT", "FLOW")
        sent = [self.send_detoured()]
        self.set_paths("MINIMAL", "FLOW")
        sent.append(self.send_detoured())
        self.expect_flows({FLOW.sport: sum(one.frame_bytes for one in sent)})
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
        self._undo_next_hop()
        self.send(HOST_PORT, roce(FLOW))
        self.expect_drops(PATH_WITHDRAWN=1)
        self.finish(sent)
        self.set_paths("MINIMAL", "FLOW")
        self.assertEqual(A, self.send_data().port)

    def _undo_next_hop(self) -> None:
        (found,) = [entity for entity in self.inserted if self._is_next_hop(entity)]
        self.inserted.remove(found)
        self._write(p4runtime_pb2.Update.DELETE, **found)

    def _is_next_hop(self, entity: dict[str, object]) -> bool:
        table = getattr(entity.get("table_entry"), "table_id", None)
        return bool(table == self.named("tables", "next_hop_ports").preamble.id)


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
            found = self.receive(port)[1]
            first, second = Ether(found)[DataShim].stack
            expected = shimmed(
                roce(FLOW, ttl=62, tag=tagged(0, port)),
                2,
                [(int(first.ticks), DOWNLINK | moved), (1, HOST_PORT)],
            )
            self.assertEqual(1, int(second.ticks))
            self.assertEqual(bytes(detoured(expected, number)).hex(), found.hex())
        self.expect_count("flowcut_expired", 2)
        self.expect_drops()
