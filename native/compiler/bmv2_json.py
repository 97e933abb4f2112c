# SPDX-License-Identifier: Apache-2.0
"""Reads the BMv2 JSON that p4c writes for v1model into a checked model.

Source: behavioral-model docs/JSON_format.md, version 2.24. What the switch does not have is refused
by name; nothing is skipped.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from native.compiler.errors import ProgramError
from native.compiler.expr import Const, Expr, FieldRef, HeaderInst, ValidBit
from native.compiler.model import (
    Action,
    CalcInput,
    Calculation,
    Checksum,
    ConstInput,
    Counter,
    Digest,
    FieldList,
    HeaderInput,
    Meter,
    Model,
    Pipeline,
    Register,
)
from native.compiler.node import Node, lookup
from native.compiler.read_actions import ActionReader, Names
from native.compiler.read_expr import ExprReader
from native.compiler.read_headers import Headers, read_headers
from native.compiler.read_parser import ParserReader, read_deparser, read_vsets
from native.compiler.read_tables import TableReader

JSON_MAJOR = 2

ALGORITHMS = frozenset(
    {
        "crc8_custom",
        "crc16",
        "crc16_custom",
        "crcCCITT",
        "crc32",
        "crc32_custom",
        "crc64_custom",
        "csum16",
        "cksum16",
        "xor16",
        "xor32",
        "identity",
        "random",
        "xxh64",
        "bmv2_hash",
        "hash_ex",
    }
)

# BMv2's names of the fields that its targets use -> ours
_ALIASES = {
    "queueing_metadata.enq_timestamp": "enq_timestamp",
    "queueing_metadata.enq_qdepth": "enq_qdepth",
    "queueing_metadata.deq_timedelta": "deq_timedelta",
    "queueing_metadata.deq_qdepth": "deq_qdepth",
    "queueing_metadata.qid": "qid",
    "intrinsic_metadata.ingress_global_timestamp": "ingress_global_timestamp",
    "intrinsic_metadata.egress_global_timestamp": "egress_global_timestamp",
    "intrinsic_metadata.mcast_grp": "mcast_grp",
    "intrinsic_metadata.egress_rid": "egress_rid",
    "intrinsic_metadata.priority": "priority",
}

_REQUIRED = ("ingress_port", "packet_length", "instance_type", "egress_spec", "egress_port")


def read_bmv2_json(text: bytes, source: str = "<json>") -> Model:
    """Reads a program.

    Args:
        text: the JSON file's bytes.
        source: name of the file, for messages.

    Raises:
        ProgramError: the text is no JSON, is inconsistent, or uses something unsupported.
    """
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise ProgramError(f"{source}: not a JSON file: {e}") from None
    root = Node(value, source)
    if not isinstance(value, dict) or "pipelines" not in value:
        root.fail("not a BMv2 JSON file: an object with pipelines is expected")
    try:
        return _Reader(root).model()
    except RecursionError:
        raise ProgramError(f"{source}: expressions are nested too deeply") from None


class _Reader:
    """Reads the parts of a program in the order in which they refer to each other."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.headers: Headers = read_headers(root)
        self.exprs = ExprReader(self.headers, _names(root, "register_arrays"))

    def model(self) -> Model:
        root = self.root
        self._check_version()
        digests = self._digests()
        lists = self._field_lists()
        names = Names(
            self.exprs.registers,
            _names(root, "counter_arrays"),
            _names(root, "meter_arrays"),
            _names(root, "calculations"),
            {f.id for f in lists},
            {d.id: d.index for d in digests},
        )
        reader = ActionReader(self.exprs, names)
        actions, ids = self._actions(reader)
        parsers = _only(root, "parsers", "parser")
        parser_reader = ParserReader(self.headers, reader, _names(root, "parse_vsets"))
        parser = parser_reader.parser(parsers)
        deparser = _only(root, "deparsers", "deparser")
        reader.params = 0
        calls = tuple(reader.primitive(n) for n in deparser.optional_elements("primitives"))
        calculations = self._calculations()
        tables = TableReader(self.exprs, actions, ids, self._direct_meters())
        tables.first_selector = len(calculations)
        ingress, egress = self._pipelines(tables)
        for node in tables.selectors:
            calculations.append(self._calculation(len(calculations), f"selector_{len(calculations)}", node))
        table_names = {t.name: t.index for t in tables.tables}
        program = root.get("program")
        return Model(
            name=program.text() if program is not None else "program",
            header_types=tuple(self.headers.types),
            headers=tuple(self.headers.headers),
            stacks=tuple(self.headers.stacks),
            unions=tuple(self.headers.unions),
            union_stacks=tuple(self.headers.union_stacks),
            standard=self._standard(),
            errors=self._errors(),
            parser=parser,
            vsets=read_vsets(root, parser_reader.vset_fields),
            deparser=read_deparser(deparser, self.headers),
            deparser_calls=calls,
            calculations=tuple(calculations),
            checksums=self._checksums(),
            actions=actions,
            tables=tuple(tables.tables),
            ingress=ingress,
            egress=egress,
            profiles=tuple(tables.profiles),
            counters=self._counters(table_names),
            meters=self._meters(table_names),
            registers=self._registers(),
            digests=digests,
            field_lists=lists,
        )

    def _check_version(self) -> None:
        meta = self.root.get("__meta__")
        version = meta.get("version") if meta is not None else None
        if version is not None and version.elements()[0].integer() > JSON_MAJOR:
            version.fail(f"JSON format {version.value[0]}.x is newer than {JSON_MAJOR}.x")
        for extern in self.root.optional_elements("extern_instances"):
            extern.fail(f'extern "{extern["type"].text()}" is not supported')

    def _standard(self) -> dict[str, FieldRef]:
        """standard_metadata and what BMv2's aliases make of its fields."""
        found: dict[str, FieldRef] = {}
        for name, index in (("standard_metadata", self.headers.header_names.get("standard_metadata")),):
            if index is None:
                self.root["headers"].fail(f'no header is named "{name}"')
            htype = self.headers.types[self.headers.headers[index].type]
            for i, f in enumerate(htype.fields):
                found[f.name] = FieldRef(HeaderInst(index), i)
        for name in _REQUIRED:
            if name not in found:
                self.root["headers"].fail(f'standard_metadata has no field "{name}"')
        for node in self.root.optional_elements("field_aliases"):
            alias, target = node.pair()
            known = _ALIASES.get(alias.text())
            if known is not None:
                found[known] = self.headers.target(target)
        return found

    def _errors(self) -> dict[str, int]:
        return {
            n.pair()[0].text(): n.pair()[1].integer(0, 2**31 - 1)
            for n in self.root.optional_elements("errors")
        }

    def _actions(self, reader: ActionReader) -> tuple[tuple[Action, ...], dict[int, int]]:
        actions: list[Action] = []
        ids: dict[int, int] = {}
        for node in self.root["actions"].elements():
            ids[node["id"].integer()] = len(actions)
            actions.append(reader.action(len(actions), node))
        return tuple(actions), ids

    def _pipelines(self, reader: TableReader) -> tuple[Pipeline, Pipeline]:
        nodes = {n["name"].text(): n for n in self.root["pipelines"].elements()}
        if set(nodes) != {"ingress", "egress"}:
            self.root["pipelines"].fail('expected the pipelines "ingress" and "egress"')
        return reader.pipeline(nodes["ingress"]), reader.pipeline(nodes["egress"])

    def _calculations(self) -> list[Calculation]:
        nodes = self.root.optional_elements("calculations")
        return [self._calculation(i, n["name"].text(), n) for i, n in enumerate(nodes)]

    def _calculation(self, index: int, name: str, node: Node) -> Calculation:
        algo = node["algo"].text()
        if algo not in ALGORITHMS:
            node["algo"].fail(f'hash algorithm "{algo}" is not supported')
        inputs: list[CalcInput] = []
        payload = False
        for n in node["input"].elements():
            kind = n["type"].text()
            if kind == "payload":
                payload = True
            elif kind == "hexstr":
                bits = n["bitwidth"].integer(1, 4096)
                inputs.append(ConstInput(n["value"].hex_number() & ((1 << bits) - 1), bits))
            elif kind == "header":
                inputs.append(HeaderInput(self.headers.header(n["value"])))
            elif kind == "field":
                inputs.append(self.headers.target(n["value"]))
            else:
                n["type"].fail(f'input type "{kind}" is not supported')
        return Calculation(index, name, algo, tuple(inputs), payload)

    def _checksums(self) -> tuple[Checksum, ...]:
        names = _names(self.root, "calculations")
        sums: list[Checksum] = []
        for n in self.root.optional_elements("checksums"):
            if n["type"].text() != "generic":
                n["type"].fail(f'checksum type "{n["type"].value}" is not supported')
            cond = n.get("if_cond")
            verify, update = n.get("verify"), n.get("update")
            sums.append(
                Checksum(
                    self.headers.target(n["target"]),
                    lookup(names, n["calculation"], "calculation"),
                    None if cond is None else self.exprs.boolean(cond),
                    verify is None or verify.flag(),
                    update is None or update.flag(),
                )
            )
        return tuple(sums)

    def _counters(self, tables: dict[str, int]) -> tuple[Counter, ...]:
        found = []
        for i, n in enumerate(self.root.optional_elements("counter_arrays")):
            direct = n["is_direct"].flag()
            size = 0 if direct else n["size"].integer(0, 2**40)
            table = lookup(tables, n["binding"], "table") if direct else None
            found.append(Counter(i, n["name"].text(), size, direct, table))
        return tuple(found)

    def _direct_meters(self) -> dict[str, tuple[int, FieldRef]]:
        found: dict[str, tuple[int, FieldRef]] = {}
        for i, n in enumerate(self.root.optional_elements("meter_arrays")):
            if n["is_direct"].flag():
                found[n["name"].text()] = (i, self.headers.target(n["result_target"]))
        return found

    def _meters(self, tables: dict[str, int]) -> tuple[Meter, ...]:
        found = []
        for i, n in enumerate(self.root.optional_elements("meter_arrays")):
            direct = n["is_direct"].flag()
            unit = _meter_unit(n["type"])
            if n["rate_count"].integer() != 2:
                n["rate_count"].fail("only two-rate meters are supported")
            size = 0 if direct else n["size"].integer(0, 2**40)
            table = lookup(tables, n["binding"], "table") if direct else None
            found.append(Meter(i, n["name"].text(), size, direct, table, unit))
        return tuple(found)

    def _registers(self) -> tuple[Register, ...]:
        found = []
        for i, n in enumerate(self.root.optional_elements("register_arrays")):
            bits = n["bitwidth"].integer(1, 4096)
            found.append(Register(i, n["name"].text(), n["size"].integer(0, 2**40), bits))
        return tuple(found)

    def _digests(self) -> tuple[Digest, ...]:
        found = []
        for i, n in enumerate(self.root.optional_elements("learn_lists")):
            values = tuple(self._element(e) for e in n["elements"].elements())
            found.append(Digest(i, n["name"].text(), n["id"].integer(), values))
        return tuple(found)

    def _element(self, node: Node) -> tuple[Expr, int]:
        e = self.exprs.number(node)
        if isinstance(e, FieldRef):
            ftype = self.headers.types[self.headers.type_of(e.header)].fields[e.field]
            if ftype.varbit:
                node.fail("a varbit field cannot be in a digest")
            return e, ftype.bits
        if isinstance(e, ValidBit):
            return e, 1
        if isinstance(e, Const):
            return e, max(1, e.value.bit_length())
        return node.fail("expected a field or a constant")

    def _field_lists(self) -> tuple[FieldList, ...]:
        found = []
        for n in self.root.optional_elements("field_lists"):
            fields = []
            for e in n["elements"].elements():
                if e["type"].text() != "field":
                    e["type"].fail("expected a field")
                fields.append(self.headers.target(e["value"]))
            found.append(FieldList(n["id"].integer(0, 2**15 - 1), tuple(fields)))
        return tuple(found)


def _meter_unit(node: Node) -> Literal["packets", "bytes"]:
    unit = node.text()
    if unit == "packets":
        return "packets"
    if unit == "bytes":
        return "bytes"
    return node.fail("expected packets or bytes")


def _names(root: Node, key: str) -> dict[str, int]:
    return {n["name"].text(): i for i, n in enumerate(root.optional_elements(key))}


def _only(root: Node, key: str, name: str) -> Node:
    """The one element of that name, which v1model has exactly once."""
    nodes = [n for n in root[key].elements() if n["name"].text() == name]
    if len(nodes) != 1 or len(root[key].elements()) != 1:
        root[key].fail(f'expected one element named "{name}"')
    return nodes[0]
