# SPDX-License-Identifier: Apache-2.0
"""A leaf switch for the programs of p4src: hosts below, other switches above, and questions to the switch.

    host 0 -- 0 +--------+ 2 -- a switch below this one (where this one is no leaf)
    host 1 -- 1 | switch | 3, 4, 5 -- uplinks
   nothing -- 6 +--------+ 7 -- a slow link to a switch        (6: nobody gave it a role)

    10.0.1.2, 10.0.1.3    the hosts            10.0.2.0/24   by the uplinks
    10.0.3.0/24           by the slow port     10.0.8.0/24   by the slow port or uplink 3
    10.0.4.0/24           a group whose slot is empty         10.0.5.0/24  a group without slots

The prefixes that start with 10.0.1 are the hosts'; no test sends to any other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import ptf
from p4.v1 import p4runtime_pb2
from ptf import testutils

from ptf_tests.base import TIMEOUT_S, P4RuntimeTest, octets
from ptf_tests.frames import Flow, mac_of, number_of

HOST_PORT, OTHER_HOST_PORT = 0, 1
DOWNLINK = 2
UPLINKS = (3, 4, 5)
ROLELESS_PORT = 6
HOST, OTHER_HOST = "10.0.1.2", "10.0.1.3"
REMOTE, SLOW_REMOTE, MIXED_REMOTE = "10.0.2.2", "10.0.3.2", "10.0.8.2"
UPLINK_GROUP, SLOW_GROUP, EMPTY_GROUP, SIZELESS_GROUP, MIXED_GROUP = range(1, 6)
FLOW = Flow(HOST, REMOTE)
BITS_PER_BYTE = 8
POLL_S = 0.005


class FabricTest(P4RuntimeTest):
    """The leaf switch above, running one of the programs of p4src."""

    program = "ecmp"
    folder = "schemes"

    def setUp(self) -> None:
        super().setUp()
        self.slow_port = int(testutils.test_param_get("slow_port"))
        layouts = json.loads(self.device_config)["header_types"]
        self.layouts = {layout["name"]: [(f[0], f[1]) for f in layout["fields"]] for layout in layouts}
        for port in (DOWNLINK, *UPLINKS, self.slow_port):
            self.add_entry("port_role", {"ingress_port": port}, self.action("fabric_port"))
        for address, port in ((HOST, HOST_PORT), (OTHER_HOST, OTHER_HOST_PORT)):
            mac = number_of(mac_of(address))
            self.add_route(address, 32, self.action("to_host", port=port, dst_mac=mac))
        self.add_group(REMOTE, UPLINK_GROUP, UPLINKS)
        self.add_group(SLOW_REMOTE, SLOW_GROUP, (self.slow_port,))
        self.add_group("10.0.4.0", EMPTY_GROUP, (), size=1)
        self.add_group("10.0.5.0", SIZELESS_GROUP, ())
        # The slot is always the slow port's; Flowcut may choose the other one.
        self.add_group(MIXED_REMOTE, MIXED_GROUP, (self.slow_port,))

    # ---- names and numbers of the program ----

    def enum(self, name: str, member: str) -> int:
        """A value of an enum of the P4 source."""
        for enum_member in self.p4info.type_info.serializable_enums[name].members:
            if enum_member.name == member:
                return int.from_bytes(enum_member.value, "big")
        raise KeyError(f"{self.program}: no {name}.{member}")

    def number(self, key: str) -> int:
        """A number that the program expects of its switch, such as cpu_port."""
        for annotation in self.p4info.pkg_info.structured_annotations:
            for pair in annotation.kv_pair_list.kv_pairs:
                if annotation.name == "switch" and pair.key == key:
                    return int(pair.value.int64_value)
        raise KeyError(f"{self.program}: no number {key}")

    def decode(self, header: str, data: bytes) -> tuple[dict[str, int], bytes]:
        """The fields of a header of the P4 source at the start of some bytes, and the bytes behind it."""
        length = sum(bits for _, bits in self.layouts[header]) // BITS_PER_BYTE
        rest = int.from_bytes(data[:length], "big")
        fields = {}
        for name, bits in reversed(self.layouts[header]):
            fields[name] = rest & ((1 << bits) - 1)
            rest >>= bits
        return fields, data[length:]

    # ---- entries ----

    def add_route(self, address: str, length: int, action: p4runtime_pb2.Action) -> None:
        """Route the prefix of some length that holds the address."""
        prefix = number_of(address) >> (32 - length) << (32 - length)
        # P4Runtime says "everything" by leaving the field out.
        self.add_entry("ipv4_routes", {"dst": (prefix, length)} if length else {}, action)

    def add_group(self, address: str, group: int, ports: tuple[int, ...], size: int | None = None) -> None:
        """Route the /24 of an address to a group with one slot a port."""
        size = len(ports) if size is None else size
        self.add_route(address, 24, self.action("to_group", group=group, size=size))
        for slot, port in enumerate(ports):
            self.add_entry("group_members", {"group": group, "slot": slot}, self.action("member", port=port))

    def modify(self, entry: p4runtime_pb2.TableEntry) -> None:
        """Give an entry that is there another action."""
        self._write(p4runtime_pb2.Update.MODIFY, table_entry=entry)

    def move_slot(self, group: int, slot: int, port: int) -> None:
        """Give a slot that is filled another port."""
        entry = self.entry("group_members", {"group": group, "slot": slot})
        entry.action.action.CopyFrom(self.action("member", port=port))
        self.modify(entry)

    # ---- frames ----

    def send(self, port: int, frame: Any) -> None:
        """A frame arrives at a port of the switch."""
        testutils.send_packet(self, port, bytes(frame))

    def receive(self, port: int | None = None) -> tuple[int, bytes]:
        """Port and bytes of the next frame that left, by any port or by one; fails when none comes."""
        polled = testutils.dp_poll(self, port_number=port, timeout=TIMEOUT_S)
        self.assertIsInstance(
            polled, ptf.dataplane.DataPlane.PollSuccess, f"nothing left port {port or 'any'}"
        )
        return int(polled.port), bytes(polled.packet)

    def expect(self, port: int, frame: Any) -> None:
        """The next frame by this port is exactly this one."""
        self.assertEqual(bytes(frame).hex(), self.receive(port)[1].hex())

    def nothing_else(self) -> None:
        """No port has sent anything that the test did not ask about."""
        testutils.verify_no_other_packets(self)

    # ---- counters ----

    def eventually(self, expected: Any, probe: Callable[[], Any]) -> None:
        """Fail unless the probe gives the expected value in good time."""
        deadline = time.monotonic() + TIMEOUT_S
        while (seen := probe()) != expected and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self.assertEqual(expected, seen)

    def count(self, counter: str, index: int = 0) -> int:
        """Packets in a cell of a counter."""
        entry = p4runtime_pb2.CounterEntry(counter_id=self.named("counters", counter).preamble.id)
        entry.index.index = index
        (entity,) = self.read(counter_entry=entry)
        return int(entity.counter_entry.data.packet_count)

    def expect_count(self, counter: str, packets: int, index: int = 0) -> None:
        """A counter comes to a number of packets."""
        self.eventually(packets, lambda: self.count(counter, index))

    def drops(self) -> dict[str, int]:
        """Packets dropped so far, by reason; reasons never seen are left out."""
        reasons = self.p4info.type_info.serializable_enums["DropReason_t"].members
        counts = {r.name: self.count("drops", int.from_bytes(r.value, "big")) for r in reasons}
        return {name: packets for name, packets in counts.items() if packets}

    def expect_drops(self, **packets: int) -> None:
        """Exactly these were dropped since the test began, and nothing came out of a port."""
        self.eventually(packets, self.drops)
        self.nothing_else()

    # ---- packets to and from the controller ----

    def packet_out(self, op: str, index: int, payload: bytes = b"") -> None:
        """A packet-out with an operation of PacketOutOp_t."""
        values = {"op": self.enum("PacketOutOp_t", op), "index": index}
        packet = p4runtime_pb2.PacketOut(payload=payload)
        for field in self._metadata("packet_out"):
            packet.metadata.add(metadata_id=field.id, value=octets(values[field.name]))
        self.send_message(packet=packet)

    def packet_in(self, reason: str) -> tuple[int, bytes]:
        """Index and payload of the next packet-in, which must have a reason of PacketInReason_t."""
        packet = self.receive_message("packet")
        names = {field.id: field.name for field in self._metadata("packet_in")}
        values = {names[item.metadata_id]: int.from_bytes(item.value, "big") for item in packet.metadata}
        self.assertEqual(self.enum("PacketInReason_t", reason), values["reason"])
        return values["index"], bytes(packet.payload)

    def _metadata(self, header: str) -> Any:
        for header_info in self.p4info.controller_packet_metadata:
            if header_info.preamble.name == header:
                return header_info.metadata
        raise KeyError(f"{self.program}: no controller header {header}")

    def asked(self, op: str, index: int, reason: str, header: str) -> dict[str, int]:
        """What the program answers to an operation of PacketOutOp_t: a header of the P4 source."""
        self.packet_out(op, index)
        answered_index, payload = self.packet_in(reason)
        self.assertEqual(index, answered_index)
        fields, rest = self.decode(header, payload)
        self.assertEqual(b"", rest)
        return fields

    def port_queues(self, port: int) -> tuple[int, int]:
        """Bytes that wait for a port to leave by, and bytes that came in by it and wait."""
        fields = self.asked("READ_PORT", port, "PORT", "port_queues_t")
        return fields["egress_queue_bytes"], fields["ingress_queue_bytes"]
