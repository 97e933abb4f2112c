# SPDX-License-Identifier: Apache-2.0
"""Hosts to which only some of the equal paths lead: `narrow=h7/5`, so that traffic to one host loads some
paths and leaves the others alone (RLB §II-B, Fig. 4: how many paths a paused flow takes).

Every switch with more next hops towards such a host's leaf takes the first few of them only, in the order of
its ports, for packets to this host. In a leaf-spine that is so many paths. Packets from the host go by all.
"""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.topology.model import Narrow, Topology
from tailrace.words import Options

KEY = "narrow"

Hops = Mapping[str, Mapping[str, tuple[int, ...]]]


def narrow_of(options: Options) -> tuple[Narrow, ...]:
    """What `narrow=` says, where it is given.

    Raises:
        SpecError: it is no host and number.
    """
    if KEY not in options:
        return ()
    host, _, paths = options.text(KEY).partition("/")
    if not host or not paths.isdecimal() or int(paths) < 1:
        raise options.error(KEY, "HOST/PATHS such as h7/5")
    return (Narrow(host, int(paths)),)


def with_narrow(topology: Topology, hops: Hops, usual: Hops | None = None) -> Hops:
    """Next hops towards leaves, and towards each narrow host where they are fewer, by its name.

    Args:
        topology: says which hosts are narrow.
        hops: by switch and leaf, as `next_hops` has them.
        usual: those of the faultless network, where `hops` are of one with dead links: what is left of the
            narrow host's own next hops counts; where nothing is, the first of those that are.
    """
    if not topology.narrow:
        return hops
    faultless = hops if usual is None else usual
    found = {name: dict(ports) for name, ports in hops.items()}
    for narrow in topology.narrow:
        leaf = topology.host(narrow.host).switch
        for name, own in found.items():
            if len(faultless[name].get(leaf, ())) > narrow.paths:
                chosen = faultless[name][leaf][: narrow.paths]
                left = tuple(port for port in chosen if port in own[leaf])
                own[narrow.host] = left or own[leaf][: narrow.paths]
    return found
