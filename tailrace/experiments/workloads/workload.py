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
from pathlib import Path

import msgspec

from tailrace.experiments.plan.size_estimate import counted
from tailrace.experiments.workloads.classes import NO_CLASS
from tailrace.experiments.workloads.flow_file import FileFlows, read_flows
from tailrace.experiments.workloads.frames import SendsFrames, check_sources
from tailrace.experiments.workloads.ports import SourcePorts
from tailrace.experiments.workloads.registry import WORKLOADS, Seed
from tailrace.experiments.workloads.transfer import Pattern, PatternError, Transfer
from tailrace.hosts.errors import ConfigError
from tailrace.hosts.flows.dependencies import check_dependencies
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.hosts.frames.sources import FrameSource
from tailrace.spec import Spec, SpecError, parse
from tailrace.spec.keys import read
from tailrace.spec.plugins import blamed, given_by, place_of
from tailrace.spec.registry import load_folder
from tailrace.spec.spec_string import MOST_CHARACTERS, is_file
from tailrace.spec.text import one_line
from tailrace.topology import Host, Topology

__all__ = ["FIRST_QPN", "WORKLOADS", "Traffic", "Workload", "parse_workload"]

load_folder(__package__)

AND = " + "
"""Joins workloads in a spec: at most one with flows, the others with frames (frames.py)."""

FIRST_QPN = 0x100
"""Base of the queue pair numbers of flows; InfiniBand reserves low numbers."""


class Traffic(msgspec.Struct, frozen=True):
    """Flows, and by flow id the class (classes.py) of each flow that has a class.

    sources: frames that hosts send besides flows
    """

    flows: list[FlowSpec]
    classes: Mapping[int, str]
    sources: tuple[FrameSource, ...] = ()


class Workload(msgspec.Struct, frozen=True):
    """What an experiment sends: `pattern`, parsed from `spec`; `seed`: the key seed=, or None.

    also: other workloads of the spec, which send no flows
    """

    spec: str
    name: str
    pattern: Pattern
    seed: int | None = None
    also: tuple[Workload, ...] = ()

    @property
    def has_flows(self) -> bool:
        return not isinstance(self.pattern, SendsFrames)

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
                traffic = self._numbered(topology, rng)
        except (PatternError, ConfigError) as error:
            raise SpecError(f"workload {self.name}: {error}") from error
        for other in self.also:
            traffic = msgspec.structs.replace(
                traffic, sources=traffic.sources + other.traffic(topology, rng).sources
            )
        check_sources(traffic.sources)
        return traffic

    def _numbered(self, topology: Topology, rng: random.Random) -> Traffic:
        ports = SourcePorts(rng)
        if isinstance(self.pattern, FileFlows):
            self.pattern.reserve(topology, ports)
        flows = []
        classes = {}
        for number, item in enumerate(counted(self.pattern.transfers(topology, rng)), start=1):
            transfer = self._checked(item)
            if transfer.flow_class != NO_CLASS:
                classes[number] = transfer.flow_class
            sport = transfer.sport
            if sport is None:
                sport = ports.draw(transfer.sender, transfer.receiver)
            flows.append(
                FlowSpec(
                    id=number,
                    src=transfer.sender.ip,
                    dst=transfer.receiver.ip,
                    bytes=transfer.size_bytes,
                    start_ns=transfer.start_ns,
                    qpn=FIRST_QPN + number,
                    sport=sport,
                    after=transfer.after,
                    steering=transfer.steering,
                    after_ns=transfer.after_ns,
                    after_count=transfer.after_count,
                )
            )
        if isinstance(self.pattern, FileFlows) or place_of(self.pattern):
            # flows of built-in patterns never wait in a cycle, but flows of files and plug-ins may
            check_dependencies(flows)
        sources = tuple(self.pattern.sources(topology)) if isinstance(self.pattern, SendsFrames) else ()
        if not flows and not sources:
            raise PatternError("there is no flow")
        return Traffic(flows, classes, sources)

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
    """The workload that a spec describes, or that of a file; or several, joined by AND.

    Raises:
        SpecError: unknown name, bad option or bad file, which the one-line message names; or several
            workloads with flows.
    """
    if len(str(text)) > MOST_CHARACTERS:
        raise SpecError(f"workload: expected at most {MOST_CHARACTERS} characters")
    # the workload with flows comes first
    workloads = sorted(map(_parse_single, str(text).split(AND)), key=lambda each: not each.has_flows)
    if len(workloads) > 1 and workloads[1].has_flows:
        names = f"{workloads[0].name} and {workloads[1].name}"
        raise SpecError(f"workload: {names} both send flows; expected one workload with flows")
    return msgspec.structs.replace(workloads[0], spec=str(text), also=tuple(workloads[1:]))


def _parse_single(text: str) -> Workload:
    spec = parse(text, "workload")
    if is_file(spec.name):
        seed = read(spec, Seed).seed
        return Workload(str(spec), spec.name, read_flows(Path(spec.name)), seed)
    spec, pattern = WORKLOADS.read(spec)
    # common: reads the keys that all workloads have
    return Workload(str(spec), spec.name, pattern, WORKLOADS.common(spec, Seed).seed)
