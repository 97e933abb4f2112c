# SPDX-License-Identifier: Apache-2.0
"""Rewrites a program that today's p4c compiled into the forms of the first versions of BMv2's JSON.

Each rewrite is one that keeps the program's meaning for simple_switch: a key that has a default is left out,
or an older way to say the same is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]

CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)


def _states(program: Json) -> Iterator[Json]:
    for parser in program["parsers"]:
        yield from parser["parse_states"]


def _tables(program: Json) -> Iterator[Json]:
    for pipeline in program["pipelines"]:
        yield from pipeline["tables"]


def _calls(program: Json) -> Iterator[Json]:
    for action in program["actions"]:
        yield from action["primitives"]


def _drop(value: Json, key: str, default: object) -> None:
    if key in value and value[key] == default and type(value[key]) is type(default):
        del value[key]


def transitions_without_type(program: Json) -> None:
    """p4c until spring 2020."""
    for state in _states(program):
        for t in state["transitions"]:
            kind = t["type"]
            if kind == "default":
                t["value"], t["mask"] = "default", None
            if kind != "parse_vset":
                del t["type"]


def tables_without_defaults(program: Json) -> None:
    """Every key of a table that has the value that its absence stands for."""
    for t in _tables(program):
        for key in ("with_counters", "support_timeout"):
            _drop(t, key, False)
        for key in ("direct_meters", "base_default_next"):
            _drop(t, key, None)
        for part in t["key"]:
            _drop(part, "mask", None)
            if isinstance(part["target"], list):
                _drop(part, "name", ".".join(part["target"]))
        for key in ("action_const", "action_entry_const"):
            _drop(t.get("default_entry", {}), key, False)


def objects_without_defaults(program: Json) -> None:
    """The same for what tables and nodes work with."""
    for kind in ("counter_arrays", "meter_arrays"):
        for array in program[kind]:
            _drop(array, "is_direct", False)
    for header in program["headers"]:
        _drop(header, "metadata", False)
    for checksum in program["checksums"]:
        for key in ("verify", "update"):
            _drop(checksum, key, True)


def nodes_without_defaults(program: Json) -> None:
    """The same for the nodes of pipelines."""
    for pipeline in program["pipelines"]:
        _drop(pipeline, "init_table", None)
        for conditional in pipeline["conditionals"]:
            if conditional["true_next"] is not None:
                _drop(conditional, "false_next", None)
            elif conditional["false_next"] is not None:
                _drop(conditional, "true_next", None)
        for call in pipeline.get("action_calls", []):
            _drop(call, "next_node", None)


def no_empty_sections(program: Json) -> None:
    """A list of nothing at all."""
    for value in (program, *program["pipelines"], *_states(program), *program["actions"], *_tables(program)):
        for key in [key for key, item in value.items() if item == []]:
            del value[key]


def no_bindings(program: Json) -> None:
    """BMv2 goes by what the tables say."""
    for kind in ("counter_arrays", "meter_arrays"):
        for array in program.get(kind, []):
            array.pop("binding", None)


def no_source(program: Json) -> None:
    """No version, no compiler, no places in the P4 program; its errors where they have core.p4's numbers."""
    program.pop("__meta__", None)
    if program.get("errors") == [[name, number] for number, name in enumerate(CORE_ERRORS)]:
        del program["errors"]


def pairs_for_fields(program: Json) -> None:
    """Fields without a sign as [name, width]."""
    for t in program["header_types"]:
        t["fields"] = [f[:2] if len(f) == 3 and f[2] in (False, 0) else f for f in t["fields"]]


def actions_by_name(program: Json) -> None:
    """p4c-bm: a table's actions by name, where one action only has it."""
    names = Counter(action["name"] for action in program["actions"])
    by_id = {action["id"]: action["name"] for action in program["actions"]}
    for t in _tables(program):
        if all(names[by_id[number]] == 1 for number in t["action_ids"]):
            t["actions"] = [by_id[number] for number in t.pop("action_ids")]


def profiles_in_tables(program: Json) -> None:
    """p4c-bm: action profiles declared by the tables, where each has one, in the tables' order."""
    for pipeline in program["pipelines"]:
        profiles = pipeline.get("action_profiles", [])
        users = [t for t in pipeline["tables"] if "action_profile" in t]
        if [t["action_profile"] for t in users] == [p["name"] for p in profiles]:
            for table, profile in zip(users, profiles, strict=True):
                table["act_prof_name"] = table.pop("action_profile")
                if "selector" in profile:
                    table["selector"] = profile["selector"]
            pipeline["action_profiles"] = []


def old_primitives(program: Json) -> None:
    """P4_14's names of what became assignments."""
    renamed = {"assign": "modify_field", "assign_header": "copy_header"}
    for call in _calls(program):
        call["op"] = renamed.get(call["op"], call["op"])


def shifts_and_numbers(program: Json) -> None:
    """The parser's operations before they took expressions: bytes to shift, numbers of errors."""
    numbers = {number for _, number in program.get("errors", enumerate(CORE_ERRORS))}
    for state in _states(program):
        for operation in state.get("parser_ops", []):
            arguments = operation["parameters"]
            if operation["op"] == "advance" and arguments[0]["type"] == "hexstr":
                bits = int(arguments[0]["value"], 16)
                if bits % 8 == 0:
                    operation["op"], operation["parameters"] = "shift", [bits // 8]
            if operation["op"] == "verify" and arguments[1].get("type") == "hexstr":
                number = int(arguments[1]["value"], 16)
                if number in numbers:
                    arguments[1] = number


REWRITES: tuple[Callable[[Json], None], ...] = (
    transitions_without_type,
    tables_without_defaults,
    objects_without_defaults,
    nodes_without_defaults,
    pairs_for_fields,
    profiles_in_tables,
    actions_by_name,
    no_bindings,
    old_primitives,
    shifts_and_numbers,
    no_source,
    no_empty_sections,
)
"""In an order in which all of them can be done."""
