# SPDX-License-Identifier: Apache-2.0
"""Hosts to which only some of the equal paths lead: `restricted=h7/5`, so that traffic to one host loads some
paths and leaves the others alone (RLB §II-B, Fig. 4: how many paths a paused flow takes). Several are
`restricted=h7/5+h9/5`.

Every switch with more next hops towards such a host's leaf takes the first few of them only, in the order of
its ports, for packets to this host. In a leaf-spine that is so many paths. Packets from the host go by all.
"""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.spec import UnitError, keys
from tailrace.topology.model import Restricted, Topology

_MOST_DIGITS = 9

Hops = Mapping[str, Mapping[str, tuple[int, ...]]]


_BETWEEN = "+"


def _restricted(text: str) -> tuple[Restricted, ...]:
    hosts = [_one(part) for part in text.split(_BETWEEN)]
    if len({each.host for each in hosts}) < len(hosts):
        raise UnitError(text)
    return tuple(hosts)


def _one(text: str) -> Restricted:
    host, _, paths = text.partition("/")
    if not host or not paths.isdecimal() or len(paths) > _MOST_DIGITS or int(paths) < 1:
        raise UnitError(text)
    return Restricted(host, int(paths))


RESTRICTED = keys.parsed(
    "restricted",
    "hosts, each once, to which only the first so many of equal paths lead",
    "HOST/PATHS such as h7/5 or h7/5+h9/5",
    _restricted,
    show=lambda hosts: _BETWEEN.join(f"{each.host}/{each.paths}" for each in hosts),
    absent="none",
    section="RLB §II-B",
)


def with_restricted(topology: Topology, hops: Hops, usual: Hops | None = None) -> Hops:
    """Next hops towards leaves, and towards each restricted host where they are fewer, by its name.

    Args:
        topology: says which hosts are.
        hops: by switch and leaf, as `next_hops` has them.
        usual: those of the faultless network, where `hops` are of one with dead links: what is left of the
            restricted host's own next hops counts; where nothing is, the first of those that are.
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
                left = tuple(port for port in chosen if port in towards[leaf])
                towards[restricted.host] = left or towards[leaf][: restricted.paths]
    return hops_of
