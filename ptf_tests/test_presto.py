# SPDX-License-Identifier: Apache-2.0
"""Presto: cells of a flow go to the next hops in turn.

Run one case: scripts/run_ptf.py --target native test_presto.CellTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST, HOST_PORT, REMOTE, UPLINK_GROUP, UPLINKS, FabricTest
from ptf_tests.frames import Flow, number_of, roce
from tailrace.codec.layers.bth import AETH, Opcode

PER_CELL = 3
FRAME = roce(FLOW)
OTHER_FLOW = Flow(HOST, REMOTE, sport=2000)
THIRD_FLOW = Flow(HOST, REMOTE, sport=3000)


class PrestoTest(FabricTest):
    """Cells that hold so many packets of the tests."""

    program = "presto"

    def setUp(self) -> None:
        super().setUp()
        # One byte less than another packet needs: a cell is not filled up with a part of one.
        cell_bytes = (PER_CELL + 1) * len(FRAME) - 1
        self.set_default("flowcell_config", self.action("set_flowcell", cell_bytes=cell_bytes))

    def port_of(self, frame: object) -> int:
        """Where a frame of the host leaves."""
        self.send(HOST_PORT, frame)
        return self.receive()[0]


@group("presto")
class CellTest(PrestoTest):
    """A flow alone goes round the uplinks, a cell each; its ACKs are part of no cell."""

    def runTest(self) -> None:
        ack = roce(FLOW, opcode=Opcode.ACK, payload=bytes(AETH(msn=1)))
        cells = 2 * len(UPLINKS)
        ack_ports = set()
        for cell in range(cells):
            expected = UPLINKS[cell % len(UPLINKS)]
            self.assertEqual([expected] * PER_CELL, [self.port_of(FRAME) for _ in range(PER_CELL)])
            ack_ports.add(self.port_of(ack))
        self.assertEqual(1, len(ack_ports))
        self.expect_count("flowcells_created", cells)
        self.expect_drops()


@group("presto")
class TurnTest(PrestoTest):
    """Two flows share the turn: while one is in its cell, the other begins the next one."""

    def runTest(self) -> None:
        first, second, third = UPLINKS
        other = roce(OTHER_FLOW)
        self.assertEqual(first, self.port_of(FRAME))
        self.assertEqual(second, self.port_of(other))
        self.assertEqual([first, first], [self.port_of(FRAME) for _ in range(2)])
        self.assertEqual(third, self.port_of(FRAME))
        self.assertEqual([second, second, first], [self.port_of(other) for _ in range(3)])
        self.expect_drops()


@group("presto")
class CellIsConfigurationTest(PrestoTest):
    """The size can change at any time: the next packet already obeys the new one."""

    def runTest(self) -> None:
        first, second, third = UPLINKS
        self.assertEqual(first, self.port_of(FRAME))
        self.set_default("flowcell_config", self.action("set_flowcell", cell_bytes=0))
        self.assertEqual([second, third, first], [self.port_of(FRAME) for _ in range(3)])
        self.expect_drops()


@group("presto")
class ShrunkGroupTest(PrestoTest):
    """A group becomes smaller: cells in slots that are left go on, others end, and a turn that was at a slot
    that is gone begins anew.
    """

    def resize(self, size: int) -> None:
        """Give the group of the uplinks another number of slots."""
        prefix = number_of(REMOTE) >> 8 << 8
        entry = self.entry("ipv4_routes", {"dst": (prefix, 24)})
        entry.action.action.CopyFrom(self.action("to_group", group=UPLINK_GROUP, size=size))
        self.modify(entry)

    def runTest(self) -> None:
        first, second, third = UPLINKS
        self.assertEqual([first] * PER_CELL, [self.port_of(FRAME) for _ in range(PER_CELL)])
        self.assertEqual(second, self.port_of(FRAME))
        self.resize(2)
        # The turn was at the third slot; the cell is in the second one.
        self.assertEqual([second] * 2, [self.port_of(FRAME) for _ in range(2)])
        self.assertEqual([first] * PER_CELL, [self.port_of(FRAME) for _ in range(PER_CELL)])
        self.assertEqual([second] * PER_CELL, [self.port_of(FRAME) for _ in range(PER_CELL)])
        self.resize(3)
        self.assertEqual(first, self.port_of(roce(OTHER_FLOW)))
        self.assertEqual(second, self.port_of(roce(THIRD_FLOW)))
        self.assertEqual(third, self.port_of(FRAME))
        self.resize(2)
        # A packet of three is in the cell, whose slot is gone.
        self.assertEqual(first, self.port_of(FRAME))
        self.expect_count("flowcells_created", 8)
        self.expect_drops()
