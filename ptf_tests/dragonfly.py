# SPDX-License-Identifier: Apache-2.0
"""What the tests of Dragonflies stand on: the leaf switch of ptf_tests.fabric as a router of one.

DOWNLINK leads to another router of the same group, the uplinks and the slow port to other groups.
10.0.2.0/24 and 10.0.8.0/24 are in other groups: minimal paths and detours as a test gives them.
"""

from __future__ import annotations

from dataclasses import dataclass

from p4.v1 import p4runtime_pb2
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from ptf_tests.fabric import DOWNLINK, UPLINK_GROUP, FabricTest
from tailrace.codec.layers.local import Detour, LocalHeader
from tailrace.codec.numbers import LOCAL_TYPE

THIRD_GROUP = 21
DETOUR_LIST = 1


@dataclass(frozen=True)
class Link:
    """The first link of a path; `group` is its detour's, 0 where it is minimal."""

    port: int
    links: int
    group: int = 0


def detoured(frame: Packet, group: int) -> Packet:
    """A frame between routers of one group, on its way to another one."""
    next_type = LOCAL_TYPE if LocalHeader in frame else 0x0800
    header = LocalHeader() / Detour(group=group, next_type=next_type)
    return Ether(src=frame[Ether].src, dst=frame[Ether].dst) / header / frame[Ether].payload.copy()


class DragonflyTest(FabricTest):
    """A router that runs one of the Dragonfly programs."""

    program = "dragonfly"

    def setUp(self) -> None:
        super().setUp()
        self.make_router()

    def make_router(self) -> None:
        """Tell the link within the group from the others."""
        role = self.entry("port_role", {"ingress_port": DOWNLINK})
        role.action.action.CopyFrom(self.action("group_port"))
        self._write(p4runtime_pb2.Update.MODIFY, table_entry=role)

    def set_paths(self, rule: str, grain: str = "PACKET", minimal_share: int = 0) -> None:
        """Set how a path is chosen, and what keeps it."""
        action = self.action(
            "set_paths",
            rule=self.enum("PathRule_t", rule),
            grain=self.enum("Grain_t", grain),
            minimal_share=minimal_share,
        )
        self.set_default("path_config", action)

    def add_paths(
        self,
        minimal: list[Link],
        detours: list[Link],
        group: int = UPLINK_GROUP,
        destination_slots: range = range(0),
    ) -> None:
        """Adds paths from a group of next hops to another group. Detours in `destination_slots` of the list
        lead there, too."""
        for slot, link in enumerate(minimal):
            action = self.action("minimal", port=link.port, links=link.links)
            self.add_entry("minimal_paths", {"toward": group, "slot": slot}, action)
        for slot, link in enumerate(detours):
            action = self.action("detour", port=link.port, group=link.group, links=link.links)
            self.add_entry("detours", {"list": DETOUR_LIST, "slot": slot}, action)
        action = self.action(
            "far",
            paths=len(minimal),
            list=DETOUR_LIST,
            first=destination_slots.start,
            count=len(destination_slots),
            detours=len(detours) - len(destination_slots),
        )
        self.add_entry("far_groups", {"toward": group}, action)
