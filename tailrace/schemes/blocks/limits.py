# SPDX-License-Identifier: Apache-2.0
"""What hosts may send (p4src/common): source addresses by port, and rates of control packets (ACKs, NACKs and
the like), as a share of the port's link.

    host_limits   per ingress port of a host   the scheme's share
    port_limits   per egress port              PORT_TO_HOST times the share, for all senders together
    trim_limits   per egress port              TRIMS_TO_PORT times the share of port_limits, for packets that
                                               trimming hardly shortens

`host_limits` prevents one host from using up the limit of an egress port. `port_limits` bounds the share of a
port that control packets of several hosts, or of one host with a faster link, take from data.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tailrace.p4rt.entities import P4Entity, P4MeterConfig, P4TableAction, P4TableEntry, P4TableMatch
from tailrace.schemes.blocks.entries import ENTRIES_CACHED
from tailrace.schemes.resolved import EntryPlan

PORT_TO_HOST = 10 / 7
"""Share of an egress port divided by a host's share: by default control packets take at most a tenth."""

TRIMS_TO_PORT = 1 / 4
"""Share of short packets that may be trimmed, divided by the share of control packets. The limit is needed
because trimmed headers have priority: a sender of short packets gains capacity beyond the data queue's.
"""

HOST_BURST_BYTES = 64 * 1024
PORT_BURST_BYTES = 16 * 1024
"""Bursts allowed above the rate: a thousand ACKs from a host, or 264 to a port."""

_RATE_STEP = 15_625
"""Granularity of rates in bytes/s: 2^-6 bytes/us. simple_switch stores rates as binary fractions of bytes/us,
so multiples of this are read back exactly as they were written.
"""

_BITS_PER_BYTE = 8


def entries(plan: EntryPlan) -> Iterator[P4Entity]:
    """The addresses of the switch's hosts, and the limits of its ports, unless the scheme turns them off."""
    config = plan.config
    if config.source_guard:
        for host in plan.topology.hosts_of(plan.switch.name):
            yield P4TableEntry(
                "host_addresses",
                match=P4TableMatch(ingress_port=host.port, src=host.ip),
                action=P4TableAction("own_address"),
            )
    share = config.control_share
    if share == 0:
        return
    reason = plan.program.enum("Policed_t", "CONTROL_OVER_RATE")
    trims = plan.program.has_table("trim_limits")
    for port, peer in plan.topology.ports_of(plan.switch.name).items():
        if peer.kind == "host":
            action = "limit_host", ("reason", reason)
            rate_bps = share * peer.rate_bps
            yield _metered("host_limits", ("ingress_port", port), action, rate_bps, HOST_BURST_BYTES)
        rate_bps = share * PORT_TO_HOST * peer.rate_bps
        key = "egress_port", port
        yield _metered("port_limits", key, ("limit_port",), rate_bps, PORT_BURST_BYTES)
        if trims:
            rate_bps *= TRIMS_TO_PORT
            yield _metered("trim_limits", key, ("limit_trims",), rate_bps, PORT_BURST_BYTES)


@lru_cache(ENTRIES_CACHED)
def _metered(
    table: str,
    key: tuple[str, int],
    action: tuple[str] | tuple[str, tuple[str, int]],
    rate_bps: float,
    burst_bytes: int,
) -> P4TableEntry:
    """An entry whose meter has CIR = PIR and CBS = PBS, so that a packet is either green or red."""
    steps = max(1, -(-int(rate_bps) // (_RATE_STEP * _BITS_PER_BYTE)))
    rate = steps * _RATE_STEP
    meter = P4MeterConfig(cir=rate, cburst=burst_bytes, pir=rate, pburst=burst_bytes)
    call = P4TableAction(action[0], **dict(action[1:]))
    return P4TableEntry(table, match=P4TableMatch([key]), action=call, meter_config=meter)
