# SPDX-License-Identifier: Apache-2.0
"""Flowcut in switches: mode, table size, age and drain thresholds; candidates for the least loaded next hop;
and the clone session through which the last switch makes ACKs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from finsy import P4CloneSessionEntry, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4entity import P4Entity

from tailrace.schemes.blocks.entries import (
    Plan,
    configuration,
    default_action,
    fitting,
    group_members,
    port_roles,
    routes,
)
from tailrace.schemes.defaults import known, longest_path
from tailrace.schemes.errors import IntentError
from tailrace.schemes.registry import ALPHA_STEPS, FlowcutConfig

_BUCKET_REGISTER = "untracked_bytes"
"""A register with one cell for each bucket; P4Info knows no better name for their number."""

_ONE = 1 << 8
"""1 in 8.8 fixed point."""

_TICKS_ONE = 1 << 16
"""1 in 16.16 fixed point."""


def check(plan: Plan) -> None:
    """Refuses networks in which the variant cannot work.

    Raises:
        IntentError: paths with more switches than a packet has room for stamps.
    """
    config = plan.config
    assert isinstance(config, FlowcutConfig)
    room = plan.program.constant("stamps")
    stamping = longest_path(plan.topology, config) - 1
    if config.variant == "full" and stamping > room:
        raise IntentError(
            f"scheme flowcut: variant full stamps packets at {stamping} switches of a path in"
            f" {plan.topology.words}, a packet has room for {room}"
        )


def entities(plan: Plan) -> Iterator[P4Entity]:
    """What a switch holds, in the order in which it is to be written: routes last.

    Raises:
        IntentError: a value does not fit the program.
    """
    yield from settings(plan)
    yield from port_roles(plan)
    yield from group_members(plan)
    yield from _candidates(plan)
    yield from routes(plan)


def settings(plan: Plan) -> Iterator[P4Entity]:
    """What does not depend on paths.

    Raises:
        IntentError: a value does not fit the program.
    """
    yield _clone_session(plan)
    yield from configuration(plan)
    yield _flowcut_config(plan)
    yield _drain_config(plan)


def _clone_session(plan: Plan) -> P4Entity:
    port = plan.program.constant("mirror_port")
    return P4CloneSessionEntry(plan.program.constant("ack_session"), replicas=[port])


def _flowcut_config(plan: Plan) -> P4Entity:
    config, program = plan.config, plan.program
    assert isinstance(config, FlowcutConfig)
    there = program.register_size(_BUCKET_REGISTER)
    buckets = there if config.buckets is None else config.buckets
    if buckets > there:
        raise IntentError(f"scheme flowcut: buckets must be at most {there}, found '{buckets}'")
    age_ticks = plan.target.ticks(known(config.age_ns))
    return default_action(
        "flowcut_config",
        "set_flowcut",
        mode=program.enum("FlowcutMode_t", config.variant.upper()),
        first_path=program.enum("FirstPath_t", config.first_path.replace("-", "_").upper()),
        bucket_mask=buckets - 1,
        age_ticks=fitting(plan, "age", "set_flowcut", "age_ticks", age_ticks),
    )


def _drain_config(plan: Plan) -> P4Entity:
    config, target = plan.config, plan.target
    assert isinstance(config, FlowcutConfig)
    rtt_threshold, growth_threshold = _thresholds(plan, config)
    values = {
        "rtt_threshold": rtt_threshold,
        "growth_threshold": growth_threshold,
        "alpha": round(config.alpha * ALPHA_STEPS),
        "ticks_per_byte": ticks_per_byte(uplink_bps(plan), target.tick_ns),
        "min_left": known(config.min_left_packets),
        "resume_bytes": config.resume_bytes,
        "credit_bytes": config.credit_bytes,
    }
    fitted = {name: fitting(plan, name, "set_drain", name, value) for name, value in values.items()}
    return default_action("drain_config", "set_drain", **fitted)


def _thresholds(plan: Plan, config: FlowcutConfig) -> tuple[int, int]:
    """What drains a flow, in 8.8 fixed point: the average RTT, and its growth.

    The switch of the source decides (Flowcut §II-B). A switch without hosts is never that, and has none: the
    way from it to the last switch is so short that the queue of two colliding flows is many times its idle
    RTT, and it would have flows drained that no path serves better.
    """
    most_rtt = plan.program.largest("set_drain", "rtt_threshold")
    # the average that it is compared with is signed
    most_growth = plan.program.largest("set_drain", "growth_threshold") >> 1
    if not plan.topology.hosts_of(plan.switch.name):
        return most_rtt, most_growth
    growth = known(config.growth_threshold)
    return (
        round(config.rtt_threshold * _ONE),
        most_growth if math.isinf(growth) else min(round(growth * _ONE), most_growth),
    )


def uplink_bps(plan: Plan) -> int:
    """The rate of the slowest link to a switch: the paper's `t` is one number for all hops of a path."""
    ports = plan.topology.ports_of(plan.switch.name).values()
    switches = [peer.rate_bps for peer in ports if peer.kind == "switch"]
    return min(switches or [peer.rate_bps for peer in ports])


def ticks_per_byte(rate_bps: int, tick_ns: int) -> int:
    """The time in which a byte is sent, in ticks, as unsigned 16.16 fixed point (Flowcut §II-B: `t`)."""
    return round(8_000_000_000 * _TICKS_ONE / (rate_bps * tick_ns))


def _candidates(plan: Plan) -> Iterator[P4Entity]:
    program = plan.program
    action = next(action for action in program.schema.actions if action.alias == "set_candidates")
    names = [param.name for param in action.params if param.name != "count"]
    for group in plan.groups.groups:
        if len(group.ports) > len(names):
            raise IntentError(
                f"scheme flowcut: {plan.switch.name} has {len(group.ports)} equal next hops,"
                f" at most {len(names)} can be compared"
            )
        ports = dict(zip(names, group.ports + (0,) * (len(names) - len(group.ports)), strict=True))
        yield P4TableEntry(
            "candidates",
            match=P4TableMatch(group=group.id),
            action=P4TableAction("set_candidates", count=len(group.ports), **ports),
        )
