# SPDX-License-Identifier: Apache-2.0
"""Spritz, fine-grained: which half of the entropy value a switch goes by, and who takes the default table.

Run one case: scripts/run_ptf.py --target native test_spritz_roles.FirstRoleTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.base import Keys
from ptf_tests.fabric import HOST_PORT, OTHER_HOST, OTHER_HOST_PORT, UPLINKS
from ptf_tests.frames import roce
from ptf_tests.spritz import (
    CLASS_FIRST,
    FAR_DEFAULT,
    FIRST_NEAR,
    GLOBALS,
    LOCALS,
    NEAR,
    SpritzTest,
    steered,
)

# Every value of each byte somewhere, and the two bytes never alike for long.
EVS = [high << 8 | (high * 37 + 11) % 256 for high in range(256)]
SOME_EVS = [0x0000, 0x0001, 0x0100, 0x00FF, 0xFF00, 0xFFFF, *EVS[::23]]
FIRST_LIST = LOCALS + GLOBALS


@group("spritz")
class FirstRoleTest(SpritzTest):
    """From a host: EV1 modulo the list's size, all ports for another group, those within for the own one."""

    def runTest(self) -> None:
        for ev in EVS:
            self.expect_by(HOST_PORT, steered(ev), FIRST_LIST[(ev >> 8) % len(FIRST_LIST)])
        for ev in SOME_EVS:
            self.expect_by(OTHER_HOST_PORT, steered(ev, OTHER_HOST, NEAR), LOCALS[(ev >> 8) % len(LOCALS)])
        self.expect_drops()


@group("spritz")
class MissingEntriesTest(SpritzTest):
    """A destination without default port, and a slot that nobody filled: dropped, not sent anywhere."""

    def runTest(self) -> None:
        self.add_group("10.0.10.0", 10, UPLINKS)
        self.send(HOST_PORT, roce(steered(0x0101, dst="10.0.10.2")))
        self.expect_drops(NO_ROUTE=1)
        role, path_class = self.enum("Role_t", "FIRST"), self.enum("PathClass_t", "ALL")
        key: Keys = {"role": role, "near": 0, "class": path_class}
        entry = self.entry("path_lists", key)
        entry.action.action.CopyFrom(self.action("path_list", list=CLASS_FIRST, size=4))
        self.modify(entry)
        self.send(HOST_PORT, roce(steered(0x0101)))
        self.expect_drops(NO_ROUTE=2)
        # An empty list is none.
        entry.action.action.CopyFrom(self.action("path_list", list=FIRST_NEAR, size=0))
        self.modify(entry)
        self.expect_by(HOST_PORT, steered(0x0101), FAR_DEFAULT)
        self.assertEqual((0, 0), self.port_queues(FAR_DEFAULT))
