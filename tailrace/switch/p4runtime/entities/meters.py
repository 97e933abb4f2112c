# SPDX-License-Identifier: Apache-2.0
"""Converts CounterData, MeterConfig and MeterCounterData to counts and rates, and back (P4Runtime 9.3, 9.4).

The core counts modulo 2^64, but the fields of messages are int64. So messages have the count modulo 2^63: a
counter wraps around from 2^63 - 1 to 0, as hardware counters do at their width, and differences are correct.
A meter's type is in P4Info only; the core derives a meter's behaviour from its rates.
"""

from __future__ import annotations

from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.status import invalid
from tailrace.switch.core import ColourCounts, MeterRates
from tailrace.switch.p4runtime.entities.schema import MeterPlan

NOTHING_COUNTED: ColourCounts = (0,) * 6
"""Bytes and packets of green, of yellow and of red."""
_COUNTER_MASK = (1 << 63) - 1
"""The bits of a count in messages."""


def check_counter(data: p4r.CounterData, what: str) -> None:
    """Rejects negative values.

    Raises:
        P4RtError: INVALID_ARGUMENT.
    """
    for name, value in (("byte_count", data.byte_count), ("packet_count", data.packet_count)):
        if value < 0:
            raise invalid(f"{what}: {name} is {value}; it cannot be negative")


def fill_counter(byte_count: int, packet_count: int, data: p4r.CounterData) -> None:
    """Writes counts of the core into an empty message; the message counts as set even if both are 0."""
    data.SetInParent()
    data.byte_count, data.packet_count = byte_count & _COUNTER_MASK, packet_count & _COUNTER_MASK


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
