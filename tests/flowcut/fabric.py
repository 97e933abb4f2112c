# SPDX-License-Identifier: Apache-2.0
"""A virtual network under a scheme: programs loaded and tables written by the controller."""

from __future__ import annotations

from controller.inprocess import install_all
from controller.intent import intent
from controller.scheme import SchemeConfig
from controller.target import target
from native.switchd.p4rt.errors import P4RtError
from native.virtual import Network
from topology import Topology

Down = frozenset[tuple[str, int]]


def control(network: Network, scheme: SchemeConfig, down: Down = frozenset()) -> None:
    """Makes every switch hold what the controller intends while the links in `down` are dead."""
    plans = intent(network.topology, scheme, target("virtual"), down)
    install_all(network.p4rt, plans, refused=P4RtError)


def build(topology: Topology, scheme: SchemeConfig, seed: int = 0) -> Network:
    """The network, ready for traffic."""
    network = Network(topology, seed=seed)
    control(network, scheme)
    return network
