# SPDX-License-Identifier: Apache-2.0
"""Workloads: the flows of an experiment, from a spec such as ``permutation:size=1MiB`` or a file.

Each pattern is a class in this folder that declares its keys and registers itself (registry.py); `tailrace
workloads` lists the patterns. FlowSpec.after lists the flows for which a flow waits. The sending host
enforces this on every target.

Functions of spec.plugins, for patterns of plug-ins: `blamed` adds the plug-in's file and line to errors,
`given_by` checks the type of a value that a plug-in returned, `place_of` is empty for built-in patterns.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tailrace.experiments.plan.size_estimate import counted
from tailrace.experiments.workloads.classes import NO_CLASS
from tailrace.experiments.workloads.flow_file import FileFlows, read_flows
from tailrace.experiments.workloads.ports import SourcePorts
from tailrace.experiments.workloads.registry import WORKLOADS, Seed
from tailrace.experiments.workloads.transfer import Pattern, PatternError, Transfer
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.dependencies import check_dependencies
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.spec import Spec, SpecError, parse
from tailrace.spec.keys import read
from tailrace.spec.plugins import blamed, given_by, place_of
from tailrace.spec.registry import load_folder
from tailrace.spec.spec_string import is_file
from tailrace.spec.text import one_line
from tailrace.topology import Host, Topology

__all__ = ["FIRST_QPN", "WORKLOADS", "Traffic", "Workload", "parse_workload"]

load_folder(__package__)

FIRST_QPN = 0x100
"""Base of the queue pair numbers of flows; InfiniBand reserves low numbers."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Flows, and by flow id the class (classes.py) of each flow that has a class."""

    flows: list[FlowSpec]
    classes: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Workload:
    """What an experiment sends: `pattern`, parsed from `spec`; `seed`: the key seed=, or None."""

    spec: str
    name: str
    pattern: Pattern
    seed: int | None = None

    def traffic(self, topology: Topology, rng: random.Random) -> Traffic:
        """The flows, with ids from 1 in rising order, and their classes.

        Args:
            topology: the network at full speed. A real-time run may be slower by a factor, the time scale;
                it is applied to the flows' start times later.
            rng: makes all random choices, unless the workload has a seed.

        Raises:
            SpecError: the topology cannot carry this workload.
        """
        if self.seed is not None:
            rng = rng_of(self.seed)
        try:
            with blamed(f"workload {self.name}", self.pattern):
                return self._numbered(topology, rng)
        except (PatternError, ConfigError) as error:
            raise SpecError(f"workload {self.name}: {error}") from error

    def _numbered(self, topology: Topology, rng: random.Random) -> Traffic:
        ports = SourcePorts(rng)
        if isinstance(self.pattern, FileFlows):
            self.pattern.reserve(topology, ports)
        flows = []
        classes = {}
        for number, transfer in enumerate(counted(self.pattern.transfers(topology, rng)), start=1):
            sender, receiver, size_bytes, start_ns, after, sport, flow_class, steering, after_ns = (
                self._checked(transfer)
            )
            if flow_class != NO_CLASS:
                classes[number] = flow_class
            if sport is None:
                sport = ports.draw(sender, receiver)
            flows.append(
                FlowSpec(
                    id=number,
                    src=sender.ip,
                    dst=receiver.ip,
                    bytes=size_bytes,
                    start_ns=start_ns,
                    qpn=FIRST_QPN + number,
                    sport=sport,
                    after=after,
                    steering=steering,
                    after_ns=after_ns,
                )
            )
        if isinstance(self.pattern, FileFlows) or place_of(self.pattern):
            # flows of built-in patterns never wait in a cycle, but flows of files and plug-ins may
            check_dependencies(flows)
        if not flows:
            raise PatternError("there is no flow")
        return Traffic(flows, classes)

    def _checked(self, item: object) -> Transfer:
        """Checks an item that a pattern, perhaps of a plug-in, has yielded.

        Raises:
            PatternError: the item is not a Transfer between hosts.
            SpecError: a field has the wrong type.
        """
        ends = (getattr(item, "sender", None), getattr(item, "receiver", None))
        if all(isinstance(end, Host) for end in ends) and isinstance(item, Transfer):
            checked: Transfer = given_by(self.pattern, item, Transfer, "transfers")
            return checked
        raise PatternError(f"expected Transfers between hosts, found {one_line(repr(item), 80)}")


def rng_of(seed: int) -> random.Random:
    """The random generator of the workload of a run with this seed."""
    return random.Random(f"workload {seed}")


def parse_workload(text: str | Spec) -> Workload:
    """The workload that a spec describes, or that of a file.

    Raises:
        SpecError: unknown name, bad option or bad file, which the one-line message names.
    """
    spec = parse(text, "workload")
    if is_file(spec.name):
        seed = read(spec, Seed).seed
        return Workload(str(spec), spec.name, read_flows(Path(spec.name)), seed)
    spec, pattern = WORKLOADS.read(spec)
    # common: reads the keys that all workloads have
    return Workload(str(spec), spec.name, pattern, WORKLOADS.common(spec, Seed).seed)
