# SPDX-License-Identifier: Apache-2.0
"""Bad files and options of users' programs: one line that names file, key or option, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.cli.main import main
from tests.user_programs.network import TOPOLOGY, make_network, topology

RUN = ("run", "--topology", TOPOLOGY, "--workload", "ping", "--target", "virtual", "--out", "out")
PROGRAM = (*RUN, "--program", "basic_l3.json")
REPLAY = "replay:host=h1,file=h1.pcap"


@pytest.fixture(autouse=True)
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_network(tmp_path)


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    lines = capsys.readouterr().err.splitlines()
    assert not Path("out").exists()
    return lines[-1].removeprefix("tailrace: ")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((*RUN, "--program", "none.json"), "none.json: No such file"),
        ((*RUN, "--program", "build/basic.p4"), "expected what p4c makes of it: p4c-bm2-ss --p4v 16"),
        ((*RUN, "--program", "basic_l3"), "basic_l3: No such file"),
        *(
            ((*RUN, "--program", "topology.json"), f"topology{suffix}")
            for suffix in (".p4info.txtpb", ".p4.p4info.txtpb", ".p4info.txt", ".p4.p4info.txt")
        ),
        ((*RUN, "--program", "basic_l3.json", "--p4info", "none"), "none: No such file"),
        ((*PROGRAM, "--record"), "--record: expected events or packets"),
        ((*PROGRAM, "--seed"), "--seed: expected N"),
        ((*RUN, "--program", "basic_l3.json", "--p4info", "topology.json"), "topology.json: not P4Info"),
        ((*RUN, "--program", "basic,l3.json"), "must not contain a comma"),
        ((*PROGRAM, "--scheme", "ecmp"), "--scheme and --program do not go together"),
        ((*RUN, "--entries", "."), "no program for s1; expected json=FILE.json"),
        ((*PROGRAM, "--entries", "none"), "none: No such file"),
        ((*PROGRAM, "--entries", "empty"), "has no file such as s1-runtime.json"),
        ((*PROGRAM, "--entries", "twice"), "s1-runtime.json and"),
        ((*PROGRAM, "--entries", "wrong.txt"), "wrong.txt: line 1"),
        ((*RUN, "--scheme", "program:json=basic_l3.json,kmax=1KB"), "kmax: the program alone decides this"),
        ((*RUN, "--scheme", "program:json=basic_l3.json,depth=3,queue=9KB"), "either depth="),
        ((*RUN, "--scheme", "program:p4info=basic_l3.p4info.txtpb"), "p4info may only be given together"),
        ((*PROGRAM, "--controller", "real"), "no controller changes the entries"),
        ((*PROGRAM, "--workload", "ping:from=h9"), "the topology has no host 'h9'"),
        ((*PROGRAM, "--workload", "ping:from=h1,to=h1"), "the same host"),
        ((*PROGRAM, "--workload", "ping:count=65537"), "count must be at most 65536"),
        ((*PROGRAM, "--workload", "ping:count=65536 + ping:count=60000"), "requests, and the limit is"),
        ((*PROGRAM, "--workload", "permutation + incast:degree=2"), "both send flows"),
        ((*PROGRAM, "--workload", "ping + "), "workload"),
        ((*PROGRAM, "--workload", "replay:host=h1"), "key 'file' is missing"),
        ((*PROGRAM, "--workload", REPLAY), "h1.pcap: No such file"),
        ((*PROGRAM, "--workload", "replay:host=h1,file=topology.json"), "neither pcap nor pcapng"),
        ((*PROGRAM, "--transport", "udp:rate=0"), "rate"),
    ],
)
def test_refusals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], part: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "twice").mkdir()
    for name in ("s1-runtime.json", "s1-commands.txt"):
        (tmp_path / "twice" / name).touch()
    (tmp_path / "wrong.txt").write_text("table_add no_table forward 10.0.0.1/32 => 1\n")
    assert part in refusal(capsys, *words)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda entry: entry | {"table": "none"}, "table_entries[0]': no table named 'none'"),
        (lambda entry: entry | {"match": {"dst": "10.0.0.300/32"}}, "table_entries[0]"),
        (lambda entry: entry | {"action_params": {"port": 1}}, "table_entries[0]"),
    ],
)
def test_entries_that_the_program_lacks(
    capsys: pytest.CaptureFixture[str], change: Callable[[dict[str, object]], dict[str, object]], part: str
) -> None:
    document = json.loads(Path("s2-runtime.json").read_text())
    document["table_entries"][0] = change(document["table_entries"][0])
    Path("s2-runtime.json").write_text(json.dumps(document))
    text = refusal(capsys, *PROGRAM)
    assert part in text and "s2-runtime.json" in text


def test_an_entry_that_the_switch_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    """The same key twice: the place in the file, and what is in the switch."""
    document = json.loads(Path("s2-runtime.json").read_text())
    document["table_entries"].append(document["table_entries"][1])
    Path("s2-runtime.json").write_text(json.dumps(document))
    assert main(list(PROGRAM)) == 1
    (line,) = (each for each in capsys.readouterr().err.splitlines() if each.startswith("tailrace: "))
    assert "s2: " in line and "s2-runtime.json: table_entries[4]" in line and "4 of 5" in line


@pytest.mark.parametrize("value", [7, ["x"], "x" * 5000, "a\0b"])
def test_names_of_files_in_topologies(capsys: pytest.CaptureFixture[str], value: object) -> None:
    Path("topology.json").write_text(json.dumps(topology(s1={"program": value})))
    assert "switches.s1.program: expected the name of a file" in refusal(capsys, *PROGRAM)
