# SPDX-License-Identifier: Apache-2.0
"""Reads the BMv2 JSON that p4c writes for v1model into a checked model.

The format is defined in behavioral-model docs/JSON_format.md, versions 2.0 to 2.24. Like simple_switch, this
reader also accepts files without keys that have a default, and the forms of the first versions (p4c-bm, and
p4c until 2020). Errors name unsupported constructs; `Model.unread` lists unknown keys.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from tailrace.spec.text import ELLIPSIS, one_line
from tailrace.switch.compiler.errors import CompilerError, located
from tailrace.switch.compiler.expr import Const, Expr, FieldRef, HeaderInst, IsValid, Op, ValidBit
from tailrace.switch.compiler.model import (
    Action,
    CalcInput,
    Calculation,
    Checksum,
    ConstInput,
    Counter,
    Digest,
    FieldList,
    Meter,
    Model,
    Pipeline,
    Register,
)
from tailrace.switch.compiler.read.actions import ActionReader, ActionScope
from tailrace.switch.compiler.read.expr import ExprReader
from tailrace.switch.compiler.read.headers import Headers, read_headers
from tailrace.switch.compiler.read.node import JsonNode, add_name, decode_json, lookup
from tailrace.switch.compiler.read.parser import ParserReader, read_deparser, read_vsets
from tailrace.switch.compiler.read.tables import TableParser

JSON_MAJOR, JSON_MINOR = 2, 24
"""The newest version of the format that can be read: the version of BMv2 1.15.5."""

_CORE_ERRORS = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
]
"""The parser errors of core.p4. BMv2 adds errors that a program does not list, in this order, at the end."""

_IPV4_CHECKSUM_BITS = (80, 96)
"""First bit of a checksum of type "ipv4" in its header, and the bit after its last bit."""

ALGORITHMS = frozenset(
    [
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
    ]
)

_METER_UNITS: tuple[Literal["packets", "bytes"], ...] = ("packets", "bytes")

_IGNORED_KEYS = {
    # ids and source lines are for people; pi_omit and pragmas are for the control plane, which reads P4Info
    "*": frozenset({"id", "source_info", "pi_omit", "pragmas"}),
    # values of enums for the control plane; an option of P4_14 compilers about arithmetic
    "": frozenset({"enums", "force_arith"}),
    "source_info": frozenset({"column", "source_fragment"}),
    "__meta__": frozenset({"compiler"}),
    # sizes and types that follow from the elements
    "header_stacks": frozenset({"size"}),
    "header_union_stacks": frozenset({"size", "union_type"}),
    # nothing refers to these
    "checksums": frozenset({"name"}),
    "field_lists": frozenset({"name"}),
    # direct counters and meters have the sizes of their tables, which name them
    "counter_arrays": frozenset({"size", "binding"}),
    "meter_arrays": frozenset({"size", "binding"}),
    # the actions are in action_ids; whether clients may change the default entry is in P4Info
    "tables": frozenset({"actions"}),
    "default_entry": frozenset({"action_entry_const"}),
    # types that follow from the primitive; the receiver of digests; unneeded parameters of primitives
    "parameters": frozenset({"type", "value"}),
}
"""Keys that BMv2 ignores, by the key of the object or array that contains them ("*": anywhere)."""

_MOST_NAMED = 4
"""Maximum number of names that a message lists."""
_PARSER = "parser"
_OTHER_PARSERS = {
    "ingress_parser": "PSA (Portable Switch Architecture)",
    "egress_parser": "PSA (Portable Switch Architecture)",
    "main_parser": "PNA (Portable NIC Architecture)",
}
"""Architectures other than v1model, by the names of their parsers in JSON (backends/bmv2 in p4c)."""
_PATH_CHARS = 60
"""Of longer paths of unknown keys, only this many characters at the end are shown."""

_BMV2_FIELDS = {
    "queueing_metadata": ["enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth", "qid"],
    "intrinsic_metadata": (
        ["ingress_global_timestamp", "egress_global_timestamp", "mcast_grp", "egress_rid", "priority"]
    ),
}
"""Fields that simple_switch accesses, by their headers in P4_14; P4_16 programs have aliases for them."""

_REQUIRED = ("ingress_port", "packet_length", "instance_type", "egress_spec", "egress_port")
"""Fields of standard_metadata without which a program is rejected."""


def read_bmv2_json(text: bytes, source: str = "<json>") -> Model:
    """Reads a program.

    Args:
        text: the JSON file's bytes.
        source: name of the file, for messages.

    Raises:
        CompilerError: the text is not JSON, is inconsistent, or uses an unsupported construct.
    """
    value = decode_json(text, source)
    root = JsonNode(value, source)
    if not isinstance(value, dict) or "pipelines" not in value:
        root.fail("not a BMv2 JSON file: an object with pipelines is expected")
    _check_architecture(root)
    try:
        return replace(_Bmv2Parser(root).model(), unread=_unread(root))
    except RecursionError:
        raise CompilerError(located(source, "expressions are nested too deeply")) from None


def _check_architecture(root: JsonNode) -> None:
    """Raises an error for programs of other architectures, which have other names of parsers."""
    names = [node["name"].text() for node in root.optional_elements("parsers")]
    if _PARSER in names:
        return
    other = next((_OTHER_PARSERS[name] for name in names if name in _OTHER_PARSERS), None)
    if other is not None:
        root.fail(f"a program for {other}; this switch runs programs for v1model")
    parsers = ", ".join(f'"{name[:40]}"' for name in names[:_MOST_NAMED]) or "none"
    root.fail(f'parsers: a program for v1model has one named "{_PARSER}", found {parsers}')


class _Bmv2Parser:
    """Reads the parts of a program, each after the parts to which it refers."""

    def __init__(self, root: JsonNode) -> None:
        self.root = root
        self.headers: Headers = read_headers(root)
        self.exprs = ExprReader(self.headers, _names(root, "register_arrays"))

    def model(self) -> Model:
        root = self.root
        self._check_version()
        digests = self._digests()
        lists = self._field_lists()
        names = ActionScope(
            self.exprs.registers,
            _names(root, "counter_arrays"),
            _names(root, "meter_arrays"),
            _names(root, "calculations"),
            {f.id for f in lists},
            {d.id: d.index for d in digests},
        )
        reader = ActionReader(self.exprs, names)
        actions, ids = self._actions(reader)
        errors = self._errors()
        vsets = _names(root, "parse_vsets")
        parser_reader = ParserReader(self.headers, reader, vsets, errors.values())
        parser = parser_reader.parser(_only(root, "parsers", _PARSER))
        deparser = _only(root, "deparsers", "deparser")
        reader.param_count = 0  # there are no action parameters in the deparser
        calls = tuple(reader.primitive(n) for n in deparser.optional_elements("primitives"))
        calculations = self._calculations()
        checksums = self._checksums(calculations)
        tables = TableParser(self.exprs, actions, ids, self._direct_meters())
        tables.first_selector = len(calculations)
        ingress, egress = self._pipelines(tables)
        for node in tables.selectors:
            calculations.append(self._calculation(len(calculations), f"selector_{len(calculations)}", node))
        program = root.get("program")
        return Model(
            name=program.text() if program is not None else "program",
            header_types=tuple(self.headers.header_types),
            headers=tuple(self.headers.headers),
            stacks=tuple(self.headers.stacks),
            unions=tuple(self.headers.unions),
            standard=self._standard(),
            errors=errors,
            parser=parser,
            vsets=read_vsets(root, parser_reader.vset_fields),
            deparser=read_deparser(deparser, self.headers),
            deparser_calls=calls,
            calculations=tuple(calculations),
            checksums=checksums,
            actions=actions,
            tables=tuple(tables.tables),
            ingress=ingress,
            egress=egress,
            profiles=tuple(tables.profiles),
            counters=self._counters(),
            meters=self._meters(),
            registers=self._registers(),
            digests=digests,
            field_lists=lists,
        )

    def _check_version(self) -> None:
        meta = self.root.get("__meta__")
        if meta is not None and meta.has("version"):
            version = meta["version"]
            major, minor = (number.integer() for number in version.elements_of_length(2))
            if major < JSON_MAJOR:
                version.fail(f"JSON format {major}.{minor} is older than {JSON_MAJOR}.0")
            if (major, minor) > (JSON_MAJOR, JSON_MINOR):
                version.fail(f"JSON format {major}.{minor} is newer than {JSON_MAJOR}.{JSON_MINOR}")
        for extern in self.root.optional_elements("extern_instances"):
            extern.fail(f'extern "{extern.text_at("type", "")}" is not supported')

    def _standard(self) -> dict[str, FieldRef]:
        """The fields of standard_metadata, aliases included."""
        index = self.headers.header_names.get("standard_metadata")
        if index is None:
            self.root["headers"].fail('no header is named "standard_metadata"')
        fields = self.headers.type_of(HeaderInst(index)).fields
        by_name = {f.name: FieldRef(HeaderInst(index), i) for i, f in enumerate(fields)}
        for name in _REQUIRED:
            if name not in by_name:
                self.root["headers"].fail(f'standard_metadata has no field "{name}"')
        self._add_bmv2_fields(by_name)
        return by_name

    def _add_bmv2_fields(self, by_name: dict[str, FieldRef]) -> None:
        """Adds the fields of `_BMV2_FIELDS`, which are aliases (P4_16) or fields of these headers (P4_14)."""
        for header, fields in _BMV2_FIELDS.items():
            index = self.headers.header_names.get(header)
            positions = {} if index is None else self.headers.positions[self.headers.headers[index].type]
            for field in fields:
                alias = self.headers.aliases.get(f"{header}.{field}")
                if isinstance(alias, FieldRef):
                    by_name[field] = alias
                elif index is not None and field in positions:
                    by_name[field] = FieldRef(HeaderInst(index), positions[field])

    def _errors(self) -> dict[str, int]:
        errors: dict[str, int] = {}
        numbers: set[int] = set()
        for node in self.root.optional_elements("errors"):
            name, number = node.elements_of_length(2)
            if name.text() in errors or number.integer(0, 2**31 - 2) in numbers:
                node.fail("another error has this name or number")
            errors[name.text()] = number.integer()
            numbers.add(number.integer())
        for core in _CORE_ERRORS:
            if core not in errors:
                errors[core] = max(errors.values(), default=-1) + 1
        return errors

    def _actions(self, reader: ActionReader) -> tuple[tuple[Action, ...], dict[int, int]]:
        actions: list[Action] = []
        ids: dict[int, int] = {}
        for node in self.root.optional_elements("actions"):
            action_id = node.integer_at("id")
            if action_id in ids:
                node.fail(f"two actions have id {action_id}")
            ids[action_id] = len(actions)
            actions.append(reader.action(len(actions), node))
        return tuple(actions), ids

    def _pipelines(self, reader: TableParser) -> tuple[Pipeline, Pipeline]:
        nodes = {n["name"].text(): n for n in self.root["pipelines"].elements()}
        if set(nodes) != {"ingress", "egress"}:
            self.root["pipelines"].fail('expected the pipelines "ingress" and "egress"')
        return reader.pipeline(nodes["ingress"]), reader.pipeline(nodes["egress"])

    def _calculations(self) -> list[Calculation]:
        nodes = self.root.optional_elements("calculations")
        return [self._calculation(i, n["name"].text(), n) for i, n in enumerate(nodes)]

    def _calculation(self, index: int, name: str, node: JsonNode) -> Calculation:
        algo = node["algo"].choice(ALGORITHMS, "hash algorithm")
        inputs: list[CalcInput] = []
        payload = False
        for n in node.optional_elements("input"):
            kind = n["type"].text()
            if kind == "payload":
                payload = True
            elif kind == "hexstr":
                bits = n["bitwidth"].integer(1, 4096)
                inputs.append(ConstInput(n["value"].hex_number() & ((1 << bits) - 1), bits))
            elif kind == "header":
                header = self.headers.packet_header(n["value"])
                inputs += (FieldRef(header, i) for i in range(len(self.headers.type_of(header).wire)))
            elif kind == "field":
                inputs.append(self.headers.target(n["value"]))
            else:
                n["type"].fail(f'input type "{kind}" is not supported')
        return Calculation(index, name, algo, tuple(inputs), payload)

    def _checksums(self, calculations: list[Calculation]) -> tuple[Checksum, ...]:
        names = _names(self.root, "calculations")
        checksums: list[Checksum] = []
        for n in self.root.optional_elements("checksums"):
            target = self.headers.target(n["target"])
            node = n.get("if_cond")
            cond = None if node is None else self.exprs.boolean(node)
            kind = n["type"].text()
            if kind == "generic":
                index = lookup(names, n["calculation"], "calculation")
            elif kind == "ipv4":
                index = len(calculations)
                calculations.append(self._ipv4_checksum(index, n["target"], target))
                valid = IsValid(target.header)
                cond = valid if cond is None else Op("and", (valid, cond))
            else:
                n["type"].fail(f'checksum type "{kind}" is not supported')
            verify, update = n.flag_at("verify", True), n.flag_at("update", True)
            checksums.append(Checksum(target, index, cond, verify, update))
        return tuple(checksums)

    def _ipv4_checksum(self, index: int, node: JsonNode, target: FieldRef) -> Calculation:
        """BMv2's checksum of type "ipv4": over the whole header of `target`, which counts as zero."""
        # wire: the fields that are in the packet, without the hidden validity field
        fields = self.headers.type_of(target.header).wire
        start = sum(f.bits for f in fields[: target.field])
        if (start, start + fields[target.field].bits) != _IPV4_CHECKSUM_BITS:
            node.fail("a checksum of type ipv4 must be bytes 10 and 11 of its header")
        inputs: list[CalcInput] = [FieldRef(target.header, i) for i in range(len(fields))]
        inputs[target.field] = ConstInput(0, fields[target.field].bits)
        return Calculation(index, f"ipv4_{index}", "csum16", tuple(inputs), False)

    def _counters(self) -> tuple[Counter, ...]:
        counters = []
        for i, n in enumerate(self.root.optional_elements("counter_arrays")):
            direct = n.flag_at("is_direct")
            size = 0 if direct else n.integer_at("size", 0, 2**40)
            counters.append(Counter(i, n["name"].text(), size, direct))
        return tuple(counters)

    def _direct_meters(self) -> dict[str, tuple[int, FieldRef]]:
        meters: dict[str, tuple[int, FieldRef]] = {}
        for i, n in enumerate(self.root.optional_elements("meter_arrays")):
            if n.flag_at("is_direct"):
                meters[n["name"].text()] = (i, self.headers.target(n["result_target"]))
        return meters

    def _meters(self) -> tuple[Meter, ...]:
        meters = []
        for i, n in enumerate(self.root.optional_elements("meter_arrays")):
            direct = n.flag_at("is_direct")
            unit = n["type"].choice(_METER_UNITS, "meter type")
            if n.integer_at("rate_count") != 2:
                n["rate_count"].fail("only two-rate meters are supported")
            size = 0 if direct else n.integer_at("size", 0, 2**40)
            meters.append(Meter(i, n["name"].text(), size, direct, unit))
        return tuple(meters)

    def _registers(self) -> tuple[Register, ...]:
        registers = []
        for i, n in enumerate(self.root.optional_elements("register_arrays")):
            bits = n["bitwidth"].integer(1, 4096)
            registers.append(Register(i, n["name"].text(), n.integer_at("size", 0, 2**40), bits))
        return tuple(registers)

    def _digests(self) -> tuple[Digest, ...]:
        digests = []
        for i, n in enumerate(self.root.optional_elements("learn_lists")):
            values = tuple(self._digest_value(e) for e in n.optional_elements("elements"))
            digests.append(Digest(i, n["name"].text(), n["id"].integer(), values))
        return tuple(digests)

    def _digest_value(self, node: JsonNode) -> tuple[Expr, int]:
        e = self.exprs.number(node)
        if isinstance(e, FieldRef):
            ftype = self.headers.field_type(e)
            if ftype.varbit:
                node.fail("a varbit field cannot be in a digest")
            return e, ftype.bits
        if isinstance(e, ValidBit):
            return e, 1
        if isinstance(e, Const):
            return e, max(1, e.value.bit_length())
        return node.fail("expected a field or a constant")

    def _field_lists(self) -> tuple[FieldList, ...]:
        lists: dict[int, FieldList] = {}
        for n in self.root.optional_elements("field_lists"):
            fields = []
            for e in n.optional_elements("elements"):
                kind = e["type"].text()
                if kind == "field":
                    fields.append(self.headers.target(e["value"]))
                elif kind != "hexstr":  # a constant need not be preserved
                    e["type"].fail("expected a field or a constant")
            list_id = n["id"].integer(0, 2**15 - 1)
            if list_id in lists:
                n["id"].fail(f"two field lists have id {list_id}")
            lists[list_id] = FieldList(list_id, tuple(fields))
        return tuple(lists.values())


def _unread(root: JsonNode) -> str:
    """A warning that names the keys that were not read; "" if there are none."""
    count, paths = 0, []
    for count, node in enumerate(root.unread(_IGNORED_KEYS), 1):
        if count <= _MOST_NAMED:
            path = node.path  # the end of a long path is more helpful than its beginning
            paths.append(one_line(path if len(path) <= _PATH_CHARS else ELLIPSIS + path[-_PATH_CHARS:]))
    if not count:
        return ""
    named, rest = ", ".join(paths), f" and {count - _MOST_NAMED} more" if count > _MOST_NAMED else ""
    return located(root.source, f"keys that the switch does not know were not read: {named}{rest}")


def _names(root: JsonNode, key: str) -> dict[str, int]:
    """The index of each element of an array, by the element's name."""
    names: dict[str, int] = {}
    for i, node in enumerate(root.optional_elements(key)):
        add_name(names, node, i, key.rstrip("s").replace("_", " "))
    return names


def _only(root: JsonNode, key: str, name: str) -> JsonNode:
    """The element of that name in an array; v1model programs have exactly one such element."""
    nodes = [n for n in root[key].elements() if n["name"].text() == name]
    if len(nodes) != 1:
        root[key].fail(f'expected one element named "{name}"')
    return nodes[0]
