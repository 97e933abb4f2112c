# SPDX-License-Identifier: Apache-2.0
"""Clones from ingress and egress, with preserved metadata (cloning.p4).

Run one case: scripts/run_ptf.py --target native test_clone.IngressCloneTest
"""

from __future__ import annotations

import ptf.testutils as testutils
from ptf.testutils import group

from ptf_tests.base import P4RuntimeTest

DESTINATION = bytes.fromhex("000000000003")
SOURCE_AND_TYPE = bytes.fromhex("0000000000aa88b5")
SESSION = 5
CLONE_PORT = 6
I2E_PLAIN, I2E_FIRST, I2E_BOTH, E2E_BOTH = 1, 2, 4, 32


def frame(how: int, session: int, value: int) -> bytes:
    """A frame for port 3 with the order header of cloning.p4."""
    order = bytes([how, session]) + value.to_bytes(2, "big")
    return DESTINATION + SOURCE_AND_TYPE + order + b"payload" * 6


def stamp(instance_type: int, port: int, first: int, second: int, third: int, rid: int) -> bytes:
    """The header that cloning.p4 puts in front."""
    numbers = (first, second, third, rid)
    return bytes([instance_type, port]) + b"".join(number.to_bytes(2, "big") for number in numbers)


class CloneTest(P4RuntimeTest):
    """Session 5 copies to port 6."""

    program = "cloning"

    def setUp(self) -> None:
        super().setUp()
        self.add_clone_session(SESSION, CLONE_PORT)


@group("clone")
class IngressCloneTest(CloneTest):
    """The clone has the bytes received; metadata only as the field list says."""

    def runTest(self) -> None:
        value, second = 0x0100, 0x0100 ^ 0x155
        for how, kept, also in (
            (I2E_PLAIN, 0, 0),
            (I2E_FIRST, value + 1, 0),
            (I2E_BOTH, value + 1, second),
        ):
            testutils.send_packet(self, 0, frame(how, SESSION, value))
            original = stamp(0, 3, value + 1, second, 0xDEAD, 0) + frame(how | 0x80, SESSION, value + 1)
            testutils.verify_packet(self, original, 3)
            clone = stamp(1, CLONE_PORT, kept, also, 0, 1) + frame(how | 0x80, SESSION, value)
            testutils.verify_packet(self, clone, CLONE_PORT)
        testutils.verify_no_other_packets(self)


@group("clone")
class EgressCloneTest(CloneTest):
    """The egress clone has the headers of the end of egress and goes through egress once more."""

    def runTest(self) -> None:
        testutils.send_packet(self, 0, frame(E2E_BOTH, SESSION, 0))
        order = frame(E2E_BOTH | 0x80, SESSION, 1)
        testutils.verify_packet(self, stamp(0, 3, 1, 0x155, 0xDEAD, 0) + order, 3)
        testutils.verify_packet(self, stamp(2, CLONE_PORT, 0x101, 0x155, 0, 1) + order, CLONE_PORT)
        testutils.verify_no_other_packets(self)
