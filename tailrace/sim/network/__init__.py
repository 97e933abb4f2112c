# SPDX-License-Identifier: Apache-2.0
"""The virtual-time network: compiled switches and NICs in one process, deterministic from a seed."""

from tailrace.sim.network.endpoint import BatchError
from tailrace.sim.network.errors import NetworkError
from tailrace.sim.network.match import FrameMatch
from tailrace.sim.network.network import SWITCH_CONFIG, Network
from tailrace.sim.network.wire import Wire, WireEvent

__all__ = ["SWITCH_CONFIG", "BatchError", "FrameMatch", "Network", "NetworkError", "Wire", "WireEvent"]
