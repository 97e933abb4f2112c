# SPDX-License-Identifier: Apache-2.0
"""Resources that a compiled program uses, counted in its BMv2 JSON from p4c: state, and the most work that
one packet can cause in one pass. RLB §V, Table I counts a chip's stages and memories, which BMv2's JSON does
not describe.

A table with a key counts as a match. Statements outside of tables are keyless tables in the JSON: each counts
as a step.
For each quantity separately, the maximum is over all paths through the control flow of ingress and egress. So
it is an upper bound: it may count both of two conditions that exclude each other.
"""

from __future__ import annotations

import graphlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from tailrace.cbuild.artifacts import P4_BUILD
from tailrace.p4rt.errors import P4ProgramError
from tailrace.p4rt.programs import JSON, P4Program, load
from tailrace.spec import SpecError, plugins
from tailrace.spec.suggest import unknown
from tailrace.tables.listing import Column, Listing, Row

_ACCESSES = ("register_read", "register_write")
_HASHES = ("modify_field_with_hash_based_offset",)
_BACK = {"recirculate": "recirculates", "resubmit": "resubmits"}
"""Operations that send a packet back to ingress, with the word for each in the printed table of resources."""
_CLONES = {"clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress"}


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one program.

    matches: tables with a key; entries: their capacity in total
    registers: register arrays; register_bits: bits of all their cells
    counters: cells of indirect counters, and entries with direct counters
    most_matches, most_steps, most_conditions, most_accesses, most_hashes: the most per packet and pass;
        accesses are reads and writes of registers
    again: how a packet can get another pass (recirculates, resubmits, clones); empty: it cannot
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
    """Counts the resources of a program.

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
    most = _sum([_most_work(pipeline, actions) for pipeline in document["pipelines"]])
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
    """Work that a packet causes."""

    matches: int = 0
    steps: int = 0
    conditions: int = 0
    accesses: int = 0
    hashes: int = 0


_NOTHING = _Work()


def _sum(parts: Iterable[_Work]) -> _Work:
    return _Work(*map(sum, zip(_NOTHING, *parts, strict=True)))


def _most_work(pipeline: Mapping[str, Any], actions: Mapping[str, Sequence[str]]) -> _Work:
    """The maximum of each quantity over all paths through a pipeline's control flow."""
    work = {
        name: _Work(
            accesses=sum(op in _ACCESSES for op in operators), hashes=sum(op in _HASHES for op in operators)
        )
        for name, operators in actions.items()
    }
    # for each table or condition: the work there, and the successors, each with the work of the action that
    # leads from the table to the successor
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
    # successors are computed first; a cycle raises ValueError
    graph = {name: [each for each, _ in after if each is not None] for name, (_, after) in nodes.items()}
    most_from: dict[str | None, _Work] = {None: _NOTHING}
    for name in graphlib.TopologicalSorter(graph).static_order():
        node_work, after = nodes[name]
        branches = [_sum((node_work, action_work, most_from[each])) for each, action_work in after]
        most_from[name] = _Work(*map(max, zip(*branches, strict=True)))
    return most_from[pipeline["init_table"]]


def _after(table: Mapping[str, Any], work: Mapping[str, _Work]) -> list[tuple[str | None, _Work]]:
    """The successors of a table, each with the work of the action that leads there."""
    next_tables = table["next_tables"]
    successors = []
    for action in table["actions"]:
        after = {next_tables[key] for key in (action, "__HIT__", "__MISS__") if key in next_tables}
        successors += [(each, work[action]) for each in after or {table["base_default_next"]}]
    return successors or [(table["base_default_next"], _NOTHING)]


# ---- a listing, with a row for each program ----


_KIBIBIT = 1 << 10
# `rank`: a narrow terminal hides the columns of the highest rank first
COLUMNS = (
    Column("program", key=True),
    Column("matches", title="match tables"),
    Column("entries", rank=2),
    Column("registers", rank=1),
    Column("register_bits", title="register bits (Kibit)", show=lambda bits: f"{bits / _KIBIBIT:,.1f}"),
    Column("counters", title="counter cells", rank=2),
    Column("most_matches", title="most matches per packet"),
    Column("most_steps", title="most steps per packet", rank=1),
    Column("most_conditions", title="most conditions per packet", rank=1),
    Column("most_accesses", title="most register accesses per packet"),
    Column("most_hashes", title="most hashes per packet"),
    Column("again", title="further passes", show=", ".join),
)


def programs() -> list[str]:
    """The names of all compiled programs, including those of plug-ins."""
    names = {path.stem for folder in (P4_BUILD, *plugins.builds()) for path in folder.glob("*.json")}
    return sorted(names)


def listing(names: Sequence[str], over: str | None) -> Listing:
    """One row per program.

    Args:
        names: programs to show, by name or by the path of their BMv2 JSON; empty: all.
        over: a program whose numbers are subtracted; None: nothing is subtracted.

    Raises:
        SpecError: there is no such program.
        P4ProgramError: one cannot be read.
    """
    known = programs()
    for name in (*names, *([over] if over is not None else [])):
        if name not in known and not name.endswith(JSON):
            raise SpecError(f"program {unknown(name, known)}")
    base = None if over is None else resources(load(over))
    rows = [_row(resources(load(name)), base) for name in names or [each for each in known if each != over]]
    caption = () if over is None else (f"beyond what {over} has",)
    return Listing("programs", COLUMNS, tuple(rows), caption=caption)


def _row(usage: Resources, base: Resources | None) -> Row:
    values = {field.name: getattr(usage, field.name) for field in fields(Resources)}
    if base is None:
        return values
    numbers = {name: value for name, value in values.items() if isinstance(value, int)}
    return values | {name: value - getattr(base, name) for name, value in numbers.items()}
