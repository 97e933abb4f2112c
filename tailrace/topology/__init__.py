# SPDX-License-Identifier: Apache-2.0
"""Networks as plain data: switches, hosts and links, their addresses and shortest paths."""

from tailrace.topology.model import GATEWAY_MAC, Host, Link, Peer, Restricted, Switch, Topology
from tailrace.topology.parse import parse_topology
from tailrace.topology.paths.shortest import max_switches_on_path, next_hops

__all__ = [
    "GATEWAY_MAC",
    "Host",
    "Link",
    "Peer",
    "Restricted",
    "Switch",
    "Topology",
    "max_switches_on_path",
    "next_hops",
    "parse_topology",
]
