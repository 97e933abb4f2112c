# SPDX-License-Identifier: Apache-2.0
"""The conformance harness itself: determinism, wire encodings, comparison."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from checks.conformance.__main__ import main
from checks.conformance.compare import blank, compare
from checks.conformance.packets import Packet, generate
from checks.conformance.program import CompiledProgram, load_programs
from tailrace.bmv2.dataplane import Outputs
from tailrace.p4rt import bmv2_messages as messages
from tailrace.p4rt.messages import p4i

BUILD = Path(__file__).resolve().parents[2] / "programs" / "build"
PROGRAMS = load_programs(BUILD)
EXPECTED = (
    "parser extract; parser extract_VL; parser advance; parser verify; parser set; select mask; header "
    "stack; header union; header union stack; value set; register; digest; match exact; match lpm; "
    "match ternary; match range; match optional; table simple; table indirect; table indirect_ws; "
    "action selector; entries in program; counter; direct counter; meter; direct meter; checksum "
    "verify; checksum update; hash crc32; hash crc32_custom; hash crc16; hash crc16_custom; hash "
    "identity; hash csum16; hash xor16; action clone_ingress_pkt_to_egress; action "
    "clone_egress_pkt_to_egress; action resubmit; action recirculate; action generate_digest; action "
    "truncate; action modify_field_rng_uniform; action assert; action assume; action log_msg; action "
    "mark_to_drop; action exit; action push; action pop; action add_header; action remove_header; "
    "action assign_header; action register_read; action register_write; action count; action "
    "execute_meter; operator +; operator -; operator *; operator &; operator |; operator ^; operator ~; "
    "operator <<; operator >>; operator ==; operator !=; operator <; operator <=; operator >; operator "
    ">=; operator and; operator or; operator not; operator ?; operator d2b; operator b2d; operator "
    "sat_cast; operator usat_cast; operator two_comp_mod; operator dereference_header_stack"
)


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


def by_name(program: CompiledProgram) -> str:
    """Test id."""
    return program.name


@pytest.mark.parametrize("program", PROGRAMS, ids=by_name)
def test_same_seed_same_updates_and_packets(program: CompiledProgram) -> None:
    """A seed decides the updates and the packets; another seed gives others."""
    runs = []
    for seed in (3, 3, 4):
        updates, packets = generate(program, seed)
        runs.append((updates, list(islice(packets, 50))))
    assert runs[0] == runs[1]
    assert runs[0][1] != runs[2][1]


def test_programs_use_what_v1model_has() -> None:
    """Together the programs use every construct of this list."""
    used = {name for program in PROGRAMS for name in constructs(program)}
    assert sorted(set(EXPECTED.split("; ")) - used) == []


def test_dataplane_messages_are_those_of_bmv2() -> None:
    """Numbers and types of fields: id, device_id and port as varints, the packet as bytes."""
    octets = bytes.fromhex("08ac02100118052202") + b"ab"
    assert messages.Packet(id=300, device_id=1, port=5, packet=b"ab").SerializeToString() == octets
    assert messages.Packet.FromString(octets).packet == b"ab"
    status = messages.PortStatus(device_id=3, port=2, oper_status=messages.DOWN)
    assert status.SerializeToString() == bytes.fromhex("080310021801")


def test_blank_hides_only_the_mask() -> None:
    """Masked bytes are zero; a mask past the end of the frame is cut."""
    assert blank(b"abcdef", [(1, 2), (5, 4)]) == b"a\0\0de\0"


class Scripted:
    """Gives each frame back on port 1, but in the given number of calls spoils frames that start with x."""

    def __init__(self, spoiled_calls: int) -> None:
        self.spoiled_calls = spoiled_calls

    def window(self, packets: Sequence[Packet]) -> list[Outputs]:
        """The frames, some spoiled."""
        self.spoiled_calls -= 1
        spoil = self.spoiled_calls >= 0
        return [[(1, b"bad" if spoil and p.data[:1] == b"x" else p.data)] for p in packets]


def test_a_difference_that_stays_is_a_mismatch() -> None:
    """A lasting difference is counted and kept, one that vanishes on repetition is transient."""
    packets = [Packet(0, b"abc"), Packet(0, b"xyz")]
    lasting = compare(Scripted(0).window, Scripted(9).window, packets, [], stateful=False)
    assert (lasting.packets, lasting.mismatches, lasting.transient) == (2, 1, 0)
    assert lasting.examples[0].packet == packets[1]
    passing = compare(Scripted(0).window, Scripted(1).window, packets, [], stateful=False)
    assert (passing.mismatches, passing.transient) == (0, 1)
    stateful = compare(Scripted(0).window, Scripted(1).window, packets, [], stateful=True)
    assert stateful.mismatches == 1


def test_without_bmv2_the_harness_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One line, exit 0."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "conformance: simple_switch_grpc is not on PATH, nothing compared\n"
