# SPDX-License-Identifier: Apache-2.0
"""PFC emulated by the P4 program (p4src/pfc), for targets whose traffic manager does not support PFC. Times
are in ticks of the target's clock; a quantum is PFC's unit of a pause, the time of 512 bits.

    room       data packets that a switch may store by recirculation. BMv2 accepts REENTRY_PACKETS
               recirculated packets at a time and drops the rest. The scheme RLB, in which packets wait by
               recirculation, uses the same queue
    refresh    interval at which a pause is renewed: half of its duration, at the fastest port
    patience   how long a port waits for a missing packet; packets are missing only if a queue of the traffic
               manager is smaller than `room`
    watchdog   ends the effect of pauses that last too long, a storm (spec.watchdog); ports of hosts have
               shorter times

If the target needs no emulation, no entries are written; the program then only looks up one empty
table per packet.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.p4rt.entities import P4CloneSessionEntry, P4Entity, P4TableAction, P4TableEntry, P4TableMatch
from tailrace.schemes.blocks.entries import default_action, fitting
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import EntryPlan
from tailrace.spec.constants import MAX_QUANTA, NS_PER_S, QUANTUM_BITS
from tailrace.spec.watchdog import Watchdog, of_port, parse_watchdog
from tailrace.topology import GATEWAY_MAC

REENTRY_PACKETS = 1024
"""Capacity of simple_switch's queue of recirculated packets."""

ROOM_PACKETS = 512
"""Packets that RLB may recirculate at a time."""

SPARE_PACKETS = 32
"""Capacity reserved for clones that become pause frames."""

PATIENCE_NS = 5_000_000_000
TABLE = "pfc_config"

_ONE = 1 << 16
"""1 in 16.16 fixed point."""


def emulation(plan: EntryPlan) -> Iterator[P4Entity]:
    """The entries that make a program emulate PFC; none if the target does not need it.

    Raises:
        IntentError: the program cannot emulate PFC, or a value does not fit it.
    """
    pfc = plan.target.pfc
    if pfc is None:
        return
    program = plan.program
    if not program.has_table(TABLE):
        raise IntentError(
            f"scheme {plan.config.name}: target {plan.target.name} has no PFC, and the program"
            f" {program.name} does not emulate it"
        )
    yield P4CloneSessionEntry(program.constant("pause_session"), replicas=[program.constant("pause_port")])
    ports = plan.topology.ports_of(plan.switch.name)
    quantum_by_port = {port: _quantum_ticks(plan, peer.rate_bps) for port, peer in ports.items()}
    values = {
        "xoff_bytes": pfc.xoff_bytes,
        "xon_bytes": pfc.xon_bytes,
        "refresh_ticks": MAX_QUANTA * min(quantum_by_port.values()) // _ONE // 2,
        "room": room_packets(plan),
        "patience_ticks": plan.target.ticks(PATIENCE_NS),
    }
    yield default_action(
        TABLE,
        "set_pfc",
        quanta=MAX_QUANTA,
        station=int(GATEWAY_MAC.replace(":", ""), 16),
        **{name: fitting(plan, name, "set_pfc", name, value) for name, value in values.items()},
    )
    watchdog = parse_watchdog(pfc.watchdog)
    for port, quantum in quantum_by_port.items():
        peer = ports[port]
        is_host = peer.kind == "host"
        port_watchdog = of_port(watchdog, host=is_host, rate_bps=peer.rate_bps, xoff_bytes=pfc.xoff_bytes)
        action = P4TableAction("pause_unit", **_port_values(plan, quantum, port_watchdog))
        yield P4TableEntry("pfc_ports", match=P4TableMatch(port=port), action=action)


def _port_values(plan: EntryPlan, quantum: int, watchdog: Watchdog) -> dict[str, int]:
    # detect, restore: paused time after which a storm begins, time without pauses after which it ends
    values = {
        "quantum": quantum,
        "detect_ticks": plan.target.ticks(watchdog.detect_ns),
        "restore_ticks": plan.target.ticks(watchdog.restore_ns),
        "leak": leak(watchdog.share),
        "storm": plan.program.enum("Storm_t", watchdog.action.upper()),
    }
    return {name: fitting(plan, name, "pause_unit", name, value) for name, value in values.items()}


def leak(share: float) -> int:
    """Ticks that the count of paused time loses per unpaused tick (leaky bucket), so that a port may be
    paused for `share` of the time; 16.16 fixed point. 0: one unpaused tick clears the count.
    """
    return 0 if share >= 1 else max(1, round(share / (1 - share) * _ONE))


def room_packets(plan: EntryPlan) -> int:
    """Data packets that a switch may store for PFC, so that all of them can recirculate at once."""
    taken = ROOM_PACKETS if plan.config.recirculates else 0
    return REENTRY_PACKETS - SPARE_PACKETS - taken


def _quantum_ticks(plan: EntryPlan, rate_bps: int) -> int:
    """The time of 512 bits in ticks, 16.16 fixed point, rounded up, so that no pause is too short."""
    return -(-QUANTUM_BITS * NS_PER_S * _ONE // (rate_bps * plan.target.tick_ns))
