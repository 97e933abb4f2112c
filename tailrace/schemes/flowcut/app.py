# SPDX-License-Identifier: Apache-2.0
"""Entries of Flowcut in switches: mode, table size, age (time after which an idle flow's entry is deleted),
drain thresholds; candidates for the least loaded next hop, or paths of a Dragonfly; and the clone session
with which the last switch generates ACKs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tailrace.p4rt.entities import P4CloneSessionEntry, P4Entity, P4TableAction, P4TableEntry, P4TableMatch
from tailrace.p4rt.programs import P4Program
from tailrace.schemes.blocks.entries import (
    configuration,
    default_action,
    fitting,
    group_members,
    port_roles,
    routes,
)
from tailrace.schemes.dragonfly.app import MayDetour, path_config, path_entries
from tailrace.schemes.errors import IntentError
from tailrace.schemes.resolved import EntryPlan
from tailrace.spec.constants import NS_BITS
from tailrace.topology import Topology
from tailrace.topology.timing import ACK_BYTES, least_delays_ns, sending_ns, slowest_bps

DRAGONFLY_PROGRAM = "flowcut_dragonfly"
"""The program for paths of a Dragonfly."""

OBSERVED, TOPOLOGY = BASELINES = ("observed", "topology")
FLOW, CLASS = PAUSES = ("flow", "class")

ALPHA_STEPS = 256
"""alpha is a multiple of 1/256 (P4: 8 bits after the point)."""

_BUCKET_REGISTER = "untracked_bytes"
"""A register with one cell per bucket of the flow table: its size in P4Info is the number of buckets."""

_ONE = 1 << 8
"""1 in 8.8 fixed point."""

_TICKS_ONE = 1 << 16
"""1 in 16.16 fixed point."""


class FlowcutSettings(MayDetour, frozen=True, kw_only=True):
    """The resolved parameters of Flowcut (declaration.FlowcutConfig has the keys).

    age_given: whether the user gave the age; a given age stays the same when paths become longer
    held_bytes: the most bytes in a switch that a packet may have to wait for; 0: no limit
    pause: how sources are asked to stop, one of PAUSES
    pause_quanta: duration of a PFC pause in 512 bit times of a host's link; 0: none
    obey_bytes: bytes of a flow that may still arrive after its source was asked to stop
    """

    variant: str
    buckets: int
    age_ns: int
    age_given: bool
    held_bytes: int
    rtt_threshold: float
    growth_threshold: float
    alpha: float
    min_left_packets: int
    resume_bytes: int
    credit_bytes: int
    move: bool
    pause: str
    pause_quanta: int
    obey_bytes: int
    first_path: str
    baseline: str
    slowest_fraction: float
    path: str
    minimal_share: float


def entities(plan: EntryPlan, given: FlowcutSettings) -> Iterator[P4Entity]:
    """The entries of a switch, in the order of writing: routes last. With paths of a Dragonfly, new flowcuts
    choose among the paths of dragonfly.app.

    Raises:
        IntentError: a value does not fit the program.
    """
    paths = given.dragonfly_paths
    yield from _settings(plan, given)
    if paths is not None:
        yield path_config(plan, paths)
    yield from port_roles(plan)
    yield from group_members(plan)
    if paths is None:
        yield from _candidates(plan)
    else:
        yield from _next_hop_ports(plan)
        yield from path_entries(plan)
    yield from routes(plan)


def _settings(plan: EntryPlan, given: FlowcutSettings) -> Iterator[P4Entity]:
    """The entries that do not depend on paths."""
    yield _clone_session(plan)
    yield from configuration(plan)
    yield _flowcut_config(plan, given)
    yield _drain_config(plan, given)
    yield _pause_config(plan, given)
    if given.baseline == TOPOLOGY:
        yield from _rtt_baseline(plan, given)


def _clone_session(plan: EntryPlan) -> P4Entity:
    """The session for ACKs: it sends clones to the mirror port, from which packets enter ingress again."""
    port = plan.program.constant("mirror_port")
    return P4CloneSessionEntry(plan.program.constant("ack_session"), replicas=[port])


def _flowcut_config(plan: EntryPlan, given: FlowcutSettings) -> P4Entity:
    program = plan.program
    available = program.register_size(_BUCKET_REGISTER)
    buckets = given.buckets or available
    if buckets > available:
        raise IntentError(f"scheme flowcut: buckets must be at most {available}, found '{buckets}'")
    age_ticks = plan.target.ticks(given.age_ns)
    return default_action(
        "flowcut_config",
        "set_flowcut",
        mode=program.enum("FlowcutMode_t", given.variant.upper()),
        first_path=program.enum("FirstPath_t", given.first_path.replace("-", "_").upper()),
        bucket_mask=buckets - 1,
        age_ticks=fitting(plan, "age", "set_flowcut", "age_ticks", age_ticks),
    )


def _drain_config(plan: EntryPlan, given: FlowcutSettings) -> P4Entity:
    rtt_threshold, growth_threshold = _thresholds(plan, given)
    values = {
        "rtt_threshold": rtt_threshold,
        "growth_threshold": growth_threshold,
        "alpha": round(given.alpha * ALPHA_STEPS),
        "ticks_per_byte": ticks_per_byte(uplink_bps(plan), plan.target.tick_ns),
        "min_left": given.min_left_packets,
        "resume_bytes": given.resume_bytes,
    }
    fitted = {name: fitting(plan, name, "set_drain", name, value) for name, value in values.items()}
    return default_action("drain_config", "set_drain", **fitted)


def _pause_config(plan: EntryPlan, given: FlowcutSettings) -> P4Entity:
    values = {
        "quanta": given.pause_quanta,
        "obey_bytes": given.obey_bytes,
        "credit_bytes": given.credit_bytes,
    }
    fitted = {name: fitting(plan, name, "set_pause", name, value) for name, value in values.items()}
    return default_action("pause_config", "set_pause", by_class=int(given.pause == CLASS), **fitted)


def _thresholds(plan: EntryPlan, given: FlowcutSettings) -> tuple[int, int]:
    """The thresholds above which a flow is drained, in 8.8 fixed point: average RTT, and its growth.

    The first switch decides (Flowcut §II-B). A switch without hosts is never the first, so its thresholds are
    the largest values, which are never reached. From such a switch the idle RTT to the last switch is short
    compared to the queue of two colliding flows, so the usual thresholds would drain flows that have no
    better path.
    """
    most_rtt = plan.program.largest("set_drain", "rtt_threshold")
    # the program compares growth_threshold with a signed average
    most_growth = plan.program.largest("set_drain", "growth_threshold") >> 1
    if not plan.topology.hosts_of(plan.switch.name):
        return most_rtt, most_growth
    return round(given.rtt_threshold * _ONE), min(round(given.growth_threshold * _ONE), most_growth)


def _rtt_baseline(plan: EntryPlan, given: FlowcutSettings) -> Iterator[P4Entity]:
    """For each number of links, the idle RTT to a switch with hosts, and what the hosts' links add to it."""
    topology, target = plan.topology, plan.target
    before_ns = hosts_links_ns(topology, given.frame_bytes)
    # least_delays_ns: by switch, then by number of links, the least one-way delay to a switch with hosts
    for links, delay_ns in sorted(least_delays_ns(topology)[plan.switch.name].items()):
        least_ns = 2 * delay_ns + links * sending_ns(ACK_BYTES, uplink_bps(plan))
        values = {"least_ticks": target.ticks(least_ns), "before_ticks": target.ticks(before_ns)}
        yield P4TableEntry(
            "rtt_baseline",
            match=P4TableMatch(hops=links),
            action=P4TableAction(
                "set_rtt_baseline",
                **{
                    name: fitting(plan, "baseline", "set_rtt_baseline", name, value)
                    for name, value in values.items()
                },
            ),
        )


def hosts_links_ns(topology: Topology, frame_bytes: int) -> int:
    """The part of the RTT between two hosts that the hosts' links take, in ns."""
    host = max(topology.hosts, key=lambda candidate: candidate.delay_ns)
    sending = sending_ns(frame_bytes, host.rate_bps) + sending_ns(ACK_BYTES, host.rate_bps)
    return 2 * (2 * host.delay_ns + topology.latency_ns + sending)


def base_rtts_ns(topology: Topology, frame_bytes: int) -> tuple[int, ...]:
    """Idle RTTs between hosts in ns, indexed by the number of switches on the path, without the serialisation
    of the data frame at each switch; 0: no shortest path has this number of switches.
    """
    least: dict[int, int] = {0: 0}
    for delays in least_delays_ns(topology).values():
        for links, delay_ns in delays.items():
            least[links] = min(delay_ns, least.get(links, delay_ns))
    ends_ns = hosts_links_ns(topology, frame_bytes) - sending_ns(frame_bytes, slowest_bps(topology))
    ack_ns = sending_ns(ACK_BYTES, slowest_bps(topology))
    by_switches = {links + 1: 2 * least_ns + links * ack_ns + ends_ns for links, least_ns in least.items()}
    return tuple(by_switches.get(switches, 0) for switches in range(max(by_switches) + 1))


def uplink_bps(plan: EntryPlan) -> int:
    """The rate in bit/s of the switch's slowest link to another switch, or to a host if it has no other. One
    rate is enough: the paper's `t` (time per byte) is the same for all hops of a path.
    """
    ports = plan.topology.ports_of(plan.switch.name).values()
    switches = [peer.rate_bps for peer in ports if peer.kind == "switch"]
    return min(switches or [peer.rate_bps for peer in ports])


def ticks_per_byte(rate_bps: int, tick_ns: int) -> int:
    """The time to send a byte, in ticks, as unsigned 16.16 fixed point (Flowcut §II-B: `t`)."""
    # NS_BITS / (bits/s) is the time of a byte in ns
    return round(NS_BITS * _TICKS_ONE / (rate_bps * tick_ns))


def _candidates(plan: EntryPlan) -> Iterator[P4Entity]:
    """The next hops of each group, as parameters of the smallest action that has enough of them."""
    actions = _candidate_actions(plan.program)
    for group in plan.groups.groups:
        count = len(group.ports)
        fits = next((action for action in actions if count <= len(action[1])), None)
        if fits is None:
            raise IntentError(
                f"scheme flowcut: {plan.switch.name} has {count} equal next hops,"
                f" at most {len(actions[-1][1])} can be compared"
            )
        name, params = fits
        ports = dict(zip(params, group.ports + (0,) * (len(params) - count), strict=True))
        yield P4TableEntry(
            "candidates",
            match=P4TableMatch(group=group.id),
            action=P4TableAction(name, count=count, **ports),
        )


def _next_hop_ports(plan: EntryPlan) -> Iterator[P4Entity]:
    """The ports of each group, which a flow with packets in flight may keep."""
    for group in plan.groups.groups:
        for port in group.ports:
            yield P4TableEntry(
                "next_hop_ports",
                match=P4TableMatch(toward=group.id, port=port),
                action=P4TableAction("next_hop"),
            )


@cache
def _candidate_actions(program: P4Program) -> list[tuple[str, list[str]]]:
    """The actions with next hops as parameters, the smallest first, each with these parameters' names."""
    allowed = {ref.id for ref in program.table("candidates").action_refs}
    actions = [
        (action.preamble.alias, [param.name for param in action.params if param.name != "count"])
        for action in program.p4info.actions
        if action.preamble.id in allowed
    ]
    return sorted((action for action in actions if action[1]), key=lambda action: len(action[1]))
