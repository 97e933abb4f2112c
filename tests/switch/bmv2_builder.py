# SPDX-License-Identifier: Apache-2.0
"""Builds small BMv2 JSON programs by hand, so that tests need no P4 compiler.

The program of ``Builder`` parses a header ``in`` and a header ``out``, runs the tables and actions
that a test adds, and sends the packet to port 0 unless an action says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
STANDARD = [
    ("ingress_port", 9),
    ("egress_spec", 9),
    ("egress_port", 9),
    ("instance_type", 32),
    ("packet_length", 32),
    ("enq_timestamp", 32),
    ("enq_qdepth", 19),
    ("deq_timedelta", 32),
    ("deq_qdepth", 19),
    ("ingress_global_timestamp", 48),
    ("egress_global_timestamp", 48),
    ("mcast_grp", 16),
    ("egress_rid", 16),
    ("checksum_error", 1),
    ("parser_error", 32),
    ("priority", 3),
    ("_padding", 3),
]


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def const(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def op(name: str, left: Json | None, right: Json, cond: Json | None = None) -> Json:
    value: Json = {"op": name, "left": left, "right": right}
    if cond is not None:
        value["cond"] = cond
    return {"type": "expression", "value": value}


def call(name: str, *parameters: Json) -> Json:
    return {"op": name, "parameters": list(parameters)}


def assign(target: Json, value: Json) -> Json:
    return call("assign", target, {"type": "expression", "value": value})


def header_type(name: str, fields: Sequence[tuple[str, int] | tuple[str, int, bool]]) -> Json:
    listed = [[f[0], f[1], f[2] if len(f) > 2 else False] for f in fields]
    padding = -sum(f[1] for f in fields) % 8
    if padding:
        listed.append(["_pad", padding, False])
    return {"name": name, "id": 0, "fields": listed}


class Builder:
    """Collects the parts of a program; ``json()`` puts them together."""

    def __init__(
        self,
        inputs: Sequence[tuple[str, int] | tuple[str, int, bool]],
        outputs: Sequence[tuple[str, int] | tuple[str, int, bool]] = (("unused", 8),),
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.actions: list[Json] = []
        self.tables: list[Json] = []
        self.egress_tables: list[Json] = []
        self.extra: Json = {}

    def action(self, name: str, body: Sequence[Json], params: Sequence[tuple[str, int]] = ()) -> int:
        data = [{"name": n, "bitwidth": b} for n, b in params]
        self.actions.append(
            {"name": name, "id": len(self.actions), "runtime_data": data, "primitives": list(body)}
        )
        return len(self.actions) - 1

    def run(self, body: Sequence[Json], name: str = "body") -> None:
        """An action that every packet runs."""
        action = self.action(name, body)
        self.table(f"tbl_{name}", [], "exact", [action], default=(action, []), const_default=True)

    def table(
        self,
        name: str,
        key: Sequence[tuple[str, str, str]],
        match: str,
        actions: Sequence[int],
        *,
        default: tuple[int, list[str]] | None = None,
        const_default: bool = False,
        max_size: int = 1024,
        egress: bool = False,
        **more: Any,
    ) -> None:
        """A table behind the ones before it; key parts are (kind, header, field)."""
        table: Json = {
            "name": name,
            "id": len(self.tables) + len(self.egress_tables),
            "key": [{"match_type": k, "name": f"{h}.{f}", "target": [h, f], "mask": None} for k, h, f in key],
            "match_type": match,
            "type": "simple",
            "max_size": max_size,
            "with_counters": False,
            "support_timeout": False,
            "direct_meters": None,
            "action_ids": list(actions),
            "actions": [self.actions[a]["name"] for a in actions],
            "next_tables": {self.actions[a]["name"]: None for a in actions},
            "base_default_next": None,
            **more,
        }
        if default is not None:
            table["default_entry"] = {
                "action_id": default[0],
                "action_const": const_default,
                "action_data": default[1],
                "action_entry_const": const_default,
            }
        (self.egress_tables if egress else self.tables).append(table)

    def json(self) -> Json:
        for tables in (self.tables, self.egress_tables):
            for table, after in zip(tables, [*tables[1:], None], strict=False):
                following = None if after is None else after["name"]
                table["base_default_next"] = following
                table["next_tables"] = dict.fromkeys(table["next_tables"], following)
        types = [
            header_type("standard_metadata", STANDARD),
            header_type("in_t", self.inputs),
            header_type("out_t", self.outputs),
        ]
        for i, t in enumerate(types):
            t["id"] = i
        headers = [
            {"name": "standard_metadata", "id": 0, "header_type": "standard_metadata", "metadata": True},
            {"name": "in", "id": 1, "header_type": "in_t", "metadata": False},
            {"name": "out", "id": 2, "header_type": "out_t", "metadata": False},
        ]
        extract = [{"op": "extract", "parameters": [{"type": "regular", "value": h}]} for h in ("in", "out")]
        end = {"type": "default", "value": None, "mask": None, "next_state": None}
        state = {"name": "start", "id": 0, "parser_ops": extract, "transitions": [end], "transition_key": []}
        program: Json = {
            "header_types": types,
            "headers": headers,
            "header_stacks": [],
            "header_union_types": [],
            "header_unions": [],
            "header_union_stacks": [],
            "field_lists": [],
            "errors": [],
            "enums": [],
            "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": [state]}],
            "parse_vsets": [],
            "deparsers": [{"name": "deparser", "id": 0, "order": ["in", "out"], "primitives": []}],
            "meter_arrays": [],
            "counter_arrays": [],
            "register_arrays": [],
            "calculations": [],
            "learn_lists": [],
            "actions": self.actions,
            "pipelines": [_pipeline("ingress", self.tables), _pipeline("egress", self.egress_tables)],
            "checksums": [],
            "extern_instances": [],
            "field_aliases": [],
            "program": "test.p4",
            "__meta__": {"version": [2, 24], "compiler": "test"},
        }
        program.update(self.extra)
        return program

    def text(self) -> bytes:
        return json.dumps(self.json()).encode()


def _pipeline(name: str, tables: list[Json]) -> Json:
    return {
        "name": name,
        "id": 0 if name == "ingress" else 1,
        "init_table": tables[0]["name"] if tables else None,
        "tables": tables,
        "action_profiles": [],
        "conditionals": [],
    }


def pack(fields: Sequence[tuple[str, int] | tuple[str, int, bool]], values: Sequence[int]) -> bytes:
    """The bytes of a header with these field values."""
    bits = sum(f[1] for f in fields)
    number = 0
    for f, v in zip(fields, values, strict=True):
        number = number << f[1] | (v & ((1 << f[1]) - 1))
    padding = -bits % 8
    return (number << padding).to_bytes((bits + padding) // 8, "big")


def unpack(fields: Sequence[tuple[str, int] | tuple[str, int, bool]], data: bytes) -> list[int]:
    """The (unsigned) field values of a header's bytes."""
    bits = sum(f[1] for f in fields)
    number = int.from_bytes(data[: (bits + 7) // 8], "big") >> (-bits % 8)
    values = []
    for f in reversed(fields):
        values.append(number & ((1 << f[1]) - 1))
        number >>= f[1]
    return values[::-1]
