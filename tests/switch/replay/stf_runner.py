# SPDX-License-Identifier: Apache-2.0
"""Reads tests in STF and runs them on the native switch, as p4c's runner does on BMv2: with table, key, action and
parameter names of the program's own JSON and P4Info, and nothing of what made the test.
"""

from __future__ import annotations

import re
from pathlib import Path

from finsy.proto import p4i, p4r

from checks.conformance.native_switch import NativeSwitch
from checks.conformance.packets import Packet
from checks.conformance.program import CompiledProgram, load_programs

_WORD = re.compile(r'\s*("[^"]*"|[^\s"():,]+|[():,])')


def _words(line: str) -> list[str]:
    words, at = [], 0
    while at < len(line):
        match = _WORD.match(line, at)
        assert match, line[at:]
        words.append(match[1].strip('"'))
        at = match.end()
    return words


class Test:
    """A test as it was read: updates, registers by cell, a packet, and what is expected."""

    __test__ = False

    def __init__(self, text: str, program: CompiledProgram) -> None:
        self._info = program.p4info
        self.registers: dict[tuple[str, int], int] = {}
        self.packets: list[Packet] = []
        self.expected: list[tuple[int, str]] = []
        self._entities: list[p4r.Entity] = []
        self._modified: list[p4r.Entity] = []
        self._nodes: list[list[p4r.Replica]] = []
        self._groups: dict[int, p4r.MulticastGroupEntry] = {}
        self._sessions: dict[int, int] = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                words = _words(line)
                getattr(self, f"_{words[0]}")(*words[1:])

    @property
    def updates(self) -> list[p4r.Update]:
        """What a controller writes."""
        pre = [
            p4r.PacketReplicationEngineEntry(multicast_group_entry=group) for group in self._groups.values()
        ]
        for session, group in self._sessions.items():
            clone = p4r.CloneSessionEntry(session_id=session, replicas=self._groups[group].replicas)
            pre.append(p4r.PacketReplicationEngineEntry(clone_session_entry=clone))
        inserted = [*self._entities, *(p4r.Entity(packet_replication_engine_entry=entry) for entry in pre)]
        kinds = ((p4r.Update.INSERT, inserted), (p4r.Update.MODIFY, self._modified))
        return [p4r.Update(type=kind, entity=entity) for kind, entities in kinds for entity in entities]

    def _table(self, name: str) -> p4i.Table:
        return next(table for table in self._info.tables if table.preamble.name == name)

    def _add(self, name: str, *words: str) -> None:
        rest, table = list(words), self._table(name)
        entry = p4r.TableEntry(table_id=table.preamble.id)
        if ":" not in rest[:2]:
            entry.priority = int(rest.pop(0))
        given: dict[str, str] = {}
        while rest[1] == ":":
            given[rest[0]] = rest[2]
            del rest[:3]
        for field in table.match_fields:
            if field.name in given:
                entry.match.append(_match(field, given.pop(field.name)))
        assert not given
        entry.action.action.CopyFrom(self._call(rest))
        self._entities.append(p4r.Entity(table_entry=entry))

    def _setdefault(self, name: str, *words: str) -> None:
        entry = p4r.TableEntry(table_id=self._table(name).preamble.id, is_default_action=True)
        entry.action.action.CopyFrom(self._call(list(words)))
        self._modified.append(p4r.Entity(table_entry=entry))

    def _call(self, words: list[str]) -> p4r.Action:
        name, arguments = words[0], " ".join(words[2:-1]).split(" , ")
        given = dict(pair.split(" : ") for pair in arguments if pair)
        info = next(a for a in self._info.actions if a.preamble.name == name)
        action = p4r.Action(action_id=info.preamble.id)
        for param in info.params:
            action.params.add(param_id=param.id, value=_octets(int(given.pop(param.name), 0)))
        assert not given
        return action

    def _mc_mgrp_create(self, group: str) -> None:
        self._groups[int(group)] = p4r.MulticastGroupEntry(multicast_group_id=int(group))

    def _mc_node_create(self, instance: str, *ports: str) -> None:
        self._nodes.append([p4r.Replica(egress_port=int(port), instance=int(instance)) for port in ports])

    def _mc_node_associate(self, group: str, node: str) -> None:
        self._groups[int(group)].replicas.extend(self._nodes[int(node)])

    def _mirroring_add_mc(self, session: str, group: str) -> None:
        self._sessions[int(session)] = int(group)

    def _register_write(self, name: str, index: str, value: str) -> None:
        self.registers[name, int(index)] = int(value)

    def _meter_set_rates(self, name: str, index: str, *rates: str) -> None:
        cir, _, cburst, pir, _, pburst = rates
        meter = next(m for m in self._info.meters if m.preamble.name == name)
        config = p4r.MeterConfig(
            cir=round(float(cir) * 1e6), cburst=int(cburst), pir=round(float(pir) * 1e6), pburst=int(pburst)
        )
        cell = p4r.MeterEntry(meter_id=meter.preamble.id, index=p4r.Index(index=int(index)), config=config)
        self._modified.append(p4r.Entity(meter_entry=cell))

    def _packet(self, port: str, data: str) -> None:
        self.packets.append(Packet(int(port), bytes.fromhex(data)))

    def _expect(self, port: str, data: str) -> None:
        assert data.endswith("$"), "without it the rest of a frame would not count"
        self.expected.append((int(port), data[:-1]))


def _octets(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def _match(field: p4i.MatchField, text: str) -> p4r.FieldMatch:
    match = p4r.FieldMatch(field_id=field.id)
    if field.match_type == p4i.MatchField.EXACT:
        match.exact.value = _octets(int(text, 0))
        return match
    assert text.startswith("0b") and len(text) == 2 + field.bitwidth
    value, mask = int(text.replace("*", "0"), 2), int(re.sub("[01]", "1", text[2:]).replace("*", "0"), 2)
    if field.match_type == p4i.MatchField.TERNARY:
        match.ternary.value, match.ternary.mask = _octets(value), _octets(mask)
        return match
    assert "1" not in text[2:].partition("*")[2] and "0" not in text[2:].partition("*")[2]
    match.lpm.value, match.lpm.prefix_len = _octets(value), mask.bit_count()
    return match


def run(text: str, name: str, folder: Path) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """What a test of a program expects, and what leaves."""
    (program,) = load_programs(folder, name)
    test = Test(text, program)
    with NativeSwitch(program) as native:
        native.install(test.updates)
        for (register, index), value in test.registers.items():
            array = next(r for r in native.model.registers if r.name == register)
            native.switch.register_write(array.index, index, value)
        (sent,) = native.window(test.packets)
    return test.expected, [(port, data.hex()) for port, data in sent]
