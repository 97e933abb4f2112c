# SPDX-License-Identifier: Apache-2.0
"""A controller that is told what happens, and has done what follows exactly `delay_ns` later.

In real time switches send digests to a controller that runs beside them. Here their digests are taken from
their P4Runtime endpoints so often that none is late, and what the controller does about one happens exactly
`delay_ns` after the switch made it, as what it does about links. What that is, controller.faulty_paths and
the scheme say, as in real time.
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
    """Switches and one clock, which stands still while anybody is called: sim.network.Network is one."""

    @property
    def topology(self) -> Topology: ...

    @property
    def now_ns(self) -> int:
        """Time, from 0."""
        ...

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        """Calls back at a time, before all else that happens then; now where it is None or past."""
        ...

    def p4rt(self, name: str) -> InProcessSwitch:
        """P4Runtime of a switch."""
        ...

    def has(self, name: str) -> bool:
        """Whether a switch is in this process; of a network in several each does all that is done here."""
        ...

    def gathered(self, found: Mapping[int, list[DigestMessage]]) -> dict[int, list[DigestMessage]]:
        """What all processes have found, by number, in its order."""
        ...


Configure = Callable[[Down, Collection[str]], None]
"""Makes some switches, by name, hold what they should while the given ends of links are dead."""


class IdealController:
    """Of one network, which is not running yet."""

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
        program: what all switches run.
        watcher: knows what is to be done about digests.
        configure: writes what the controller wants.
        delay_ns: from something to what follows from it.
        lossless: whether there are pauses that switches may tell of.
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
        """Listens from now on, where the program may have anything to say."""
        if self._listens:
            self._network.call_at(self._network.now_ns + self._delay_ns, self._listen)

    def _listen(self) -> None:
        self.catch_up()
        self._network.call_at(self._network.now_ns + self._delay_ns, self._listen)

    def catch_up(self) -> None:
        """Takes what was said since the last time, none of which is older than the delay."""
        own = {number: switch.digests(self._program) for number, switch in self._switches.items()}
        for digests in self._network.gathered(own).values():
            for digest in digests:
                heard = partial(self._faulty.heard, digest)
                self._network.call_at(digest.time_ns + self._delay_ns, heard)

    # ---- links ----

    def links(self, ends: Sequence[LinkEnd], at_ns: int, *, dead: bool) -> None:
        # what happens at one time is learnt at once: writing the routes of a large network takes its time
        if at_ns not in self._changes:
            self._network.call_at(at_ns + self._delay_ns, partial(self._learn, at_ns))
        self._changes.setdefault(at_ns, []).extend((end, 1 if dead else -1) for end in ends)

    def _learn(self, at_ns: int) -> None:
        for end, change in self._changes[at_ns]:
            self._dead[end] += change
        self._faulty.look()
        self._write([switch.name for switch in self._network.topology.switches])

    # ---- switches ----

    def left(self, switch: str) -> None:
        self._away[switch] += 1

    def restored(self, switch: str) -> None:
        self._away[switch] -= 1
        self._write([switch])

    def _write(self, names: Collection[str]) -> None:
        """Configures the switches that can be reached."""
        self._configure(self.down, [name for name in names if not self._away[name]])

    def check(self) -> None:
        """Nothing goes wrong."""

    def stop(self) -> None:
        """Nothing goes on."""
