# SPDX-License-Identifier: Apache-2.0
"""P4Testgen's test cases: read, judged, kept; and those of our programs replayed on the native switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r

from conformance import __main__ as conformance_main
from conformance import testgen
from conformance.golden_cases import kept, read_cases, write_cases
from conformance.native_server import NativeServer
from conformance.program import CompiledProgram, ConformanceError, load_programs
from conformance.run_cases import Outcome, Refused, Verdict, agree, run_case
from conformance.testcase import Case, Expected, read_case
from conformance.testcase import read_cases as read_folder
from tailrace.toolchain.artifacts import P4_BUILD

TESTS = Path(__file__).resolve().parent.parent
BUILD = TESTS / "programs" / "build"
GOLDEN = sorted((TESTS / "golden" / "testgen").glob("*.json.xz"))

HEAD = 'metadata: "Current node coverage: 0.50"\ntraces: \'[State] it\'s "free" text\'\n'
SENT = 'input_packet {\n  packet: "\\x00\\x01\\xFF"\n  port: 7\n}\n'
OUT = 'expected_output_packet {\n  packet: "\\x0A\\x0B"\n  port: 3\n  packet_mask: "\\xFF\\xF0"\n}\n'
ENTRY = "entities { table_entry { table_id: 1 %s action { %s } } }\n"
SET = "action_profile_action_set { action_profile_actions { action { action_id: 9 } } }"


def info() -> p4i.P4Info:
    """Table 1: a ternary, an LPM and a range key of 12 bits each. Table 2 has a profile, table 3 a selector."""
    out = p4i.P4Info()
    table = out.tables.add()
    table.preamble.id = 1
    for number, kind in ((1, "TERNARY"), (2, "LPM"), (3, "RANGE")):
        table.match_fields.add(id=number, bitwidth=12, match_type=p4i.MatchField.MatchType.Value(kind))
    for number in (2, 3):
        out.tables.add(implementation_id=10 + number).preamble.id = number
        out.action_profiles.add(with_selector=number == 3).preamble.id = 10 + number
    return out


def case_of(tmp_path: Path, text: str) -> Case:
    """The case that a file with this text holds."""
    path = tmp_path / "some_1.txtpb"
    path.write_text(text)
    return read_case(path, info())


def test_a_case_is_read(tmp_path: Path) -> None:
    """Packet, port and expectation; the traces, whose quotes are not escaped, are left out."""
    case = case_of(tmp_path, HEAD + SENT + OUT)
    assert (case.name, case.port, case.packet) == ("some_1", 7, b"\0\1\xff")
    assert case.expected == (Expected(3, b"\x0a\x0b", b"\xff\xf0"),)
    assert case.entities == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "input_packet is missing"),
        ("input_packet { color: 3 }", "color"),
        ('input_packet { packet: "', "no test case"),
        ('input_packet { packet: "a" port: 512 }', "port 512, expected 0 to 511"),
        (SENT + OUT.replace("\\xFF\\xF0", "\\xFF"), "packet_mask has 1 bytes, expected the packet's 2"),
    ],
)
def test_what_is_no_case_is_refused_in_a_line(tmp_path: Path, text: str, says: str) -> None:
    """The file is named, and what is wrong in it."""
    with pytest.raises(ConformanceError, match=says) as refused:
        case_of(tmp_path, text)
    assert "some_1.txtpb" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_cases_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """10 comes after 9."""
    for number in (10, 9, 1):
        (tmp_path / f"p_{number}.txtpb").write_text(SENT)
    assert [case.name for case in read_folder(tmp_path, info())] == ["p_1", "p_9", "p_10"]


@pytest.mark.parametrize(
    ("match", "written"),
    [
        ('field_id: 1 ternary { value: "\\x0f\\xff" mask: "\\x0f\\x00" }', (b"\x0f\x00", b"\x0f\x00")),
        ('field_id: 1 ternary { value: "\\x0f" mask: "\\x00" }', None),
        ('field_id: 2 lpm { value: "\\x0f\\xff" prefix_len: 5 }', (b"\x0f\x80", 5)),
        ('field_id: 2 lpm { value: "\\x0f\\xff" }', None),
        ('field_id: 3 range { low: "\\x00\\x00" high: "\\x0f\\xff" }', None),
        ('field_id: 3 range { low: "\\x00\\x01" high: "\\x0f\\xff" }', (b"\0\1", b"\x0f\xff")),
    ],
)
def test_matches_become_canonical(tmp_path: Path, match: str, written: tuple[object, object] | None) -> None:
    """Bits that do not count are cleared, what matches everything is left out, the rest stays."""
    case = case_of(tmp_path, SENT + ENTRY % (f"match {{ {match} }}", "action { action_id: 9 }"))
    fields = list(case.entities[0].table_entry.match)
    if written is None:
        assert fields == []
        return
    kind = fields[0].WhichOneof("field_match_type")
    assert kind is not None
    parts = {"ternary": ("value", "mask"), "lpm": ("value", "prefix_len"), "range": ("low", "high")}[kind]
    assert tuple(getattr(getattr(fields[0], kind), part) for part in parts) == written


def test_action_sets_suit_their_profiles(tmp_path: Path) -> None:
    """With a selector the set gets weights; without one its action becomes a member, written before."""
    entries = "".join((ENTRY % ("", SET)).replace("table_id: 1", f"table_id: {table}") for table in (3, 2))
    selected, member, entry = case_of(tmp_path, SENT + entries).entities
    (choice,) = selected.table_entry.action.action_profile_action_set.action_profile_actions
    assert choice.weight == 1
    assert member.action_profile_member.action_profile_id == 12
    assert member.action_profile_member.action.action_id == 9
    assert entry.table_entry.action.action_profile_member_id == member.action_profile_member.member_id


def expecting(*expected: Expected) -> Case:
    """A case without entities."""
    return Case("c", (), 0, b"", expected)


def test_expectations_count_under_their_masks() -> None:
    """Every expected packet has to leave, and no other one, in any order."""
    one, other = Expected(1, b"\xab", b"\xf0"), Expected(2, b"\x01\x02", b"\xff\xff")
    case = expecting(one, other)
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


@pytest.mark.parametrize(
    ("native", "bmv2", "same"),
    [
        ([(1, b"\xa1")], [(1, b"\xa2")], True),  # both as expected
        ([(1, b"\xb1")], [(1, b"\xb1")], True),  # both not, but the same
        ([(1, b"\xb1")], [(1, b"\xb2")], False),
        ([(1, b"\xa1")], [], False),
        (Refused("no"), Refused("never"), True),
        ([(1, b"\xa1")], Refused("no"), False),
        (Refused("no"), [], False),
    ],
)
def test_when_switches_agree(native: Outcome, bmv2: Outcome, same: bool) -> None:
    """Both as expected, or both alike; a refusal is alike only to a refusal."""
    assert agree(expecting(Expected(1, b"\xab", b"\xf0")), native, bmv2, []) is same


def test_bits_that_the_hints_mask_do_not_count() -> None:
    """What depends on time or chance is not compared."""
    assert agree(expecting(), [(1, b"\xb1")], [(1, b"\xb2")], [(0, 1)])


def test_a_bmv2_that_ends_is_no_difference_where_the_native_switch_passes() -> None:
    """Then what is right is known; else it is to be looked into."""
    gone = Refused("ended", ended=True)
    passed = Verdict(expecting(), [], gone, False)
    assert (passed.ended, passed.differ, passed.both) == (True, False, False)
    for native in ([(1, b"x")], Refused("no")):
        assert Verdict(expecting(), native, gone, False).differ
    assert Verdict(expecting(), [], Refused("no"), False).differ
    # nor is one that BMv2 does not repeat
    assert not Verdict(expecting(), [(1, b"x")], [(1, b"y")], False, varies=True).differ


def program(name: str) -> CompiledProgram:
    (found,) = load_programs(BUILD, name)
    return found


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    """A passed test as it is; where both do something else, what BMv2 did; nothing of what was refused."""
    entity = p4r.Entity(table_entry=p4r.TableEntry(table_id=5))
    passed = Case("a", (entity, entity), 3, b"\1", (Expected(1, b"\xab", b"\xf0"),))
    verdicts = [
        Verdict(passed, [(1, b"\xa0")], [(1, b"\xa1")], True),
        Verdict(expecting(), [(4, b"x")], [(4, b"x")], True),
        Verdict(expecting(), Refused("no"), Refused("no"), True),
        Verdict(expecting(), [], [(4, b"x")], False),
    ]
    write_cases(program("basic_l3"), (3, 14), verdicts, tmp_path)
    golden = read_cases(tmp_path / "basic_l3.json.xz")
    assert (golden.program, golden.covered) == ("basic_l3", (3, 14))
    assert golden.sha256 == program("basic_l3").sha256
    assert golden.cases == [passed, expecting(Expected(4, b"x", b"\xff"))]
    assert kept(verdicts[2]) is None
    # without any the old file goes
    write_cases(program("basic_l3"), (0, 14), verdicts[2:], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_its_tools_the_harness_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One line, exit 0."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert testgen.main(["--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "conformance.testgen: p4testgen is not on PATH, nothing made\n"
    (tmp_path / "simple_switch_grpc").write_text("#!/bin/sh\n")
    (tmp_path / "simple_switch_grpc").chmod(0o755)
    assert conformance_main.main(["--out", str(tmp_path), "--smith", "3"]) == 0
    assert capsys.readouterr().out == "conformance: p4smith is not on PATH, nothing made\n"


@pytest.mark.parametrize(
    ("command", "given"),
    [
        (testgen.main, ["--tests", "0"]),
        (testgen.main, ["--seconds", "0"]),
        (testgen.main, ["--golden", "--samples", "some"]),
        (conformance_main.main, ["--smith", "0"]),
        (conformance_main.main, ["--smith", "3", "--build", "some"]),
    ],
)
def test_bad_options_are_refused(
    command: Callable[[list[str]], int], given: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, and a line."""
    with pytest.raises(SystemExit) as ended:
        command(["--out", "out", *given])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".json.xz"))
def test_the_native_switch_passes(path: Path) -> None:
    """Through its P4Runtime server, every test from a pipeline pushed anew."""
    golden = read_cases(path)
    build = BUILD if (BUILD / f"{golden.program}.json").is_file() else P4_BUILD
    (found,) = load_programs(build, golden.program)
    assert found.sha256 == golden.sha256, (
        "recompiled since: record anew with 'python -m conformance.testgen --golden'"
    )
    failed = []
    with NativeServer(found) as native:
        for case in golden.cases:
            outcome = run_case(native, case)
            if isinstance(outcome, Refused) or not case.passed(outcome):
                failed.append((case.name, outcome))
    assert failed[:3] == []


def test_there_are_such_files() -> None:
    """Of most test programs; P4Testgen has no word for loops, for one."""
    names = {path.name.removesuffix(".json.xz") for path in GOLDEN}
    programs = {path.stem for path in BUILD.glob("*.json")}
    assert len(names & programs) >= len(programs) * 3 // 4
    assert names <= programs | {path.stem for path in P4_BUILD.glob("*.json")}
