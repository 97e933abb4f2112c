# SPDX-License-Identifier: Apache-2.0
"""What a host sends besides flows: pings, and the frames of a capture."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tailrace.codec.captures import CaptureError, frames_of
from tailrace.hosts.frames.echo import Echo, request
from tailrace.spec.errors import FileError
from tailrace.spec.files import MOST_TEXT_BYTES, bytes_of

MOST_FRAMES = 1_000_000
"""Frames that the sources of a run may send."""

MOST_ECHOES = 1 << 16
"""Echo requests of one source: an ICMP sequence number has 16 bits."""

SentFrame = tuple[int, bytes, Echo | None]
"""The time in ns at which a frame may leave, the frame, and the reply that the host waits for."""

_From0 = Annotated[int, Meta(ge=0)]


class Ping(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Echo requests from one host to another.

    host, peer: IPv4 addresses; names: the names of both hosts
    peer_mac: destination MAC address of the requests
    number: ICMP identifier, unique at the host
    count: number of requests; interval_ns: time between two of them; size_bytes: payload of a request
    """

    host: str
    peer: str
    names: tuple[str, str]
    peer_mac: str
    number: Annotated[int, Meta(ge=0, lt=1 << 16)]
    count: Annotated[int, Meta(ge=1, le=MOST_ECHOES)]
    start_ns: _From0
    interval_ns: Annotated[int, Meta(ge=1)]
    size_bytes: _From0

    @property
    def last_ns(self) -> int:
        """When the last request leaves."""
        return self.start_ns + (self.count - 1) * self.interval_ns

    def frames(self, mac: str) -> Iterator[SentFrame]:
        """The requests; `mac`: the host's MAC address."""
        for sequence in range(self.count):
            echo = Echo(True, self.host, self.peer, self.number, sequence)
            frame = request((mac, self.peer_mac), echo, self.size_bytes)
            awaited = Echo(False, self.peer, self.host, self.number, sequence)
            yield self.start_ns + sequence * self.interval_ns, frame, awaited


class Replay(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """The frames of a capture, as they are, with the times between them.

    host: IPv4 address of the host that sends them; file: path of the capture
    start_ns: when the first frame leaves; length_ns: time from the first to the last frame
    count: number of frames
    ns_per_captured_ns: factor by which the times between frames are multiplied
    """

    host: str
    file: str
    start_ns: _From0
    length_ns: _From0
    count: Annotated[int, Meta(ge=1, le=MOST_FRAMES)]
    ns_per_captured_ns: Annotated[float, Meta(gt=0)] = 1.0

    @property
    def last_ns(self) -> int:
        """When the last frame leaves, unless the link is busy."""
        return self.start_ns + self.length_ns

    def frames(self, mac: str) -> Iterator[SentFrame]:  # noqa: ARG002 - frames have their addresses
        """The frames. Raises FileError."""
        for time_ns, frame in captured(Path(self.file)):
            yield self.start_ns + round(time_ns * self.ns_per_captured_ns), frame, None


FrameSource = Ping | Replay


def captured(path: Path) -> list[tuple[int, bytes]]:
    """The frames of a capture in the order of their times, which count from the first frame.

    Raises:
        FileError: the file is no capture of Ethernet frames with times, or too large.
    """
    try:
        frames = list(itertools.islice(frames_of(bytes_of(path, MOST_TEXT_BYTES)), MOST_FRAMES + 1))
    except CaptureError as error:
        raise FileError(path, "", str(error)) from error
    timed = sorted(
        ((time_ns, data) for time_ns, data in frames if time_ns is not None), key=lambda each: each[0]
    )
    if not frames or len(timed) < len(frames) or len(frames) > MOST_FRAMES:
        raise FileError(path, "", f"expected 1 to {MOST_FRAMES} frames with times, found {len(timed)}")
    return [(time_ns - timed[0][0], data) for time_ns, data in timed]
