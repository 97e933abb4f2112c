# SPDX-License-Identifier: Apache-2.0
"""The controller's part in failure alerts of a run in virtual time (RLB §IV-B.2), and in storms of pauses.

In real time switches send digests to a controller that runs beside them. Here their digests are taken from
their P4Runtime endpoints so often that none is late, and what the controller does about one happens exactly
`delay_ns` after the switch made it, as what it does about links (experiments.backends.virtual.faults).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Protocol

from tailrace.p4rt.digests import Digest
from tailrace.p4rt.inprocess import InProcess, Switch
from tailrace.p4rt.programs import Program
from tailrace.schemes.blocks import storms
from tailrace.schemes.watch import Watcher
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down


class Network(Protocol):
    """Switches and one clock, which stands still while anybody is called: native.virtual.Network is one."""

    @property
    def topology(self) -> Topology: ...

    @property
    def now_ns(self) -> int:
        """Time, from 0."""
        ...

    def call_at(self, time_ns: int | None, callback: Callable[[], None]) -> None:
        """Calls back at a time, before all else that happens then; now where it is None or past."""
        ...

    def p4rt(self, name: str) -> Switch:
        """P4Runtime of a switch."""
        ...

    def has(self, name: str) -> bool:
        """Whether a switch is in this process; of a network in several each does all that is done here."""
        ...

    def gathered(self, found: Mapping[int, list[Digest]]) -> dict[int, list[Digest]]:
        """What all processes have found, by number, in its order."""
        ...


class VirtualAlerts:
    """Listens to the switches of one network."""

    def __init__(
        self,
        network: Network,
        program: Program,
        paths: Watcher,
        *,
        delay_ns: int,
        down: Callable[[], Down],
        rewrite: Callable[[Collection[str]], None],
        lossless: bool = False,
    ) -> None:
        """Args:
        network: not running yet.
        program: what all switches run.
        paths: knows what is to be done.
        delay_ns: from a digest to what follows from it.
        down: the ends of links that the controller takes for dead.
        rewrite: makes some switches hold what they should.
        lossless: whether there are pauses that they may tell of.
        """
        self._network = network
        self._program = program
        self._paths = paths
        self._delay_ns = delay_ns
        self._down = down
        self._rewrite = rewrite
        self._switches = {
            item.id: InProcess(network.p4rt(item.name))
            for item in network.topology.switches
            if network.has(item.name)
        }
        self._wakes: set[int] = set()
        digests = {digest.preamble.alias for digest in program.p4info.digests}
        self._listens = bool(digests if lossless else digests - storms.DIGESTS)

    def start(self) -> None:
        """Listens from now on, where the program may have anything to say."""
        if self._listens:
            self._network.call_at(self._network.now_ns + self._delay_ns, self._listen)

    def _listen(self) -> None:
        self.take()
        self._network.call_at(self._network.now_ns + self._delay_ns, self._listen)

    def take(self) -> None:
        """Takes what was said since the last time, none of which is older than the delay."""
        own = {number: switch.digests(self._program) for number, switch in self._switches.items()}
        for digests in self._network.gathered(own).values():
            for digest in digests:
                self._network.call_at(digest.time_ns + self._delay_ns, partial(self._heard, digest))

    def _heard(self, digest: Digest) -> None:
        if self._paths.heard(digest, self._network.now_ns, self._down()):
            self._rewrite({digest.switch})
        self._plan()

    def poll(self) -> Collection[str]:
        """Gives back the paths that can be, when links have come back; whose they are."""
        back = self._paths.passed(self._network.now_ns, self._down())
        self._plan()
        return {switch for switch, _ in back}

    def _wake(self, time_ns: int) -> None:
        """A hold time is over."""
        self._wakes.discard(time_ns)
        switches = self.poll()
        if switches:
            self._rewrite(switches)

    def _plan(self) -> None:
        """Has the next end of a hold time looked at."""
        next_ns = self._paths.next_ns(self._network.now_ns)
        if next_ns is not None and next_ns not in self._wakes:
            self._wakes.add(next_ns)
            self._network.call_at(next_ns, partial(self._wake, next_ns))
