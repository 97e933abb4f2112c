# SPDX-License-Identifier: Apache-2.0
"""What a compiled program asks of a switch, counted in the JSON that p4c made of it: state, and the most work
that one packet can be on one pass. RLB §V, Table I counts a chip's stages and memories, of which BMv2's JSON
knows nothing.

A table with a key is a match; statements outside of tables are tables without a key in the JSON, steps here.
The most is that of the longest way through ingress and egress, for each number by itself, and so a bound: of
two conditions that exclude each other it may take both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.p4rt.errors import ProgramError
from tailrace.p4rt.programs import Program

_ACCESSES = ("register_read", "register_write")
_HASHES = ("modify_field_with_hash_based_offset",)
_BACK = {"recirculate": "recirculates", "resubmit": "resubmits"}
_CLONES = ("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress")


@dataclass(frozen=True, slots=True)
class Resources:
    """What one program takes.

    matches: tables with a key; entries: that all of them have room for
    registers: arrays; register_bits: of all their cells
    counters: cells of packets and bytes, and entries with counters
    most_matches, most_steps, most_conditions, most_accesses, most_hashes: of a packet in one pass; accesses
        are reads and writes of registers
    again: how a packet can have another pass; empty: it has one
    """

    program: str
    matches: int
    entries: int
    registers: int
    register_bits: int
    counters: int
    most_matches: int
    most_steps: int
    most_conditions: int
    most_accesses: int
    most_hashes: int
    again: tuple[str, ...]


def resources(program: Program) -> Resources:
    """Counts what a program takes.

    Raises:
        ProgramError: its JSON is not as p4c writes it.
    """
    try:
        return _counted(program.name, json.loads(program.json))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProgramError(
            f"program {program.name}: {program.path}: not as p4c writes it: {error!r}"
        ) from None


def _counted(name: str, document: Mapping[str, Any]) -> Resources:
    actions = {action["name"]: action["primitives"] for action in document["actions"]}
    operations = [one["op"] for primitives in actions.values() for one in primitives]
    tables = [table for pipeline in document["pipelines"] for table in pipeline["tables"]]
    matches = [table for table in tables if table["key"]]
    registers = document["register_arrays"]
    most = {
        what: sum(_Ways(pipeline, actions, what).most for pipeline in document["pipelines"])
        for what in _COSTS
    }
    again = [word for op, word in _BACK.items() if op in operations]
    return Resources(
        program=name,
        matches=len(matches),
        entries=sum(table["max_size"] for table in matches),
        registers=len(registers),
        register_bits=sum(one["size"] * one["bitwidth"] for one in registers),
        counters=sum(one["size"] for one in document["counter_arrays"] if not one["is_direct"])
        + sum(table["max_size"] for table in matches if table["with_counters"]),
        again=(*again, "clones") if any(op in operations for op in _CLONES) else tuple(again),
        **most,
    )


def _operations(wanted: tuple[str, ...]) -> Any:
    return lambda primitives: sum(one["op"] in wanted for one in primitives)


_COSTS: Mapping[str, tuple[int, int, int, Any]] = {
    "most_matches": (1, 0, 0, _operations(())),
    "most_steps": (0, 1, 0, _operations(())),
    "most_conditions": (0, 0, 1, _operations(())),
    "most_accesses": (0, 0, 0, _operations(_ACCESSES)),
    "most_hashes": (0, 0, 0, _operations(_HASHES)),
}
"""What a table with a key, one without, a condition, and an action cost."""


class _Ways:
    """The ways through a pipeline, and what the most expensive one costs."""

    def __init__(self, pipeline: Mapping[str, Any], actions: Mapping[str, Any], what: str) -> None:
        match, step, self._condition, of_action = _COSTS[what]
        self._tables = {table["name"]: table for table in pipeline["tables"]}
        self._conditions = {one["name"]: one for one in pipeline["conditionals"]}
        self._actions = {name: of_action(primitives) for name, primitives in actions.items()}
        self._match, self._step = match, step
        first = pipeline["init_table"]
        self.most = self._found(first) if first else 0

    def _found(self, first: str) -> int:
        known: dict[str | None, int] = {None: 0}
        path, on_path = [first], {first}
        # a way may be longer than Python's stack is deep
        while path:
            name = path[-1]
            after = self._after(name)
            missing = next((following for following, _ in after if following not in known), None)
            if missing is None:
                own = (
                    self._condition
                    if name in self._conditions
                    else self._match
                    if self._tables[name]["key"]
                    else self._step
                )
                known[name] = own + max(known[following] + cost for following, cost in after)
                on_path.discard(path.pop())
            elif missing in on_path:
                raise ValueError(f"{missing} follows itself")
            else:
                path.append(missing)
                on_path.add(missing)
        return known[first]

    def _after(self, name: str) -> list[tuple[str | None, int]]:
        """What may follow, each with what the action before it costs."""
        if name in self._conditions:
            condition = self._conditions[name]
            return [(condition["true_next"], 0), (condition["false_next"], 0)]
        table = self._tables[name]
        following = table["next_tables"]
        found = []
        for action in table["actions"]:
            after = {following[key] for key in (action, "__HIT__", "__MISS__") if key in following}
            found += [(each, self._actions[action]) for each in after or {table["base_default_next"]}]
        return found or [(table["base_default_next"], 0)]
