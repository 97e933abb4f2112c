# SPDX-License-Identifier: Apache-2.0
"""A virtual network under a scheme: programs loaded and tables written by the controller."""

from __future__ import annotations

from tailrace.controller.reconcile import install_all
from tailrace.p4rt.target import target
from tailrace.schemes.base import SchemeConfig
from tailrace.sim.network import Network
from tailrace.topology import Topology
from tests.schemes.planned import intent

Down = frozenset[tuple[str, int]]


def control(network: Network, scheme: SchemeConfig, down: Down = frozenset()) -> None:
    """Makes every switch hold what the controller intends while the links in `down` are dead."""
    plans = intent(network.topology, scheme, target("virtual"), down)
    install_all(network.p4rt, plans)


def build(topology: Topology, scheme: SchemeConfig, seed: int = 0) -> Network:
    """The network, ready for traffic."""
    network = Network(topology, seed=seed)
    control(network, scheme)
    return network
