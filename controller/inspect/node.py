# SPDX-License-Identifier: Apache-2.0
"""One switch under inspection: its connection, its program, and its neighbours by port."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.connection import Connection
from tailrace.p4rt.errors import RefusedError
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import Code


@dataclass(frozen=True)
class InspectedSwitch:
    """A switch that can be read.

    `peers` are its neighbours' names by port, empty if the topology is not known; `hosts` are names of hosts
    by IPv4 address. `tick_ns` is the unit of its program's times, None if it is not known.
    """

    name: str
    connection: Connection
    peers: Mapping[int, str] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    tick_ns: int | None = None
    program_name: str = ""

    @cached_property
    def program(self) -> ProgramNames:
        """The program's description, read once. Raises SwitchError."""
        return ProgramNames(self.connection.p4info())

    @property
    def title(self) -> str:
        """The program's name in messages."""
        return self.program_name or self.program.name or "its program"

    def read_if_offered(self, pattern: p4r.Entity) -> list[p4r.Entity]:
        """The entities that a pattern matches; none if the target does not offer them. Raises SwitchError."""
        try:
            return self.connection.read([pattern])
        except RefusedError as error:
            if error.code in (Code.UNIMPLEMENTED.name, Code.NOT_FOUND.name):
                return []
            raise

    def peer_of(self, port: int) -> str | None:
        """The neighbour at a port, or the program's name of a special port."""
        return self.peers.get(port) or self.program.special_ports.get(port)
