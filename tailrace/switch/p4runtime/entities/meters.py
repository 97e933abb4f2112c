# SPDX-License-Identifier: Apache-2.0
"""Converts MeterConfig and MeterCounterData to rates and counts, and back (P4Runtime specification 9.4).

A meter's type is in P4Info only; the core derives a meter's behaviour from its rates.
"""

from __future__ import annotations

from finsy.proto import p4i, p4r

from tailrace.p4rt.status import invalid
from tailrace.switch.core import ColourCounts, MeterRates
from tailrace.switch.p4runtime.entities.counts import fill_counter
from tailrace.switch.p4runtime.entities.schema import MeterPlan

NOTHING_COUNTED: ColourCounts = (0,) * 6
"""Bytes and packets of green, of yellow and of red."""


def parse_rates(config: p4r.MeterConfig, meter: MeterPlan) -> MeterRates:
    """The rates and bursts of a meter configuration, in the meter's unit (bytes or packets) and per second.

    Raises:
        P4RtError: INVALID_ARGUMENT: they are negative, or do not fit the meter's type.
    """
    what = f"meter '{meter.name}'"
    for name in ("cir", "cburst", "pir", "pburst", "eburst"):
        if getattr(config, name) < 0:
            raise invalid(f"{what}: {name} is {getattr(config, name)}; rates and bursts cannot be negative")
    if meter.type == p4i.MeterSpec.TWO_RATE_THREE_COLOR:
        if config.eburst:
            raise invalid(f"{what}: eburst is {config.eburst}; only single-rate meters have an excess burst")
        if config.pir < config.cir:
            raise invalid(
                f"{what}: pir {config.pir}, the peak rate, is below the committed rate, cir {config.cir}"
            )
    else:
        if (config.pir, config.pburst) != (config.cir, config.cburst):
            raise invalid(
                f"{what} has a single rate: pir {config.pir} and pburst {config.pburst} must equal "
                f"cir {config.cir} and cburst {config.cburst}"
            )
        if config.eburst and meter.type == p4i.MeterSpec.SINGLE_RATE_TWO_COLOR:
            raise invalid(f"{what}: eburst is {config.eburst}; a two-colour meter has no excess burst")
    return MeterRates(config.cir, config.cburst, config.pir, config.pburst, config.eburst)


def fill_config(rates: MeterRates, config: p4r.MeterConfig) -> None:
    """Writes rates into an empty message; the message counts as set even if all rates are 0."""
    config.SetInParent()
    config.cir, config.cburst = rates.cir, rates.cburst
    config.pir, config.pburst = rates.pir, rates.pburst
    config.eburst = rates.eburst


def check_reset(data: p4r.MeterCounterData, what: str) -> None:
    """Checks that the counts that a client writes are all 0.

    Raises:
        P4RtError: INVALID_ARGUMENT, with the first count that is not 0.
    """
    for colour, counter in (("green", data.green), ("yellow", data.yellow), ("red", data.red)):
        for name, value in (("byte_count", counter.byte_count), ("packet_count", counter.packet_count)):
            if value:
                raise invalid(f"{what}: {colour}.{name} is {value}; per-colour counters can only be set to 0")


def fill_colours(counts: ColourCounts, data: p4r.MeterCounterData) -> None:
    """Writes the counts of a meter into an empty message; its three counters count as set even if 0."""
    fill_counter(counts[0], counts[1], data.green)
    fill_counter(counts[2], counts[3], data.yellow)
    fill_counter(counts[4], counts[5], data.red)
