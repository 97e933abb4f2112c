# SPDX-License-Identifier: Apache-2.0
"""One switch of a Dragonfly: a rig whose REMOTE is in another group, with links to that group and to others.

hosts at 0 and 1; DOWNLINK leads to a switch of the same group; uplinks lead to other groups or within this one
group 1: towards REMOTE's Dragonfly group; DETOURS: towards two others
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.p4src.flow_hash import MASK
from tests.p4src.rig import DOWNLINK, UPLINK_GROUP, Rig, enum_of

THIRD_GROUP, FOURTH_GROUP = 2, 3
ONWARD_GROUP = 9
LIST = 6
NEVER_TICKS = 1 << 40


@dataclass(frozen=True)
class Link:
    """The first link of a path; `group` is its detour's, 0 where it is minimal."""

    port: int
    links: int
    group: int = 0


def remix(value: int) -> int:
    """As dragonfly/paths.p4 says."""
    value = (value ^ value >> 16) * 0x7FEB352D & MASK
    return value ^ value >> 15


class DragonflyRig(Rig):
    """The switch, with the paths that a test gives it. Detours in `destination_slots` of the list lead to
    REMOTE's group."""

    def __init__(
        self,
        name: str,
        minimal: list[Link],
        detours: list[Link],
        *,
        destination_slots: range = range(0),
        seed: int = 1,
    ) -> None:
        super().__init__(name, seed=seed)
        self.minimal = minimal
        self.detours = [link for slot, link in enumerate(detours) if slot not in destination_slots]
        for slot, link in enumerate(minimal):
            self.insert("minimal_paths", (UPLINK_GROUP, slot), "minimal", port=link.port, links=link.links)
        for slot, link in enumerate(detours):
            self.insert("detours", (LIST, slot), "detour", port=link.port, links=link.links, group=link.group)
        self.insert(
            "far_groups",
            (UPLINK_GROUP,),
            "far",
            paths=len(minimal),
            list=LIST,
            first=destination_slots.start,
            count=len(destination_slots),
            detours=len(self.detours),
        )

    def role(self, port: int) -> str:
        """DOWNLINK leads to a switch of the same group."""
        return "group_port" if port == DOWNLINK else super().role(port)

    def paths(self, rule: str, grain: str = "PACKET", minimal_share: int = 0) -> None:
        """Set the rule and what keeps a path."""
        values = {
            "rule": enum_of(self.name, "PathRule_t", rule),
            "grain": enum_of(self.name, "Grain_t", grain),
        }
        self.default("path_config", minimal_share=minimal_share, **values)

    def onward(self, toward: int, ports: tuple[int, ...], group: int = ONWARD_GROUP) -> int:
        """Next hops of packets from the same group; the handle of the entry."""
        self.members(group, ports)
        return self.insert("onward_groups", (toward,), "onward", group=group, size=len(ports))

    def drawn_by(self, value: int) -> tuple[Link, Link, int]:
        """The minimal path and the detour that a value stands for, and the coin."""
        second = remix(value)
        return (
            self.minimal[value % len(self.minimal)],
            self.detours[second % len(self.detours)],
            remix(second) >> 24,
        )
