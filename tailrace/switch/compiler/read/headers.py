# SPDX-License-Identifier: Apache-2.0
"""Reads header types, instances, stacks and unions, and resolves names to them.

References (compiler/expr.py): HeaderInst and UnionInst name a header or union; StackLast is the last
element of a stack that the parser has filled; UnionMember is a header of a union; ValidBit is 1 if a header
is valid.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from tailrace.spec.constants import MAX_FRAME_BYTES
from tailrace.switch.compiler.expr import (
    FieldRef,
    HeaderInst,
    HeaderRef,
    StackLast,
    UnionMember,
    ValidBit,
)
from tailrace.switch.compiler.model import (
    FieldType,
    Header,
    HeaderSpace,
    HeaderType,
    Stack,
    Union,
)
from tailrace.switch.compiler.read.node import JsonNode, add_name, lookup

_MAX_WIDTH = 4096
"""Maximum width of a field in bits."""

_MAX_VARBIT_BYTES = 1024
"""Maximum length of a varbit field whose header type has no max_length."""

MAX_HEADER_BYTES = MAX_FRAME_BYTES
"""Maximum length of a header's fixed-width fields: no frame is longer."""

MAX_PHV_BYTES = 256 << 10
"""Maximum size of all headers and metadata of a packet (PHV): each stage clears or copies all of them."""

VALID = "$valid$"
"""BMv2's name of the hidden field that is 1 if a header is valid."""


@dataclass(slots=True)
class Headers(HeaderSpace):
    """Header types, headers, stacks and unions, by index and by name.

    positions: for each type, the position of each field by name
    lengths: for a type with a varbit field, the JSON expression of its length (P4_14)
    union_members: the names of the members of each union type, by the type's name
    aliases: the field that each alias, "header.field", stands for
    """

    header_types: list[HeaderType] = field(default_factory=list)
    headers: list[Header] = field(default_factory=list)
    stacks: list[Stack] = field(default_factory=list)
    unions: list[Union] = field(default_factory=list)
    union_members: dict[str, list[str]] = field(default_factory=dict)
    type_names: dict[str, int] = field(default_factory=dict)
    header_names: dict[str, int] = field(default_factory=dict)
    stack_names: dict[str, int] = field(default_factory=dict)
    union_names: dict[str, int] = field(default_factory=dict)
    union_stack_names: dict[str, int] = field(default_factory=dict)
    positions: list[dict[str, int]] = field(default_factory=list)
    lengths: dict[int, JsonNode] = field(default_factory=dict)
    aliases: dict[str, FieldRef | ValidBit] = field(default_factory=dict)

    def header(self, node: JsonNode) -> HeaderInst:
        return HeaderInst(lookup(self.header_names, node, "header"))

    def require_packet_header(self, ref: HeaderRef, node: JsonNode) -> HeaderRef:
        """Checks that a header is a packet header and not metadata, and returns it."""
        if isinstance(ref, HeaderInst) and self.headers[ref.index].metadata:
            node.fail(f'"{self.headers[ref.index].name}" is metadata; expected a packet header')
        return ref

    def packet_header(self, node: JsonNode) -> HeaderInst:
        """The packet header that a node names."""
        ref = self.header(node)
        self.require_packet_header(ref, node)
        return ref

    def _field(self, ref: HeaderRef, node: JsonNode) -> FieldRef:
        """The field of a header that a node names."""
        header_type, name = self.type_of(ref), node.text()
        position = self.positions[header_type.index].get(name)
        if position is None:
            node.fail(f'header type "{header_type.name}" has no field "{name}"')
        return FieldRef(ref, position)

    def field_ref(self, node: JsonNode) -> FieldRef | ValidBit:
        """The field of ``["header", "field"]``, which may be an alias or the hidden field ``$valid$``."""
        header, name = node.elements_of_length(2)
        alias = self.aliases.get(f"{header.text()}.{name.text()}")
        if alias is not None:
            return alias
        ref = self.header(header)
        if name.value == VALID and VALID not in self.positions[self.type_of(ref).index]:
            return ValidBit(ref)
        return self._field(ref, name)

    def target(self, node: JsonNode) -> FieldRef:
        """A field that can be written; ``$valid$`` only if the header type has it as hidden field."""
        ref = self.field_ref(node)
        if isinstance(ref, ValidBit):
            node.fail("$valid$ is read-only here")
        return ref

    def stack_field(self, node: JsonNode) -> FieldRef | StackLast:
        """The field of ``["stack", "field"]``: a field of the stack's last element, or ``last``, the element
        itself, unless the header type has a field of this name.
        """
        stack, name = node.elements_of_length(2)
        last = StackLast(lookup(self.stack_names, stack, "header stack"))
        if name.value == "last" and "last" not in self.positions[self.type_of(last).index]:
            return last
        return self._field(last, name)

    def union_stack_field(self, node: JsonNode) -> FieldRef:
        """The field of ``["union stack", "member", "field"]``: a field of the stack's last element."""
        stack, member, name = node.elements_of_length(3)
        index = lookup(self.union_stack_names, stack, "header union stack")
        return self._field(UnionMember(StackLast(index), self.member_of_stack(index, member)), name)

    def member_of_stack(self, index: int, member: JsonNode) -> int:
        """The position of a member in the unions of a union stack."""
        union = self.union_of(StackLast(index))
        names = self.union_members[union.type]
        if member.text() not in names:
            member.fail(f'union "{union.type}" has no member "{member.value}"')
        return names.index(member.text())


def read_headers(root: JsonNode) -> Headers:
    """Reads all header declarations.

    Raises:
        CompilerError: a declaration is incomplete, inconsistent or not supported.
    """
    h = Headers()
    for node in root["header_types"].elements():
        _read_type(h, node)
    ids: dict[int, int] = {}
    for node in root["headers"].elements():
        index = len(h.headers)
        name = add_name(h.header_names, node, index, "header")
        header_id = node.integer_at("id")
        if header_id in ids:
            node.fail(f"two headers have id {header_id}")
        ids[header_id] = index
        kind = lookup(h.type_names, node["header_type"], "header type")
        header = Header(index, name, kind, node.flag_at("metadata"))
        size = h.header_types[kind].fixed_bits // 8
        if not header.metadata and size > MAX_HEADER_BYTES:
            node.fail(f"the header has {size} bytes, but a frame has {MAX_HEADER_BYTES} at most")
        h.headers.append(header)
    # upper bounds in bytes
    sizes = [sum(f.bits // 8 + 1 for f in t.fields) for t in h.header_types]
    phv = sum(sizes[header.type] for header in h.headers)
    if phv > MAX_PHV_BYTES:
        root["headers"].fail(f"headers and metadata take {phv} bytes; the limit is {MAX_PHV_BYTES}")
    _read_stacks(h, root, ids)
    _read_unions(h, root, ids)
    _read_hidden(h, root)
    for node in root.optional_elements("field_aliases"):
        alias, target = node.elements_of_length(2)
        h.aliases[alias.text()] = h.field_ref(target)
    return h


def _read_hidden(h: Headers, root: JsonNode) -> None:
    """Adds the hidden field to the types of headers whose ``$valid$`` the program writes (p4c of 2017)."""
    of_unions = {header.type for header in h.headers if header.union is not None}
    for name in sorted(_written_valid(root)):
        if name not in h.header_names:
            continue
        t = h.header_types[h.headers[h.header_names[name]].type]
        if t.index in of_unions:
            root["headers"].fail(f'{VALID} of "{name}" is written, but its type is that of a union member')
        if t.hidden is None:
            h.positions[t.index][VALID] = len(t.fields)
            h.header_types[t.index] = replace(t, fields=(*t.fields, FieldType(VALID, 1, hidden=True)))


def _written_valid(root: JsonNode) -> set[str]:
    """Names of the headers whose hidden field a parser or an action writes."""
    calls: list[JsonNode] = []
    for parser in root.optional_elements("parsers"):
        for state in parser.optional_elements("parse_states"):
            calls += state.optional_elements("parser_ops")
    for action in root.optional_elements("actions"):
        calls += action.optional_elements("primitives")
    written: set[str] = set()
    for call in calls:
        for argument in call.optional_elements("parameters")[:1]:
            if isinstance(argument.value, dict) and argument.value.get("type") == "field":
                header, name = argument["value"].elements_of_length(2)
                if name.value == VALID:
                    written.add(header.text())
    return written


def _read_type(h: Headers, node: JsonNode) -> None:
    fields: list[FieldType] = []
    for item in node.optional_elements("fields"):
        fields.append(_read_field(item))
    index = len(h.header_types)
    name = add_name(h.type_names, node, index, "header type")
    length = node.get("length_exp")
    fixed = sum(f.bits for f in fields if not f.varbit)
    if fixed % 8:
        node.fail(f"the fields of a header must fill whole bytes; these have {fixed} bits")
    varbits = [i for i, f in enumerate(fields) if f.varbit]
    if len(varbits) > 1:
        node.fail("a header can have only one varbit field")
    if varbits:
        max_bits = node.integer_at("max_length", fixed // 8 + _MAX_VARBIT_BYTES, 65535) * 8 - fixed
        if max_bits < 0:
            node["max_length"].fail("smaller than the fixed-width fields together")
        fields[varbits[0]] = replace(fields[varbits[0]], bits=max_bits)
        if length is not None:
            h.lengths[index] = length
    h.header_types.append(HeaderType(index, name, tuple(fields)))
    h.positions.append({f.name: i for i, f in enumerate(fields)})


def _read_field(item: JsonNode) -> FieldType:
    parts = item.elements()
    if not 2 <= len(parts) <= 4:
        item.fail("expected [name, width], [name, width, signed] or [name, width, signed, saturating]")
    name = parts[0].text()
    if parts[1].value == "*":
        return FieldType(name, 0, False, True)
    signed, saturating = (len(parts) > i and parts[i].flag() for i in (2, 3))
    return FieldType(name, parts[1].integer(0, _MAX_WIDTH), signed, saturating=saturating)


def _read_stacks(h: Headers, root: JsonNode, ids: dict[int, int]) -> None:
    for node in root.optional_elements("header_stacks"):
        index = len(h.stacks)
        name = add_name(h.stack_names, node, index, "header stack")
        type_index = lookup(h.type_names, node["header_type"], "header type")
        members = []
        for position, item in enumerate(node["header_ids"].elements()):
            header = _member(h, ids, item)
            if h.headers[header].type != type_index:
                item.fail(f'header "{h.headers[header].name}" is of another type than the stack')
            h.headers[header] = replace(h.headers[header], stack=(index, position))
            members.append(header)
        if not members:
            node.fail("a header stack needs at least one element")
        h.stacks.append(Stack(index, name, tuple(members)))


def _read_unions(h: Headers, root: JsonNode, ids: dict[int, int]) -> None:
    for node in root.optional_elements("header_union_types"):
        h.union_members[node["name"].text()] = [
            n.elements_of_length(2)[0].text() for n in node["headers"].elements()
        ]
    union_ids: dict[int, int] = {}
    kinds: dict[str, int] = {}
    for node in root.optional_elements("header_unions"):
        index = len(h.unions)
        members = []
        for position, item in enumerate(node["header_ids"].elements()):
            header = _member(h, ids, item)
            h.headers[header] = replace(h.headers[header], union=(index, position))
            members.append(header)
        kind = node["union_type"].text()
        if len(h.union_members.get(kind, ())) != len(members):
            node.fail(f'union type "{kind}" has another number of headers than the union')
        name = add_name(h.union_names, node, index, "header union")
        union_ids[node["id"].integer()] = index
        type_index = kinds.setdefault(kind, len(kinds))
        h.unions.append(Union(index, name, kind, type_index, tuple(members)))
    for node in root.optional_elements("header_union_stacks"):
        index = len(h.stacks)
        unions = tuple(_by_id(union_ids, n) for n in node["header_union_ids"].elements())
        if not unions:
            node.fail("a header union stack needs at least one element")
        name = add_name(h.union_stack_names, node, index, "header union stack")
        h.stacks.append(Stack(index, name, unions, of_unions=True))
        for position, union in enumerate(unions):
            h.unions[union] = replace(h.unions[union], stack=(index, position))


def _member(h: Headers, ids: dict[int, int], node: JsonNode) -> int:
    """The index of a header that becomes an element of a stack or a member of a union."""
    index = _by_id(ids, node)
    header = h.headers[index]
    h.require_packet_header(HeaderInst(index), node)
    if header.stack is not None or header.union is not None:
        node.fail(f'header "{header.name}" is already in a stack or union')
    return index


def _by_id(ids: dict[int, int], node: JsonNode) -> int:
    header_id = node.integer()
    if header_id not in ids:
        node.fail(f"no object has id {header_id}")
    return ids[header_id]
