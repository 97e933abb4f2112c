# SPDX-License-Identifier: Apache-2.0
"""Reads tests in STF and runs them on the native switch, as p4c's runner does on BMv2: with table, key, action and
parameter names of the program's own JSON and P4Info, and nothing of what made the test.
"""

from __future__ import annotations

import re
from pathlib import Path

from finsy.proto import p4i

from checks.conformance.native_switch import NativeSwitch
from checks.conformance.packets import Packet
from checks.conformance.plan import ControlPlan, PlannedCall, PlannedEntry, PlannedMatch, PlannedRates
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
    """A test as it was read: a plan, registers by cell, a packet, and what is expected."""

    __test__ = False

    def __init__(self, text: str, program: CompiledProgram) -> None:
        self._info = program.p4info
        self.plan = ControlPlan()
        self.registers: dict[tuple[str, int], int] = {}
        self.packets: list[Packet] = []
        self.expected: list[tuple[int, str]] = []
        self._nodes: list[list[tuple[int, int]]] = []
        for line in text.splitlines():
            if line and not line.startswith("#"):
                words = _words(line)
                getattr(self, f"_{words[0]}")(*words[1:])

    def _add(self, table: str, *words: str) -> None:
        rest = list(words)
        fields = next(t.match_fields for t in self._info.tables if t.preamble.name == table)
        has_priority = ":" not in rest[:2]
        priority = int(rest.pop(0)) if has_priority else 0
        given: dict[str, str] = {}
        while rest[1] == ":":
            given[rest[0]] = rest[2]
            del rest[:3]
        matches = tuple(_match(field, given.pop(field.name, None)) for field in fields)
        assert not given
        self.plan.entries.append(PlannedEntry(table, matches, priority, self._call(rest)))

    def _setdefault(self, table: str, *words: str) -> None:
        self.plan.defaults[table] = self._call(list(words))

    def _call(self, words: list[str]) -> PlannedCall:
        name, arguments = words[0], " ".join(words[2:-1]).split(" , ")
        given = dict(pair.split(" : ") for pair in arguments if pair)
        action = next(a for a in self._info.actions if a.preamble.name == name)
        call = PlannedCall(name, tuple(int(given.pop(param.name), 0) for param in action.params))
        assert not given
        return call

    def _mc_mgrp_create(self, group: str) -> None:
        self.plan.multicast[int(group)] = []

    def _mc_node_create(self, instance: str, *ports: str) -> None:
        self._nodes.append([(int(port), int(instance)) for port in ports])

    def _mc_node_associate(self, group: str, node: str) -> None:
        self.plan.multicast[int(group)] += self._nodes[int(node)]

    def _mirroring_add_mc(self, session: str, group: str) -> None:
        self.plan.clones[int(session)] = self.plan.multicast[int(group)]

    def _register_write(self, name: str, index: str, value: str) -> None:
        self.registers[name, int(index)] = int(value)

    def _meter_set_rates(self, name: str, _index: str, *rates: str) -> None:
        cir, _, cburst, pir, _, pburst = rates
        self.plan.meters[name] = PlannedRates(
            round(float(cir) * 1e6), int(cburst), round(float(pir) * 1e6), int(pburst)
        )

    def _packet(self, port: str, data: str) -> None:
        self.packets.append(Packet(int(port), bytes.fromhex(data)))

    def _expect(self, port: str, data: str) -> None:
        assert data.endswith("$"), "without it the rest of a frame would not count"
        self.expected.append((int(port), data[:-1]))


def _match(field: p4i.MatchField, text: str | None) -> PlannedMatch | None:
    if text is None:
        return None
    if field.match_type == p4i.MatchField.EXACT:
        return PlannedMatch("exact", int(text, 0))
    assert text.startswith("0b") and len(text) == 2 + field.bitwidth
    value, mask = int(text.replace("*", "0"), 2), int(re.sub("[01]", "1", text[2:]).replace("*", "0"), 2)
    if field.match_type == p4i.MatchField.TERNARY:
        return PlannedMatch("ternary", value, mask=mask)
    assert "1" not in text[2:].partition("*")[2] and "0" not in text[2:].partition("*")[2]
    return PlannedMatch("lpm", value, prefix=mask.bit_count())


def run(text: str, name: str, folder: Path) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """What a test of a program expects, and what leaves."""
    (program,) = load_programs(folder, name)
    test = Test(text, program)
    with NativeSwitch(program) as native:
        native.install(test.plan)
        for (register, index), value in test.registers.items():
            array = next(r for r in native.model.registers if r.name == register)
            native.switch.register_write(array.index, index, value)
        (sent,) = native.window(test.packets)
    return test.expected, [(port, data.hex()) for port, data in sent]
