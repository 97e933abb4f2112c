# SPDX-License-Identifier: Apache-2.0
"""The ideal completion time of a flow: alone in a network without faults, with a NIC that never waits.

With packets i of w_i bytes on the wire, over links j with rates r_j and propagation delays d_j:

    ideal = sum(d_j) + s l                            propagation; latency l of each of s switches
          + (w_1 + ... + w_n) / min(r_j)              the bottleneck transmits every packet
          + sum over the other links of w_max / r_j   store and forward: one packet's time per hop

This time ends when the receiver has the last byte, as a measured completion time does. The formula is exact
for packets of one size; the first packet is longer (RETH) and the last may be shorter, which changes it by
less than one packet's time at the bottleneck. Over several paths at once (spraying, MP-RDMA) the short
last packet need not wait behind the packet before it, so a slowdown may be a little below 1. Headers that
switches add between themselves (Flowcut's shim) are not included: the ideal is the same for every scheme. The
path is the shortest path with the highest bottleneck rate; of several such paths, the one of least delay.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import cache

import msgspec

from tailrace.codec.sizes import wire_bytes
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.spec.constants import NS_BITS
from tailrace.topology import Host, Topology, next_hops
from tailrace.topology.index import Peer


class LinkHop(msgspec.Struct, frozen=True):
    """A link on a path: rate and one-way propagation delay."""

    rate_bps: int
    delay_ns: int


_Best = tuple[float, int, tuple[LinkHop, ...]]
"""A path: rate of its slowest link, its negated delay (so that the maximum is best), its links."""

_NO_HOPS: _Best = (math.inf, 0, ())


class Ideal:
    """Ideal completion times on one topology; paths are cached, since many flows share them."""

    def __init__(self, topology: Topology, mtu_bytes: int, *, delays: bool = True) -> None:
        """Args:
        topology: at the run's time scale, the factor by which the run is slower than specified.
        mtu_bytes: payload of a full packet.
        delays: False if the target emulates neither propagation delays of switches' links nor switch latency,
            but only the delay of the sending host's link.
        """
        self._topology = topology
        self._delays = delays
        self._mtu_bytes = mtu_bytes
        self._next_hops = next_hops(topology)
        self._switch_path = cache(self._best_path)
        self._times_ns: dict[Hashable, int] = {}

    def fct_ns(self, flow: FlowSpec) -> int:
        """The ideal completion time of a flow, rounded to ns; at least 1.

        Raises:
            KeyError: the topology has no such host.
        """
        source, target = self._topology.host_by_ip(flow.src), self._topology.host_by_ip(flow.dst)
        ends = [(end.switch, end.rate_bps, end.delay_ns) for end in (source, target)]
        key = (*ends, flow.bytes)
        cached = self._times_ns.get(key)
        if cached is None:
            cached = self._times_ns[key] = self._exact_ns(self.path(source, target), flow.bytes)
        return cached

    def _exact_ns(self, path: Sequence[LinkHop], size_bytes: int) -> int:
        """The ideal completion time on a path."""
        total, largest = wire_bytes(size_bytes, self._mtu_bytes)
        slowest = min(hop.rate_bps for hop in path)
        # one of the slowest links is the bottleneck, all others store and forward
        forwarding = sum(Fraction(largest, hop.rate_bps) for hop in path) - Fraction(largest, slowest)
        delay_ns = sum(hop.delay_ns for hop in (path if self._delays else path[:1]))
        if self._delays:
            # there is a switch between every two consecutive links
            delay_ns += (len(path) - 1) * self._topology.latency_ns
        # bytes * NS_BITS / (bits/s) is a time in ns
        exact = NS_BITS * (Fraction(total, slowest) + forwarding) + delay_ns
        return max(1, round(exact))

    def path(self, source: Host, target: Host) -> tuple[LinkHop, ...]:
        """The links from one host to another."""
        ends = LinkHop(source.rate_bps, source.delay_ns), LinkHop(target.rate_bps, target.delay_ns)
        return (ends[0], *self._switch_path(source.switch, target.switch)[2], ends[1])

    def _best_path(self, start: str, end: str) -> _Best:
        """The shortest path with the fastest bottleneck; of several of these the one with the least delay."""
        if start == end:
            return _NO_HOPS
        ports = self._topology.ports_of(start)
        best: tuple[tuple[float, int], Peer, _Best] | None = None
        for port in self._next_hops[start][end]:
            peer = ports[port]
            rest = self._switch_path(peer.name, end)
            value = min(peer.rate_bps, rest[0]), rest[1] - peer.delay_ns
            if best is None or value > best[0]:
                best = value, peer, rest
        assert best is not None, f"there is no path from {start} to {end}"
        value, peer, rest = best
        return (*value, (LinkHop(peer.rate_bps, peer.delay_ns), *rest[2]))
