# SPDX-License-Identifier: Apache-2.0
"""Priority flow control of the data class: specs such as ``xoff=256KiB,xon=200KiB`` -> thresholds of a port.

    xoff        a switch pauses the sender on a link when it has queued more than this many bytes that arrived
                by the link; default: one bandwidth-delay product; with alpha the most that a dynamic
                threshold can be, alpha times the buffer
    xon         the switch resumes the sender at or below this; default: XON_SHARE of xoff
    headroom    space above xoff for bytes that arrive until the pause takes effect; default: the bytes in
                flight on the longest link in a round trip, and HEADROOM_FRAMES frames already begun
    buffer      memory of a switch, headrooms included, that all its ports share, except for PORT_FRAMES
                frames of each port that are reserved for traffic other than data; default: no limit
    alpha       dynamic thresholds: a port gets alpha times the free part of the buffer, but at most xoff
    storm       when pauses have stopped a port for too long (spec.watchdog): drop its data (the default),
                ignore the pauses, or off: a port may stay paused for ever
    channels    number of lossless priorities of a link between switches; a packet moves to the next one at
                each switch, so that no switches wait for each other in a cycle (plan.channels): a number, off
                for one priority, or auto (the default): as many as the scheme needs, if it supports channels
    deadlock    when the switches of a run in virtual time wait for each other for ever: stop the run (the
                default), or pass: continue, so that only the watchdog can resolve the deadlock

The spec `default` has the defaults of all keys; `off` disables PFC. Without a spec, PFC is enabled for
transports that are made for lossless networks (Transport.lossless), unless the scheme limits queues (queue=)
or trims packets. This holds in virtual time and in real time with Tailrace's own switch, not with BMv2. Every
port of every switch, including those to hosts, has the same thresholds, and NICs obey pauses (as in the paper
on RLB, §II-A). If a spec enables PFC, the scheme's limits of queues still apply.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import msgspec
from msgspec.structs import replace

from tailrace.schemes.blocks.channels import MOST_CHANNELS
from tailrace.spec import SpecError, UnitError, keys, parse
from tailrace.spec.constants import NS_BITS
from tailrace.spec.units import parse_alpha
from tailrace.spec.watchdog import STORMS, of_switch
from tailrace.topology import Topology
from tailrace.topology.pfc import DEADLOCKS, Thresholds
from tailrace.topology.timing import bdp_bytes

DEFAULT = "default"
OFF = "off"
XON_SHARE = 0.8

HEADROOM_FRAMES = 4
PORT_FRAMES = 8
REACTION_NS = 50_000_000
"""In real time, where switches and hosts are processes: how long they may wait for a CPU before they obey."""


def _parse_channels(text: str) -> int | None:
    """Number of channels of a link; None (auto): as many as the scheme needs."""
    if text in ("auto", "off"):
        return None if text == "auto" else 0
    if text not in map(str, range(2, MOST_CHANNELS + 1)):
        raise UnitError(f"{text!r} is not a number of channels")
    return int(text)


_ALPHA = keys.parsed(
    "alpha",
    "dynamic threshold of a port, as a multiple of the free buffer",
    "a factor from 1/1024 to 1024 such as 1/8",
    parse_alpha,
)
_CHANNELS = keys.parsed(
    "channels",
    "number of lossless priorities of a link between switches",
    f"auto, off, or a number from 2 to {MOST_CHANNELS}",
    _parse_channels,
)


class NoPfc(msgspec.Struct, frozen=True):
    """The spec `off`: PFC is disabled."""


class Pfc(msgspec.Struct, frozen=True):
    """The parsed options of PFC; None means the default, which is auto for `channels`."""

    xoff_bytes: Annotated[
        int | None, keys.size("xoff", "bytes above which the sender is paused", least=1)
    ] = None
    xon_bytes: Annotated[
        int | None, keys.size("xon", "bytes at or below which the sender is resumed", least=1)
    ] = None
    headroom_bytes: Annotated[
        int | None,
        keys.size(
            "headroom", "space above xoff, for bytes that arrive before the pause takes effect", least=1
        ),
    ] = None
    buffer_bytes: Annotated[int | None, keys.size("buffer", "memory of a switch for packets", least=1)] = None
    alpha: Annotated[Fraction | None, _ALPHA] = None
    storm: Annotated[str, keys.choice("storm", "how data is treated in a pause storm", STORMS)] = STORMS[0]
    channels: Annotated[int | None, _CHANNELS] = None
    deadlock: Annotated[str, keys.choice("deadlock", "how a run continues after a deadlock", DEADLOCKS)] = (
        DEADLOCKS[0]
    )

    def __post_init__(self) -> None:
        """Raises SpecError if alpha is given without buffer."""
        if self.alpha is not None and self.buffer_bytes is None:
            raise SpecError("pfc: alpha needs buffer, of which it is a share")

    def bounded(self) -> Pfc:
        """With the default of xoff for dynamic thresholds."""
        if self.alpha is None or self.buffer_bytes is None or self.xoff_bytes is not None:
            return self
        return replace(self, xoff_bytes=int(self.alpha * self.buffer_bytes))

    def of(
        self,
        topology: Topology,
        frame_bytes: int,
        reaction_ns: int = 0,
        time_scale: float = 1,
        channels: int = 0,
    ) -> Thresholds:
        """The thresholds in a topology whose largest frame has `frame_bytes`.

        Args:
            reaction_ns: how long a neighbour takes to obey a pause, beyond the propagation delay.
            time_scale: factor by which the rates of `topology` have already been slowed down.
            channels: number of channels, see Thresholds; 0: none, that is, one lossless priority.

        Raises:
            SpecError: xon is above xoff, or the headrooms fill the whole buffer.
        """
        xoff = bdp_bytes(topology, frame_bytes) if self.xoff_bytes is None else self.xoff_bytes
        xon = int(xoff * XON_SHARE) if self.xon_bytes is None else self.xon_bytes
        if xon > xoff:
            raise SpecError(f"pfc: xon ({xon} bytes) is above xoff ({xoff} bytes)")
        headroom = self.headroom_bytes
        if headroom is None:
            headroom = _headroom_bytes(topology, frame_bytes, reaction_ns)
        watchdog = of_switch(self.storm, time_scale)
        if self.buffer_bytes is None:
            return Thresholds(
                xoff, xon, headroom, watchdog=watchdog, channels=channels, deadlock=self.deadlock
            )
        port_bytes = PORT_FRAMES * frame_bytes
        self._check_buffer(topology, self.buffer_bytes, max(1, channels) * headroom + port_bytes)
        return Thresholds(
            xoff, xon, headroom, self.buffer_bytes, self.alpha, port_bytes, watchdog, channels, self.deadlock
        )

    @staticmethod
    def _check_buffer(topology: Topology, buffer_bytes: int, port_bytes: int) -> None:
        # including the port by which packets are recirculated
        ports = 1 + max(len(topology.ports_of(switch.name)) for switch in topology.switches)
        if buffer_bytes <= ports * port_bytes:
            raise SpecError(
                f"pfc: a buffer of {buffer_bytes} bytes must be larger than what is reserved for {ports} "
                f"ports, {port_bytes} bytes each with headroom"
            )


def _headroom_bytes(topology: Topology, frame_bytes: int, reaction_ns: int) -> int:
    """The most bytes that arrive on a link between the decision to pause and the sender's last frame."""
    links = [(link.rate_bps, link.delay_ns) for link in topology.links]
    links += [(host.rate_bps, host.delay_ns) for host in topology.hosts]
    # a switch delays frames before its ingress, as if its links were longer
    latency_ns = topology.latency_ns
    # bits/s * ns / NS_BITS is bytes
    in_flight = max(
        -(-rate_bps * (2 * (delay_ns + latency_ns) + reaction_ns) // NS_BITS) for rate_bps, delay_ns in links
    )
    return in_flight + HEADROOM_FRAMES * frame_bytes


def parse_pfc(text: str) -> Pfc | NoPfc:
    """Parses the options of PFC.

    Raises:
        SpecError: unknown or bad option; the message, one line, names it.
    """
    if text == OFF:
        return NoPfc()
    return Pfc() if text == DEFAULT else keys.read(parse(f"pfc:{text}"), Pfc)
