# SPDX-License-Identifier: Apache-2.0
"""A queue pair: the interface that the NIC uses for the source and for the destination of a flow."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tailrace.codec.calls import NEVER


class QueuePair(ABC):
    """The source or the destination of one flow, from the flow's start to its end.

    handle: identifies the queue pair at its NIC, see `hosts.nic.queue_pairs`.
    timer_ns: when the queue pair's timer expires; set by the NIC.
    """

    def __init__(self, handle: int) -> None:
        """No timer is set."""
        self.handle = handle
        self.timer_ns = NEVER

    @abstractmethod
    def deadline_ns(self) -> int:
        """When `on_time` is due; NEVER: only after another event."""

    @abstractmethod
    def on_time(self, now_ns: int) -> None:
        """Handles expired timers."""

    @abstractmethod
    def template(self, kind: int) -> tuple[bytes, bytes]:
        """Headers of packets of this kind, and the bytes between headers and payload of the first packet."""
