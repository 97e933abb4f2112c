# SPDX-License-Identifier: Apache-2.0
"""The switch core and its Python face."""

from tailrace.native.runtime.build import BuildError
from tailrace.native.runtime.switch import Switch
from tailrace.native.runtime.types import (
    Account,
    ActionCall,
    BufferConfig,
    BufferState,
    ColourCounts,
    DigestRecord,
    GroupRef,
    Held,
    MemberRef,
    MeterRates,
    Output,
    PfcConfig,
    PfcLimits,
    PfcStats,
    PortStats,
    Replica,
    Row,
    RowTarget,
    StateError,
    SwitchConfig,
)

__all__ = [
    "Account",
    "ActionCall",
    "BufferConfig",
    "BufferState",
    "BuildError",
    "ColourCounts",
    "DigestRecord",
    "GroupRef",
    "Held",
    "MemberRef",
    "MeterRates",
    "Output",
    "PfcConfig",
    "PfcLimits",
    "PfcStats",
    "PortStats",
    "Replica",
    "Row",
    "RowTarget",
    "StateError",
    "Switch",
    "SwitchConfig",
]
