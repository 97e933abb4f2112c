# SPDX-License-Identifier: Apache-2.0
"""Faults in a virtual network, and what the controller does about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from tailrace.experiments.faults.fault import (
    AckLoss,
    Blackhole,
    Drop,
    LinkDown,
    LinkFault,
    LinkSlow,
    SwitchRestart,
)
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.native.virtual import FrameMatch, Network
from tailrace.topology import Topology
from tailrace.topology.paths.shortest import Down
from tailrace.topology.timing import base_rtt_ns

REACTION_RTTS = 10
"""How many base RTTs after a link has gone or come back the controller has written other routes. In real time
it finds out by missing LLDP frames (controller/linkwatch.py); here it is told."""


def reaction_ns(topology: Topology, frame_bytes: int) -> int:
    """How long after something the controller has done what follows from it, in a topology as it runs."""
    return REACTION_RTTS * base_rtt_ns(topology, frame_bytes)


def _nothing() -> None:
    """What is called where nobody wants to know."""


Configure = Callable[[Down, Collection[str]], None]
"""Makes some switches, by name, hold what they should while the given ends of links are dead."""


class VirtualFaults:
    """Schedules the faults of one run."""

    def __init__(
        self,
        network: Network,
        topology: Topology,
        flows: Iterable[FlowSpec],
        configure: Configure,
        reaction_ns: int,
        learnt: Callable[[], object] = _nothing,
    ) -> None:
        """Args:
        network: not running yet.
        topology: as it runs, at its time scale.
        flows: all that will be sent, both ways of which a blackhole may take.
        configure: writes what the controller wants.
        reaction_ns: how long after a fault that is done.
        learnt: is called before that where the controller knows of other links that are dead.
        """
        self._network = network
        self._topology = topology
        self._configure = configure
        self._learnt = learnt
        self._reaction_ns = reaction_ns
        self._dead: Counter[tuple[str, int]] = Counter()  # by how many faults, as far as the controller knows
        # by time: what dies (1) and what comes back (-1)
        self._changes: dict[int, list[tuple[tuple[str, int], int]]] = {}
        self._away: Counter[str] = Counter()  # switches that are restarting
        self._flows = flows

    @property
    def down(self) -> Down:
        """The ends of links that the controller takes for dead now."""
        return frozenset(end for end, faults in self._dead.items() if faults > 0)

    def schedule(self, faults: Sequence[LinkFault]) -> None:
        """Schedules faults, and the controller's part in them.

        Raises:
            NetworkError: the network has no such link or switch.
        """
        for fault in faults:
            self._schedule(fault)
        # what happens at one time is learnt at once: writing the routes of a large network takes its time
        for at_ns, changes in self._changes.items():
            self._network.call_at(at_ns + self._reaction_ns, partial(self._learn, changes))

    def _schedule(self, fault: LinkFault) -> None:
        network = self._network
        match fault:
            case LinkSlow():
                network.link_rate(fault.a, fault.b, fault.factor, fault.at_ns)
                if fault.until_ns is not None:
                    network.link_rate(fault.a, fault.b, 1.0, fault.until_ns)
            case Drop():
                self._drop(fault, FrameMatch.FLOWS, one_way=fault.one_way)
            case AckLoss():
                self._drop(fault, FrameMatch.FLOWCUT_ACK)
            case LinkDown():
                self._link_down(fault)
            case Blackhole():
                pairs = sorted(fault.pairs & self._talking())
                network.blackhole(fault.switch, pairs, fault.at_ns, fault.until_ns)
            case SwitchRestart():
                self._switch_restart(fault)

    def _talking(self) -> set[tuple[str, str]]:
        """All pairs of addresses that send something to one another."""
        return {pair for flow in self._flows for pair in ((flow.src, flow.dst), (flow.dst, flow.src))}

    def _drop(self, fault: Drop | AckLoss, matches: FrameMatch, *, one_way: bool = False) -> None:
        self._network.drop(
            fault.a,
            fault.b,
            fault.rate,
            matches=matches,
            from_ns=fault.at_ns,
            until_ns=fault.until_ns,
            one_way=one_way,
        )

    def _link_down(self, fault: LinkDown) -> None:
        joined = {fault.a, fault.b}
        ends = [(link.a, link.a_port) for link in self._topology.links if {link.a, link.b} == joined]
        self._network.link_down(fault.a, fault.b, fault.at_ns)
        self._tell(ends, fault.at_ns, dead=True)
        if fault.until_ns is not None:
            self._network.link_up(fault.a, fault.b, fault.until_ns)
            self._tell(ends, fault.until_ns, dead=False)

    def _switch_restart(self, fault: SwitchRestart) -> None:
        name = fault.switch
        ends = [(link.a, link.a_port) for link in self._topology.links if name in (link.a, link.b)]

        def leave() -> None:
            self._away[name] += 1

        def restore() -> None:
            self._away[name] -= 1
            self.write([name])

        self._network.call_at(fault.at_ns, leave)
        self._network.switch_restart(name, fault.at_ns, fault.down_ns, restore)
        self._tell(ends, fault.at_ns, dead=True)
        self._tell(ends, fault.at_ns + fault.down_ns, dead=False)

    def _tell(self, ends: Sequence[tuple[str, int]], at_ns: int, *, dead: bool) -> None:
        """Lets the controller know, some time after links have gone or come back."""
        changes = self._changes.setdefault(at_ns, [])
        changes += [(end, 1 if dead else -1) for end in ends]

    def _learn(self, changes: Sequence[tuple[tuple[str, int], int]]) -> None:
        """The controller knows, and writes other routes."""
        for end, change in changes:
            self._dead[end] += change
        self._learnt()
        self.write([switch.name for switch in self._topology.switches])

    def write(self, names: Collection[str]) -> None:
        """Configures the switches that can be reached."""
        self._configure(self.down, [name for name in names if not self._away[name]])
