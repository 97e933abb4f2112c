# SPDX-License-Identifier: Apache-2.0
"""Incast: many hosts send to one, optionally beside flows between other hosts (Spritz §V-C, Fig. 8)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Annotated

import msgspec

from tailrace.experiments.workloads import pairs
from tailrace.experiments.workloads.background import permutation_among
from tailrace.experiments.workloads.classes import BYSTANDER, INCAST, NO_CLASS
from tailrace.experiments.workloads.patterns import chosen, named
from tailrace.experiments.workloads.registry import (
    DEFAULT_BYTES,
    EITHER_SIZE,
    JITTER,
    Peers,
    register,
)
from tailrace.experiments.workloads.transfer import PatternError, Transfer
from tailrace.spec import SpecError, keys
from tailrace.topology import Host, Topology


@register("incast", "many hosts send to one host at the same time")
class Incast(msgspec.Struct, frozen=True):
    """`degree` hosts send to one; flows between bystanders have a separate class (classes.py)."""

    peers: Peers
    degree: Annotated[int, keys.integer("degree", "number of senders", least=1)]
    size_bytes: Annotated[int | None, EITHER_SIZE] = None
    total_bytes: Annotated[
        int | None,
        keys.size(
            "total",
            "bytes that all senders send in total",
            least=1,
            absent="degree times size",
            section="RLB §VI-B.3",
        ),
    ] = None
    bystanders: Annotated[
        int,
        keys.integer(
            "bystanders",
            "number of other hosts, which send to each other as a permutation",
            least=2,
            absent="none",
        ),
    ] = 0
    receiver: Annotated[str, keys.text("to", "the receiver", "HOST", absent="drawn at random")] = ""
    first: Annotated[
        str,
        keys.text(
            "from",
            "the first sender; the other senders are the hosts that follow it",
            "HOST",
            absent="drawn at random",
        ),
    ] = ""
    jitter_ns: Annotated[int, JITTER] = 0

    def __post_init__(self) -> None:
        """Refuse both size= and total=."""
        if None not in (self.size_bytes, self.total_bytes):
            raise SpecError("expected either size= or total=")

    @property
    def _each_bytes(self) -> int:
        """Bytes that each sender, and each bystander, sends."""
        if self.total_bytes is not None:
            return -(-self.total_bytes // self.degree)
        return DEFAULT_BYTES if self.size_bytes is None else self.size_bytes

    def transfers(self, topology: Topology, rng: random.Random) -> Iterator[Transfer]:
        hosts = chosen(topology, 0, rng)
        target = named(topology, self.receiver) if self.receiver else rng.choice(hosts)
        senders = self._senders(topology, target, rng)
        flow_class = INCAST if self.bystanders else NO_CLASS
        for sender in senders:
            yield Transfer(
                sender, target, self._each_bytes, rng.randint(0, self.jitter_ns), flow_class=flow_class
            )
        if not self.bystanders:
            return
        rest = [host for host in hosts if host != target and host not in senders]
        if self.bystanders > len(rest):
            raise PatternError(f"bystanders must be at most {len(rest)}, the number of the other hosts")
        bystanders = [rest[index] for index in sorted(rng.sample(range(len(rest)), self.bystanders))]
        for sender, receiver in permutation_among(topology, bystanders, rng, self.peers.apart):
            yield Transfer(
                sender, receiver, self._each_bytes, rng.randint(0, self.jitter_ns), flow_class=BYSTANDER
            )

    def _senders(self, topology: Topology, target: Host, rng: random.Random) -> list[Host]:
        hosts = list(topology.hosts)
        groups = pairs.groups_of(topology, hosts, self.peers.apart)
        excluded = groups[hosts.index(target)]
        able = [host for host, group in zip(hosts, groups, strict=True) if group != excluded]
        if self.degree > len(able):
            raise PatternError(
                f"degree must be at most {len(able)}, the number of hosts that can send to the receiver"
            )
        if not self.first:
            return rng.sample(able, self.degree)
        begin = hosts.index(named(topology, self.first))
        senders = hosts[begin : begin + self.degree]
        if len(senders) < self.degree or not set(senders) <= set(able):
            raise PatternError(
                f"the {self.degree} hosts from {self.first} on cannot all send to {target.name}"
            )
        return senders
