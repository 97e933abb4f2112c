# SPDX-License-Identifier: Apache-2.0
"""Sizes of RoCE packets on the wire: from Ethernet to ICRC, without preamble and FCS."""

from __future__ import annotations

from tailrace.codec.checksum import ICRC_BYTES
from tailrace.codec.templates import RETH_BYTES, ROCE

HEADER_BYTES = ROCE.layout.size_bytes + ICRC_BYTES
"""Bytes of a data packet besides its payload: Ethernet, IPv4, UDP, BTH, ICRC; a first packet also has a RETH.
"""

_PAD_TO_BYTES = 4


def wire_bytes(flow_bytes: int, mtu_bytes: int) -> tuple[int, int]:
    """Bytes on the wire of a flow's packets: in total, and of the largest packet without a RETH."""
    full, rest = divmod(flow_bytes, mtu_bytes)
    payloads = full * _padded(mtu_bytes) + _padded(rest)
    total = payloads + (full + (rest > 0)) * HEADER_BYTES + RETH_BYTES
    largest = _padded(mtu_bytes if full else rest) + HEADER_BYTES
    return total, largest


def _padded(size_bytes: int) -> int:
    """The size of a payload with its padding."""
    return -(-size_bytes // _PAD_TO_BYTES) * _PAD_TO_BYTES
