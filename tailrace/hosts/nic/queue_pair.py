# SPDX-License-Identifier: Apache-2.0
"""What both ends of a flow have in common for the NIC."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tailrace.codec.calls import NEVER


class FlowEnd(ABC):
    """The source or the destination of one flow, from the flow's start to its end.

    handle: number of this end at its NIC, see `hosts.nic.queue_pairs`.
    timer_ns: when the NIC will look at it again: the NIC's own note.
    """

    def __init__(self, handle: int) -> None:
        """No timer is set."""
        self.handle = handle
        self.timer_ns = NEVER

    @abstractmethod
    def deadline_ns(self) -> int:
        """When `on_time` has something to do; NEVER: not unless something else happens."""

    @abstractmethod
    def on_time(self, now_ns: int) -> None:
        """Lets run off whatever is due."""

    @abstractmethod
    def template(self, kind: int) -> tuple[bytes, bytes]:
        """Headers of packets of this kind, and what stands between them and a first packet's payload."""
