# SPDX-License-Identifier: Apache-2.0
"""Chooses the target, and reports the runs before they start."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.emulation.target import choose
from tailrace.experiments.plan import budget
from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.plan.plan import Plan
from tailrace.experiments.plan.seeds import seeds_text
from tailrace.experiments.plan.spec_list import case_name
from tailrace.hosts import IMPLEMENTATION, compiled
from tailrace.sim.ideal import Ideal
from tailrace.sim.job import REAL_TIME
from tailrace.spec.constants import NS_PER_S
from tailrace.study.progress import Display

_SLOWDOWN = 4
"""Assumed mean slowdown of flows in real time; docs/compare/make-run.md and docs/schemes have 1.5 to 4.9."""

MANY_PACKETS = 250_000
"""Data packets of all runs for which interpreted NICs take some 3 s, and compiled NICs 1 s."""

_START_S = 1
"""Time in s to start and stop one switch of a network with its hosts."""


def choose_target(wanted: str, display: Display) -> str:
    """Chooses the target, and reports which it is and why.

    Raises:
        TargetError: the wanted target cannot run here.
    """
    choice = choose(wanted)
    display.say(f"target {choice.name}: {choice.reason}")
    return choice.name


def report_nics(target: str, display: Display, packets: int = MANY_PACKETS) -> None:
    """Warns that NICs run interpreted if that takes seconds longer: with MANY_PACKETS in virtual time."""
    # in real time the time scale compensates for slow, interpreted NICs
    matters = target == "virtual" and packets >= MANY_PACKETS and IMPLEMENTATION != compiled.COMPILED
    if matters and (why := compiled.why_interpreted()):
        display.warn(why)


def report_scale(planned: Plan, display: Display, runs: int = 1) -> None:
    """Reports the time scale of a real-time target, and warns of what is too fast or slow here."""
    packets = sum(-(-flow.bytes // planned.job.nic.mtu_bytes) for flow in planned.job.flows)
    report_nics(planned.target, display, runs * packets)
    scale = planned.job.time_scale
    if scale != 1:
        default = planned.experiment.time_scale is None
        why = ", so that this machine can keep up" if default else ", as requested"
        display.say(f"everything runs {scale:g} times slower than specified{why}")
    full_speed = planned.experiment.parsed.topology
    warning = budget.warning(full_speed, planned.target, planned.experiment.mtu_bytes, scale)
    if warning is not None:
        display.warn(warning)


def report_runs(planned: Sequence[tuple[str, Plan]], seeds: Sequence[int], display: Display) -> None:
    """Reports the number of runs, their labels, cases and seeds, and in real time how long they will take."""
    cases = dict.fromkeys(case_name(plan.experiment.faults) for _, plan in planned)
    names = ", ".join(dict.fromkeys(label for label, _ in planned))
    each = f"; each with the seeds {seeds_text(seeds)}" if len(seeds) > 1 else ""
    estimate = ""
    if planned[0][1].target in REAL_TIME:
        total_s = len(seeds) * sum(estimated_s(plan) for _, plan in planned)
        estimate = f"; about {max(1, round(total_s / 60))} min on an otherwise idle machine"
    display.say(f"{len(planned) * len(seeds)} runs: {names}; {', then '.join(cases)}{each}{estimate}")


def estimated_s(planned: Plan) -> float:
    """Rough duration in s of a run in real time, if flows take _SLOWDOWN times their ideal time."""
    ideal = Ideal(planned.topology, planned.experiment.mtu_bytes)
    ends_ns = (flow.start_ns + _SLOWDOWN * ideal.fct_ns(flow) for flow in planned.job.flows)
    return _START_S * len(planned.topology.switches) + max(ends_ns, default=0) / NS_PER_S


def report_transports(base: Experiment, planned: Sequence[tuple[str, Plan]], display: Display) -> None:
    """Reports transports that schemes use although another was requested, or they are made for another."""
    schemes: dict[str, list[str]] = {}
    for label, plan in planned:
        used, made_for = plan.job.nic.transport, plan.experiment.parsed.scheme.made_for
        if plan.experiment.transport != base.transport:
            schemes.setdefault(f"over {used}, the only transport with which it works", []).append(label)
        elif made_for and used not in made_for:
            hint = f"over {used}, but made for {' or '.join(made_for)}: --transport {made_for[0]}"
            schemes.setdefault(hint, []).append(label)
    for text, labels in schemes.items():
        display.say(f"{', '.join(dict.fromkeys(labels))}: {text}")
