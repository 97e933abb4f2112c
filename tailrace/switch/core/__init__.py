# SPDX-License-Identifier: Apache-2.0
"""The switch core and its Python face."""

from tailrace.switch.core.build import BuildError
from tailrace.switch.core.switch import Switch
from tailrace.switch.core.types import (
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
