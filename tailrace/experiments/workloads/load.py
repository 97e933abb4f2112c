# SPDX-License-Identifier: Apache-2.0
"""The capacity of which a load is a share: that of the hosts' links, or that of the leaves' uplinks.

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
"""Values of the key of=."""


def uplink_bps(topology: Topology, leaf: str) -> int:
    """The total rate of a leaf's links to other switches."""
    return sum(peer.rate_bps for peer in topology.ports_of(leaf).values() if peer.kind == "switch")


def host_load(topology: Topology, hosts: Sequence[Host], apart: str, load: float) -> float:
    """The load of each host's link at which the load of the fabric is `load`, if receivers are random.

    Args:
        topology: at full speed.
        hosts: the senders, and the receivers.
        apart: what sender and receiver must not share, one of pairs.APART.
        load: share of the total rate of all leaves' uplinks, headers not counted.

    Raises:
        PatternError: no traffic crosses the fabric, or the hosts' links are too slow.
    """
    groups = pairs.groups_of(topology, hosts, apart)
    inside = Counter(groups)
    neighbours = Counter(host.switch for host in hosts)
    # partners: hosts that may be the receiver; near: those of them at the sender's switch. `near` is exact:
    # the hosts of a group are on one switch, or the group has all hosts of its switches
    demand_bps = 0.0
    for host, group in zip(hosts, groups, strict=True):
        partners = len(hosts) - inside[group]
        near = max(0, neighbours[host.switch] - inside[group])
        demand_bps += host.rate_bps * (partners - near) / partners if partners else 0.0
    fabric_bps = sum(uplink_bps(topology, leaf) for leaf in topology.leaves)
    if not demand_bps or not fabric_bps:
        raise PatternError("load of the fabric: no flow crosses it")
    host_share = load * fabric_bps / demand_bps
    if host_share > 1:
        raise PatternError(
            f"load of the fabric: the links of hosts carry at most {load / host_share:.3g} of it"
        )
    return host_share
