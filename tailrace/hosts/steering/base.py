# SPDX-License-Identifier: Apache-2.0
"""How a sender chooses the path of each packet: the framework of Spritz §IV.

A path is identified by an entropy value (EV), the packet's UDP source port. The transport asks for an EV
whenever it sends a packet, and later reports one of four outcomes of the packet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from tailrace.hosts.flows.paths import PathList

# Outcomes of a packet (Spritz §IV, Feedback Logic).
ACK: Final = 0  # the packet has arrived without a mark
ACK_ECN: Final = 1  # the packet has arrived with an ECN mark
NACK: Final = 2  # a full queue has trimmed the packet
TIMEOUT: Final = 3  # the packet was not acknowledged within the timeout


@mypyc_attr(allow_interpreted_subclasses=True)
class Steering(ABC):
    """Chooses the paths of one flow's packets.

    explored: packets whose path was drawn at random.
    reused: packets that took a path that had proved good, or the flow's current path. Experiments report
        explored, reused and blocked (FlowRecord).
    blocked: number of times a path was blocked after a timeout.
    rtt_ns: RTT of the packet whose arrival is reported, with the transport dctcp; 0: unknown.
    vlans: by EV, the VLAN ID of packets with this EV; empty: packets have no VLAN tag.
    """

    __slots__ = ("blocked", "explored", "reused", "rtt_ns", "vlans")

    def __init__(self, paths: PathList) -> None:
        """Args: paths: paths of the flow."""
        self.vlans: dict[int, int] = dict(zip(paths.evs, paths.vlans, strict=True)) if paths.vlans else {}
        self.explored = 0
        self.reused = 0
        self.blocked = 0
        self.rtt_ns = 0

    @abstractmethod
    def next_ev(self, now_ns: int) -> int:
        """The EV of the packet that is sent now."""

    @abstractmethod
    def on_feedback(self, now_ns: int, feedback: int, ev: int) -> None:
        """Handles the outcome of a packet.

        Args:
            feedback: ACK, ACK_ECN, NACK or TIMEOUT.
            ev: the packet's EV; ignored if none of the flow's paths has it.
        """
