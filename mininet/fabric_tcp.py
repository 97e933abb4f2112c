# SPDX-License-Identifier: Apache-2.0
"""Gives the hosts' own stacks the rate of their links: packets of the kernel's TCP pass no NIC of ours.

A token bucket of one packet sends them one by one at the rate. It does not know the delay of the link, and of
the frame on it it counts what the kernel does: no preamble, no FCS.
"""

from __future__ import annotations

import shlex

from fabric_errors import FabricError
from fabric_net import FabricNet
from fabric_plan import host_interface

_QUEUE_BYTES = 16 << 20
"""The stack of a host fills its own queue no further than some ms; the bucket is not to be what drops."""

_HEADERS_BYTES = 14 + 20 + 60
"""Of Ethernet, IPv4 and, with all its options, TCP."""


def shape(net: FabricNet, payload_bytes: int) -> None:
    """Bounds what each host's kernel sends; again and again, if wanted.

    Raises:
        FabricError: the kernel has no token bucket, or refuses.
    """
    for host in net.plan.topology.hosts:
        words = ["tc", "qdisc", "replace", "dev", host_interface(host.name), "root", "tbf"]
        words += ["rate", f"{host.rate_bps}bit", "burst", f"{payload_bytes + _HEADERS_BYTES}b"]
        words += ["limit", f"{_QUEUE_BYTES}b"]
        said = net.mininet[host.name].cmd(f"{shlex.join(words)} && echo done")
        if said.split() != ["done"]:
            raise FabricError(f"{host.name}: the kernel's TCP needs tc's tbf: {' '.join(said.split())}")
