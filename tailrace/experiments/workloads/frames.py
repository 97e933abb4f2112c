# SPDX-License-Identifier: Apache-2.0
"""Frames that hosts send besides flows: pings, and the frames of a capture."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tailrace.experiments.workloads.patterns import named
from tailrace.experiments.workloads.registry import register
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.hosts.frames.sources import MOST_ECHOES, MOST_FRAMES, FrameSource, Ping, Replay, captured
from tailrace.spec import keys
from tailrace.spec.limits import refuse_above
from tailrace.topology import Topology

_MOST_PAYLOAD = 8_972
"""Payload of an echo request that fits into an IPv4 packet of 9000 bytes."""

_AT = keys.time("at", "time at which the first frame leaves")


class SendsFrames:
    """A pattern without flows, whose hosts send frames instead."""

    __slots__ = ()

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:  # noqa: ARG002
        """No flows."""
        return iter(())

    def sources(self, topology: Topology) -> Iterable[FrameSource]:
        """The frames. Raises PatternError: the topology has no such host."""
        raise NotImplementedError


def check_sources(sources: Sequence[FrameSource]) -> None:
    """Refuses more frames than a run may send.

    Raises:
        SpecError: there would be more than MOST_FRAMES.
    """
    refuse_above("workload", "frames", sum(source.count for source in sources), MOST_FRAMES)


@register("ping", "hosts send ICMP echo requests to each other")
@dataclass(frozen=True, slots=True)
class PingPattern(SendsFrames):
    """Echo requests between some hosts, or all pairs of hosts."""

    sender: Annotated[str | None, keys.text("from", "host that sends", "HOST", absent="every host")] = None
    receiver: Annotated[str | None, keys.text("to", "host that replies", "HOST", absent="every other")] = None
    count: Annotated[
        int, keys.integer("count", "requests of each pair of hosts", least=1, most=MOST_ECHOES)
    ] = 3
    interval_ns: Annotated[int, keys.time("interval", "time between two requests", least=1)] = 1_000_000
    size_bytes: Annotated[int, keys.size("size", "payload of a request", most=_MOST_PAYLOAD)] = 56
    at_ns: Annotated[int, _AT] = 0

    def sources(self, topology: Topology) -> Iterator[FrameSource]:
        """See SendsFrames."""
        senders = topology.hosts if self.sender is None else [named(topology, self.sender)]
        receivers = topology.hosts if self.receiver is None else [named(topology, self.receiver)]
        refuse_above("workload ping", "requests", len(senders) * len(receivers) * self.count, MOST_FRAMES)
        if senders == receivers and len(senders) == 1:
            raise PatternError("from and to are the same host")
        for sender in senders:
            peers = (peer for peer in receivers if peer is not sender)
            for number, peer in enumerate(peers):
                names = sender.name, peer.name
                ends = sender.ip, peer.ip, names, topology.next_hop_mac(*names), number
                yield Ping(*ends, self.count, self.at_ns, self.interval_ns, self.size_bytes)


@register("replay", "a host sends the frames of a capture, as they are, with the times between them")
@dataclass(frozen=True, slots=True)
class ReplayPattern(SendsFrames):
    """The frames of a pcap or pcapng file."""

    host: Annotated[str, keys.text("host", "host that sends", "HOST")]
    file: Annotated[str, keys.text("file", "capture of Ethernet frames", "FILE.pcap")]
    speed: Annotated[
        float, keys.number("speed", "factor by which frames follow each other faster", above=0, most=1e9)
    ] = 1.0
    at_ns: Annotated[int, _AT] = 0

    def sources(self, topology: Topology) -> Iterator[FrameSource]:
        """See SendsFrames."""
        path = Path(self.file).absolute()
        frames, factor = captured(path), 1 / self.speed
        length_ns = round(frames[-1][0] * factor)
        yield Replay(named(topology, self.host).ip, str(path), self.at_ns, length_ns, len(frames), factor)
