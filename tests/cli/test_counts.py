# SPDX-License-Identifier: Apache-2.0
"""What is counted of compiled programs: of small ones by hand and by trying every way, of ours what they say."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.cbuild.artifacts import P4_BUILD
from tailrace.cli.explain.counts import Resources, resources
from tailrace.p4rt.errors import P4ProgramError
from tailrace.p4rt.programs import P4Program, load

PROGRAMS = sorted(path.stem for path in P4_BUILD.glob("*.json"))


def of_json(document: Any) -> Resources:
    """What is counted of a document, as if it were a program's."""
    return resources(
        replace(load("ecmp"), name="it", path=Path("it.json"), json=json.dumps(document).encode())
    )


def table(
    name: str, after: dict[str, str | None], *, key: bool, otherwise: str | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "key": [{"match_type": "exact"}] if key else [],
        "max_size": 10,
        "with_counters": key,
        "actions": ["read", "write_twice", "nothing"],
        "next_tables": after,
        "base_default_next": otherwise,
    }


def program(*tables: dict[str, Any], conditions: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """A program whose ingress begins with the first table."""
    ops = {
        "read": ["register_read", "assign"],
        "write_twice": ["register_write", "register_write", "modify_field_with_hash_based_offset"],
        "nothing": [],
    }
    empty: dict[str, Any] = {"name": "egress", "init_table": None, "tables": [], "conditionals": []}
    ingress: dict[str, Any] = {"name": "ingress", "init_table": tables[0]["name"], "tables": list(tables)}
    return {
        "actions": [
            {"name": name, "primitives": [{"op": op} for op in primitives]}
            for name, primitives in ops.items()
        ],
        "pipelines": [{**ingress, "conditionals": list(conditions)}, empty],
        "register_arrays": [{"size": 4, "bitwidth": 48}, {"size": 100, "bitwidth": 1}],
        "counter_arrays": [{"size": 7, "is_direct": False}, {"size": 10, "is_direct": True}],
    }


def test_the_longest_way_counts() -> None:
    """After a hit two more tables, after a miss none; a step's statement is no match."""
    usage = of_json(
        program(
            table("a", {"__HIT__": "if", "__MISS__": None}, key=True),
            table("b", {"read": "c", "write_twice": None, "nothing": None}, key=False),
            table("c", dict.fromkeys(("read", "write_twice", "nothing")), key=True),
            conditions=({"name": "if", "true_next": "b", "false_next": None},),
        )
    )
    assert (usage.matches, usage.entries, usage.registers, usage.register_bits, usage.counters) == (
        2,
        20,
        2,
        292,
        27,
    )
    assert (usage.most_matches, usage.most_steps, usage.most_conditions) == (2, 1, 1)
    # the way by `read` of b has c behind it: 2 + 1 + 2, and more than 2 + 2
    assert (usage.most_accesses, usage.most_hashes) == (5, 2)
    assert usage.again == ()


def every_way(document: dict[str, Any], name: str | None) -> list[int]:
    """The matches on each way from a table or condition on."""
    if name is None:
        return [0]
    pipeline = document["pipelines"][0]
    for condition in pipeline["conditionals"]:
        if condition["name"] == name:
            return [way for end in ("true_next", "false_next") for way in every_way(document, condition[end])]
    (definition,) = (candidate for candidate in pipeline["tables"] if candidate["name"] == name)
    return [
        bool(definition["key"]) + way
        for end in definition["next_tables"].values()
        for way in every_way(document, end)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_as_every_way_tried(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"t{number}" for number in range(9)]

    def later(number: int) -> str | None:
        return rng.choice([*names[number + 1 :], None])

    tables, conditions = [], []
    for number, name in enumerate(names):
        if number and rng.random() < 0.4:
            conditions.append({"name": name, "true_next": later(number), "false_next": later(number)})
        else:
            after = {action: later(number) for action in ("read", "write_twice", "nothing")}
            tables.append(table(name, after, key=rng.random() < 0.5))
    document = program(*tables, conditions=tuple(conditions))
    assert of_json(document).most_matches == max(every_way(document, "t0"))


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {**program(table("a", {"read": None}, key=True)), "pipelines": 3},
        program(table("a", {"read": "nowhere"}, key=True)),
        program(table("a", {"read": "a"}, key=True)),
        program(table("a", {"read": "b"}, key=True), table("b", {"read": "a"}, key=True)),
    ],
)
def test_what_is_no_program_is_told(document: Any) -> None:
    with pytest.raises(P4ProgramError, match=r"program it: it\.json: not as p4c writes it"):
        of_json(document)


def test_a_long_program_is_no_deeper_than_the_stack() -> None:
    names = [f"t{number}" for number in range(5000)]
    tables = [
        table(name, dict.fromkeys(("read", "write_twice", "nothing"), after), key=True)
        for name, after in zip(names, [*names[1:], None], strict=True)
    ]
    assert of_json(program(*tables)).most_matches == 5000


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_p4info_has_it(name: str) -> None:
    """Registers and tables are those that a controller sees."""
    program_: P4Program = load(name)
    usage = resources(program_)
    assert usage.register_bits == sum(cells * bits for cells, bits in program_.register_bits().values())
    assert usage.registers == len(program_.p4info.registers)
    assert usage.matches == sum(bool(p4_table.match_fields) for p4_table in program_.p4info.tables)
    assert 0 < usage.most_matches <= usage.matches
