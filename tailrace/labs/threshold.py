# SPDX-License-Identifier: Apache-2.0
"""Labs 2 and 5: a time that is too short costs the order of packets; where is the threshold?"""

from __future__ import annotations

from typing import ClassVar

import tailrace
from tailrace.labs.answers import require
from tailrace.labs.lab import Lab, Values, reordered
from tailrace.sim.link_faults import LinkSlow
from tailrace.spec.units import format_time, parse_time_ns
from tailrace.tables.arrow import rows_of
from tailrace.topology.timing import base_rtt_ns, fabric_rate_bps, full_frame_bytes

_APART = 1.5
"""The longer time is at most so many times as long as the shorter one."""

_LONG = "5ms"
"""A time with which no packet is out of order."""


class Threshold(Lab):
    """A lab about a time: `option` is the scheme with the key, without its value."""

    option: ClassVar[str]

    def problem(self) -> str:
        shown = reordered(self.run()) and not reordered(self.with_time(_LONG))
        return "" if shown else "this seed shows no threshold"

    def with_time(self, text: str) -> tailrace.Result:
        return self.run(scheme=f"{self.option}={format_time(parse_time_ns(text))}")

    def reorders(self, answer: str) -> str:
        """A time with which packets are out of order."""
        count = reordered(self.with_time(answer))
        require(count > 0, f"with {answer} no packet is out of order; take a shorter time")
        return f"with {answer} {count} packets are out of order"

    def orders(self, answer: str) -> str:
        """A slightly longer time with which none is."""
        count = reordered(self.with_time(answer))
        require(count == 0, f"with {answer} {count} packets are out of order; take a longer time")
        near = parse_time_ns(answer) <= _APART * parse_time_ns(self.earlier("reorders"))
        require(near, f"the order is kept, but {answer} is more than {_APART} times the shorter time")
        return f"with {answer} no packet is out of order, so the threshold is between the two"


class FlowletGap(Threshold):
    number = 2
    option = "letflow:gap"
    values: ClassVar[Values] = {
        "frame_us": lambda self: self.frame_us(),
        "late": lambda self: reordered(self.run()),
        "price": lambda self: (
            self.slowest_ns(self.with_time(self.earlier("orders"))) / self.slowest_ns(self.run())
        ),
    }

    def frame_us(self) -> float:
        """The transmission time of a full frame on the slow uplink; a flow's first packet is larger."""
        frames = rows_of(self.run().timelines.record, ("frame", "psn", "bytes"))
        size_bytes: int = max(size for frame, psn, size in frames if frame == "data" and psn)
        factor = next(fault.factor for fault in self.job.faults if isinstance(fault, LinkSlow))
        return size_bytes * 8e6 / (fabric_rate_bps(self.job.topology) * factor)

    def slowest_ns(self, result: tailrace.Result) -> int:
        """The largest completion time."""
        return max(row.fct_ns or 0 for row in result.rows)


class EntryAge(Threshold):
    number = 5
    option = "flowcut:age"
    values: ClassVar[Values] = {
        "rtt_us": lambda self: self.rtt_us(),
        "ratio": lambda self: parse_time_ns(self.earlier("orders")) / 1e3 / self.rtt_us(),
        "late": lambda self: reordered(self.with_time(self.earlier("reorders"))),
    }

    def rtt_us(self) -> float:
        """The round-trip time of a full frame in the idle network."""
        frame_bytes = full_frame_bytes(self.experiment().mtu_bytes)
        return base_rtt_ns(self.job.topology, frame_bytes) / 1e3
