# SPDX-License-Identifier: Apache-2.0
"""Schemes whose NICs spread packets over entropy values that switches hash to paths (REPS, UET, PLB).

Switches run the program `spritz`, which trims packets and chooses the first two links by the two bytes of
the source port. EVs that are drawn at random from all source ports therefore spread over paths as with a
hash. In a network with detours (a Dragonfly, a Slim Fly) EVs are those of Spritz's endpoint tables, which
name the bounded simple paths.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, ClassVar

from tailrace.codec.calls import PORT_MASK
from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import NicConfig
from tailrace.schemes.resolved import PathTable, SchemeContext
from tailrace.schemes.spritz.app import STEERED
from tailrace.schemes.spritz.bounded import BoundedConfig, ResolvedBounded
from tailrace.spec import keys
from tailrace.topology import Topology
from tailrace.topology.paths.bounded import MOST_EVS
from tailrace.topology.paths.shapes import shape_of

ALL_EVS = PORT_MASK
_LISTS_CACHED = 1 << 15


class EntropyConfig(BoundedConfig, frozen=True, kw_only=True):
    """evs: number of entropy values of a flow; None: `usual_evs`."""

    usual_evs: ClassVar[int] = ALL_EVS
    evs: Annotated[
        int | None,
        keys.integer(
            "evs",
            "number of entropy values (source ports) among which a flow chooses",
            least=1,
            most=ALL_EVS,
            absent="depends on the scheme",
        ),
    ] = None

    def resolve_entropy(
        self, kind: type[ResolvedEntropy], topology: Topology, context: SchemeContext, **more: object
    ) -> ResolvedBounded:
        """The scheme resolved for a network; `more` has fields that only `kind` has."""
        evs = self.usual_evs if self.evs is None else self.evs
        held = min(evs, MOST_EVS)
        return self.resolve_on_spritz(topology, context, kind, mode=STEERED, evs=evs, held_paths=held, **more)


class ResolvedEntropy(ResolvedBounded, frozen=True, kw_only=True):
    """See EntropyConfig."""

    evs: int

    def parameters(self, nic: NicConfig, scale: float) -> dict[str, float]:  # noqa: ARG002
        """The parameters of the steering, for the other settings of a NIC at a time scale."""
        return {}

    def nic(self, topology: Topology, context: SchemeContext, scale: float) -> NicConfig:
        nic = super().nic(topology, context, scale)
        steering = self._steering(nic.path_rtt_ns)
        return replace(nic, steering=replace(steering, parameters=self.parameters(nic, scale)))

    def paths(self, topology: Topology) -> PathTable:  # type: ignore[override]  # another class of table
        """The EV lists: random source ports, or in networks with detours the EVs of simple paths."""
        if shape_of(topology).detours:
            return super().paths(topology)
        return RandomPorts(self.evs, self.hash_seed)


class RandomPorts:
    """EV lists of source ports that are drawn at random for each pair of hosts."""

    def __init__(self, count: int, seed: int) -> None:
        """Args:
        count: number of source ports in a list; ALL_EVS: all pairs have the same list, of all ports.
        seed: seed of the draws, and of the order of ports in a list.
        """
        self._count, self._seed = count, seed
        self._lists = lru_cache(_LISTS_CACHED if count < ALL_EVS else 1)(self._make)

    def of(self, source_ip: str, target_ip: str, /) -> PathList:
        """The list from one host to another."""
        shared = self._count == ALL_EVS
        return self._lists(f"{self._seed}" if shared else f"{self._seed} {source_ip} {target_ip}")

    def _make(self, seed: str) -> PathList:
        evs = tuple(random.Random(seed).sample(range(1, ALL_EVS + 1), self._count))
        return PathList(evs, (0,) * len(evs), (1.0,) * len(evs))
