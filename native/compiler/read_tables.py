# SPDX-License-Identifier: Apache-2.0
"""Reads pipelines: tables, action profiles, conditionals and action calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from native.compiler.expr import Expr, FieldRef, HeaderRef, IsValid, Op, ValidBit
from native.compiler.model import (
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
from native.compiler.node import Node, lookup
from native.compiler.read_actions import source_of
from native.compiler.read_expr import ExprReader

# "optional" matches a value or anything: a ternary match with a full or an empty mask
_MATCH_KINDS: dict[str, MatchKind] = {
    "exact": "exact",
    "lpm": "lpm",
    "ternary": "ternary",
    "range": "range",
    "optional": "ternary",
}
_TABLE_KINDS: dict[str, Literal["simple", "indirect", "indirect_ws"]] = {
    "simple": "simple",
    "indirect": "indirect",
    "indirect_ws": "indirect_ws",
}

# P4Runtime counts priorities upwards, BMv2 downwards from here (PI's bmv2 target).
BMV2_TOP_PRIORITY = 0xFFFFFF


@dataclass(slots=True)
class TableReader:
    """Reads the tables of all pipelines; indexes run through ingress, then egress."""

    exprs: ExprReader
    actions: tuple[Action, ...]
    action_ids: dict[int, int]
    meters: dict[str, tuple[int, FieldRef]]
    tables: list[Table] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    selectors: list[Node] = field(default_factory=list)
    profile_names: dict[str, int] = field(default_factory=dict)
    first_selector: int = 0

    def pipeline(self, node: Node) -> Pipeline:
        """Reads one pipeline."""
        for p in node.optional_elements("action_profiles"):
            self._profile(p)
        first = len(self.tables)
        for t in node["tables"].elements():
            self._table(t)
        conditionals = tuple(self._conditional(c) for c in node["conditionals"].elements())
        calls = []
        for c in node.optional_elements("action_calls"):
            calls.append(
                ActionCallNode(c["name"].text(), self._action(c["action_id"]), c["next_node"].opt_text())
            )
        pipeline = Pipeline(
            node["name"].text(),
            node["init_table"].opt_text(),
            tuple(range(first, len(self.tables))),
            conditionals,
            tuple(calls),
        )
        _check_nodes(node, pipeline, self.tables)
        return pipeline

    def _profile(self, node: Node) -> None:
        index = len(self.profiles)
        name = node["name"].text()
        selector = node.get("selector")
        number: int | None = None
        if selector is not None:
            number = self.first_selector + len(self.selectors)
            self.selectors.append(selector)
        self.profile_names[name] = index
        self.profiles.append(Profile(index, name, node["max_size"].integer(), number))

    def _conditional(self, node: Node) -> Conditional:
        return Conditional(
            node["name"].text(),
            self.exprs.boolean(node["expression"]),
            node["true_next"].opt_text(),
            node["false_next"].opt_text(),
            source_of(node),
        )

    def _action(self, node: Node) -> int:
        number = node.integer()
        if number not in self.action_ids:
            node.fail(f"no action has id {number}")
        return self.action_ids[number]

    def _key(self, node: Node) -> tuple[KeyField, ...]:
        fields: list[KeyField] = []
        offset = 0
        for n in node.elements():
            kind = n["match_type"].text()
            target = n["target"]
            header: HeaderRef | None = None
            value: Expr
            if kind == "valid":
                value, bits, kind = Op("b2d", (IsValid(self.exprs.headers.header(target)),)), 1, "exact"
            else:
                ref = self.exprs.headers.field_ref(target)
                value = ref
                if isinstance(ref, ValidBit):
                    bits = 1
                else:
                    headers = self.exprs.headers
                    ftype = headers.types[headers.type_of(ref.header)].fields[ref.field]
                    if ftype.varbit:
                        target.fail("a varbit field cannot be a table key")
                    bits, header = ftype.bits, ref.header
            nbytes = (bits + 7) // 8
            mask = n.get("mask")
            name = n.get("name")
            fields.append(
                KeyField(
                    name.text() if name is not None else ".".join(str(x) for x in target.value),
                    bits,
                    nbytes,
                    offset,
                    self._kind(n, kind),
                    value,
                    header,
                    None if mask is None else mask.hex_number(),
                )
            )
            offset += nbytes
        return tuple(fields)

    def _kind(self, node: Node, kind: str) -> MatchKind:
        found = _MATCH_KINDS.get(kind)
        if found is not None:
            return found
        return node["match_type"].fail(f'match type "{kind}" is not supported')

    def _table(self, node: Node) -> None:
        kind = _TABLE_KINDS.get(node["type"].text())
        if kind is None:
            node["type"].fail(f'table type "{node["type"].text()}" is not supported')
        profile = None
        if kind != "simple":
            profile = lookup(self.profile_names, node["action_profile"], "action profile")
            if kind == "indirect_ws" and not self.profiles[profile].with_selector:
                node["action_profile"].fail("the action profile has no selector")
        key = self._key(node["key"])
        match_kind = self._kind(node, node["match_type"].text())
        self._check_match(node, match_kind, key)
        actions = tuple(self._action(n) for n in node["action_ids"].elements())
        action, data, const = self._default(node)
        by_hit, by_action, hit, miss = self._next(node, actions)
        base = node.get("base_default_next")
        timeout = node.get("support_timeout")
        meter = node.get("direct_meters")
        meter_index, meter_target = (None, None) if meter is None else self._meter(meter)
        entries = tuple(self._entry(n, key, match_kind) for n in node.optional_elements("entries"))
        self.tables.append(
            Table(
                len(self.tables),
                node["name"].text(),
                match_kind,
                key,
                kind,
                profile,
                max(node["max_size"].integer(), len(entries)),
                node["with_counters"].flag(),
                meter_index,
                meter_target,
                timeout is not None and timeout.flag(),
                actions,
                action,
                data,
                const,
                entries,
                by_action,
                hit,
                miss,
                by_hit,
                None if base is None else base.opt_text(),
                source_of(node),
            )
        )

    def _check_match(self, node: Node, kind: MatchKind, key: tuple[KeyField, ...]) -> None:
        kinds = [k.kind for k in key]
        allowed = {
            "exact": {"exact"},
            "lpm": {"exact", "lpm"},
            "ternary": {"exact", "lpm", "ternary"},
            "range": {"exact", "lpm", "ternary", "range"},
        }[kind]
        if set(kinds) - allowed or kinds.count("lpm") > 1:
            node["match_type"].fail(f"{kind} does not fit the kinds of the key: {', '.join(kinds)}")

    def _meter(self, node: Node) -> tuple[int, FieldRef]:
        name = node.text()
        if name not in self.meters:
            node.fail(f'no direct meter is named "{name}"')
        return self.meters[name]

    def _default(self, node: Node) -> tuple[int | None, tuple[int, ...], bool]:
        entry = node.get("default_entry")
        if entry is None:
            return None, (), False
        action = self._action(entry["action_id"])
        const = entry.get("action_const")
        values = tuple(n.hex_number() for n in entry.optional_elements("action_data"))
        self._check_data(entry, action, values)
        return action, values, const is not None and const.flag()

    def _check_data(self, node: Node, action: int, values: tuple[int, ...]) -> None:
        params = self.actions[action].params
        if len(values) != len(params):
            node.fail(
                f'action "{self.actions[action].name}" takes {len(params)} values, {len(values)} are given'
            )

    def _next(
        self, node: Node, actions: tuple[int, ...]
    ) -> tuple[bool, dict[int, str | None], str | None, str | None]:
        nexts = {name: n.opt_text() for name, n in node["next_tables"].items()}
        if "__HIT__" in nexts or "__MISS__" in nexts:
            return True, {}, nexts.get("__HIT__"), nexts.get("__MISS__")
        by_action: dict[int, str | None] = {}
        for action in actions:
            name = self.actions[action].name
            if name not in nexts:
                node["next_tables"].fail(f'no next node for action "{name}"')
            by_action[action] = nexts[name]
        return False, by_action, None, None

    def _entry(self, node: Node, key: tuple[KeyField, ...], kind: MatchKind) -> ConstEntry:
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
        priority = node.get("priority")
        number = 0 if priority is None else BMV2_TOP_PRIORITY - priority.integer(0, BMV2_TOP_PRIORITY)
        if kind in ("exact", "lpm"):
            number = 0
        return ConstEntry(bytes(value), bytes(mask), prefix, number, action, data)


def _entry_part(node: Node, k: KeyField) -> tuple[int, int, int]:
    """Value, mask (or low and high bound) and LPM prefix length of one field of an entry."""
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


def _check_nodes(node: Node, pipeline: Pipeline, tables: list[Table]) -> None:
    """Every next node exists in this pipeline."""
    names: set[str | None] = {None}
    names |= {tables[i].name for i in pipeline.tables}
    names |= {c.name for c in pipeline.conditionals} | {c.name for c in pipeline.calls}
    targets: list[str | None] = [pipeline.init]
    for i in pipeline.tables:
        t = tables[i]
        targets += [*t.next_by_action.values(), t.next_hit, t.next_miss, t.next_default]
    for c in pipeline.conditionals:
        targets += [c.true_next, c.false_next]
    targets += [c.next for c in pipeline.calls]
    for name in targets:
        if name not in names:
            node.fail(f'no node is named "{name}"')
