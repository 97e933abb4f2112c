# SPDX-License-Identifier: Apache-2.0
"""Numbers that C has no room for: refused, not cut to what fits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tailrace.switch.core import (
    BufferConfig,
    MeterRates,
    PfcConfig,
    Replica,
    StateError,
    SwitchConfig,
    V1ModelSwitch,
)
from tailrace.switch.core.lib import C, ffi, fields

TOO_MANY: list[Callable[[V1ModelSwitch], object]] = [
    lambda s: s.table_resize(0, 2**32 + 16),
    lambda s: s.table_delete(0, 2**32),
    lambda s: s.port_config(2**32 + 1, rate_bps=1),
    lambda s: s.port_config(1, rate_bps=2**64),
    lambda s: s.port_config(1, delay_ns=-1),
    lambda s: s.mcast_set(1, [Replica(2**32 + 1)]),
    lambda s: s.clone_set(5, [Replica(1)], truncate_bytes=-1),
    lambda s: s.buffer_config(BufferConfig(2**64 + 1)),
    lambda s: s.port_pfc(1, PfcConfig((3,), 2**64, 1, 1)),
    lambda s: s.port_pfc(1, PfcConfig((3,), 2, 1, 1, quanta=2**16)),
    lambda s: s.meter_set(0, 0, MeterRates(2**64, 1, 1, 1)),
    lambda s: s.counter_write(0, 0, -1, 0),
    lambda s: s.inject(2**32 + 1, bytes(64), 0),
    lambda s: s.inject(1, bytes(64), 0, virtual_bytes=2**32),
]


@pytest.mark.parametrize("call", TOO_MANY)
def test_a_number_that_does_not_fit_is_refused(call: Callable[[V1ModelSwitch], object]) -> None:
    with V1ModelSwitch(None) as switch, pytest.raises(StateError, match="number out of range") as caught:
        call(switch)
    assert "range" == caught.value.code


@pytest.mark.parametrize("config", [SwitchConfig(queue_depth_packets=2**32), SwitchConfig(port_rate_bps=-1)])
def test_no_switch_with_such_settings(config: SwitchConfig) -> None:
    with pytest.raises(StateError, match="settings of the switch"):
        V1ModelSwitch(None, config)


def test_fields_are_in_ns() -> None:
    raw = ffi.new("tr_pfc_stats *", {"bytes": 7, "paused_ps": 5 * C.TR_PS_PER_NS + 1})
    stats = fields(raw)
    assert (7, 5) == (stats["bytes"], stats["paused_ns"])
    assert "paused_ps" not in stats
