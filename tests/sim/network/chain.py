# SPDX-License-Identifier: Apache-2.0
"""A row of switches with hosts at both ends, and when exactly frames arrive there if nothing else is going on."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tailrace.topology import Host, Link, Switch, Topology

PS_PER_S = 10**12


def host(number: int, switch: str, port: int, rate_bps: int, delay_ns: int) -> Host:
    return Host(
        f"h{number}",
        number,
        f"10.0.0.{number}",
        f"02:00:0a:00:00:{number:02x}",
        switch,
        port,
        rate_bps,
        delay_ns,
    )


def chain(
    switches: int,
    rates_bps: Sequence[int],
    delays_ns: Sequence[int],
    sources: int = 1,
    latency_ns: int = 0,
) -> Topology:
    """h1, h2, ... at the first switch, the last host at the last one.

    Args:
        rates_bps, delays_ns: of the links on the way, one more than there are switches; all sources' links are
            equal.
        latency_ns: of each switch.
    """
    names = [f"s{number}" for number in range(1, switches + 1)]
    links = tuple(
        Link(a, 100, b, 101, rate_bps, delay_ns)
        for a, b, rate_bps, delay_ns in zip(names, names[1:], rates_bps[1:-1], delays_ns[1:-1], strict=False)
    )
    hosts = [host(number, names[0], number, rates_bps[0], delays_ns[0]) for number in range(1, sources + 1)]
    hosts.append(host(sources + 1, names[-1], sources + 1, rates_bps[-1], delays_ns[-1]))
    nodes = tuple(Switch(name, number, "leaf") for number, name in enumerate(names, 1))
    return Topology("chain", f"chain:{switches}", nodes, tuple(hosts), links, latency_ns)


def arrivals_ps(
    ready_ps: Sequence[int],
    sizes: Sequence[int],
    rates_bps: Sequence[int],
    delays_ns: Sequence[int],
    latency_ns: int = 0,
) -> list[Fraction]:
    """When frames arrive that are ready at the source at these times: store and forward, first come first served."""
    times = [Fraction(ready) for ready in ready_ps]
    waits_ns = [latency_ns + delay_ns for delay_ns in delays_ns[:-1]] + [delays_ns[-1]]
    for rate_bps, delay_ns in zip(rates_bps, waits_ns, strict=True):
        free = Fraction(0)
        for number, size in enumerate(sizes):
            free = max(free, times[number]) + Fraction(size * 8 * PS_PER_S, rate_bps)
            times[number] = free + delay_ns * 1000
    return times
