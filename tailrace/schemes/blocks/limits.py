# SPDX-License-Identifier: Apache-2.0
"""What hosts may say (p4src/common): the addresses of each port, and rates of control packets.

    host_limits   of each host's port   the scheme's share of its link
    port_limits   of every port         PORT_TO_HOST times the same share of its own link, whoever sends
    trim_limits   of every port         TRIMS_TO_PORT times that, of packets that trimming hardly shortens

The first keeps one host from using up what a port grants to all; the second holds what several hosts, or one
with a faster link, take of the data of a port.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from finsy import P4MeterConfig, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4entity import P4Entity

from tailrace.schemes.blocks.entries import ENTRIES_SHARED
from tailrace.schemes.resolved import EntryPlan

PORT_TO_HOST = 10 / 7
"""The share of a port over that of a host: by default a tenth of a link goes before data at most."""

TRIMS_TO_PORT = 1 / 4
"""The share of short packets that may be trimmed over that of control packets: headers that go first are won
on top of what the queue takes.
"""

HOST_BURST_BYTES = 64 * 1024
PORT_BURST_BYTES = 16 * 1024
"""What may come at once, above the rate: a thousand ACKs of a host, or 264 to a port."""

_RATE_STEP = 15_625
"""Bytes/s. simple_switch keeps rates as binary fractions of bytes/us, and so gives back multiples of 2^-6
of that as they were written.
"""

_BITS_PER_BYTE = 8


def entries(plan: EntryPlan) -> Iterator[P4Entity]:
    """The addresses of the switch's hosts, and the limits of its ports; nothing that the scheme turns off."""
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


@lru_cache(ENTRIES_SHARED)
def _metered(
    table: str,
    key: tuple[str, int],
    action: tuple[str] | tuple[str, tuple[str, int]],
    rate_bps: float,
    burst_bytes: int,
) -> P4TableEntry:
    """An entry with one rate and one burst, so that a packet is either within both or above both."""
    steps = max(1, -(-int(rate_bps) // (_RATE_STEP * _BITS_PER_BYTE)))
    rate = steps * _RATE_STEP
    meter = P4MeterConfig(cir=rate, cburst=burst_bytes, pir=rate, pburst=burst_bytes)
    call = P4TableAction(action[0], **dict(action[1:]))
    entry = P4TableEntry(table, match=P4TableMatch([key]), action=call)
    return replace(entry, meter_config=meter)
