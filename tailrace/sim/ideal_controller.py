# SPDX-License-Identifier: Apache-2.0
"""The ideal controller: it is notified of each event, and has reacted exactly `delay_ns` later.

In real time switches send digests to a controller in a process of its own. Here their digests are read from
their P4Runtime endpoints, and the reaction to a digest or a link failure happens exactly `delay_ns` after
it. As in real time, controller.faulty_paths and the scheme decide on the reaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Protocol

from tailrace.controller.faulty_paths import PathSuppressor
from tailrace.p4rt.digests import DigestMessage
from tailrace.p4rt.inprocess import InProcess, InProcessSwitch
from tailrace.p4rt.programs import P4Program
from tailrace.schemes.blocks import storms
from tailrace.schemes.watch import LinkEnd, SuppressedPath, Watcher
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down


class ControlledNetwork(Protocol):
    """Switches and a virtual clock, which stops during calls; implemented by sim.network.Network."""

    @property
    def topology(self) -> Topology: ...

    @property
    def now_ns(self) -> int:
        """Time, from 0."""
        ...

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        """Schedules a callback before all other events of its time; now for None or a past time."""
        ...

    def p4rt(self, name: str) -> InProcessSwitch:
        """P4Runtime of a switch."""
        ...

    def has(self, name: str) -> bool:
        """Whether this rank has the switch; all ranks make the same calls."""
        ...

    def gathered(self, values: Mapping[int, list[DigestMessage]]) -> dict[int, list[DigestMessage]]:
        """The values of all ranks, by number, in its order."""
        ...


Configure = Callable[[Down, Collection[str]], None]
"""Writes the intent of some switches, by name, for the given dead link ends."""


class IdealController:
    """The ideal controller of one network that does not run yet."""

    def __init__(
        self,
        network: ControlledNetwork,
        program: P4Program,
        watcher: Watcher,
        configure: Configure,
        delay_ns: int,
        *,
        lossless: bool = False,
    ) -> None:
        """Args:
        program: of all switches.
        watcher: decides on the reaction to digests.
        configure: writes the intent.
        delay_ns: from an event to the reaction.
        lossless: whether PFC is enabled, so that switches may send digests of storms.
        """
        self._network = network
        self._program = program
        self._watcher = watcher
        self._configure = configure
        self._delay_ns = delay_ns
        self._faulty = PathSuppressor(network, watcher, lambda: self.down, self._write)
        self._dead: Counter[LinkEnd] = Counter()  # by how many faults, as far as the controller knows
        # by time: what dies (1) and what comes back (-1)
        self._changes: dict[int, list[tuple[LinkEnd, int]]] = {}
        self._away: Counter[str] = Counter()  # switches that are restarting
        self._switches = {
            item.id: InProcess(network.p4rt(item.name))
            for item in network.topology.switches
            if network.has(item.name)
        }
        digests = {digest.preamble.alias for digest in program.p4info.digests}
        self._listens = bool(digests if lossless else digests - storms.DIGESTS)

    @property
    def down(self) -> Down:
        return frozenset(end for end, faults in self._dead.items() if faults > 0)

    @property
    def suppressed(self) -> Sequence[SuppressedPath]:
        return self._watcher.suppressed

    # ---- digests ----

    def start(self) -> None:
        """Starts to read digests, where the program sends any."""
        if self._listens:
            self._network.call_at(self._network.now_ns + self._delay_ns, self._listen)

    def _listen(self) -> None:
        self.catch_up()
        self._network.call_at(self._network.now_ns + self._delay_ns, self._listen)

    def catch_up(self) -> None:
        """Reads the digests since the last call, none of which is older than the delay."""
        by_switch = {number: switch.digests(self._program) for number, switch in self._switches.items()}
        for digests in self._network.gathered(by_switch).values():
            for digest in digests:
                react = partial(self._faulty.digest_received, digest)
                self._network.call_at(digest.time_ns + self._delay_ns, react)

    # ---- links ----

    def links(self, ends: Sequence[LinkEnd], at_ns: int, *, dead: bool) -> None:
        # all changes of one time cause one update: writing the routes of a large network takes long
        if at_ns not in self._changes:
            self._network.call_at(at_ns + self._delay_ns, partial(self._learn, at_ns))
        self._changes.setdefault(at_ns, []).extend((end, 1 if dead else -1) for end in ends)

    def _learn(self, at_ns: int) -> None:
        for end, change in self._changes[at_ns]:
            self._dead[end] += change
        self._faulty.restore_paths()
        self._write([switch.name for switch in self._network.topology.switches])

    # ---- switches ----

    def switch_lost(self, switch: str) -> None:
        self._away[switch] += 1

    def switch_restored(self, switch: str) -> None:
        self._away[switch] -= 1
        self._write([switch])

    def _write(self, names: Collection[str]) -> None:
        """Configures the switches that can be reached."""
        self._configure(self.down, [name for name in names if not self._away[name]])

    def check(self) -> None:
        """Passes always: this controller cannot fail."""

    def stop(self) -> None:
        """Does nothing: no task runs."""
