# SPDX-License-Identifier: Apache-2.0
"""Constants of frames: types, ports, opcodes. Code that needs no more than these and `codec.layout` does not
import Scapy, which takes longer than a small run.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from tailrace.spec.constants import NS_PER_S, QUANTUM_BITS

TTL = 64
"""The initial TTL of hosts' packets."""

FIRST_PORT: Final = 49152
LAST_PORT: Final = 65535
"""The range of UDP source ports that NICs use as entropy: the dynamic ports (RFC 6335)."""

SOURCE_PORTS = range(FIRST_PORT, LAST_PORT + 1)

ROCE_PORT = 4791
SHIM_PORT = 4793
ACK_PORT = 4794
"""UDP destination ports of RoCEv2, and of the shim and the ACK of Flowcut in NICs (layers/nic_shim.py)."""

LOCAL_TYPE = 0x88B5
"""IEEE local experimental EtherType 1, of headers and control packets of switches (layers/local.py)."""

MAC_CONTROL_TYPE = 0x8808
PFC_OPCODE = 0x0101
"""EtherType of MAC control frames, and the opcode of priority-based flow control (IEEE 802.1Qbb)."""

RETRANSMISSION = 1
"""Identification in the IPv4 header of a retransmission (layers/bth.py)."""


class Opcode(IntEnum):
    """Opcodes of the reliable connection that we send, and the CNP."""

    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST = 0x08
    WRITE_ONLY = 0x0A
    ACK = 0x11
    CNP = 0x81


class Syndrome(IntEnum):
    """First byte of the AETH."""

    ACK = 0x1F  # no end-to-end credits
    NAK_SEQUENCE = 0x60
    NAK_TRIMMED = 0x7F  # code 31, the last reserved code; the MSN field has the PSN of the trimmed packet


class Subtype(IntEnum):
    """Types of the header after the subtype byte of frames with `LOCAL_TYPE`."""

    DATA_SHIM = 1
    FLOWCUT_ACK = 2
    FLOW_PAUSE = 3
    CONGESTION = 4
    PATH_PROBE = 5
    DETOUR = 6


class PauseOp(IntEnum):
    """What the source must do with a paused flow (layers/flow_pause.py)."""

    XOFF = 1
    XOFF_CREDIT = 2
    XON = 3


def pause_ns(quanta: int, rate_bps: int) -> int:
    """Length of a PFC pause in ns, rounded up so that it is never too short."""
    return -(-quanta * QUANTUM_BITS * NS_PER_S // rate_bps)
