# SPDX-License-Identifier: Apache-2.0
"""What a load is a share of: the links of hosts, or the links by which leaves reach the rest of the fabric.

In a fabric with fewer uplinks than hosts the two differ: with 24 hosts and 12 uplinks a leaf, a load of 60 %
of the fabric (RLB §VI-B) is less than 33 % of the hosts' links, since some flows stay at their leaf.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tailrace.experiments.workloads import pairs
from tailrace.experiments.workloads.transfer import PatternError
from tailrace.topology import Host, Topology

HOSTS, FABRIC = OF = ("hosts", "fabric")
"""The spec for it."""


def uplink_bps(topology: Topology, leaf: str) -> int:
    """The rate of all links of a leaf to other switches together."""
    return sum(peer.rate_bps for peer in topology.ports_of(leaf).values() if peer.kind == "switch")


def host_load(topology: Topology, hosts: Sequence[Host], apart: str, load: float) -> float:
    """The share of each host's link that loads the fabric by `load`, when receivers are drawn at random.

    Args:
        topology: at full speed.
        hosts: who sends to whom.
        apart: what the two of a pair do not share, one of pairs.APART.
        load: of all leaves' uplinks together, headers not counted.

    Raises:
        PatternError: no traffic crosses the fabric, or the hosts' links are too slow.
    """
    groups = pairs.groups_of(topology, hosts, apart)
    inside = Counter(groups)
    neighbours = Counter(host.switch for host in hosts)
    # hosts of one group are of one switch, or all hosts of their switch are in it
    demand_bps = 0.0
    for host, group in zip(hosts, groups, strict=True):
        partners = len(hosts) - inside[group]
        near = max(0, neighbours[host.switch] - inside[group])
        demand_bps += host.rate_bps * (partners - near) / partners if partners else 0.0
    fabric_bps = sum(uplink_bps(topology, leaf) for leaf in topology.leaves)
    if not demand_bps or not fabric_bps:
        raise PatternError("load of the fabric: no flow crosses it")
    share = load * fabric_bps / demand_bps
    if share > 1:
        raise PatternError(f"load of the fabric: the links of hosts carry at most {load / share:.3g} of it")
    return share
