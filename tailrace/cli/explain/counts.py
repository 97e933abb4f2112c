# SPDX-License-Identifier: Apache-2.0
"""What a compiled program asks of a switch, counted in the JSON that p4c made of it: state, and the most work
that one packet can be on one pass. RLB §V, Table I counts a chip's stages and memories, of which BMv2's JSON
knows nothing.

A table with a key is a match; statements outside of tables are tables without a key in the JSON, steps here.
The most is that of the longest way through ingress and egress, for each number by itself, and so a bound: of
two conditions that exclude each other it may take both.
"""

from __future__ import annotations

import graphlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tailrace.p4rt.errors import P4ProgramError
from tailrace.p4rt.programs import P4Program

_ACCESSES = ("register_read", "register_write")
_HASHES = ("modify_field_with_hash_based_offset",)
_BACK = {"recirculate": "recirculates", "resubmit": "resubmits"}
_CLONES = {"clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress"}


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


def resources(program: P4Program) -> Resources:
    """Counts what a program takes.

    Raises:
        P4ProgramError: its JSON is not as p4c writes it.
    """
    try:
        return _counted(program.name, json.loads(program.json))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise P4ProgramError(
            f"program {program.name}: {program.path}: not as p4c writes it: {error!r}"
        ) from None


def _counted(name: str, document: Mapping[str, Any]) -> Resources:
    actions = {
        action["name"]: [primitive["op"] for primitive in action["primitives"]]
        for action in document["actions"]
    }
    operations = {op for operators in actions.values() for op in operators}
    tables = [table for pipeline in document["pipelines"] for table in pipeline["tables"]]
    matches = [table for table in tables if table["key"]]
    registers = document["register_arrays"]
    most = _sum([_most(pipeline, actions) for pipeline in document["pipelines"]])
    again = [label for op, label in _BACK.items() if op in operations]
    return Resources(
        program=name,
        matches=len(matches),
        entries=sum(table["max_size"] for table in matches),
        registers=len(registers),
        register_bits=sum(register["size"] * register["bitwidth"] for register in registers),
        counters=sum(counter["size"] for counter in document["counter_arrays"] if not counter["is_direct"])
        + sum(table["max_size"] for table in matches if table["with_counters"]),
        most_matches=most.matches,
        most_steps=most.steps,
        most_conditions=most.conditions,
        most_accesses=most.accesses,
        most_hashes=most.hashes,
        again=(*again, "clones") if operations & _CLONES else tuple(again),
    )


class _Work(NamedTuple):
    """What a packet passes."""

    matches: int = 0
    steps: int = 0
    conditions: int = 0
    accesses: int = 0
    hashes: int = 0


_NOTHING = _Work()


def _sum(parts: Iterable[_Work]) -> _Work:
    return _Work(*map(sum, zip(_NOTHING, *parts, strict=True)))


def _most(pipeline: Mapping[str, Any], actions: Mapping[str, Sequence[str]]) -> _Work:
    """The most of each that lies on a way through a pipeline."""
    work = {
        name: _Work(
            accesses=sum(op in _ACCESSES for op in operators), hashes=sum(op in _HASHES for op in operators)
        )
        for name, operators in actions.items()
    }
    # of each table and condition what it is itself, and what may follow, after which action
    nodes = {
        condition["name"]: (
            _Work(conditions=1),
            [(condition["true_next"], _NOTHING), (condition["false_next"], _NOTHING)],
        )
        for condition in pipeline["conditionals"]
    } | {
        table["name"]: (_Work(matches=1) if table["key"] else _Work(steps=1), _after(table, work))
        for table in pipeline["tables"]
    }
    # what follows comes first; a table that follows itself is a ValueError
    graph = {name: [each for each, _ in after if each is not None] for name, (_, after) in nodes.items()}
    known: dict[str | None, _Work] = {None: _NOTHING}
    for name in graphlib.TopologicalSorter(graph).static_order():
        node_work, after = nodes[name]
        branches = [_sum((node_work, between, known[successor])) for successor, between in after]
        known[name] = _Work(*map(max, zip(*branches, strict=True)))
    return known[pipeline["init_table"]]


def _after(table: Mapping[str, Any], work: Mapping[str, _Work]) -> list[tuple[str | None, _Work]]:
    """What may follow a table, each with the action before it."""
    next_tables = table["next_tables"]
    successors = []
    for action in table["actions"]:
        after = {next_tables[key] for key in (action, "__HIT__", "__MISS__") if key in next_tables}
        successors += [(each, work[action]) for each in after or {table["base_default_next"]}]
    return successors or [(table["base_default_next"], _NOTHING)]
