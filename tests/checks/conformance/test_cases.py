# SPDX-License-Identifier: Apache-2.0
"""Recorded test cases: judged, kept; and those of our programs replayed on the native switch."""

from __future__ import annotations

import lzma
from dataclasses import replace
from pathlib import Path

import pytest
from finsy.proto import p4r

from checks.conformance.cases import Cases, Expected, PacketCase, read_cases, run_case, write_cases
from checks.conformance.native_switch import NativeSwitch
from checks.conformance.program import ConformanceError, load_programs
from tailrace.cbuild.artifacts import P4_BUILD

TESTS = Path(__file__).resolve().parents[2]
BUILD = TESTS / "programs" / "build"
GOLDEN = sorted((TESTS / "golden" / "testgen").glob("*.json.xz"))


def expecting(*expected: Expected) -> PacketCase:
    """A case without entities."""
    return PacketCase("c", (), 0, b"", expected)


def test_expectations_count_under_their_masks() -> None:
    """Every expected packet has to leave, and no other one, in any order."""
    first, other = Expected(1, b"\xab", b"\xf0"), Expected(2, b"\x01\x02", b"\xff\xff")
    case = expecting(first, other)
    assert case.passed([(2, b"\1\2"), (1, b"\xa0")])
    wrong: list[list[tuple[int, bytes]]] = [
        [],
        [(1, b"\xa0")],
        [(1, b"\xb0"), (2, b"\1\2")],
        [(3, b"\xa0"), (2, b"\1\2")],
        [(1, b"\xa0\0"), (2, b"\1\2")],
        [(1, b"\xa0"), (2, b"\1\2"), (2, b"\1\2")],
    ]
    for outputs in wrong:
        assert not case.passed(outputs)
    assert expecting().passed([])
    assert not expecting().passed([(0, b"")])


def test_an_outcome_is_taken_over_where_it_is_another_one() -> None:
    """Bits that do not count stay so where the case passes."""
    case = expecting(Expected(1, b"\xab", b"\xf0"))
    assert case.with_outcome([(1, b"\xa1")]) is case
    assert case.with_outcome([(4, b"x")]) == expecting(Expected(4, b"x", b"\xff"))
    assert case.with_outcome([]) == expecting()


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    entity = p4r.Entity(table_entry=p4r.TableEntry(table_id=5))
    case = PacketCase("a", (entity, entity), 3, b"\1", (Expected(1, b"\xab", b"\xf0"),))
    recorded = Cases("basic_l3", "ab" * 32, (3, 14), [case, expecting()])
    write_cases(tmp_path / "a.json.xz", recorded)
    assert read_cases(tmp_path / "a.json.xz") == recorded


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".json.xz"))
def test_files_are_written_as_they_are(tmp_path: Path, path: Path) -> None:
    """Recording without a difference changes nothing."""
    write_cases(tmp_path / path.name, read_cases(path))
    written = (tmp_path / path.name).read_bytes()
    assert lzma.decompress(written) == lzma.decompress(path.read_bytes())


def test_what_the_switch_refuses_is_told() -> None:
    """The pipeline stays, and the next case runs."""
    [program] = load_programs(BUILD, "basic_l3")
    entity = p4r.Entity(table_entry=p4r.TableEntry(table_id=5))
    case = PacketCase("a", (), 0, b"\0" * 64, ())
    with NativeSwitch(program) as native:
        with pytest.raises(ConformanceError, match="basic_l3: write was refused: "):
            run_case(native, replace(case, entities=(entity,)))
        assert case.passed(run_case(native, case))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".json.xz"))
def test_the_native_switch_passes(path: Path) -> None:
    """Through its P4Runtime server, every test from a pipeline pushed anew."""
    golden = read_cases(path)
    build = BUILD if (BUILD / f"{golden.program}.json").is_file() else P4_BUILD
    (program,) = load_programs(build, golden.program)
    assert program.sha256 == golden.sha256, (
        "recompiled since: record anew with 'python -m checks.conformance --golden'"
    )
    failed = []
    with NativeSwitch(program) as native:
        for case in golden.cases:
            outputs = run_case(native, case)
            if not case.passed(outputs):
                failed.append((case.name, outputs))
    assert failed[:3] == []


def test_there_are_such_files() -> None:
    """Of most test programs: P4Testgen did not take loops, for one."""
    names = {path.name.removesuffix(".json.xz") for path in GOLDEN}
    programs = {path.stem for path in BUILD.glob("*.json")}
    assert len(names & programs) >= len(programs) * 3 // 4
    assert names <= programs | {path.stem for path in P4_BUILD.glob("*.json")}
