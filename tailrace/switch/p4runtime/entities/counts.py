# SPDX-License-Identifier: Apache-2.0
"""Converts CounterData messages to counts and back (P4Runtime specification 9.3).

The core counts modulo 2^64, but the fields of messages are int64. So messages have the count modulo 2^63: a
counter wraps around from 2^63 - 1 to 0, as hardware counters do at their width, and differences are correct.
"""

from __future__ import annotations

from finsy.proto import p4r

from tailrace.p4rt.status import invalid

_COUNTER_MASK = (1 << 63) - 1
"""The bits of a count in messages."""


def check_counter(data: p4r.CounterData, what: str) -> None:
    """Rejects negative values.

    Raises:
        P4RtError: INVALID_ARGUMENT.
    """
    for name, value in (("byte_count", data.byte_count), ("packet_count", data.packet_count)):
        if value < 0:
            raise invalid(f"{what}: {name} is {value}; it cannot be negative")


def fill_counter(byte_count: int, packet_count: int, data: p4r.CounterData) -> None:
    """Writes counts of the core into an empty message; the message counts as set even if both are 0."""
    data.SetInParent()
    data.byte_count, data.packet_count = byte_count & _COUNTER_MASK, packet_count & _COUNTER_MASK
