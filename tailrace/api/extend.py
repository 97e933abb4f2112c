# SPDX-License-Identifier: Apache-2.0
"""The names that a plug-in imports to add a topology, a workload, a fault or a metric.

    from dataclasses import dataclass
    from typing import Annotated

    from tailrace.api.extend import Builder, LinkOptions, keys, register_topology

    @register_topology("ring", "switches in a ring, with one host each")
    @dataclass(frozen=True, slots=True)
    class Ring:
        links: LinkOptions
        switches: Annotated[int, keys.integer("switches", "switches of the ring", least=3, most=500)] = 6

        def build(self, builder: Builder) -> None:
            builder.expect(switches=self.switches, hosts=self.switches, links=self.switches)
            names = [builder.switch(f"s{index}", "leaf", hosts=1) for index in range(self.switches)]
            for index, name in enumerate(names):
                builder.link(name, names[(index + 1) % len(names)])

A workload is such a struct with a method `transfers(topology, rng)`, which yields Transfers. A fault is a
struct with a method `resolve(topology, rng)`, which returns link faults (LinkDown, Loss, SwitchRestart
and so on) as a tuple: one for each affected link or switch. A metric is a function of a Result. All random
numbers must come from `rng`, so that a seed gives the same run again. spec/plugins.py describes how plug-ins
are loaded, spec/keys.py how keys are declared.
"""

from tailrace.experiments.faults.fault import FAULTS
from tailrace.experiments.workloads.registry import Peers, Sizes
from tailrace.experiments.workloads.registry import register as register_workload
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.results.metrics import BUILT_IN as METRICS
from tailrace.results.metrics import register as register_metric
from tailrace.results.result import Result
from tailrace.sim.link_faults import AckLoss, Blackhole, LinkDown, LinkSlow, Loss, SwitchRestart
from tailrace.spec import SpecError, keys
from tailrace.topology import Host, Topology
from tailrace.topology.families.build import Builder
from tailrace.topology.families.options import GroupLinks, LinkOptions
from tailrace.topology.families.options import register as register_topology

register_fault = FAULTS.register

__all__ = [
    "METRICS",
    "AckLoss",
    "Blackhole",
    "Builder",
    "GroupLinks",
    "Host",
    "LinkDown",
    "LinkOptions",
    "LinkSlow",
    "Loss",
    "PatternError",
    "Peers",
    "Result",
    "Sizes",
    "SpecError",
    "SwitchRestart",
    "Topology",
    "Transfer",
    "keys",
    "register_fault",
    "register_metric",
    "register_topology",
    "register_workload",
]
