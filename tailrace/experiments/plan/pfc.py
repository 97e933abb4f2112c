# SPDX-License-Identifier: Apache-2.0
"""Priority flow control of the data class: specs such as ``xoff=256KiB,xon=200KiB`` -> thresholds of a port.

    xoff        a switch pauses the sender on a port when more than this waits that came in there; one
                bandwidth-delay product without it
    xon         and lets it go on at or below this; XON_SHARE of xoff without it
    headroom    room above xoff for what arrives until the pause takes hold; without it what the longest link
                holds both ways, and HEADROOM_FRAMES frames that had begun
    buffer      memory of a switch, headrooms included, that all its ports share, but for PORT_FRAMES frames
                of each port, which data do not get; without it there is no limit
    alpha       dynamic thresholds: a port gets alpha times what is free of the buffer, and xoff at most
    storm       what becomes of data when pauses have held a port for too long (spec.watchdog): drop, which
    it
                is without it, or ignore, pauses; off: they may hold it for ever
    channels    lossless priorities of a link between switches, of which a packet takes the next one at each
                switch, so that no switches wait for each other in a circle (plan.channels): a number, off for
                one priority, or auto, which it is without it: as many as the scheme needs, where it has any
    deadlock    what becomes of a run in virtual time whose switches wait for each other for good: stop, which
                it is without it, or pass: it goes on, and the watchdog alone is left

`default` is the first three by default. Every port of every switch has the same thresholds, those to hosts
too, and NICs obey (RLB §II-A). Queues themselves keep the limit that the scheme gives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from tailrace.schemes.blocks.channels import MOST_CHANNELS
from tailrace.spec import SpecError, UnitError, keys, parse
from tailrace.spec.constants import NS_BITS
from tailrace.spec.units import parse_alpha
from tailrace.spec.watchdog import STORMS, of_switch
from tailrace.topology import Topology
from tailrace.topology.pfc import DEADLOCKS, Thresholds
from tailrace.topology.timing import bdp_bytes

DEFAULT = "default"
XON_SHARE = 0.8

HEADROOM_FRAMES = 4
PORT_FRAMES = 8
REACTION_NS = 50_000_000
"""Where switches and hosts are programs: how long one of them may wait for a processor before it obeys."""


def _parse_channels(text: str) -> int | None:
    """Channels of a link; None: by the scheme."""
    if text in ("auto", "off"):
        return None if text == "auto" else 0
    if text not in map(str, range(2, MOST_CHANNELS + 1)):
        raise UnitError(f"{text!r} is no number of channels")
    return int(text)


_ALPHA = keys.parsed("alpha", "share of a port", "a factor from 1/1024 to 1024 such as 1/8", parse_alpha)
_CHANNELS = keys.parsed(
    "channels",
    "lossless priorities",
    f"auto, off, or a number from 2 to {MOST_CHANNELS}",
    _parse_channels,
)


@dataclass(frozen=True, slots=True)
class Pfc:
    """PFC as it was written; None is the default, and of `channels` auto."""

    xoff_bytes: Annotated[int | None, keys.size("xoff", "pauses above this", least=1)] = None
    xon_bytes: Annotated[int | None, keys.size("xon", "goes on at or below this", least=1)] = None
    headroom_bytes: Annotated[int | None, keys.size("headroom", "room above xoff", least=1)] = None
    buffer_bytes: Annotated[int | None, keys.size("buffer", "memory of a switch", least=1)] = None
    alpha: Annotated[Fraction | None, _ALPHA] = None
    storm: Annotated[str, keys.choice("storm", "what becomes of data in a storm", STORMS)] = STORMS[0]
    channels: Annotated[int | None, _CHANNELS] = None
    deadlock: Annotated[str, keys.choice("deadlock", "what becomes of the run", DEADLOCKS)] = DEADLOCKS[0]

    def __post_init__(self) -> None:
        """Raises SpecError where alpha has no buffer."""
        if self.alpha is not None and self.buffer_bytes is None:
            raise SpecError("pfc: alpha needs buffer, of which it is a share")

    def of(
        self,
        topology: Topology,
        frame_bytes: int,
        reaction_ns: int = 0,
        time_scale: float = 1,
        channels: int = 0,
    ) -> Thresholds:
        """The thresholds in a topology whose frames have at most so many bytes.

        Args:
            reaction_ns: how long a neighbour takes to obey, beside the way there.
            time_scale: how many times slower than stated the topology is already.
            channels: as Thresholds has them.

        Raises:
            SpecError: xon is above xoff, or the buffer has no room beside the headrooms.
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
        # and the one by which packets are recirculated
        ports = 1 + max(len(topology.ports_of(switch.name)) for switch in topology.switches)
        if buffer_bytes <= ports * port_bytes:
            raise SpecError(
                f"pfc: a buffer of {buffer_bytes} bytes has no room beside what {ports} ports have for "
                f"themselves, {port_bytes} bytes each with headroom"
            )


def _headroom_bytes(topology: Topology, frame_bytes: int, reaction_ns: int) -> int:
    """What comes in on any link from the decision to pause until the last frame sent before it was heard."""
    links = [(link.rate_bps, link.delay_ns) for link in topology.links]
    links += [(host.rate_bps, host.delay_ns) for host in topology.hosts]
    # a switch's latency lies before it, as if its wires were so much longer
    latency_ns = topology.latency_ns
    held = max(
        -(-rate_bps * (2 * (delay_ns + latency_ns) + reaction_ns) // NS_BITS) for rate_bps, delay_ns in links
    )
    return held + HEADROOM_FRAMES * frame_bytes


def parse_pfc(text: str) -> Pfc:
    """PFC as its spec describes it.

    Raises:
        SpecError: unknown or bad option; one line says which.
    """
    return Pfc() if text == DEFAULT else keys.read(parse(f"pfc:{text}"), Pfc)
