# SPDX-License-Identifier: Apache-2.0
"""Priority flow control of the data class: words such as ``xoff=256KiB,xon=200KiB`` -> thresholds of a port.

    xoff        a switch pauses the sender on a port when more than this waits that came in there; one
                bandwidth-delay product without it
    xon         and lets it go on at or below this; XON_SHARE of xoff without it
    headroom    room above xoff for what arrives until the pause takes hold; without it what the longest link
                holds both ways, and HEADROOM_FRAMES frames that had begun

`default` is all three without words. Every port of every switch has the same thresholds, those to hosts too,
and NICs obey (RLB §II-A). Queues themselves keep the limit that the scheme gives them.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.defaults import bdp_bytes
from spec import Options, SpecError, parse
from topology import Topology

DEFAULT = "default"
XON_SHARE = 0.8
HEADROOM_FRAMES = 4
_NS_BITS = 8_000_000_000


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What one port does with what came in by it, in bytes."""

    xoff_bytes: int
    xon_bytes: int
    headroom_bytes: int


@dataclass(frozen=True, slots=True)
class Pfc:
    """PFC as it was written; None is the default."""

    xoff_bytes: int | None = None
    xon_bytes: int | None = None
    headroom_bytes: int | None = None

    def of(self, topology: Topology, frame_bytes: int) -> Thresholds:
        """The thresholds in a topology whose frames have at most so many bytes.

        Raises:
            SpecError: xon is above xoff.
        """
        xoff = bdp_bytes(topology) if self.xoff_bytes is None else self.xoff_bytes
        xon = int(xoff * XON_SHARE) if self.xon_bytes is None else self.xon_bytes
        if xon > xoff:
            raise SpecError(f"pfc: xon ({xon} bytes) is above xoff ({xoff} bytes)")
        if self.headroom_bytes is not None:
            return Thresholds(xoff, xon, self.headroom_bytes)
        links = [(link.rate_bps, link.delay_ns) for link in topology.links]
        links += [(host.rate_bps, host.delay_ns) for host in topology.hosts]
        # a switch's latency lies before it, as if its wires were so much longer
        latency_ns = topology.latency_ns
        held = max(-(-2 * rate_bps * (delay_ns + latency_ns) // _NS_BITS) for rate_bps, delay_ns in links)
        return Thresholds(xoff, xon, held + HEADROOM_FRAMES * frame_bytes)


def parse_pfc(text: str) -> Pfc:
    """PFC as words describe it.

    Raises:
        SpecError: unknown or bad option; one line says which.
    """
    if text == DEFAULT:
        return Pfc()
    options = Options(parse(f"pfc:{text}", "key"), ("xoff", "xon", "headroom"))

    def size(name: str) -> int | None:
        return options.size_bytes(name, least=1) if name in options else None

    return Pfc(size("xoff"), size("xon"), size("headroom"))
