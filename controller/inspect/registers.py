# SPDX-License-Identifier: Apache-2.0
"""Register cells. BMv2's P4Runtime server refuses registers; the native switch and the virtual target serve
them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.p4rt.errors import RefusedError, UnsupportedError
from tailrace.p4rt.fields import data_field, original
from tailrace.p4rt.messages import p4d, p4i, p4r, p4t
from tailrace.p4rt.status import Code
from tailrace.p4rt.values import Value
from tailrace.tables.listing import Column, Listing, Row, in_order

COLUMNS = (
    Column("switch", key=True),
    Column("register", key=True),
    Column("index", key=True),
    Column("value"),
)


def read_registers(
    node: InspectedSwitch, only: frozenset[str] = frozenset(), *, zeros: bool = False
) -> Listing:
    """Register cells of a switch.

    Args:
        node: the switch.
        only: names of registers; empty: all.
        zeros: include cells that are 0.

    Raises:
        UnsupportedError: the program has no registers, or the target does not show them.
        SwitchError: the switch cannot be read.
    """
    registers = node.program.info.registers
    if not registers:
        raise UnsupportedError(node.name, f"{node.title} has no registers")
    shown = node.program.registers.shown
    chosen = [register for register in registers if not only or shown(register.preamble.id) in only]
    rows = [row for register in chosen for row in _rows(node, register, zeros)]
    return Listing("registers", COLUMNS, in_order(COLUMNS, rows))


def register_cells(node: InspectedSwitch, name: str) -> list[int]:
    """The cells of a register of integers, by one Read; empty if the target does not show it.

    Raises:
        SwitchError: the switch cannot be read.
    """
    for register in node.program.info.registers:
        if register.preamble.alias == name:
            pattern = p4r.Entity(register_entry=p4r.RegisterEntry(register_id=register.preamble.id))
            entries = [entity.register_entry for entity in node.read_if_offered(pattern)]
            entries.sort(key=lambda entry: entry.index.index)
            return [int.from_bytes(entry.data.bitstring, "big") for entry in entries]
    return []


def _rows(node: InspectedSwitch, register: p4i.Register, zeros: bool) -> Iterator[Row]:
    pattern = p4r.RegisterEntry(register_id=register.preamble.id)
    try:
        entities = node.connection.read([p4r.Entity(register_entry=pattern)])
    except RefusedError as error:
        if error.code == Code.UNIMPLEMENTED.name:
            raise UnsupportedError(
                node.name,
                "this switch shows no registers over P4Runtime (BMv2 refuses them);"
                " `tailrace flows` and `tailrace queues` read state by packets",
            ) from error
        raise
    name, types = node.program.registers.shown(register.preamble.id), node.program.info.type_info
    field = node.program.index_field(name)  # its values are ports if the name contains "port"
    for entity in entities:
        entry = entity.register_entry
        # before anything is decoded: a flow table has a quarter of a million cells, nearly all 0
        if not zeros and _is_zero(entry.data):
            continue
        yield {
            "switch": node.name,
            "register": name,
            "index": field.value(entry.index.index, node.peer_of),
            # no name is given: a register's name states its purpose (bytes_by_source), not a value's type
            "value": data_value(node, "", register.type_spec, entry.data, types),
        }


def data_value(
    node: InspectedSwitch, name: str, spec: p4t.P4DataTypeSpec, data: p4d.P4Data, types: p4t.P4TypeInfo
) -> Value:
    """A typed value of P4Data: bits, booleans, enums, headers, structs and tuples."""
    which, spec = data.WhichOneof("data"), original(spec, types)
    if which == "bool":
        return data.bool
    if which in {"enum", "error"}:
        return str(getattr(data, which))
    if which == "struct" and spec.struct.name in types.structs:
        members = types.structs[spec.struct.name].members
        return {
            member.name: data_value(node, member.name, member.type_spec, part, types)
            for member, part in zip(members, data.struct.members, strict=False)
        }
    if which == "header" and spec.header.name in types.headers:
        fields = types.headers[spec.header.name].members
        return {
            field.name: data_field(
                field.name, p4t.P4DataTypeSpec(bitstring=field.type_spec), types
            ).from_bytes(part, node.peer_of)
            for field, part in zip(fields, data.header.bitstrings, strict=False)
        }
    if which == "tuple":
        return tuple(
            data_value(node, name, part_spec, part, types)
            for part_spec, part in zip(spec.tuple.members, data.tuple.members, strict=False)
        )
    octets = data.enum_value if which == "enum_value" else data.bitstring
    return data_field(name, spec, types).from_bytes(octets, node.peer_of)


def _is_zero(data: p4d.P4Data) -> bool:
    which = data.WhichOneof("data")
    if which == "struct":
        return all(map(_is_zero, data.struct.members))
    if which == "tuple":
        return all(map(_is_zero, data.tuple.members))
    if which == "header":
        return not any(part.strip(b"\0") for part in data.header.bitstrings)
    if which == "bool":
        return not data.bool
    return which in {"bitstring", "enum_value"} and not getattr(data, which).strip(b"\0")
