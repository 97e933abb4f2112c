# SPDX-License-Identifier: Apache-2.0
"""How a sender chooses the path of each packet: the framework of Spritz §IV.

A path is an entropy value (EV), the packet's UDP source port. The transport asks for one whenever it sends a
packet, and tells what has become of it: each packet has one of four outcomes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from tailrace.hosts.flows.paths import PathList

# What has become of a packet (Spritz §IV, Feedback Logic).
ACK: Final = 0  # it has arrived
ACK_ECN: Final = 1  # it has arrived and met congestion
NACK: Final = 2  # a full queue has cut it
TIMEOUT: Final = 3  # nothing was heard of it for too long


@mypyc_attr(allow_interpreted_subclasses=True)
class Steering(ABC):
    """Chooses the paths of one flow's packets.

    explored: packets whose path was drawn at random.
    reused: packets that took a path known to be good, or the flow's own one.
    blocked: times a path was blocked after a timeout.
    vlans: VLAN ID of packets with each EV; empty: they have no tag.
    """

    __slots__ = ("blocked", "explored", "reused", "vlans")

    def __init__(self, paths: PathList) -> None:
        """Args: paths: the flow's."""
        self.vlans: dict[int, int] = dict(zip(paths.evs, paths.vlans, strict=True)) if paths.vlans else {}
        self.explored = 0
        self.reused = 0
        self.blocked = 0

    @abstractmethod
    def next_ev(self, now_ns: int) -> int:
        """The EV of the packet that is sent now."""

    @abstractmethod
    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """What has become of a packet.

        Args:
            feedback: ACK, ACK_ECN, NACK or TIMEOUT.
            ev: the packet's; EVs that are on no path of the flow are ignored.
        """
