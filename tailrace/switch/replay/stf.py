# SPDX-License-Identifier: Apache-2.0
"""Exports a saved trace as a test in STF, p4c's Simple Test Framework, for p4c's BMv2 runner
(backends/bmv2/bmv2stf.py).

An STF file adds entries with exact, LPM and ternary keys and direct actions, sets default actions, registers
and meter rates, and creates multicast groups and clone sessions; then it sends packets and compares outputs.
STF cannot express action profiles, range and optional keys, value sets, direct meters and truncated clones;
the error says which of them the trace has. The runner passes lines that it does not know on to
simple_switch_CLI, so names other than plain identifiers are rejected here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.canonical import replica_port
from tailrace.p4rt.messages import p4i, p4r
from tailrace.spec import SpecError
from tailrace.switch.replay.document import Frame, SavedTrace

_NAME = re.compile(r"[A-Za-z_][\w.$\[\]]*", re.ASCII)
_MATCHES = {p4i.MatchField.EXACT: "exact", p4i.MatchField.LPM: "lpm", p4i.MatchField.TERNARY: "ternary"}
"""Match types that STF supports."""

_MOST_BITS = 2048
"""Widest field with a mask or prefix."""

_US_PER_S = 1_000_000
"""Rates of simple_switch_CLI are per microsecond, those of P4Runtime per second."""


def test_source(saved: SavedTrace) -> str:
    """The text of the test.

    Raises:
        SpecError: STF cannot express the trace; the message begins with the key.
    """
    return "\n".join(_StfTest(saved).lines()) + "\n"


class _StfTest:
    def __init__(self, saved: SavedTrace) -> None:
        self._saved, self._document = saved, saved.document
        self._program = ProgramNames(saved.p4info)
        self._nodes = 0  # multicast nodes so far, which simple_switch_CLI counts from 0
        entities = [update.entity for update in saved.updates]
        # only the order of priorities matters
        priorities = sorted({e.table_entry.priority for e in entities if e.HasField("table_entry")})
        self._stf_priorities = {priority: number for number, priority in enumerate(priorities, 1)}
        self._groups = {
            entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id
            for entity in entities
        }

    def lines(self) -> Iterator[str]:
        document = self._document
        settings = document.switch
        yield "# Made from a saved trace by tailrace trace --export."
        yield f"# program: SHA-256 of its BMv2 JSON {self._saved.json_sha256}"
        yield (
            f"# simple_switch's options: -- --drop-port {settings.drop_port} "
            f"--priority-queues {settings.priority_queues}"
        )
        for reason in document.unsure:
            yield f"# the outcome may depend on: {reason}"
        for index, update in enumerate(self._saved.updates):
            try:
                yield from self._entity(update.entity)
            except SpecError as error:
                raise SpecError(f"updates[{index}]: STF cannot express it: {error}") from None
        yield f"packet {self._frame('packet', document.packet)}"
        for frame in document.expected.sent:
            yield f"expect {self._frame('expected', frame)}$"
        if not document.expected.sent:
            yield f"# no packet is sent: {', '.join(document.expected.dropped) or 'the packet ends'}"

    @staticmethod
    def _frame(key: str, frame: Frame) -> str:
        if not frame.frame:
            raise SpecError(f"{key}: STF cannot express it: an empty frame")
        return f"{frame.port} {frame.frame}"

    # ---- entities ----

    def _entity(self, entity: p4r.Entity) -> Iterator[str]:
        kind = entity.WhichOneof("entity")
        replication = entity.packet_replication_engine_entry
        if kind == "table_entry":
            yield self._entry(entity.table_entry)
        elif replication.HasField("multicast_group_entry"):
            group = replication.multicast_group_entry
            yield from self._replicated(group.multicast_group_id, group.replicas)
        elif replication.HasField("clone_session_entry"):
            yield from self._clone(replication.clone_session_entry)
        elif kind == "register_entry":
            yield self._register(entity.register_entry)
        elif kind == "meter_entry":
            cell = entity.meter_entry
            name = _checked_name(self._program.meters.full(cell.meter_id))
            yield f"meter_set_rates {name} {cell.index.index} {_rates(cell.config)}"
        else:
            kinds = {"value_set_entry": "a value set", None: "an update without an entity"}
            raise SpecError(kinds.get(kind, "an action profile"))

    def _entry(self, entry: p4r.TableEntry) -> str:
        table = self._program.table_names.item(entry.table_id)
        if entry.action.WhichOneof("type") != "action":
            raise SpecError(
                "a default entry without an action" if entry.is_default_action else "an action profile"
            )
        if entry.HasField("meter_config"):
            raise SpecError("a direct meter")
        name, call = _quoted(table.preamble.name), self._call(entry.action.action)
        if entry.is_default_action:
            return f"setdefault {name} {call}"
        names = self._program.tables[entry.table_id].key_names
        fields = [names.item(match.field_id) for match in entry.match]
        keys = [
            f"{_quoted(names.full(field.id))}:{_key(self._untranslated(field), match)}"
            for field, match in zip(fields, entry.match, strict=True)
        ]
        if not keys:
            raise SpecError("an entry without a key")
        ternary = any(field.match_type == p4i.MatchField.TERNARY for field in table.match_fields)
        priority = f"{self._stf_priorities[entry.priority]} " if ternary else ""
        return f"add {name} {priority}{' '.join(keys)} {call}"

    def _call(self, call: p4r.Action) -> str:
        action = self._program.action_names.item(call.action_id)
        params = {param.id: self._untranslated(param) for param in action.params}
        if any(param.param_id not in params for param in call.params):
            raise SpecError("a parameter that the action does not have")
        pairs = (f"{_quoted(params[param.param_id].name)}:{_base16(param.value)}" for param in call.params)
        return f"{_quoted(action.preamble.name)}({', '.join(pairs)})"

    def _untranslated(self, member: Any) -> Any:
        """The field or parameter; raises SpecError if its type is translated, as STF has no translation."""
        types = self._saved.p4info.type_info.new_types
        if member.HasField("type_name") and types[member.type_name.name].HasField("translated_type"):
            raise SpecError(f"{member.name}: a translated type")
        return member

    def _clone(self, session: p4r.CloneSessionEntry) -> Iterator[str]:
        if session.packet_length_bytes or session.class_of_service:
            raise SpecError("a clone session that truncates packets, or has a class of service")
        # each session gets a group, as simple_switch_CLI supports instances only in multicast groups
        group = next(group_id for group_id in range(1, 1 << 16) if group_id not in self._groups)
        self._groups.add(group)
        yield from self._replicated(group, session.replicas)
        yield f"mirroring_add_mc {session.session_id} {group}"

    def _replicated(self, group: int, replicas: Iterable[p4r.Replica]) -> Iterator[str]:
        yield f"mc_mgrp_create {group}"
        by_instance: dict[int, list[int]] = {}
        for replica in replicas:
            by_instance.setdefault(replica.instance, []).append(replica_port(replica))
        for instance, ports in by_instance.items():
            yield f"mc_node_create {instance} {' '.join(map(str, ports))}"
            yield f"mc_node_associate {group} {self._nodes}"
            self._nodes += 1

    def _register(self, cell: p4r.RegisterEntry) -> str:
        value = self._program.register_number(cell)
        if not -1 << 63 <= value < 1 << 63:
            raise SpecError("a value of more than 63 bits")
        name = _checked_name(self._program.registers.full(cell.register_id))
        return f"register_write {name} {cell.index.index} {value}"


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SpecError(f"the name {name[:40]!r}")
    return name


def _quoted(name: str) -> str:
    return f'"{_checked_name(name)}"'


def _base16(data: bytes) -> str:
    return f"0x{data.hex() or '00'}"


def _rates(config: p4r.MeterConfig) -> str:
    if config.eburst:
        raise SpecError("a meter with an excess burst")
    pairs = ((config.cir, config.cburst), (config.pir, config.pburst))
    return " ".join(f"{rate // _US_PER_S}.{rate % _US_PER_S:06}:{burst}" for rate, burst in pairs)


def _key(field: p4i.MatchField, match: p4r.FieldMatch) -> str:
    """The value of a key field: hexadecimal if exact, else binary with `*` for don't-care bits."""
    kind = _MATCHES.get(field.match_type)
    if kind is None or kind != match.WhichOneof("field_match_type"):
        raise SpecError("a range or optional key")
    if kind == "exact":
        return _base16(match.exact.value)
    bits = field.bitwidth
    if not 0 < bits <= _MOST_BITS:
        raise SpecError(f"a field of {bits} bits")
    if kind == "lpm":
        value = match.lpm.value
        mask = ((1 << bits) - 1) & ~((1 << max(0, bits - max(0, match.lpm.prefix_len))) - 1)
    else:
        value, mask = match.ternary.value, int.from_bytes(match.ternary.mask, "big")
    number = int.from_bytes(value, "big")
    digits = (str(number >> bit & 1) if mask >> bit & 1 else "*" for bit in reversed(range(bits)))
    return f"0b{''.join(digits)}"
