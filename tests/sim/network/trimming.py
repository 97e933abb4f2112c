# SPDX-License-Identifier: Apache-2.0
"""One switch that trims, with NICs that answer trimmed packets by NACKs, on a virtual clock."""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec.structs import replace

from tailrace.hosts.flows.flow import FlowRecord, FlowSpec
from tailrace.hosts.nic.nic import Nic
from tailrace.hosts.options.nic import NicConfig
from tailrace.sim.network import Network, Wire, WireEvent
from tailrace.sim.network.account import NetworkAccount
from tailrace.switch.core import ActionCall, V1ModelSwitch
from tailrace.topology import GATEWAY_MAC, parse_topology
from tests.p4src.rig import address_number, program

SWITCH = "leaf1"
SLICE_NS = 20_000
"""The books are looked at after each of these."""


class TrimmingRun:
    """Flows between hosts of one switch, whose queues cut off what is beyond their limit.

    accounts: of the network, whenever it stood still.
    wires: lengths of trimmed frames by the wire that they were sent on.
    """

    def __init__(self, hosts: int, limit_bytes: int, *, virtual: bool, mtu_bytes: int = 1000) -> None:
        words = f"leaf-spine:leaves=1,spines=1,hosts={hosts},rate=10Gbps,delay=1us,latency=500ns"
        self.topo = parse_topology(words)
        self.net = Network(self.topo, seed=3)
        for node in self.net.switches:
            self.net.switch(node.name).load(program("spritz"))
        self._configure(self.net.switch(SWITCH), limit_bytes)
        rate_bps = self.topo.hosts[0].rate_bps
        config = NicConfig(
            transport="dctcp",
            mtu_bytes=mtu_bytes,
            window_bytes=20 * mtu_bytes,
            rto_ns=10**9,
            link_rate_bps=rate_bps,
            virtual_payload=virtual,
        )
        self.nics = [
            Nic(ip=item.ip, mac=item.mac, gateway_mac=GATEWAY_MAC, config=config, rng=random.Random(item.id))
            for item in self.topo.hosts
        ]
        for item, nic in zip(self.topo.hosts, self.nics, strict=True):
            self.net.attach(item.name, nic)
        self.accounts: list[NetworkAccount] = []
        self.trimmed_lengths: list[int] = []
        self.net.tap(self._tap, [wire for wire in self.net.wires if wire.source.node == SWITCH])

    def _configure(self, switch: V1ModelSwitch, limit_bytes: int) -> None:
        tables = {table.name.rsplit(".", 1)[-1]: table for table in switch.model.tables}

        def call(table: str, action: str, *arguments: int) -> ActionCall:
            action_spec = next(
                i for i in tables[table].actions if switch.model.actions[i].name.rsplit(".", 1)[-1] == action
            )
            return ActionCall(action_spec, arguments)

        limit = call("queue_config", "set_queue_trim", limit_bytes)
        switch.table_set_default(tables["queue_config"].index, limit)
        for item in self.topo.hosts:
            switch.table_insert(
                tables["ipv4_routes"].index,
                address_number(item.ip).to_bytes(4, "big"),
                b"\xff" * 4,
                prefix_bits=32,
                target=call("ipv4_routes", "to_host", item.port, int(item.mac.replace(":", ""), 16)),
            )

    def _tap(self, wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
        if event is WireEvent.SENT and len(frame) + virtual_bytes == 54:
            self.trimmed_lengths.append(virtual_bytes)

    def send(self, pairs: Sequence[tuple[int, int]], length_bytes: int) -> list[FlowRecord]:
        """Runs one flow for each pair of hosts, by number from 0, to the end; what became of them."""
        hosts = self.topo.hosts
        for number, (src, dst) in enumerate(pairs):
            flow = FlowSpec(number, hosts[src].ip, hosts[dst].ip, length_bytes, 0, number, 5000 + number)
            self.nics[src].add_flow(replace(flow, start_ns=100 * number))
            self.nics[dst].expect_flow(replace(flow, start_ns=100 * number))
        while not self.net.run(self.net.now_ns + SLICE_NS):
            self.accounts.append(self.net.account())
        self.accounts.append(self.net.account())
        return Nic.merge(*self.nics)

    def trims(self) -> tuple[int, int]:
        """The switch's own count: bytes that came in of what it trimmed, and packets."""
        switch = self.net.switch(SWITCH)
        counter = next(c for c in switch.model.counters if c.name.rsplit(".", 1)[-1] == "trims")
        return switch.counter_read(counter.index, 0)
