# SPDX-License-Identifier: Apache-2.0
"""Numbers of arithmetic with times, rates and sizes."""

from __future__ import annotations

from typing import Final

NS_PER_S: Final = 1_000_000_000

NS_BITS: Final = 8 * NS_PER_S
"""Bits of a byte times ns of a second: bytes * NS_BITS / (bits/s) is ns."""

PS_PER_NS: Final = 1_000

PS_BITS: Final = NS_BITS * PS_PER_NS
"""Bits of a byte times ps of a second: bytes * PS_BITS / (bits/s) is ps."""

QUANTUM_BITS: Final = 512
"""The unit of a pause's time, in bit times of the link (IEEE 802.1Qbb)."""

MAX_QUANTA: Final = 0xFFFF
"""The most that a pause frame can ask for; a frame that is repeated asks for it again."""

MAX_FRAME_BYTES: Final = 66_000
"""Of a frame that a switch or a host takes or sends (TR_MAX_FRAME of tr_switch.h)."""

PRIORITIES: Final = 8
"""Of PFC (IEEE 802.1Qbb)."""
