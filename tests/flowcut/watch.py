# SPDX-License-Identifier: Apache-2.0
"""Writes down everything that one switch sees and does, in order: arrivals, departures, dumps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tailrace.sim.network import Network, Wire, WireEvent
from tests.flowcut.dump import Dump, ask
from tests.flowcut.frames import Parsed, parse


@dataclass(frozen=True, slots=True)
class Event:
    """A frame that arrived or left (`frame`), or a dump or sweep of a bucket (`dump`)."""

    now: int
    what: Literal["in", "out", "dump", "sweep"]
    port: int = 0
    frame: Parsed | None = None
    dump: Dump | None = None


class Watch:
    """Events of one switch."""

    def __init__(self, network: Network, switch: str) -> None:
        self.network = network
        self.switch = switch
        self.events: list[Event] = []
        network.tap(self._tap, [w for w in network.wires if switch in (w.source.node, w.target.node)])

    def _tap(self, wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        if event is WireEvent.RECEIVED and wire.target.node == self.switch:
            self.events.append(Event(now_ns, "in", wire.target.port, parse(frame, virtual_bytes)))
        elif event is WireEvent.SENT and wire.source.node == self.switch:
            self.events.append(Event(now_ns, "out", wire.source.port, parse(frame, virtual_bytes)))

    def read(self, bucket: int, *, sweep: bool = False) -> Dump:
        """Looks at a bucket now, with `sweep` after deleting what is past its age."""
        dump = ask(self.network.p4rt(self.switch), "SWEEP" if sweep else "READ_FLOWS", bucket)
        self.events.append(Event(dump.now, "sweep" if sweep else "dump", dump=dump))
        return dump
