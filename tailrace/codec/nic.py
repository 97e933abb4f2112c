# SPDX-License-Identifier: Apache-2.0
"""What the network needs of a host: frames are pulled when the wire is free, and handed over on arrival.

The network never looks into a frame. `hosts.nic.nic.Nic` is one implementation, tests have smaller ones.
"""

from __future__ import annotations

import functools
from typing import Protocol

from tailrace.codec.build import codec_extension
from tailrace.codec.table import offsets, ones


class FrameLike(Protocol):
    """A frame to send: its bytes, and payload bytes behind them that exist as a length only."""

    @property
    def data(self) -> bytes:
        """The bytes that exist."""
        ...

    @property
    def virtual_bytes(self) -> int:
        """How many more bytes the wire carries."""
        ...


class NicLike(Protocol):
    """A host's NIC. It reads no clock: every call tells it the time."""

    @property
    def idle(self) -> bool:
        """Whether it has nothing left to do: timers that may still fire do not matter any more."""
        ...

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        """A frame has arrived, its last bit at `now_ns`."""
        ...

    def next_frame(self, now_ns: int) -> FrameLike | None:
        """The frame to send now; called only while the wire is free."""
        ...

    def next_time_ns(self, now_ns: int) -> int | None:
        """When `next_frame` may have something that it does not have now; None: after `on_frame` only."""
        ...


class Port(Protocol):
    """A NIC behind the codec in C (tc_python.c), for whoever owns its wire."""

    def arrive(self, now_ns: int, frame: bytes, virtual_bytes: int = 0, /) -> None:
        """A frame has arrived, whatever it is: the NIC is told of it by one call."""
        ...

    def depart(self, now_ns: int, /) -> tuple[bytes, int] | int | None:
        """The frame to send now that the wire is free, and its virtual bytes.

        Returns:
            an int: nothing before that time, which is later than now, unless something arrives; None: nothing
            before something arrives.
        """
        ...


@functools.cache
def _codec() -> object:
    return codec_extension().Codec(offsets(), ones())


def port(nic: NicLike) -> Port:
    """The port of a NIC.

    Raises:
        BuildError: the C part cannot be compiled.
        AttributeError: it is no NIC.
    """
    made: Port = codec_extension().Port(_codec(), nic)
    return made
