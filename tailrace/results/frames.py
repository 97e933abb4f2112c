# SPDX-License-Identifier: Apache-2.0
"""What hosts sent and received besides flows: pings, and frames that are not of any flow.

pings.parquet       src, dst, sequence, sent_ns, rtt_ns   one row per echo request; no rtt_ns: no reply
arrived-HOST.pcap   the frames that arrived at a host; times count from the start of the traffic
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from arro3.core import Table
from msgspec import UNSET, UnsetType

from tailrace.codec.captures import CaptureError, frames_of, write_pcap
from tailrace.hosts.frames.host import ArrivedFrame, Echo, HostFrames
from tailrace.hosts.frames.sources import MOST_FRAMES
from tailrace.results.parquet import read_parquet, write_parquet
from tailrace.results.statistics import mean, percentile
from tailrace.spec.errors import FileError
from tailrace.spec.files import bytes_of
from tailrace.tables.arrow import INTEGER, TEXT, make_table, values_of

PINGS, ARRIVED = "pings.parquet", "arrived-*.pcap"
COLUMNS = {"src": TEXT, "dst": TEXT, "sequence": INTEGER, "sent_ns": INTEGER, "rtt_ns": INTEGER}

ByHost = Mapping[str, HostFrames]
"""By the names of hosts; addresses of echoes are replaced with names of hosts."""


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


def echoes(frames: ByHost) -> Iterator[Echo]:
    """The echo requests of all hosts."""
    return (echo for each in frames.values() for echo in each.echoes)


def ping_summary(frames: ByHost) -> PingSummary | UnsetType:
    """The pings of a run; unset if there are none."""
    all_echoes = list(echoes(frames))
    rtts = [echo.rtt_ns for echo in all_echoes if echo.rtt_ns is not None]
    if not all_echoes:
        return UNSET
    if not rtts:
        return PingSummary(len(all_echoes), 0)
    return PingSummary(len(all_echoes), len(rtts), mean(rtts), percentile(rtts, 99), max(rtts))


def host_counts(frames: ByHost) -> dict[str, HostCount] | UnsetType:
    """The frames of each host that sent or received any; unset if none did."""
    return {
        name: HostCount(each.sent, each.arrived) for name, each in frames.items() if each.sent or each.arrived
    } or UNSET


def ping_table(frames: ByHost) -> Table:
    """One row per echo request, as in pings.parquet."""
    rows = list(echoes(frames))
    return make_table({name: [getattr(row, name) for row in rows] for name in COLUMNS}, COLUMNS)


def write_frames(frames: ByHost, folder: Path) -> None:
    """Writes the files of a run into its folder."""
    if any(True for _ in echoes(frames)):
        write_parquet(ping_table(frames), folder / PINGS)
    for name, each in frames.items():
        if each.kept:
            write_pcap(folder / ARRIVED.replace("*", name), each.kept)


def read_frames(folder: Path, counts: Mapping[str, HostCount] | UnsetType) -> dict[str, HostFrames]:
    """Reads what `write_frames` wrote; `counts`: as in the summary.

    Raises:
        FileError: a file cannot be read, or has other contents.
    """
    by_host: dict[str, list[Echo]] = {}
    if (folder / PINGS).exists():
        values = values_of(read_parquet(folder / PINGS, "pings", COLUMNS, MOST_FRAMES))
        for row in zip(*(values[name] for name in COLUMNS), strict=True):
            by_host.setdefault(row[0], []).append(Echo(*row))
    known = {} if isinstance(counts, UnsetType) else counts
    frames = {name: HostFrames(echoes=tuple(rows)) for name, rows in by_host.items()}
    for name, count in known.items():
        kept = tuple(_arrived(folder / ARRIVED.replace("*", name)))
        echoes_of = frames.get(name, HostFrames()).echoes
        frames[name] = HostFrames(count.sent, count.arrived, kept, echoes_of)
    return frames


def _arrived(path: Path) -> Iterator[ArrivedFrame]:
    if not path.exists():
        return
    try:
        for frame in frames_of(bytes_of(path)):
            yield ArrivedFrame(frame.time_ns or 0, frame.data)
    except CaptureError as error:
        raise FileError(path, "", str(error)) from error
