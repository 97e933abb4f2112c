# SPDX-License-Identifier: Apache-2.0
"""PFC that the program stands in for (p4src/pfc), on targets whose traffic manager has none.

    room       packets of data that a switch may hold: BMv2 takes back REENTRY_PACKETS at a time and drops the
               rest, and RLB's own recirculation goes the same way
    refresh    half of the pause asked for, at the fastest port
    patience   how long a port waits for a packet that is missing; nothing is missing unless a queue of the
               traffic manager was given less room than this
    watchdog   of each port as spec.watchdog has it: hosts' are watched closely

Nothing is installed where the target does not ask for it: then all that is left is one lookup a packet.
"""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4CloneSessionEntry, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4entity import P4Entity

from tailrace.schemes.blocks.entries import default_action, fitting
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import EntryPlan
from tailrace.spec.constants import MAX_QUANTA, NS_PER_S, QUANTUM_BITS
from tailrace.spec.watchdog import Watchdog, of_port, parse_watchdog
from tailrace.topology import GATEWAY_MAC

REENTRY_PACKETS = 1024
"""simple_switch's queue of recirculated packets."""

ROOM_PACKETS = 512
"""Packets that may recirculate at a time by a scheme."""

SPARE_PACKETS = 32
"""For clones that become pause frames."""

PATIENCE_NS = 5_000_000_000
TABLE = "pfc_config"

_ONE = 1 << 16
"""1 in 16.16 fixed point."""


def emulation(plan: EntryPlan) -> Iterator[P4Entity]:
    """What a program needs to do PFC by itself; nothing where the target asks for none.

    Raises:
        IntentError: the program cannot, or a value does not fit it.
    """
    pfc = plan.target.pfc
    if pfc is None:
        return
    program = plan.program
    if not program.has_table(TABLE):
        raise IntentError(
            f"scheme {plan.config.name}: target {plan.target.name} has no PFC, and the program"
            f" {program.name} does not stand in for it"
        )
    yield P4CloneSessionEntry(program.constant("pause_session"), replicas=[program.constant("pause_port")])
    ports = plan.topology.ports_of(plan.switch.name)
    quanta = {port: _quantum_ticks(plan, peer.rate_bps) for port, peer in ports.items()}
    values = {
        "xoff_bytes": pfc.xoff_bytes,
        "xon_bytes": pfc.xon_bytes,
        "refresh_ticks": MAX_QUANTA * min(quanta.values()) // _ONE // 2,
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
    for port, quantum in quanta.items():
        peer = ports[port]
        dog = of_port(watchdog, host=peer.kind == "host", rate_bps=peer.rate_bps, xoff_bytes=pfc.xoff_bytes)
        action = P4TableAction("pause_unit", **_port_values(plan, quantum, dog))
        yield P4TableEntry("pfc_ports", match=P4TableMatch(port=port), action=action)


def _port_values(plan: EntryPlan, quantum: int, watchdog: Watchdog) -> dict[str, int]:
    values = {
        "quantum": quantum,
        "detect_ticks": plan.target.ticks(watchdog.detect_ns),
        "restore_ticks": plan.target.ticks(watchdog.restore_ns),
        "leak": leak(watchdog.share),
        "storm": plan.program.enum("Storm_t", watchdog.action.upper()),
    }
    return {name: fitting(plan, name, "pause_unit", name, value) for name, value in values.items()}


def leak(share: float) -> int:
    """What an account loses in a tick, so that a port may be held for a share of the time: 16.16; 0: all."""
    return 0 if share >= 1 else max(1, round(share / (1 - share) * _ONE))


def room_packets(plan: EntryPlan) -> int:
    """Packets of data that a switch may hold, so that all of them could wait."""
    taken = ROOM_PACKETS if plan.config.recirculates else 0
    return REENTRY_PACKETS - SPARE_PACKETS - taken


def _quantum_ticks(plan: EntryPlan, rate_bps: int) -> int:
    """The time of 512 bits, in ticks as 16.16, rounded up: no pause is cut short."""
    return -(-QUANTUM_BITS * NS_PER_S * _ONE // (rate_bps * plan.target.tick_ns))
