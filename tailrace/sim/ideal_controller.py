# SPDX-License-Identifier: Apache-2.0
"""The ideal controller: it is notified of each event and reacts exactly `delay_ns` later.

In real time switches send digests to a controller in a separate process. Here the controller reads digests
from the switches' P4Runtime endpoints, and reacts to a digest or a link failure exactly `delay_ns` after it.
As in real time, controller.faulty_paths and the scheme decide on the reaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial

from tailrace.controller.faulty_paths import PathSuppressor
from tailrace.p4rt.inprocess import InProcess
from tailrace.p4rt.programs import P4Program
from tailrace.schemes.watch import STORM_DIGESTS, LinkEnd, SuppressedPath, Watcher
from tailrace.sim.network import Network
from tailrace.topology.paths.shortest import Down

Configure = Callable[[Down, Collection[str]], None]
"""Writes the intent (the desired table entries) of the named switches, for the given dead link ends."""


class IdealController:
    """The ideal controller of one network that does not run yet."""

    def __init__(
        self,
        network: Network,
        program: P4Program,
        watcher: Watcher,
        configure: Configure,
        delay_ns: int,
        *,
        lossless: bool = False,
        reacts: bool = True,
    ) -> None:
        """Args:
        program: the P4 program that all switches run.
        watcher: decides on the reaction to digests.
        configure: writes the intent of switches.
        delay_ns: time from an event to the reaction.
        lossless: whether PFC is enabled, so that switches may send digests of storms.
        reacts: whether it reacts to digests and links; False: it only configures restarted switches, of a
            user's program.
        """
        self._network = network
        self._program = program
        self._watcher = watcher
        self._configure = configure
        self._delay_ns = delay_ns
        # suppresses (withdraws) paths that digests report as faulty
        self._suppressor = PathSuppressor(network, watcher, lambda: self.down, self._write)
        # for each link end, the number of faults that keep it down, as far as the controller was notified
        self._dead: Counter[LinkEnd] = Counter()
        # by time in ns: link ends that go down (1) or come back up (-1)
        self._changes: dict[int, list[tuple[LinkEnd, int]]] = {}
        self._restarting: Counter[str] = Counter()
        # those of this rank (one of the processes that simulate the network)
        self._switches = {item.id: InProcess(network.p4rt(item.name)) for item in network.switches}
        digests = {digest.preamble.alias for digest in program.p4info.digests}
        # without PFC there are no pauses, and so no digests of PFC storms (too long pauses)
        self._reads_digests = reacts and bool(digests if lossless else digests - STORM_DIGESTS)
        self._reacts = reacts

    @property
    def down(self) -> Down:
        return frozenset(end for end, faults in self._dead.items() if faults > 0)

    @property
    def suppressed(self) -> Sequence[SuppressedPath]:
        return self._watcher.suppressed

    # ---- digests ----

    def start(self) -> None:
        """Starts to poll for digests, if the program sends any."""
        if self._reads_digests:
            self._network.call_at(self._network.now_ns + self._delay_ns, self._poll)

    def _poll(self) -> None:
        self.catch_up()
        self._network.call_at(self._network.now_ns + self._delay_ns, self._poll)

    def catch_up(self) -> None:
        """Reads the digests since the last call; none is older than the delay, so no reaction is late."""
        by_switch = {switch_id: switch.digests(self._program) for switch_id, switch in self._switches.items()}
        for digests in self._network.gathered(by_switch).values():
            for digest in digests:
                react = partial(self._suppressor.digest_received, digest)
                self._network.call_at(digest.time_ns + self._delay_ns, react)

    # ---- links ----

    def notify_links(self, ends: Sequence[LinkEnd], at_ns: int, *, dead: bool) -> None:
        if not self._reacts:
            return
        # changes at the same time cause a single update: writing the routes of a large network takes long
        if at_ns not in self._changes:
            self._network.call_at(at_ns + self._delay_ns, partial(self._react_to_changes, at_ns))
        self._changes.setdefault(at_ns, []).extend((end, 1 if dead else -1) for end in ends)

    def _react_to_changes(self, at_ns: int) -> None:
        for end, change in self._changes[at_ns]:
            self._dead[end] += change
        # suppressed paths over recovered links may be used again; all switches are written next
        self._suppressor.restore_paths()
        self._write([switch.name for switch in self._network.topology.switches])

    # ---- switches ----

    def switch_lost(self, switch: str) -> None:
        self._restarting[switch] += 1

    def switch_restored(self, switch: str) -> None:
        self._restarting[switch] -= 1
        self._write([switch])

    def _write(self, names: Collection[str]) -> None:
        """Configures the switches that can be reached."""
        self._configure(self.down, [name for name in names if not self._restarting[name]])

    def check(self) -> None:
        """Never raises: this controller cannot fail."""

    def stop(self) -> None:
        """Does nothing: there is no task to stop."""
