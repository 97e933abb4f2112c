# SPDX-License-Identifier: Apache-2.0
"""Schedules faults in a virtual network and notifies the controller of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tailrace.hosts.flows.flow import FlowSpec
from tailrace.sim.control import ControlPlane
from tailrace.sim.link_faults import AckLoss, Blackhole, LinkDown, LinkFault, LinkSlow, Loss, SwitchRestart
from tailrace.sim.network import FrameMatch, Network


def schedule_faults(
    network: Network, faults: Iterable[LinkFault], flows: Iterable[FlowSpec], control: ControlPlane
) -> None:
    """Schedules the faults of one run, and the controller's reaction to them.

    Args:
        network: the network, which must not run yet.
        flows: all flows of the run; a blackhole may drop packets of both directions of a flow.
        control: the controller, which is notified of link and switch failures.

    Raises:
        NetworkError: the network has no such link or switch.
    """
    for fault in faults:
        match fault:
            case LinkSlow():
                network.link_rate(fault.a, fault.b, fault.factor, fault.at_ns)
                if fault.until_ns is not None:
                    network.link_rate(fault.a, fault.b, 1.0, fault.until_ns)
            case Loss():
                _drop(network, fault, FrameMatch.FLOWS, one_way=fault.one_way, only_data=fault.only_data)
            case AckLoss():
                _drop(network, fault, FrameMatch.FLOWCUT_ACK)
            case LinkDown():
                _link_down(network, fault, control)
            case Blackhole():
                # source and destination of all packets
                pairs = {pair for flow in flows for pair in ((flow.src, flow.dst), (flow.dst, flow.src))}
                network.blackhole(fault.switch, sorted(fault.pairs & pairs), fault.at_ns, fault.until_ns)
            case SwitchRestart():
                _switch_restart(network, fault, control)


def _drop(network: Network, fault: Loss | AckLoss, matches: FrameMatch, **flags: bool) -> None:
    network.drop(
        fault.a,
        fault.b,
        fault.rate,
        matches=matches,
        from_ns=fault.at_ns,
        until_ns=fault.until_ns,
        **flags,
    )


def _link_down(network: Network, fault: LinkDown, control: ControlPlane) -> None:
    set_link(network, control, fault.a, fault.b, fault.at_ns, up=False)
    if fault.until_ns is not None:
        set_link(network, control, fault.a, fault.b, fault.until_ns, up=True)


def set_link(network: Network, control: ControlPlane, a: str, b: str, at_ns: int, *, up: bool) -> None:
    """Takes the links between two nodes up or down at a time, and notifies the controller."""
    # one end of a link suffices: the controller takes the link as dead then
    ends = [(link.a, link.a_port) for link in network.topology.links if {link.a, link.b} == {a, b}]
    (network.link_up if up else network.link_down)(a, b, at_ns)
    if ends:
        control.notify_links(ends, at_ns, dead=not up)


def _switch_restart(network: Network, fault: SwitchRestart, control: ControlPlane) -> None:
    name = fault.switch
    ends = [(link.a, link.a_port) for link in network.topology.links if name in (link.a, link.b)]
    network.call_at(fault.at_ns, partial(control.switch_lost, name))
    network.switch_restart(name, fault.at_ns, fault.down_ns, partial(control.switch_restored, name))
    control.notify_links(ends, fault.at_ns, dead=True)
    control.notify_links(ends, fault.at_ns + fault.down_ns, dead=False)
