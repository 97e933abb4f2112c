# SPDX-License-Identifier: Apache-2.0
"""Drives the sending side of a transport by hand."""

from __future__ import annotations

from tailrace.hosts.transport.base import NOTHING, Sender


def send_all(one: Sender, now_ns: int = 0) -> list[int]:
    """Sends as much as may be sent; the packets."""
    sent = []
    while (index := one.peek()) != NOTHING:
        one.on_sent(now_ns, index)
        sent.append(index)
    return sent
