# SPDX-License-Identifier: Apache-2.0
"""Resubmit and recirculate: what is kept, what is lost, and the instance types (resubmit_recirculate.p4).

Run one case: scripts/run_ptf.py --target native test_resubmit_recirculate.ResubmitTest
"""

from __future__ import annotations

import ptf.testutils as testutils
from ptf.testutils import group

from ptf_tests.base import P4RuntimeTest

ETHERNET = bytes.fromhex("0000000000030000000000aa88b5")
RESUBMIT, RECIRCULATED = 6, 4


def frame(
    resubmits: int, recirculations: int, flags: int, instance_type: int = 0, kept: int = 0, length: int = 0
) -> bytes:
    """A frame for port 3 with the order header of the program; `lost` is always 0."""
    head = bytes([resubmits, recirculations, flags, instance_type])
    tail = kept.to_bytes(2, "big") + bytes(2) + length.to_bytes(4, "big")
    return ETHERNET + head + tail + b"payload" * 5


SIZE = len(frame(0, 0, 0))


@group("resubmit")
class ResubmitTest(P4RuntimeTest):
    """Two more passes over the bytes received; the field list carries the count."""

    program = "resubmit_recirculate"

    def runTest(self) -> None:
        testutils.send_packet(self, 0, frame(2, 0, 1))
        testutils.verify_packet(self, frame(2, 0, 1, RESUBMIT, 0x202, SIZE), 3)
        testutils.send_packet(self, 0, frame(0, 0, 1))
        testutils.verify_packet(self, frame(0, 0, 1, 0, 0, SIZE), 3)
        testutils.verify_no_other_packets(self)


@group("recirculate")
class RecirculateTest(P4RuntimeTest):
    """A recirculated packet carries its changes, and the metadata of the list."""

    program = "resubmit_recirculate"

    def runTest(self) -> None:
        testutils.send_packet(self, 0, frame(0, 3, 2))
        kept = SIZE ^ 0xFFFF
        testutils.verify_packet(self, frame(0, 0, 2, RECIRCULATED, kept, SIZE), 3)
        testutils.verify_no_other_packets(self)
