# SPDX-License-Identifier: Apache-2.0
"""Hosts to which only some of the equal-cost paths lead: `restricted=h7/5`, so that traffic to one host loads
only some paths (RLB §II-B, Fig. 4: the number of paths of a paused flow). Several hosts are written as
`restricted=h7/5+h9/5`.

For packets to h7, every switch uses only the first 5 of its next hops towards the host's leaf (switch), in
the order of ports. In a leaf-spine these are 5 paths. Packets from the host may take all paths.
"""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.spec import UnitError, keys
from tailrace.topology.model import Restricted, Topology

_MOST_DIGITS = 9

Hops = Mapping[str, Mapping[str, tuple[int, ...]]]


_SEPARATOR = "+"


def _restricted(text: str) -> tuple[Restricted, ...]:
    """The hosts in a value of the key; raises UnitError, which the key reports, for an invalid value."""
    hosts = [_restricted_host(part) for part in text.split(_SEPARATOR)]
    if len({each.host for each in hosts}) < len(hosts):
        raise UnitError(text)
    return tuple(hosts)


def _restricted_host(text: str) -> Restricted:
    host, _, paths = text.partition("/")
    if not host or not paths.isdecimal() or len(paths) > _MOST_DIGITS or int(paths) < 1:
        raise UnitError(text)
    return Restricted(host, int(paths))


RESTRICTED = keys.parsed(
    "restricted",
    "hosts to which switches use only the first PATHS of the equal-cost next hops",
    "HOST/PATHS such as h7/5 or h7/5+h9/5",
    _restricted,
    show=lambda hosts: _SEPARATOR.join(f"{each.host}/{each.paths}" for each in hosts),
    absent="none",
    section="RLB §II-B",
)


def with_restricted(topology: Topology, hops: Hops, usual: Hops | None = None) -> Hops:
    """Next hops towards leaves, and in addition towards each restricted host, by its name, at switches where
    the host has fewer next hops than its leaf.

    Args:
        topology: has the restricted hosts.
        hops: next hops by switch and leaf, as from `next_hops`.
        usual: next hops of the faultless network, if `hops` has dead links: the host then keeps those of its
            usual next hops that are in `hops`; if there are none, it gets the first ones in `hops`.
    """
    if not topology.restricted:
        return hops
    faultless = hops if usual is None else usual
    hops_of = {name: dict(ports) for name, ports in hops.items()}
    for restricted in topology.restricted:
        leaf = topology.host(restricted.host).switch
        for name, towards in hops_of.items():
            if len(faultless[name].get(leaf, ())) > restricted.paths:
                chosen = faultless[name][leaf][: restricted.paths]
                usable = tuple(port for port in chosen if port in towards[leaf])
                towards[restricted.host] = usable or towards[leaf][: restricted.paths]
    return hops_of
