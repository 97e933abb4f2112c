# SPDX-License-Identifier: Apache-2.0
"""A host of the virtual network alone, with its NIC: what arrives is given, what it sends is read."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from tailrace.cbuild.artifacts import CODEC, VIRTUAL
from tailrace.cbuild.extension import extension as make
from tailrace.codec.build import codec_extension
from tailrace.codec.nic import port

NEVER = 2**64 - 1

Sent = tuple[int, int, bytes, int]
"""When the first bit left and when the last one arrives, in ps; the frame; its virtual bytes."""


@functools.cache
def extension() -> Any:
    """The host port and host_rig.c as one extension module."""
    codec_extension()
    sources = [VIRTUAL / "tv_host.c", Path(__file__).with_suffix(".c")]
    return make("host_rig", sources, (CODEC, VIRTUAL))


class Rig:
    """One host, and its wires."""

    def __init__(self, nic: Any, *, rate_bps: int = 8_000_000_000, delay_ps: int = 0) -> None:
        self._c = extension()
        self._rig = self._c.make(rate_bps, delay_ps)
        self.attach(nic)

    def attach(self, nic: Any) -> None:
        """Puts another NIC in its place."""
        self._c.attach(self._rig, port(nic))

    def arrive(self, time_ps: int, frame: bytes, virtual_bytes: int = 0, *, lost: bool = False) -> None:
        """A frame that will have arrived at a time, not before any given earlier; a lost one only ends."""
        self._c.arrive(self._rig, time_ps, frame, virtual_bytes, lost)

    def run(self, end_ps: int = NEVER) -> int:
        """Runs up to a time; how many events there were."""
        events: int = self._c.run(self._rig, end_ps)
        return events

    def poll(self, now_ps: int = 0) -> None:
        """The NIC may have something to send."""
        self._c.poll(self._rig, now_ps)

    def set_rate(self, rate_bps: int) -> None:
        """The wire's rate from now on."""
        self._c.set_rate(self._rig, rate_bps)

    @property
    def next_ps(self) -> int:
        """Time of the next event."""
        time_ps: int = self._c.next_event(self._rig)
        return time_ps

    @property
    def last_ps(self) -> int:
        """Time of the last frame."""
        time_ps: int = self._c.last_frame(self._rig)
        return time_ps

    @property
    def idle(self) -> bool:
        """Whether the NIC has nothing left to do."""
        idle: bool = self._c.idle(self._rig)
        return idle

    @property
    def sent(self) -> list[Sent]:
        """All frames that were sent."""
        sent: list[Sent] = self._c.sent(self._rig)
        return sent
