# SPDX-License-Identifier: Apache-2.0
"""The interface between NICs and the owners of their wires, in virtual time and in real time.

A wire is the link of a NIC's host; its owner is the code that delivers frames to the NIC and takes frames
from it.

    owner -> NicPort.arrive(frame) -> Nic.on_data, on_ack, ...   one call per frame of any kind
    owner -> NicPort.depart()      -> Nic.next_packet            when the wire is free, and a packet is due

`hosts.nic.nic.Nic` is such a NIC; another one in Python needs the same methods, or those of `FrameNic`.

A NIC in Python, compiled or not, is called once per packet, not once per time window with an array of all
arrivals. Arrays would give the same traces, but the NIC would have to know when its wire is free, since what
it sends next depends on what has arrived by then: every NIC would have to repeat the host's loop (tv_host.c).
This pays only if the NIC itself is in C, so arrays are used only between parts in C;
docs/extend/nics-in-c.md has figures.
"""

from __future__ import annotations

import functools
from typing import Protocol

from tailrace.codec.build import codec_extension
from tailrace.codec.calls import Packet
from tailrace.codec.table import icrc_mask, offsets


class _Sends(Protocol):
    """Methods of every NIC. It reads no clock: calls pass the time, which never decreases."""

    @property
    def idle(self) -> bool:
        """Whether the NIC has nothing left to do; timers that are still set have no effect then."""
        ...

    def next_packet(self, now_ns: int) -> Packet | int | None:
        """The packet to send now; called only while the wire is free.

        Returns:
            a packet; or an int: there is nothing to send before this time, later than now, unless a frame
            arrives; or None: nothing before a frame arrives.
        """
        ...


class FrameNic(_Sends, Protocol):
    """A NIC that gets the bytes of frames. It sends raw packets, and other packets if it has `template`."""

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int, /) -> None:
        """Handles a frame whose last bit arrived at `now_ns`; virtual_bytes: payload, not stored."""
        ...


class PacketNic(_Sends, Protocol):
    """A NIC that gets the header fields of frames; `codec.calls` describes the arguments."""

    @property
    def address(self) -> int:
        """The IPv4 address of the host; frames to other addresses are discarded."""
        ...

    def template(self, template_id: int) -> tuple[bytes, bytes]:
        """Headers of all packets of a template, and the bytes before the payload of a first packet (RETH);
        the caller caches them.
        """
        ...

    def on_data(self, now_ns: int, peer: int, psn_fields: int, data_fields: int, ticks: int) -> None:
        """A data packet."""
        ...

    def on_trimmed(self, now_ns: int, peer: int, psn_fields: int, data_fields: int) -> None:
        """A data packet whose payload a switch has trimmed: its payload length is 0, its frame length that of
        the trimmed frame.
        """
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
        """A PFC frame: the pause quanta of each priority; -1: the priority is not enabled."""
        ...

    def on_discard(self, now_ns: int, reason: int) -> None:
        """A frame that was discarded; `reason` is an index of calls.DISCARD_REASONS."""
        ...


Nic = PacketNic | FrameNic


class NicPort(Protocol):
    """A NIC connected to the codec in C (tc_python.c), as the owner of its wire uses it."""

    def arrive(self, now_ns: int, frame: bytes, virtual_bytes: int = 0, /) -> None:
        """Passes an arriving frame of any kind to the NIC, by one call."""
        ...

    def depart(self, now_ns: int, /) -> tuple[bytes, int] | int | None:
        """The frame to send when the wire is free, and its virtual bytes; else as `next_packet`."""
        ...


@functools.cache
def _codec() -> object:
    return codec_extension().Codec(offsets(), icrc_mask())


def port(nic: Nic) -> NicPort:
    """Connects a NIC to the codec; returns the port.

    Raises:
        BuildError: the C part cannot be compiled.
        AttributeError: the object lacks a method of a NIC.
    """
    made: NicPort = codec_extension().Port(_codec(), nic)
    return made
