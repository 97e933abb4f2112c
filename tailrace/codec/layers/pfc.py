# SPDX-License-Identifier: Apache-2.0
"""Priority-based flow control (IEEE 802.1Qbb), with Scapy's layer for MAC control frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scapy.contrib.mac_control import MACControl, MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tailrace.codec.layers.flow_pause import PAUSE_MAC
from tailrace.spec.constants import NS_PER_S, QUANTUM_BITS

ETHER_TYPE = 0x8808
OP_CODE = MACControl.OP_CODE_CLASS_BASED_FLOW_CONTROL


def pfc_frame(src_mac: str, quanta: Mapping[int, int]) -> Packet:
    """A PFC frame.

    Args:
        src_mac: MAC address of the station that requests the pause.
        quanta: pause time (0..65535 quanta, 0: resume) by priority (0..7), of the enabled priorities.
    """
    fields: dict[str, Any] = {f"c{priority}_enabled": 1 for priority in quanta}
    fields |= {f"c{priority}_pause_time": time for priority, time in quanta.items()}
    return Ether(src=src_mac, dst=PAUSE_MAC, type=ETHER_TYPE) / MACControlClassBasedFlowControl(**fields)


def pause_ns(quanta: int, rate_bps: int) -> int:
    """Length of a pause in ns, rounded up so that it is never too short."""
    return -(-quanta * QUANTUM_BITS * NS_PER_S // rate_bps)
