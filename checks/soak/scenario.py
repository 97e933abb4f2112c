# SPDX-License-Identifier: Apache-2.0
"""A scenario: network, scheme, traffic, faults, and disturbances of switches and controllers."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import Plan, plan
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.resolved import Resolved
from tailrace.topology import Topology

LONGEST_NS = 400_000
"""Latest begin of a fault or a disturbance, in any network."""


class Kill(msgspec.Struct, frozen=True):
    """A controller is killed at `at_ns`, and another one started in its place `for_ns` later."""

    controller: int
    at_ns: int
    for_ns: int


class Break(msgspec.Struct, frozen=True):
    """All connections to a switch break at `at_ns`."""

    switch: str
    at_ns: int


class Full(msgspec.Struct, frozen=True):
    """A switch accepts no more entries for `for_ns`: another client has used up its memory."""

    switch: str
    at_ns: int
    for_ns: int


class Chaos(msgspec.Struct, frozen=True):
    """Disturbances between switches and controllers.

    until_ns: when the disturbances given as shares end
    latency: usual delay of a message, in intervals of link probes; the longest delay is (1 + spread) times
        the usual one
    lost, responses, silent, twice: shares of calls with a lost request, with a lost response, without a
        response, and carried out twice
    crashes: share of Writes and pushes after which the switch restarts before it responds
    digests: share of digest lists that are lost or delivered twice
    controllers: number of controllers; same: all controllers begin with the same election id
    empty: switches have no program when the first controller starts
    stale: indexes of links that were dead for an earlier controller, whose entries are in the switches
    old: the scheme of an earlier controller, whose program and entries are in the switches; until old_ns,
        controller 0 uses that scheme
    """

    until_ns: int = LONGEST_NS
    latency: float = 0.1
    spread: float = 0.5
    lost: float = 0.0
    responses: float = 0.0
    silent: float = 0.0
    twice: float = 0.0
    crashes: float = 0.0
    digests: float = 0.0
    controllers: int = 1
    same: bool = False
    empty: bool = False
    stale: tuple[int, ...] = ()
    old: str = ""
    old_ns: int = 0
    kills: tuple[Kill, ...] = ()
    breaks: tuple[Break, ...] = ()
    full: tuple[Full, ...] = ()

    @property
    def quiet_ns(self) -> int:
        """When all disturbances are over."""
        shares = any((self.lost, self.responses, self.silent, self.twice, self.crashes, self.digests))
        return max(
            self.until_ns if shares or self.spread > 1 else 0,
            self.old_ns,
            *(kill.at_ns + kill.for_ns for kill in self.kills),
            *(broken.at_ns for broken in self.breaks),
            *(full.at_ns + full.for_ns for full in self.full),
            0,
        )

    @property
    def undisturbed(self) -> bool:
        """Whether switches have the entities that they should have from the start to the end."""
        return not (self.empty or self.stale or self.old or self.crashes)


class Scenario(msgspec.Struct, frozen=True):
    """A run: the settings of an experiment, and disturbances of its controllers."""

    seed: int
    settings: dict[str, Any]
    chaos: Chaos = Chaos()

    def plan(self) -> Plan:
        """The experiment.

        Raises:
            SpecError: the settings do not fit together.
        """
        return _plan(msgspec.json.encode({**self.settings, "seed": self.seed}))

    def earlier(self, topology: Topology) -> Resolved:
        """The scheme of the earlier controller.

        Raises:
            SpecError: there is no such scheme, or it does not run in this topology.
        """
        return resolve(parse_scheme(self.chaos.old), topology)

    @property
    def faults(self) -> list[str]:
        """The faults of the data plane, as specs."""
        return list(self.settings.get("fault", ()))


@functools.lru_cache(maxsize=4)
def _plan(settings: bytes) -> Plan:
    return plan(make(msgspec.json.decode(settings)), "virtual")
