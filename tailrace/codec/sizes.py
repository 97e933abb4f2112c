# SPDX-License-Identifier: Apache-2.0
"""Bytes of RoCE packets on the wire: Ethernet to ICRC, without preamble and FCS."""

from __future__ import annotations

from tailrace.codec.checksum import ICRC_BYTES
from tailrace.codec.templates import RETH_BYTES, ROCE

HEADER_BYTES = ROCE.layout.size_bytes + ICRC_BYTES
"""Of a data packet beside its payload: Ethernet, IPv4, UDP, BTH and ICRC; the first one has a RETH, too."""

_PAD_TO_BYTES = 4


def wire_bytes(flow_bytes: int, mtu_bytes: int) -> tuple[int, int]:
    """Bytes on the wire of a flow's packets: all of them together, and the largest."""
    full, rest = divmod(flow_bytes, mtu_bytes)
    payloads = full * _padded(mtu_bytes) + _padded(rest)
    total = payloads + (full + (rest > 0)) * HEADER_BYTES + RETH_BYTES
    largest = _padded(mtu_bytes if full else rest) + HEADER_BYTES
    return total, largest


def _padded(size_bytes: int) -> int:
    """A payload with its padding."""
    return -(-size_bytes // _PAD_TO_BYTES) * _PAD_TO_BYTES
