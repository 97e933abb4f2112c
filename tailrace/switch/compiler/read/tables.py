# SPDX-License-Identifier: Apache-2.0
"""Reads pipelines: tables, action profiles, conditionals and action calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from tailrace.spec.text import ELLIPSIS
from tailrace.switch.compiler.expr import Expr, FieldRef, HeaderRef, IsValid, Op, ValidBit
from tailrace.switch.compiler.model import (
    Action,
    ActionCallNode,
    Conditional,
    ConstEntry,
    KeyField,
    MatchKind,
    Pipeline,
    Profile,
    Table,
)
from tailrace.switch.compiler.read.actions import source_of, source_text
from tailrace.switch.compiler.read.expr import ExprReader
from tailrace.switch.compiler.read.node import JsonNode, add_name, lookup

# "optional" matches one value or every value: a ternary match whose mask is all ones or all zeros
_MATCH_KINDS: dict[str, MatchKind] = {
    "exact": "exact",
    "lpm": "lpm",
    "ternary": "ternary",
    "range": "range",
    "optional": "ternary",
}
_TABLE_KINDS: tuple[Literal["simple", "indirect", "indirect_ws"], ...] = ("simple", "indirect", "indirect_ws")

# P4Runtime prefers larger priorities, BMv2 smaller priorities: as in PI, the sum of both is this constant
BMV2_TOP_PRIORITY = 0xFFFFFF

# maximum length of a table's key, each field in whole bytes: a hash slot contains the key, and offsets in a
# slot have 16 bits
_MAX_KEY_BYTES = 4096


_MOST_NAMED = 6
"""Maximum number of nodes of a cycle that the message names."""
_NAME_CHARS = 60


@dataclass(slots=True)
class TableParser:
    """Reads the tables of all pipelines; ingress tables have the first indexes, egress tables the next.

    meters: index and target field of each direct meter, by name
    selectors: the JSON of the calculations of action profiles
    first_selector: the calculation index of the first of `selectors`
    node_names: the names of all nodes, to find duplicates; the values are not used
    """

    exprs: ExprReader
    actions: tuple[Action, ...]
    action_ids: dict[int, int]
    meters: dict[str, tuple[int, FieldRef]]
    tables: list[Table] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    selectors: list[JsonNode] = field(default_factory=list)
    profile_names: dict[str, int] = field(default_factory=dict)
    first_selector: int = 0
    node_names: dict[str, int] = field(default_factory=dict)
    action_names: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.action_names = {action.name: action.index for action in self.actions}

    def pipeline(self, node: JsonNode) -> Pipeline:
        """Reads and checks a pipeline."""
        for p in node.optional_elements("action_profiles"):
            self._profile(p, p["name"].text(), p.integer_at("max_size"))
        first = len(self.tables)
        for t in node.optional_elements("tables"):
            self._table(t)
        conditionals = tuple(self._conditional(c) for c in node.optional_elements("conditionals"))
        calls = tuple(self._call(c) for c in node.optional_elements("action_calls"))
        pipeline = Pipeline(
            node["name"].text(),
            node.name_at("init_table"),
            tuple(range(first, len(self.tables))),
            conditionals,
            calls,
        )
        _check_flow(node, pipeline, self.tables)
        return pipeline

    def _call(self, node: JsonNode) -> ActionCallNode:
        name = add_name(self.node_names, node, 0, "control node")
        action = self._action(node["action_id"])
        if self.actions[action].params:
            node.fail(f'action "{self.actions[action].name}" has parameters and cannot be called directly')
        return ActionCallNode(name, action, node.name_at("next_node"))

    def _profile(self, node: JsonNode, name: str, size: int) -> int:
        index = len(self.profiles)
        if name in self.profile_names:
            node.fail(f'two action profiles are named "{name}"')
        selector = node.get("selector")
        calculation: int | None = None
        if selector is not None:
            calculation = self.first_selector + len(self.selectors)
            self.selectors.append(selector)
        self.profile_names[name] = index
        self.profiles.append(Profile(index, name, size, calculation))
        return index

    def _conditional(self, node: JsonNode) -> Conditional:
        if not (node.has("true_next") or node.has("false_next")):
            node.fail("expected true_next, false_next or both")
        return Conditional(
            add_name(self.node_names, node, 0, "control node"),
            self.exprs.boolean(node["expression"]),
            node.name_at("true_next"),
            node.name_at("false_next"),
            source_of(node),
            source_text(node),
        )

    def _action(self, node: JsonNode) -> int:
        action_id = node.integer()
        if action_id not in self.action_ids:
            node.fail(f"no action has id {action_id}")
        return self.action_ids[action_id]

    def _key(self, table: JsonNode) -> tuple[KeyField, ...]:
        fields: list[KeyField] = []
        offset = 0
        for n in table.optional_elements("key"):
            kind = n["match_type"].text()
            target = n["target"]
            header: HeaderRef | None = None  # if this header is invalid, the field counts as 0
            value: Expr
            if kind == "valid":
                # b2d: boolean to number
                value, bits, kind = Op("b2d", (IsValid(self.exprs.headers.header(target)),)), 1, "exact"
                default_name = target.text()
            else:
                ref = self.exprs.headers.field_ref(target)
                default_name = ".".join(part.text() for part in target.elements_of_length(2))
                value = ref
                if isinstance(ref, ValidBit):
                    bits = 1
                else:
                    ftype = self.exprs.headers.field_type(ref)
                    if ftype.varbit:
                        target.fail("a varbit field cannot be a table key")
                    bits, header = ftype.bits, None if ftype.hidden else ref.header
            nbytes = (bits + 7) // 8
            mask = n.get("mask")
            fields.append(
                KeyField(
                    n.text_at("name", default_name),
                    bits,
                    nbytes,
                    offset,
                    self._match_kind(n, kind),
                    value,
                    header,
                    None if mask is None else mask.hex_number(),
                )
            )
            offset += nbytes
            if offset > _MAX_KEY_BYTES:
                n.fail(f"the key has more than {_MAX_KEY_BYTES} bytes")
        return tuple(fields)

    def _match_kind(self, node: JsonNode, kind: str) -> MatchKind:
        match_kind = _MATCH_KINDS.get(kind)
        if match_kind is not None:
            return match_kind
        return node["match_type"].fail(f'match type "{kind}" is not supported')

    def _table(self, node: JsonNode) -> None:
        name = add_name(self.node_names, node, 0, "control node")
        kind = node["type"].choice(_TABLE_KINDS, "table type")
        profile = None if kind == "simple" else self._profile_of(node, kind == "indirect_ws")
        key = self._key(node)
        match_kind = self._match_kind(node, node["match_type"].text())
        self._check_match(node, match_kind, key)
        actions = self._actions(node)
        action, data, const = self._default(node)
        if kind != "simple" and (const or node.has("entries")):
            node.fail("an indirect table cannot have a constant default action or initial entries")
        by_hit, by_action, hit, miss = self._next_nodes(node, actions)
        meter = node.get("direct_meters")
        meter_index, meter_target = (
            (None, None) if meter is None else lookup(self.meters, meter, "direct meter")
        )
        entries = tuple(self._entry(n, key, match_kind) for n in node.optional_elements("entries"))
        if not (node.has("max_size") or node.has("entries")):
            node.fail("expected max_size or entries")
        self.tables.append(
            Table(
                len(self.tables),
                name,
                match_kind,
                key,
                kind,
                profile,
                max(node.integer_at("max_size"), len(entries)),
                node.flag_at("with_counters"),
                meter_index,
                meter_target,
                node.flag_at("support_timeout"),
                actions,
                action,
                data,
                const,
                entries,
                by_action,
                hit,
                miss,
                by_hit,
                node.name_at("base_default_next"),
                source_of(node),
            )
        )

    def _profile_of(self, node: JsonNode, with_groups: bool) -> int:
        """The action profile of an indirect table; before JSON 2.3 the table itself declared it."""
        if node.get("action_profile") is not None:
            profile = lookup(self.profile_names, node["action_profile"], "action profile")
        else:
            # BMv2 does not limit profiles, and p4c-bm wrote no size, so the table's size is used
            size = node.integer_at("max_size")
            profile = self._profile(node, node["act_prof_name"].text(), size)
        if with_groups and not self.profiles[profile].with_selector:
            node.fail("the action profile has no selector")
        return profile

    def _actions(self, node: JsonNode) -> tuple[int, ...]:
        """The table's actions, listed by id or, in the first versions of the format, by unique names."""
        if node.has("action_ids"):
            actions = tuple(self._action(n) for n in node.optional_elements("action_ids"))
        else:
            actions = tuple(lookup(self.action_names, n, "action") for n in node.optional_elements("actions"))
        names: set[str] = set()
        for name in (self.actions[i].name for i in actions):
            if name in names:
                node.fail(f'two of its actions are named "{name}"')
            names.add(name)
        return actions

    def _check_match(self, node: JsonNode, kind: MatchKind, key: tuple[KeyField, ...]) -> None:
        kinds = [k.kind for k in key]
        allowed = {
            "exact": {"exact"},
            "lpm": {"exact", "lpm"},
            "ternary": {"exact", "lpm", "ternary"},
            "range": {"exact", "lpm", "ternary", "range"},
        }[kind]
        if set(kinds) - allowed or kinds.count("lpm") > 1:
            node["match_type"].fail(f"{kind} does not fit the match kinds of the key: {', '.join(kinds)}")

    def _default(self, node: JsonNode) -> tuple[int | None, tuple[int, ...], bool]:
        """Index and parameters of a table's default action, and whether the action is constant."""
        entry = node.get("default_entry")
        if entry is None:
            return None, (), False
        action = self._action(entry["action_id"])
        values = tuple(n.hex_number() for n in entry["action_data"].elements())
        self._check_data(entry, action, values)
        return action, values, entry.flag_at("action_const")

    def _check_data(self, node: JsonNode, action: int, values: tuple[int, ...]) -> None:
        params = self.actions[action].params
        if len(values) != len(params):
            node.fail(f'action "{self.actions[action].name}" takes {len(params)} values, found {len(values)}')

    def _next_nodes(
        self, node: JsonNode, actions: tuple[int, ...]
    ) -> tuple[bool, dict[int, str | None], str | None, str | None]:
        """The next nodes of a table: Table.by_hit, next_by_action, next_hit and next_miss."""
        listed = node.get("next_tables")
        next_by_name = {} if listed is None else {name: listed.name_at(name) for name, _ in listed.items()}
        if "__HIT__" in next_by_name or "__MISS__" in next_by_name:
            if set(next_by_name) != {"__HIT__", "__MISS__"}:
                node["next_tables"].fail("expected both __HIT__ and __MISS__, and nothing else")
            return True, {}, next_by_name["__HIT__"], next_by_name["__MISS__"]
        by_action: dict[int, str | None] = {}
        for action in actions:
            name = self.actions[action].name
            if name not in next_by_name:
                node.fail(f'next_tables has no node for action "{name}"')
            by_action[action] = next_by_name[name]
        return False, by_action, None, None

    def _entry(self, node: JsonNode, key: tuple[KeyField, ...], kind: MatchKind) -> ConstEntry:
        parts = node["match_key"].elements()
        if len(parts) != len(key):
            node["match_key"].fail(f"the table has {len(key)} key fields")
        value, mask, prefix = bytearray(), bytearray(), 0
        for part, k in zip(parts, key, strict=True):
            v, m, bits = _entry_part(part, k)
            prefix += bits
            value += v.to_bytes(k.nbytes, "big")
            mask += m.to_bytes(k.nbytes, "big")
        entry = node["action_entry"]
        action = self._action(entry["action_id"])
        data = tuple(n.hex_number() for n in entry["action_data"].elements())
        self._check_data(entry, action, data)
        priority = BMV2_TOP_PRIORITY - node.integer_at("priority", 0, BMV2_TOP_PRIORITY)
        if kind in ("exact", "lpm"):
            priority = 0
        return ConstEntry(bytes(value), bytes(mask), prefix, priority, action, data)


def _entry_part(node: JsonNode, k: KeyField) -> tuple[int, int, int]:
    """(value, mask, prefix length) of one field of an entry; for a range, (low, high, 0)."""
    full = (1 << k.bits) - 1
    kind = node["match_type"].text()
    if kind in ("exact", "valid"):
        v = node["key"]
        number = int(v.value) if isinstance(v.value, bool) else v.hex_number()
        value, mask, prefix = number, full, 0
    elif kind == "lpm":
        prefix = node["prefix_length"].integer(0, k.bits)
        value, mask = node["key"].hex_number(), full >> (k.bits - prefix) << (k.bits - prefix)
    elif kind in ("ternary", "optional"):
        value, mask, prefix = node["key"].hex_number(), node["mask"].hex_number(), 0
    elif kind == "range":
        value, mask, prefix = node["start"].hex_number(), node["end"].hex_number(), 0
    else:
        node["match_type"].fail(f'match type "{kind}" is not supported')
    if value < 0 or value > full or mask < 0 or mask > full:
        node.fail(f"does not fit the {k.bits} bits of {k.name}")
    return (value if kind == "range" else value & mask), mask, prefix


def _check_flow(node: JsonNode, pipeline: Pipeline, tables: Sequence[Table]) -> None:
    """Checks the control flow: all successors exist, and there is no cycle.

    P4's controls have no loops. In the generated C, a node is a label and an edge is a goto, so a cycle would
    be an endless loop.

    Args:
        node: the pipeline's JSON, for messages.
        pipeline: the pipeline to check.
        tables: the tables of all pipelines.

    Raises:
        CompilerError: a successor does not exist, or there is a cycle.
    """
    successors = _successors(pipeline, tables)
    first = [] if pipeline.init is None else [pipeline.init]
    for names in (first, *successors.values()):
        for name in names:
            if name not in successors:
                node.fail(f'no node is named "{name}"')
    try:
        TopologicalSorter(successors).prepare()
    except CycleError as error:
        # in args[1] each node is a successor of the next, and the last node is the first again
        cycle = error.args[1][:0:-1]
        named = [f'"{_cut(name)}"' for name in cycle[:_MOST_NAMED]]
        rest = [f"{len(cycle) - _MOST_NAMED} more"] if len(cycle) > _MOST_NAMED else []
        node.fail(f"the control flow has a cycle: {' -> '.join([*named, *rest, named[0]])}")


def _successors(pipeline: Pipeline, tables: Sequence[Table]) -> dict[str, list[str]]:
    """The successors of each node."""
    successors: dict[str, tuple[str | None, ...]] = {}
    for i in pipeline.tables:
        t = tables[i]
        successors[t.name] = (*t.next_by_action.values(), t.next_hit, t.next_miss, t.next_default)
    successors |= {c.name: (c.true_next, c.false_next) for c in pipeline.conditionals}
    successors |= {call.name: (call.next,) for call in pipeline.calls}
    return {name: [n for n in nodes if n is not None] for name, nodes in successors.items()}


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_CHARS else name[:_NAME_CHARS] + ELLIPSIS
