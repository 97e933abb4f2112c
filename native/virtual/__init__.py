# SPDX-License-Identifier: Apache-2.0
"""The virtual-time network: compiled switches and NICs in one process, deterministic from a seed."""

from native.virtual.endpoint import BatchError, Endpoint
from native.virtual.errors import NetworkError
from native.virtual.looking import Samples, Sight, Traffic, Watch
from native.virtual.match import FrameMatch
from native.virtual.network import SWITCH_CONFIG, Network
from native.virtual.nic import FrameLike, NicLike
from native.virtual.wire import End, Tap, Wire, WireEvent

__all__ = [
    "SWITCH_CONFIG",
    "BatchError",
    "End",
    "Endpoint",
    "FrameLike",
    "FrameMatch",
    "Network",
    "NetworkError",
    "NicLike",
    "Samples",
    "Sight",
    "Tap",
    "Traffic",
    "Watch",
    "Wire",
    "WireEvent",
]
