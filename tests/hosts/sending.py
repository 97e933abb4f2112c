# SPDX-License-Identifier: Apache-2.0
"""Drives the sending side of a transport by hand."""

from __future__ import annotations

from tailrace.hosts.transport.base import NOTHING, Sender


def send_all(sender: Sender, now_ns: int = 0) -> list[int]:
    """Sends all packets that may be sent; returns their indices."""
    sent = []
    while (index := sender.peek()) != NOTHING:
        sender.on_sent(now_ns, index)
        sent.append(index)
    return sent
