# SPDX-License-Identifier: Apache-2.0
"""Priority-based flow control (IEEE 802.1Qbb), with Scapy's layer for MAC control frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tailrace.codec.layers.local import PAUSE_MAC
from tailrace.codec.numbers import MAC_CONTROL_TYPE


def pfc_frame(src_mac: str, quanta: Mapping[int, int]) -> Packet:
    """A PFC frame.

    Args:
        src_mac: MAC address of the station that requests the pause.
        quanta: pause time (0..65535 quanta, 0: resume) by priority (0..7), of the enabled priorities.
    """
    fields: dict[str, Any] = {f"c{priority}_enabled": 1 for priority in quanta}
    fields |= {f"c{priority}_pause_time": time for priority, time in quanta.items()}
    pause = MACControlClassBasedFlowControl(**fields)
    return Ether(src=src_mac, dst=PAUSE_MAC, type=MAC_CONTROL_TYPE) / pause
