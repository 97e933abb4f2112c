# SPDX-License-Identifier: Apache-2.0
"""MeterConfig messages to rates and back (P4Runtime specification 9.4)."""

from __future__ import annotations

from finsy.proto import p4i, p4r

from tailrace.native.runtime import MeterRates
from tailrace.native.server.entities.schema import MeterPlan
from tailrace.p4rt.status import Code, P4RtError, invalid


def parse_rates(config: p4r.MeterConfig, meter: MeterPlan) -> MeterRates:
    """The rates of a meter configuration, in units and units per second.

    Raises:
        P4RtError: INVALID_ARGUMENT for rates that the meter's type does not have; UNIMPLEMENTED for an excess
        burst.
    """
    what = f"meter '{meter.name}'"
    if min(config.cir, config.cburst, config.pir, config.pburst, config.eburst) < 0:
        raise invalid(f"{what}: a rate or burst is negative")
    if meter.type == p4i.MeterSpec.TWO_RATE_THREE_COLOR:
        if config.eburst:
            raise invalid(f"{what}: eburst is only for single-rate meters")
        if config.pir < config.cir:
            raise invalid(f"{what}: the peak rate is below the committed rate")
    else:
        if (config.pir, config.pburst) != (config.cir, config.cburst):
            raise invalid(f"{what}: pir and pburst of a single-rate meter must equal cir and cburst")
        if config.eburst and meter.type == p4i.MeterSpec.SINGLE_RATE_TWO_COLOR:
            raise invalid(f"{what}: a two-colour meter has no eburst")
        if config.eburst:
            raise P4RtError(Code.UNIMPLEMENTED, f"{what}: excess bursts are not supported")
    return MeterRates(config.cir, config.cburst, config.pir, config.pburst)


def fill_config(rates: MeterRates, config: p4r.MeterConfig) -> None:
    """Writes rates into an empty message, which is then set even when all are zero."""
    config.SetInParent()
    config.cir, config.cburst = rates.cir, rates.cburst
    config.pir, config.pburst = rates.pir, rates.pburst


def refuse_colour_counters() -> P4RtError:
    """The error for MeterCounterData, which v1model's meters do not keep."""
    return P4RtError(Code.UNIMPLEMENTED, "meters keep no counters for each colour")
