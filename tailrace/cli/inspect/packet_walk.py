# SPDX-License-Identifier: Apache-2.0
"""The path of a packet through a network by dry runs: each switch gets the frames that the one before it
would send.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import msgspec

from tailrace.spec import SpecError
from tailrace.spec.suggest import expected
from tailrace.switch.trace.events import CopyEvent, Event, SentEvent, Trace
from tailrace.topology import GATEWAY_MAC, Topology

MOST_HOPS = 1024
"""Limit of the number of hops of a packet and all its copies; more hops mean a loop."""

DryRun = Callable[[str, int, bytes], Trace]
"""Makes a dry run of a frame at a switch and ingress port; returns its trace."""


class DryRunHop(msgspec.Struct, frozen=True, tag_field="type", tag="hop"):
    """A switch that a frame reaches from `from_`, and the trace of the dry run there."""

    switch: str
    port: int
    from_: str
    trace: Trace


class Arrival(msgspec.Struct, frozen=True, tag_field="type", tag="arrival"):
    """A frame, in hexadecimal, that would reach a host, or leave by a port without a link (`host` None)."""

    host: str | None
    switch: str
    port: int
    frame: str


def check_host(topology: Topology, name: str) -> None:
    """Raises SpecError if no host has this name."""
    names = [host.name for host in topology.hosts]
    if name not in names:
        raise SpecError(f"no host {name!r}; {expected(name, names)}")


def host_frame(topology: Topology, src: str, dst: str, *, nic: bool) -> bytes:
    """A UDP packet from one host to another.

    Args:
        nic: whether hosts are NICs of a scheme, which send every frame to the gateway's MAC address; else the
            address follows from the topology, as for a user's program (sim.job.Job.macs).

    Raises:
        SpecError: there is no such host.
    """
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    for name in (src, dst):
        check_host(topology, name)
    a, b = topology.host(src), topology.host(dst)
    mac = GATEWAY_MAC if nic else topology.next_hop_mac(src, dst)
    ethernet, ip = Ether(src=a.mac, dst=mac), IP(src=a.ip, dst=b.ip)
    return bytes(ethernet / ip / UDP(sport=1000, dport=9) / bytes(64))


def walk(topology: Topology, src: str, frame: bytes, dry_run: DryRun) -> Iterator[DryRunHop | Arrival]:
    """The switches that a host's frame and its copies would reach, nearest first, and where the copies end.

    Raises:
        SpecError: there is no such host, or there are more than MOST_HOPS switches.
    """
    check_host(topology, src)
    start = topology.host(src)
    waiting = deque([(start.switch, start.port, start.name, frame)])
    for hops in range(1 << 62):
        if not waiting:
            return
        if hops >= MOST_HOPS:
            raise SpecError(f"the packet and its copies make more than {MOST_HOPS} hops: they loop")
        switch, port, before, data = waiting.popleft()
        trace = dry_run(switch, port, data)
        yield DryRunHop(switch, port, before, trace)
        peers = topology.ports_of(switch)
        for out, sent in sent_by(trace):
            peer = peers.get(out)
            if peer is not None and peer.kind == "switch":
                waiting.append((peer.name, peer.port, switch, sent))
            else:
                yield Arrival(None if peer is None else peer.name, switch, out, sent.hex())


def sent_by(trace: Trace) -> Iterator[tuple[int, bytes]]:
    """The frames that leave a switch, including copies, each with its port.

    Raises:
        SpecError: the response of the switch contains an invalid frame.
    """
    for step in flattened(trace.steps):
        if isinstance(step, SentEvent):
            try:
                yield step.port, bytes.fromhex(step.frame)
            except ValueError:
                raise SpecError(f"the switch returned an invalid frame: {step.frame[:40]!r}") from None


def flattened(steps: Sequence[Event]) -> Iterator[Event]:
    """All steps, including those of copies."""
    waiting = [iter(steps)]
    while waiting:
        for step in waiting[-1]:
            yield step
            if isinstance(step, CopyEvent):
                waiting.append(iter(step.steps))
                break
        else:
            waiting.pop()
