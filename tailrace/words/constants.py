# SPDX-License-Identifier: Apache-2.0
"""Numbers of arithmetic with times, rates and sizes."""

from __future__ import annotations

from typing import Final

NS_PER_S: Final = 1_000_000_000

NS_BITS: Final = 8 * NS_PER_S
"""Bits of a byte times ns of a second: bytes * NS_BITS / (bits/s) is ns."""
