# SPDX-License-Identifier: Apache-2.0
"""The switch core and its Python API."""

from tailrace.cbuild.errors import BuildError
from tailrace.switch.core.switch import V1ModelSwitch
from tailrace.switch.core.types import (
    ActionCall,
    BufferConfig,
    BufferState,
    ColourCounts,
    DigestRecord,
    EncodedTarget,
    FrameAccount,
    GroupRef,
    MemberRef,
    MeterRates,
    PausedQueue,
    PfcConfig,
    PfcLimits,
    PfcStats,
    PortStats,
    Replica,
    SentFrame,
    StateError,
    SwitchConfig,
)

__all__ = [
    "ActionCall",
    "BufferConfig",
    "BufferState",
    "BuildError",
    "ColourCounts",
    "DigestRecord",
    "EncodedTarget",
    "FrameAccount",
    "GroupRef",
    "MemberRef",
    "MeterRates",
    "PausedQueue",
    "PfcConfig",
    "PfcLimits",
    "PfcStats",
    "PortStats",
    "Replica",
    "SentFrame",
    "StateError",
    "SwitchConfig",
    "V1ModelSwitch",
]
