# SPDX-License-Identifier: Apache-2.0
"""A fault of links or switches, and the registry of the kinds of faults, which kinds.py fills.

A plug-in may add kinds: `blamed` adds its file and line to errors, and `given_by` checks what it returns.
"""

from __future__ import annotations

import random
from typing import Protocol

import msgspec

from tailrace.sim.link_faults import LinkFault
from tailrace.spec import SpecError
from tailrace.spec.plugins import blamed, given_by
from tailrace.spec.registry import Registry
from tailrace.topology import Topology


class FaultKind(Protocol):
    """A kind of fault: the struct into which a spec's keys are parsed."""

    def resolve(self, topology: Topology, rng: random.Random, /) -> tuple[LinkFault, ...]:
        """The fault of each affected link or switch; `rng` alone decides random choices.

        Raises:
            SpecError: the topology has no such link or switch; the message does not name the fault.
        """


FAULTS: Registry[FaultKind] = Registry("fault", methods={"resolve": 2})
"""All kinds by name; their method `resolve` has two arguments."""


class Fault(msgspec.Struct, frozen=True):
    """A fault: its spec as written, its name, and its parsed keys."""

    spec: str
    name: str
    kind: FaultKind

    def resolve(self, topology: Topology, rng: random.Random) -> tuple[LinkFault, ...]:
        """The result of FaultKind.resolve; error messages name the fault."""
        try:
            with blamed(f"fault {self.name}"):
                resolved = self.kind.resolve(topology, rng)
            link_faults: tuple[LinkFault, ...] = given_by(
                self.kind, resolved, tuple[LinkFault, ...], "resolve"
            )
            return link_faults
        except SpecError as error:
            raise SpecError(f"fault {self.name}: {error}") from error
