# SPDX-License-Identifier: Apache-2.0
"""Common parts of topology families: keys of links and switches, and the registry of families."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec

from tailrace.spec import keys
from tailrace.spec.registry import Registry

if TYPE_CHECKING:
    from tailrace.topology.families.build import Builder


class LinkOptions(msgspec.Struct, frozen=True):
    """Keys of all links and switches; the defaults are those of Flowcut §III-B1."""

    rate_bps: Annotated[int, keys.rate("rate", "rate of all links")] = 200_000_000_000
    delay_ns: Annotated[int, keys.time("delay", "one-way propagation delay of links")] = 1_000
    latency_ns: Annotated[
        int, keys.time("latency", "delay in a switch besides queueing and transmission")
    ] = 0

    @property
    def within_ns(self) -> int:
        """Propagation delay of links within a group of switches."""
        return self.delay_ns

    @property
    def between_ns(self) -> int:
        """Propagation delay of links between groups of switches."""
        return self.delay_ns

    @property
    def to_host_ns(self) -> int:
        """Propagation delay of hosts' links."""
        return self.delay_ns


class GroupLinks(LinkOptions, frozen=True):
    """Keys for networks with groups of switches: delays may depend on the kind of link (Spritz, Table II)."""

    local_ns: Annotated[
        int | None, keys.time("local", "delay of links within a group", absent="as delay")
    ] = None
    global_ns: Annotated[
        int | None, keys.time("global", "delay of links between groups", absent="as delay")
    ] = None
    host_ns: Annotated[int | None, keys.time("host", "delay of hosts' links", absent="as delay")] = None

    @property
    def within_ns(self) -> int:
        return self.delay_ns if self.local_ns is None else self.local_ns

    @property
    def between_ns(self) -> int:
        return self.delay_ns if self.global_ns is None else self.global_ns

    @property
    def to_host_ns(self) -> int:
        return self.delay_ns if self.host_ns is None else self.host_ns


class Family(Protocol):
    """A family of networks: a dataclass of its keys, which builds a network."""

    @property
    def links(self) -> LinkOptions:
        """The keys of links and switches, as a group of keys."""

    def build(self, builder: Builder) -> None:
        """Builds the network that the keys describe: its switches, then the links between them.

        Raises:
            SpecError: there is no such network; the text does not name the topology.
        """


FAMILIES: Registry[Family] = Registry("topology", files="FILE", methods={"build": 1})

register = FAMILIES.register
