# SPDX-License-Identifier: Apache-2.0
"""Presto: cells of a flow go to the next hops in turn.

Run one case: scripts/run_ptf.py --target native test_presto.CellTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import FLOW, HOST_PORT, UPLINKS, FabricTest
from ptf_tests.frames import roce
from tailrace.codec.layers.bth import AETH
from tailrace.codec.numbers import Opcode

PER_CELL = 3
FRAME = roce(FLOW)


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
