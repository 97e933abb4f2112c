# SPDX-License-Identifier: Apache-2.0
"""The virtual-time network: compiled switches and NICs in one process, deterministic from a seed."""

from tailrace.native.virtual.endpoint import BatchError, Endpoint
from tailrace.native.virtual.errors import NetworkError
from tailrace.native.virtual.match import FrameMatch
from tailrace.native.virtual.network import SWITCH_CONFIG, Network
from tailrace.native.virtual.observing import Samples, Sight, Traffic, Watch
from tailrace.native.virtual.wire import End, Tap, Wire, WireEvent

__all__ = [
    "SWITCH_CONFIG",
    "BatchError",
    "End",
    "Endpoint",
    "FrameMatch",
    "Network",
    "NetworkError",
    "Samples",
    "Sight",
    "Tap",
    "Traffic",
    "Watch",
    "Wire",
    "WireEvent",
]
