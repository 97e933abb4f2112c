# SPDX-License-Identifier: Apache-2.0
"""Constants for computing with times, rates and sizes."""

from __future__ import annotations

from typing import Final

NS_PER_S: Final = 1_000_000_000

NS_BITS: Final = 8 * NS_PER_S
"""Bits per byte times ns per second: bytes * NS_BITS / (bits/s) is a time in ns."""

PS_PER_NS: Final = 1_000

PS_BITS: Final = NS_BITS * PS_PER_NS
"""Bits per byte times ps per second: bytes * PS_BITS / (bits/s) is a time in ps."""

QUANTUM_BITS: Final = 512
"""The unit of a pause's duration, in bit times of the link (IEEE 802.1Qbb)."""

MAX_QUANTA: Final = 0xFFFF
"""The longest pause that one frame can ask for, in quanta; a further frame extends it."""

MAX_FRAME_BYTES: Final = 66_000
"""The largest frame that a switch or host receives or sends (TR_MAX_FRAME of tr_switch.h)."""

PRIORITIES: Final = 8
"""Number of priorities of PFC (IEEE 802.1Qbb)."""

MAX_FLOW_BYTES: Final = (1 << 32) - 1
"""The longest message of a flow: the range of the RETH's length field."""
