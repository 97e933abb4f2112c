# SPDX-License-Identifier: Apache-2.0
"""One switch with a program of p4src, in this process and in virtual time: a tick is a nanosecond.

    rig = Rig("flowcut")
    rig.default("queue_config", limit_bytes=1000)
    rig.insert("group_members", (1, 0), "member", port=3)
    outputs = rig.send(0, frame, at_ns=100)

Tables, actions, registers and counters go by the last part of their name, as in P4Info's aliases.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from finsy.proto import p4i
from google.protobuf import text_format
from scapy.packet import Packet

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import ActionCall, Replica, SentFrame, SwitchConfig, V1ModelSwitch

BUILD = Path(__file__).parents[2] / "p4src" / "build"
PROGRAMS = (
    *("ecmp", "spray", "letflow", "presto", "drill", "hermes"),
    *("flowcut", "dragonfly", "flowcut_dragonfly", "spritz"),
)
HOST_PORT, OTHER_HOST_PORT, DOWNLINK = 0, 1, 2
UPLINKS = (3, 4, 5, 6)
UPLINK_GROUP = 1
HOST, OTHER_HOST, REMOTE = "10.0.1.2", "10.0.1.3", "10.0.2.2"
NEVER_TICKS = 1 << 46
DRILL_TABLES = ("remembered_members", "first_members", "other_members")
CANDIDATES = ("set_candidates", "set_more_candidates")
RTT_OFF, GROWTH_OFF = 0xFFFF, 0x7FFF
_SUBNET_BITS, _ADDRESS_BITS = 24, 32


@functools.cache
def program(name: str) -> SwitchProgram:
    """A compiled program of p4src."""
    return load_program((BUILD / f"{name}.json").read_bytes(), source=name)


@functools.cache
def p4info(name: str) -> p4i.P4Info:
    """Its P4Info."""
    return text_format.Parse((BUILD / f"{name}.p4info.txtpb").read_text("utf-8"), p4i.P4Info())


@functools.cache
def register_indexes(name: str) -> dict[str, int]:
    """Its registers, by the last part of their name."""
    return {register.name.rsplit(".", 1)[-1]: register.index for register in program(name).model.registers}


def number(key: str) -> int:
    """What the programs expect of their switch, such as cpu_port."""
    for annotation in p4info("ecmp").pkg_info.structured_annotations:
        for pair in annotation.kv_pair_list.kv_pairs:
            if pair.key == key:
                return int(pair.value.int64_value)
    raise KeyError(key)


def enum(name: str, member: str) -> int:
    """A value of an enum of the P4 sources."""
    return enum_of("flowcut", name, member)


def enum_of(program_name: str, name: str, member: str) -> int:
    """A value of an enum of one program."""
    for enum_member in p4info(program_name).type_info.serializable_enums[name].members:
        if enum_member.name == member:
            return int.from_bytes(enum_member.value, "big")
    raise KeyError(member)


def address_number(address: str) -> int:
    """An IPv4 address as a number."""
    return int.from_bytes(bytes(map(int, address.split("."))), "big")


_Rig = TypeVar("_Rig", bound="Rig")


class Rig:
    """The switch. Ports as above: hosts at 0 and 1, other switches at 2 and at the uplinks."""

    def __init__(self, name: str, *, seed: int = 1, recirc_rate_bps: int = 0) -> None:
        self.name = name
        self.model = program(name).model
        self.cpu_port = number("cpu_port")
        config = SwitchConfig(
            cpu_port=self.cpu_port,
            drop_port=number("drop_port"),
            priority_queues=number("priority_queues"),
            queue_depth_packets=0,
            tick_ns=1,
            recirc_rate_bps=recirc_rate_bps,
            seed=seed,
        )
        self.switch = V1ModelSwitch(program(name), config)
        self._candidates: dict[int, int] = {}
        for port in (DOWNLINK, *UPLINKS):
            self.insert("port_role", (port,), self.role(port))
        for address, port in ((HOST, HOST_PORT), (OTHER_HOST, OTHER_HOST_PORT)):
            self.route(address, _ADDRESS_BITS, "to_host", port=port, dst_mac=port + 1)
        self.group(REMOTE, UPLINK_GROUP, UPLINKS)
        if name.startswith("flowcut"):
            self.switch.clone_set(number("ack_session"), [Replica(number("mirror_port"))])

    def __enter__(self: _Rig) -> _Rig:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.switch.close()

    # ---- names ----

    def _call(self, table: str, action: str | None, arguments: dict[str, int]) -> tuple[int, ActionCall]:
        """Index of a table, and the call of one of its actions; of its only one where none is named."""
        info = next(t for t in self.model.tables if t.name.rsplit(".", 1)[-1] == table)
        for index in info.actions:
            candidate = self.model.actions[index]
            if candidate.name.rsplit(".", 1)[-1] == action or (action is None and len(info.actions) == 1):
                names = [param.name for param in candidate.params]
                assert sorted(arguments) == sorted(names), f"{candidate.name} takes {names}"
                return info.index, ActionCall(index, tuple(arguments[name] for name in names))
        raise KeyError(f"{table}: {action}")

    def insert(
        self, table: str, key: tuple[int, ...], action: str, *, prefix_bits: int = 0, **arguments: int
    ) -> int:
        """Add an entry; returns its handle."""
        index, call = self._call(table, action, arguments)
        fields = self.model.tables[index].key
        packed = b"".join(
            value.to_bytes(field.nbytes, "big") for value, field in zip(key, fields, strict=True)
        )
        wild = 8 * len(packed) - prefix_bits if prefix_bits else 0
        mask = (((1 << 8 * len(packed)) - 1) >> wild << wild).to_bytes(len(packed), "big")
        return self.switch.table_insert(index, packed, mask, prefix_bits=prefix_bits, target=call)

    def delete(self, table: str, handle: int) -> None:
        """Delete an entry."""
        index = next(t.index for t in self.model.tables if t.name.rsplit(".", 1)[-1] == table)
        self.switch.table_delete(index, handle)

    def default(self, table: str, action: str | None = None, /, **arguments: int) -> None:
        """Set the action of a keyless table; its only one where none is named."""
        self.switch.table_set_default(*self._call(table, action, arguments))

    def route(self, address: str, bits: int, action: str, **arguments: int) -> None:
        """Route the prefix of a length that holds the address."""
        prefix = address_number(address) >> (_ADDRESS_BITS - bits) << (_ADDRESS_BITS - bits)
        self.insert("ipv4_routes", (prefix,), action, prefix_bits=bits, **arguments)

    def group(self, address: str, group: int, ports: tuple[int, ...]) -> None:
        """Route the /24 of an address to a group."""
        self.route(address, _SUBNET_BITS, "to_group", group=group, size=len(ports))
        self.members(group, ports)

    def role(self, port: int) -> str:
        """What leads to other switches."""
        return "fabric_port"

    def members(self, group: int, ports: tuple[int, ...]) -> None:
        """Fill a group; its slots and, for Flowcut, what a flow in flight may stay on are its ports."""
        self.slots = {
            slot: self.insert("group_members", (group, slot), "member", port=port)
            for slot, port in enumerate(ports)
        }
        for table in DRILL_TABLES if self.name == "drill" else ():
            for slot, port in enumerate(ports):
                self.insert(table, (group, slot), "sampled", port=port)
        if self.name == "flowcut":
            self.candidates(group, ports)
        if self.name == "flowcut_dragonfly":
            for port in set(ports):
                self.insert("next_hop_ports", (group, port), "next_hop")

    def candidates(self, group: int, ports: tuple[int, ...]) -> None:
        """Say what a group's next hops are now."""
        if group in self._candidates:
            self.delete("candidates", self._candidates[group])
        rooms = {a.name.rsplit(".", 1)[-1]: len(a.params) - 1 for a in self.model.actions}
        name = next(name for name in CANDIDATES if len(ports) <= rooms[name])
        padded = [*ports, *[0] * (rooms[name] - len(ports))]
        arguments = {f"p{i}": port for i, port in enumerate(padded)}
        self._candidates[group] = self.insert("candidates", (group,), name, count=len(ports), **arguments)

    def move_slot(self, slot: int, port: int) -> None:
        """Give a slot of the last group another port."""
        index, call = self._call("group_members", "member", {"port": port})
        self.switch.table_modify(index, self.slots[slot], call)

    def flowcut(
        self,
        mode: str = "FULL",
        *,
        age_ticks: int = NEVER_TICKS,
        bucket_mask: int = 0,
        first_path: str = "ECMP",
    ) -> None:
        """Set the variant, age, buckets and the rule for first packets."""
        self.default(
            "flowcut_config",
            mode=enum("FlowcutMode_t", mode),
            first_path=enum("FirstPath_t", first_path),
            bucket_mask=bucket_mask,
            age_ticks=age_ticks,
        )

    def drain(self, **given: int) -> None:
        """Set when and how to drain; what is not given is off."""
        off = {"rtt_threshold": RTT_OFF, "growth_threshold": GROWTH_OFF, "alpha": 256, "ticks_per_byte": 0}
        self.default("drain_config", **off | {"min_left": 0, "resume_bytes": 0} | given)

    def credit(self, credit_bytes: int) -> None:
        """What an XOFF lets the source still send."""
        self.default("pause_config", by_class=0, quanta=0, obey_bytes=credit_bytes, credit_bytes=credit_bytes)

    # ---- packets ----

    def send(
        self, port: int, frame: Packet | bytes, at_ns: int, *, virtual_bytes: int = 0
    ) -> list[SentFrame]:
        """A frame comes in; everything that is due by then has happened when the call returns."""
        self.switch.inject(port, bytes(frame), at_ns, virtual_bytes=virtual_bytes)
        self.switch.run(at_ns)
        return self.switch.outputs()

    def forward(self, port: int, frame: Packet | bytes, at_ns: int, *, virtual_bytes: int = 0) -> SentFrame:
        """Sends a frame that makes exactly one frame, and returns that."""
        (output,) = self.send(port, frame, at_ns, virtual_bytes=virtual_bytes)
        return output

    def packet_out(self, op: str, index: int, at_ns: int, payload: bytes = b"") -> list[SentFrame]:
        """A packet-out with an operation of PacketOutOp_t."""
        header = enum("PacketOutOp_t", op).to_bytes(1, "big") + index.to_bytes(2, "big")
        return self.send(self.cpu_port, header + payload, at_ns)

    # ---- state ----

    def _register(self, name: str) -> int:
        return register_indexes(self.name)[name]

    def register(self, name: str, index: int = 0) -> int:
        """A register's cell."""
        return self.switch.register_read(self._register(name), index)

    def reset(self) -> None:
        """Set every register to zero."""
        for register in self.model.registers:
            self.switch.register_reset(register.index)

    def set_register(self, name: str, index: int, value: int) -> None:
        """Write a register's cell."""
        self.switch.register_write(self._register(name), index, value)

    def count(self, counter: str, index: int = 0) -> int:
        """Packets of a counter's cell."""
        info = next(c for c in self.model.counters if c.name.rsplit(".", 1)[-1] == counter)
        return self.switch.counter_read(info.index, index)[1]

    def drops(self) -> dict[str, int]:
        """Packets dropped so far by the program, by reason."""
        members = p4info(self.name).type_info.serializable_enums["DropReason_t"].members
        counts = {m.name: self.count("drops", int.from_bytes(m.value, "big")) for m in members}
        return {name: packets for name, packets in counts.items() if packets}

    def load(self, port: int) -> int:
        """Bytes that wait for an egress port, by the program's own accounts."""
        return (self.register("enqueued_bytes", port) - self.register("dequeued_bytes", port)) % 2**32

    def set_load(self, port: int, load_bytes: int) -> None:
        """Make the accounts say so."""
        dequeued = self.register("dequeued_bytes", port)
        self.set_register("enqueued_bytes", port, (dequeued + load_bytes) % 2**32)

    def source_load(self, port: int) -> int:
        """Bytes that came in at a port and wait, by the program's own accounts."""
        return (self.register("enqueued_by_source", port) - self.register("dequeued_by_source", port)) % 2**32
