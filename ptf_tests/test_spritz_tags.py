# SPDX-License-Identifier: Apache-2.0
"""Spritz, coarse-grained: a VLAN tag names the class of paths, ordinary ECMP picks one of them, the switch
that chooses last clears the tag.

Run one case: scripts/run_ptf.py --target native test_spritz_tags.NonminimalTest
"""

from __future__ import annotations

from ptf.testutils import group

from ptf_tests.fabric import HOST, HOST_PORT, REMOTE
from ptf_tests.frames import classed, roce
from ptf_tests.spritz import (
    CLASS_FIRST,
    CLASS_SECOND,
    FIRST_NEAR,
    GLOBALS,
    LOCALS,
    NEAR,
    SpritzTest,
    after,
    steered,
)

FLOWS = 48


class TagTest(SpritzTest):
    """A switch of the coarse mode; its lists have no entry for class ALL."""

    mode = "CLASS"

    def setUp(self) -> None:
        super().setUp()
        self.minimal, self.nonminimal = (self.enum("VlanId_t", name) for name in ("MINIMAL", "NONMINIMAL"))
        self.add_class(self.minimal, "MINIMAL")
        self.add_class(self.nonminimal, "NONMINIMAL")

    def add_lists(self) -> None:
        non_minimal = "NONMINIMAL"
        self.add_list(CLASS_FIRST, "FIRST", LOCALS + GLOBALS, path_class=non_minimal, goes_on=LOCALS)
        self.add_list(FIRST_NEAR, "FIRST", LOCALS, near=1, path_class=non_minimal)
        self.add_list(CLASS_SECOND, "SECOND", GLOBALS, path_class=non_minimal)

    def add_class(self, vid: int, name: str) -> None:
        """A VLAN number that names a class of PathClass_t."""
        action = self.action("vlan_class", **{"class": self.enum("PathClass_t", name)})
        self.add_entry("vlan_classes", {"vid": vid}, action)

    def ports_by_flow(self, vid: int, dst: str = REMOTE, keeps: tuple[int, ...] = ()) -> set[int]:
        """Ports of many flows with a tag, each the same twice; the tag is left by the ports that keep it."""
        seen = set()
        for sport in range(1, FLOWS + 1):
            flow = steered(sport, HOST, dst)
            ports = set()
            for _ in range(2):
                self.send(HOST_PORT, classed(roce(flow), vid))
                port, left = self.receive()
                expected = after(flow, port)
                if port in keeps:
                    expected = classed(expected, vid)
                self.assertEqual(bytes(expected).hex(), left.hex())
                ports.add(port)
            self.assertEqual(1, len(ports))
            seen |= ports
        return seen


@group("spritz")
class NonminimalTest(TagTest):
    """ECMP 1: any path by the flow's hash; the tag is kept over a link to ECMP 2, else cleared at once."""

    def runTest(self) -> None:
        everywhere = set(LOCALS + GLOBALS)
        self.assertEqual(everywhere, self.ports_by_flow(self.nonminimal, keeps=LOCALS))
        self.assertEqual(set(LOCALS), self.ports_by_flow(self.nonminimal, dst=NEAR))
        self.expect_drops()
