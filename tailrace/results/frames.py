# SPDX-License-Identifier: Apache-2.0
"""What hosts sent and received besides flows: pings, and frames that are not of any flow.

pings.parquet       src, dst, sequence, sent_ns, rtt_ns   one row per echo request; no rtt_ns: no reply
arrived-HOST.pcap   the frames that arrived at a host; times count from the start of the traffic
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from arro3.core import Table
from msgspec import UNSET, UnsetType

from tailrace.codec.captures import CaptureError, frames_of, write_pcap
from tailrace.hosts.frames.host import ArrivedFrame, HostFrames, PingRecord
from tailrace.hosts.frames.sources import MOST_FRAMES
from tailrace.results.parquet import read_parquet, write_parquet
from tailrace.results.statistics import mean, percentile
from tailrace.spec.errors import FileError
from tailrace.spec.files import bytes_of
from tailrace.tables.arrow import INTEGER, TEXT, make_table, values_of

PINGS, ARRIVED = "pings.parquet", "arrived-*.pcap"
COLUMNS = {"src": TEXT, "dst": TEXT, "sequence": INTEGER, "sent_ns": INTEGER, "rtt_ns": INTEGER}

ByHost = Mapping[str, HostFrames]
"""By the names of hosts."""


class PingSummary(msgspec.Struct, frozen=True):
    """Echo requests of all hosts: sent, and answered, with RTTs in ns."""

    sent: int
    received: int
    rtt_mean_ns: float | UnsetType = UNSET
    rtt_p99_ns: int | UnsetType = UNSET
    rtt_max_ns: int | UnsetType = UNSET


class HostCount(msgspec.Struct, frozen=True):
    """Frames of a host besides flows: `sent` by its sources, `arrived` without echo requests and replies."""

    sent: int
    arrived: int


def ping_summary(frames: ByHost) -> PingSummary | UnsetType:
    """The pings of a run; unset if there are none."""
    pings = [ping.rtt_ns for each in frames.values() for ping in each.pings]
    rtts = [rtt for rtt in pings if rtt is not None]
    if not rtts:
        return PingSummary(len(pings), 0) if pings else UNSET
    return PingSummary(len(pings), len(rtts), mean(rtts), percentile(rtts, 99), max(rtts))


def host_counts(frames: ByHost) -> dict[str, HostCount] | UnsetType:
    """The frames of each host; unset if no host sends any."""
    return {name: HostCount(each.sent, each.arrived) for name, each in frames.items()} or UNSET


def ping_table(frames: ByHost) -> Table:
    """One row per echo request, as in pings.parquet."""
    rows = [ping for each in frames.values() for ping in each.pings]
    return make_table({name: [getattr(row, name) for row in rows] for name in COLUMNS}, COLUMNS)


def write_frames(frames: ByHost, folder: Path) -> None:
    """Writes the files of a run into its folder."""
    if any(each.pings for each in frames.values()):
        write_parquet(ping_table(frames), folder / PINGS)
    for name, each in frames.items():
        if each.kept:
            write_pcap(folder / ARRIVED.replace("*", name), each.kept)


def read_frames(folder: Path, counts: Mapping[str, HostCount] | UnsetType) -> dict[str, HostFrames]:
    """Reads what `write_frames` wrote; `counts`: as in the summary.

    Raises:
        FileError: a file cannot be read, or has other contents.
    """
    values = {}
    if (folder / PINGS).exists():
        values = values_of(read_parquet(folder / PINGS, "pings", COLUMNS, MOST_FRAMES))
    pings = [PingRecord(*row) for row in zip(*(values.get(name, ()) for name in COLUMNS), strict=True)]
    return {
        name: HostFrames(
            count.sent,
            count.arrived,
            _arrived(folder / ARRIVED.replace("*", name)),
            tuple(ping for ping in pings if ping.src == name),
        )
        for name, count in (counts or {}).items()
    }


def _arrived(path: Path) -> tuple[ArrivedFrame, ...]:
    try:
        frames = frames_of(bytes_of(path)) if path.exists() else ()
        return tuple(ArrivedFrame(time_ns or 0, data) for time_ns, data in frames)
    except CaptureError as error:
        raise FileError(path, "", str(error)) from error
