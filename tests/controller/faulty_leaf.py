# SPDX-License-Identifier: Apache-2.0
"""Switches of a leaf-spine behind real P4Runtime servers, and a leaf that is made to find a path faulty.

Data of the first leaf's host that wants to go by a port finds its path warned, and quick as long as all others
are slow: so every packet goes round as often as it may, waiting for that port, until Algorithm 2 (RLB §IV-B.2)
has seen enough of it. Hermes is the selector: the source port says which way a packet wants to go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.p4rt.channel import SwitchAddress
from tailrace.topology import parse_topology
from tests.controller.inspect.served import ServedSwitch, served
from tests.p4src.frames import roce

TOPOLOGY = parse_topology("leaf-spine:leaves=2,spines=3,hosts=1,rate=10Mbps,delay=1ms")
LEAF = "leaf1"
HOST_PORT = 1
UPLINKS = (2, 3, 4)
REMOTE_LEAF = 1
INTERVAL_NS = 1_000_000
SCHEME = f"rlb:variant=hermes,limit=fixed,most=9,fault=2,interval={INTERVAL_NS}ns"
LEAVES = 128
FOREVER = 1 << 47
MARK = b"of the host"
QUICK, SLOW = 1_000, 1_000_000
STRIKES = 3
"""Intervals until an alert: two bad ones, and one that ends the second."""


class FaultyLeaf:
    """The first leaf, which runs the scheme."""

    def __init__(self, served_switch: ServedSwitch) -> None:
        self._served = served_switch

    def _write(self, register: str, index: int, value: int) -> None:
        switch = self._served.switch
        model = switch.model
        number = next(r.index for r in model.registers if r.name.rsplit(".", 1)[-1] == register)
        switch.register_write(number, index, value)

    def spoil(self, port: int) -> None:
        """Make the path by a port one that packets wait for."""

        def run() -> None:
            now_ticks = self._served.plane.clock_ns // 1_000
            for uplink in UPLINKS:
                path = uplink * LEAVES + REMOTE_LEAF
                self._write("warned_until_ticks", path, FOREVER * (uplink == port))
                self._write("path_rtt_ticks", path, QUICK if uplink == port else SLOW)
                self._write("path_rtt_seen_ticks", path, now_ticks)
                # stamps of it come back, or it were overdue, and nobody would wait for it
                self._write("probe_unanswered_ticks", path, 0)

        self._served.in_server(run)

    def measured(self, port: int, rtt_ticks: int) -> None:
        """Give the path by a port an RTT, measured now."""

        def run() -> None:
            path = port * LEAVES + REMOTE_LEAF
            self._write("path_rtt_ticks", path, rtt_ticks)
            self._write("path_rtt_seen_ticks", path, self._served.plane.clock_ns // 1_000)

        self._served.in_server(run)

    def send(self, slot: int) -> list[int]:
        """A packet of the host, that wants to go by a slot; the ports by which it left."""
        frame = bytes(roce(49152 + slot, src="10.0.1.2", dst="10.0.2.2", payload=MARK))
        # the controller's probes of links leave, too
        return [port for port, data in self._served.receive(HOST_PORT, frame) if MARK in data]

    def find_faulty(self, port: int, slot: int) -> None:
        """Send so much that wants to go by a port, in the given slot, that the leaf raises an alert.

        First nothing happens for a while, which takes earlier strikes back.
        """
        self._served.advance(3 * INTERVAL_NS)
        for _ in range(STRIKES):
            self._served.advance(INTERVAL_NS + INTERVAL_NS // 2)
            self.spoil(port)
            self.send(slot)


@contextmanager
def fabric() -> Iterator[tuple[dict[str, SwitchAddress], FaultyLeaf, dict[str, ServedSwitch]]]:
    """All switches by name, and the leaf."""
    with served(len(TOPOLOGY.switches)) as places:
        by_name = {item.name: place for item, place in zip(TOPOLOGY.switches, places, strict=True)}
        addresses = {name: SwitchAddress(place.address, place.device_id) for name, place in by_name.items()}
        yield addresses, FaultyLeaf(by_name[LEAF]), by_name
