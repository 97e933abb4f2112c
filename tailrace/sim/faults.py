# SPDX-License-Identifier: Apache-2.0
"""Schedules faults in a virtual network and notifies the controller of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.sim.control import ControlPlane
from tailrace.sim.link_faults import AckLoss, Blackhole, LinkDown, LinkFault, LinkSlow, Loss, SwitchRestart
from tailrace.sim.network import FrameMatch, Network
from tailrace.topology import Topology


class VirtualFaults:
    """Schedules the faults of one run."""

    def __init__(
        self, network: Network, topology: Topology, flows: Iterable[FlowSpec], control: ControlPlane
    ) -> None:
        """Args:
        network: the network, which must not run yet.
        topology: at the run's time scale, the factor by which the run is slower than specified.
        flows: all flows of the run; a blackhole may drop packets of both directions of a flow.
        control: the controller, which is notified of link and switch failures.
        """
        self._network = network
        self._topology = topology
        self._control = control
        self._flows = flows

    def schedule(self, faults: Sequence[LinkFault]) -> None:
        """Schedules faults, and the controller's reaction to them.

        Raises:
            NetworkError: the network has no such link or switch.
        """
        for fault in faults:
            self._schedule(fault)

    def _schedule(self, fault: LinkFault) -> None:
        network = self._network
        match fault:
            case LinkSlow():
                network.link_rate(fault.a, fault.b, fault.factor, fault.at_ns)
                if fault.until_ns is not None:
                    network.link_rate(fault.a, fault.b, 1.0, fault.until_ns)
            case Loss():
                self._drop(fault, FrameMatch.FLOWS, one_way=fault.one_way)
            case AckLoss():
                self._drop(fault, FrameMatch.FLOWCUT_ACK)
            case LinkDown():
                self._link_down(fault)
            case Blackhole():
                pairs = sorted(fault.pairs & self._communicating())
                network.blackhole(fault.switch, pairs, fault.at_ns, fault.until_ns)
            case SwitchRestart():
                self._switch_restart(fault)

    def _communicating(self) -> set[tuple[str, str]]:
        """All pairs (source, destination) of addresses between which packets are sent."""
        return {pair for flow in self._flows for pair in ((flow.src, flow.dst), (flow.dst, flow.src))}

    def _drop(self, fault: Loss | AckLoss, matches: FrameMatch, *, one_way: bool = False) -> None:
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
        pair = {fault.a, fault.b}
        # one end of a link suffices: the controller takes the link as dead then
        ends = [(link.a, link.a_port) for link in self._topology.links if {link.a, link.b} == pair]
        self._network.link_down(fault.a, fault.b, fault.at_ns)
        self._control.notify_links(ends, fault.at_ns, dead=True)
        if fault.until_ns is not None:
            self._network.link_up(fault.a, fault.b, fault.until_ns)
            self._control.notify_links(ends, fault.until_ns, dead=False)

    def _switch_restart(self, fault: SwitchRestart) -> None:
        name, control = fault.switch, self._control
        ends = [(link.a, link.a_port) for link in self._topology.links if name in (link.a, link.b)]
        self._network.call_at(fault.at_ns, partial(control.switch_lost, name))
        self._network.switch_restart(name, fault.at_ns, fault.down_ns, partial(control.switch_restored, name))
        control.notify_links(ends, fault.at_ns, dead=True)
        control.notify_links(ends, fault.at_ns + fault.down_ns, dead=False)
