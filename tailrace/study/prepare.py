# SPDX-License-Identifier: Apache-2.0
"""What is decided and told before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.emulation.target import choose
from tailrace.experiments.plan import budget
from tailrace.experiments.plan.experiment import Experiment
from tailrace.experiments.plan.plan import Plan
from tailrace.experiments.plan.seeds import seeds_text
from tailrace.experiments.plan.spec_list import case_name
from tailrace.hosts import compiled
from tailrace.sim.ideal import Ideal
from tailrace.sim.job import REAL_TIME
from tailrace.spec.constants import NS_PER_S
from tailrace.study.progress import Display

_SLOWDOWN = 4
"""Mean slowdown of flows in real time: README.md and docs/hf2t.md have 1.5 to 4.9."""

_START_S = 1
"""To start and to end one switch of a network, with its hosts."""


def choose_target(wanted: str, display: Display) -> str:
    """The target that runs, after saying which it is and why.

    Raises:
        TargetError: the wanted target cannot run here.
    """
    choice = choose(wanted)
    display.say(f"target {choice.name}: {choice.reason}")
    # in real time a scale of time makes up for it
    if choice.name == "virtual" and (why := compiled.why_interpreted()):
        display.warn(why)
    return choice.name


def tell_scale(planned: Plan, display: Display) -> None:
    """Says at which time scale a real-time target runs, and warns if that is too fast for this machine."""
    scale = planned.job.time_scale
    if scale != 1:
        own = planned.experiment.time_scale is None
        why = ", so that this machine can hold it" if own else ", as asked for"
        display.say(f"everything runs {scale:g} times slower than stated{why}")
    full_speed = planned.experiment.meant.topology
    warning = budget.warning(full_speed, planned.target, planned.experiment.mtu_bytes, scale)
    if warning is not None:
        display.warn(warning)


def tell_runs(planned: Sequence[tuple[str, Plan]], seeds: Sequence[int], display: Display) -> None:
    """What is going to run, with every seed."""
    cases = dict.fromkeys(case_name(one.experiment.faults) for _, one in planned)
    names = ", ".join(dict.fromkeys(label for label, _ in planned))
    each = f"; each with the seeds {seeds_text(seeds)}" if len(seeds) > 1 else ""
    estimate = ""
    if planned[0][1].target in REAL_TIME:
        whole_s = len(seeds) * sum(estimated_s(one) for _, one in planned)
        estimate = f"; about {max(1, round(whole_s / 60))} min on a machine that does nothing else"
    display.say(f"{len(planned) * len(seeds)} runs: {names}; {', then '.join(cases)}{each}{estimate}")


def estimated_s(planned: Plan) -> float:
    """How long a run in real time will take, roughly: flows take _SLOWDOWN times as long as alone."""
    ideal = Ideal(planned.topology, planned.experiment.mtu_bytes)
    ends_ns = (flow.start_ns + _SLOWDOWN * ideal.fct_ns(flow) for flow in planned.job.flows)
    return _START_S * len(planned.topology.switches) + max(ends_ns, default=0) / NS_PER_S


def tell_transports(base: Experiment, planned: Sequence[tuple[str, Plan]], display: Display) -> None:
    """A line for each transport that some schemes keep although another one was asked for."""
    own: dict[str, list[str]] = {}
    for label, one in planned:
        if one.experiment.transport != base.transport:
            own.setdefault(one.job.nic.transport, []).append(label)
    for name, kept in own.items():
        display.say(f"{', '.join(dict.fromkeys(kept))}: over {name}, and no other transport")
