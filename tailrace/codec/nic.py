# SPDX-License-Identifier: Apache-2.0
"""What NICs and the owners of their wires see of each other, in virtual time and in real time alike.

    owner -> NicPort.arrive(frame) -> Nic.on_data, on_ack, ...   one call a frame, whatever it is
    owner -> NicPort.depart()     -> Nic.next_packet            whenever the wire is free and it is time

`hosts.nic.nic.Nic` is a NIC; one in plain Python needs the same methods, or those of `FrameNic`.

A NIC in Python, compiled or not, is called once a packet, not once a window with an array of all that
arrives in it. An array keeps every trace, but then the NIC must know when its wire is free, since what it
sends next follows from what has arrived by then: the host's loop (tv_host.c) would stand in every NIC a
second time. It is worth that only where a NIC is C itself, so arrays belong between C and C;
docs/virtual.md has the figures.
"""

from __future__ import annotations

import functools
from typing import Protocol

from tailrace.codec.build import codec_extension
from tailrace.codec.calls import Packet
from tailrace.codec.table import icrc_mask, offsets


class _Sends(Protocol):
    """What every NIC has. It reads no clock: calls tell it the time, which never goes back."""

    @property
    def idle(self) -> bool:
        """Whether it has nothing left to do: timers that may still fire do not matter any more."""
        ...

    def next_packet(self, now_ns: int) -> Packet | int | None:
        """The packet to send now; called only while the wire is free.

        Returns:
            an int: nothing before that time, later than now, unless something arrives; None: nothing before
            something arrives.
        """
        ...


class FrameNic(_Sends, Protocol):
    """A NIC that is handed frames as they are. It sends raw packets; others if it has a `template`, too."""

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int, /) -> None:
        """A frame has arrived, its last bit at `now_ns`; virtual_bytes: of a payload that is only counted."""
        ...


class PacketNic(_Sends, Protocol):
    """A NIC that is told what frames say; see `codec.calls` for the numbers."""

    @property
    def address(self) -> int:
        """Its IPv4 address: frames for others are discarded."""
        ...

    def template(self, template_id: int) -> tuple[bytes, bytes]:
        """Headers of all packets of a template, and what a first packet has before its payload; kept."""
        ...

    def on_data(self, now_ns: int, peer: int, psn_fields: int, data_fields: int, ticks: int) -> None:
        """A data packet."""
        ...

    def on_trimmed(self, now_ns: int, peer: int, psn_fields: int, data_fields: int) -> None:
        """A data packet whose payload a switch cut off: length 0, and the frame's length as it is now."""
        ...

    def on_ack(self, now_ns: int, peer: int, psn_fields: int, aeth: int) -> None:
        """An ACK or NAK."""
        ...

    def on_cnp(self, now_ns: int, peer: int) -> None:
        """A congestion notification packet."""
        ...

    def on_nic_ack(self, now_ns: int, flow: int, count: int, ticks: int) -> None:
        """A NIC ACK."""
        ...

    def on_flow_pause(
        self,
        now_ns: int,
        src: int,
        dst: int,
        sport: int,
        dport: int,
        protocol: int,
        op: int,
        credit_bytes: int,
    ) -> None:
        """A pause of one flow."""
        ...

    def on_pfc(self, now_ns: int, quanta: tuple[int, ...]) -> None:
        """A PFC frame."""
        ...

    def on_discard(self, now_ns: int, reason: int) -> None:
        """A frame to be discarded."""
        ...


Nic = PacketNic | FrameNic


class NicPort(Protocol):
    """A NIC behind the codec in C (tc_python.c), for whoever owns its wire."""

    def arrive(self, now_ns: int, frame: bytes, virtual_bytes: int = 0, /) -> None:
        """A frame has arrived, whatever it is: the NIC is told of it by one call."""
        ...

    def depart(self, now_ns: int, /) -> tuple[bytes, int] | int | None:
        """The frame to send now that the wire is free, and its virtual bytes; else as `next_packet`."""
        ...


@functools.cache
def _codec() -> object:
    return codec_extension().Codec(offsets(), icrc_mask())


def port(nic: Nic) -> NicPort:
    """The port of a NIC.

    Raises:
        BuildError: the C part cannot be compiled.
        AttributeError: it is no NIC.
    """
    made: NicPort = codec_extension().Port(_codec(), nic)
    return made
