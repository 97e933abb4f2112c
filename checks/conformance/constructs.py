# SPDX-License-Identifier: Apache-2.0
"""Which constructs of v1model a compiled program uses, read off its JSON (and P4Info, for optional keys)."""

from __future__ import annotations

from typing import Any

from checks.conformance.program import CompiledProgram
from tailrace.p4rt.messages import p4i

ARRAYS = {
    "header_stacks": "header stack",
    "header_unions": "header union",
    "header_union_stacks": "header union stack",
    "parse_vsets": "value set",
    "register_arrays": "register",
    "learn_lists": "digest",
}


def constructs(program: CompiledProgram) -> list[str]:
    """Sorted names: parser operations, match kinds, table kinds, primitives, operators, hash algorithms,
    externs.
    """
    document = program.json
    constructs = {name for key, name in ARRAYS.items() if document.get(key)}
    for parser in document["parsers"]:
        for state in parser["parse_states"]:
            constructs |= {f"parser {operation['op']}" for operation in state["parser_ops"]}
            constructs |= {"select mask" for transition in state["transitions"] if transition["mask"]}
    for action in document["actions"]:
        constructs |= {f"action {primitive['op']}" for primitive in action["primitives"]}
    for pipeline in document["pipelines"]:
        for table in pipeline["tables"]:
            if not table["name"].startswith("tbl_"):  # the compiler makes such tables from statements
                constructs |= {f"match {field['match_type']}" for field in table["key"]}
                constructs.add(f"table {table['type']}")
                constructs |= {"entries in program"} if table.get("entries") else set()
                constructs |= {"direct meter"} if table["direct_meters"] else set()
        constructs |= {"if"} if pipeline["conditionals"] else set()
        constructs |= (
            {"action selector"} if any("selector" in p for p in pipeline["action_profiles"]) else set()
        )
    for array in document["counter_arrays"]:
        constructs.add("direct counter" if array["is_direct"] else "counter")
    constructs |= {"meter" for array in document["meter_arrays"] if not array["is_direct"]}
    constructs |= {f"hash {calculation['algo']}" for calculation in document["calculations"]}
    constructs |= {f"checksum {'verify' if c['verify'] else 'update'}" for c in document["checksums"]}
    kinds = {field.match_type for table in program.p4info.tables for field in table.match_fields}
    constructs |= {"match optional"} if p4i.MatchField.OPTIONAL in kinds else set()
    constructs |= {f"operator {name}" for name in _operators(document)}
    return sorted(constructs)


def _operators(node: Any) -> set[str]:
    """Every operator in the expressions of the document."""
    if isinstance(node, list):
        return set().union(*(_operators(child) for child in node)) if node else set()
    if not isinstance(node, dict):
        return set()
    operators = set().union(*(_operators(child) for child in node.values())) if node else set()
    if "left" in node and "right" in node and isinstance(node.get("op"), str):
        operators.add(node["op"])
    return operators
