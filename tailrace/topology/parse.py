# SPDX-License-Identifier: Apache-2.0
"""Topologies from specs such as leaf-spine:leaves=2,spines=4,rate=10Gbps,delay=1us, or from a file.

Each family is a file in families/, which declares its keys and registers them; `tailrace topologies` lists
the families.
"""

from __future__ import annotations

from tailrace.spec import Spec, SpecError, parse
from tailrace.spec.plugins import blamed, given_by
from tailrace.spec.registry import load_folder
from tailrace.spec.spec_string import is_file
from tailrace.topology.families.build import Builder
from tailrace.topology.families.options import FAMILIES
from tailrace.topology.model import Host, Link, Switch, Topology

__all__ = ["FAMILIES", "parse_topology"]

load_folder("tailrace.topology.families")

_PARTS = {"switches": tuple[Switch, ...], "hosts": tuple[Host, ...], "links": tuple[Link, ...]}
"""The parts of a topology, with their types."""


def parse_topology(text: str | Spec) -> Topology:
    """The topology that a spec describes, or that of a file (from_file.py).

    Raises:
        SpecError: unknown name, invalid option, or invalid network; one line says which.
    """
    spec = parse(text, "topology")
    if is_file(spec.name):
        # a run whose topology is no file does not load the formats
        from tailrace.topology.from_file import topology_of_file

        return topology_of_file(spec)
    spec, family = FAMILIES.read(spec)
    builder = Builder(spec, family.links)
    try:
        with blamed(spec.title, family):  # an error in a plug-in's family names its file and line
            family.build(builder)
            topology = builder.topology()
        # refuses parts of a wrong type from a plug-in's family
        for name, kind in _PARTS.items():
            given_by(family, getattr(topology, name), kind, f"build: {name}")
        return topology
    except SpecError as error:
        problem = str(error)
        raise error if problem.startswith(spec.title) else SpecError(f"{spec.title}: {problem}") from None
