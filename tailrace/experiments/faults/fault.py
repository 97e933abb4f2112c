# SPDX-License-Identifier: Apache-2.0
"""What happens to a link or a switch, and the registry of the faults that a spec describes: kinds.py."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from tailrace.sim.link_faults import LinkFault
from tailrace.spec import SpecError
from tailrace.spec.plugins import blamed, given_by
from tailrace.spec.registry import Registry
from tailrace.topology import Topology


class FaultKind(Protocol):
    """What a spec describes: the struct of a fault's keys."""

    def resolve(self, topology: Topology, rng: random.Random, /) -> tuple[LinkFault, ...]:
        """What happens to each link or switch that is hit; the same for the same numbers from `rng`.

        Raises:
            SpecError: the topology has no such link or switch; the text does not name the fault.
        """


FAULTS: Registry[FaultKind] = Registry("fault", methods={"resolve": 2})


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault as it was written."""

    spec: str
    name: str
    kind: FaultKind

    def resolve(self, topology: Topology, rng: random.Random) -> tuple[LinkFault, ...]:
        """As FaultKind has it; errors name the fault."""
        try:
            with blamed(f"fault {self.name}"):
                hits = self.kind.resolve(topology, rng)
            link_faults: tuple[LinkFault, ...] = given_by(self.kind, hits, tuple[LinkFault, ...], "resolve")
            return link_faults
        except SpecError as error:
            raise SpecError(f"fault {self.name}: {error}") from error
