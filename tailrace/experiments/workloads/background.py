# SPDX-License-Identifier: Apache-2.0
"""Background traffic beside a pattern: the hosts that take no part in it form a permutation (Spritz §V-B).

The background flows keep one path each, chosen by a hash (steering ECMP), whatever the scheme. They are not
measured, and a run does not wait for them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from tailrace.experiments.workloads import pairs
from tailrace.experiments.workloads.classes import BACKGROUND
from tailrace.experiments.workloads.transfer import ECMP, PatternError, Transfer
from tailrace.topology import Host, Topology


def with_background(
    transfers: Iterable[Transfer], background_bytes: int, topology: Topology, rng: random.Random
) -> Iterator[Transfer]:
    """A pattern's transfers, then flows of `background_bytes` (0: none) among the hosts it does not use."""
    taken: set[str] = set()
    for transfer in transfers:
        taken |= {transfer.sender.name, transfer.receiver.name}
        yield transfer
    if background_bytes:
        rest = [host for host in topology.hosts if host.name not in taken]
        for sender, receiver in permutation_among(topology, rest, rng):
            yield Transfer(sender, receiver, background_bytes, flow_class=BACKGROUND, steering=ECMP)


def permutation_among(
    topology: Topology, hosts: list[Host], rng: random.Random, apart: str = pairs.HOSTS
) -> list[pairs.Pair]:
    """A random permutation among some hosts; `apart` is one of pairs.APART.

    Raises:
        PatternError: no such permutation exists.
    """
    permuted = pairs.permutation(hosts, pairs.groups_of(topology, hosts, apart), rng) if hosts else None
    if permuted is None:
        raise PatternError(f"there is no permutation of the {len(hosts)} hosts that are left")
    return permuted
