# SPDX-License-Identifier: Apache-2.0
"""Settings of the transport tcp: a sender led by its window, in bursts, as HF²T §3 has it beside RDMA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tailrace.hosts.errors import check_setting

LEAST_BURST_BYTES: Final = 1
MOST_BURST_BYTES: Final = 1 << 20
MOST_INITIAL_PACKETS: Final = 1 << 16
MOST_DUPLICATES: Final = 1 << 12

MODERATION_PACKETS: Final = 32
"""Packets that a NIC gathers before it interrupts: the default of the Linux driver mlx5 for receiving."""

MODERATION_NS: Final = 16_000
"""And how long it waits for them, in the same place."""


@dataclass(frozen=True, slots=True)
class TcpConfig:
    """The transport tcp; how answers are batched, and the least timeout, are NicConfig's.

    Args:
        initial_packets: congestion window that a flow begins with (RFC 6928: 10).
        burst_bytes: payload that is handed to the NIC in one piece, at most, and leaves it back to back: the
            64 KB of segmentation offload. Up to one packet: no offload.
        duplicates: a packet is taken for lost when so many beyond it have arrived (DupThresh of RFC 6675: 3).
    """

    initial_packets: int = 10
    burst_bytes: int = 65_536
    duplicates: int = 3

    def __post_init__(self) -> None:
        """Raises ConfigError on values that make no sense."""
        for name, least, most in (
            ("initial_packets", 1, MOST_INITIAL_PACKETS),
            ("burst_bytes", LEAST_BURST_BYTES, MOST_BURST_BYTES),
            ("duplicates", 1, MOST_DUPLICATES),
        ):
            value = getattr(self, name)
            check_setting(least <= value <= most, f"{name} is {value}, expected {least}..{most}")
