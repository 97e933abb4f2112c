# SPDX-License-Identifier: Apache-2.0
"""A program of one's own in the benchmark: its files are read, and what is wrong with them is said in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from finsy.proto import p4r
from google.protobuf import text_format
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from checks.bench import routes
from checks.bench.__main__ import main


def _case(folder: Path, count: int) -> list[str]:
    """The basic router with some routes and a frame to each of them and to one more; the options."""
    text = text_format.MessageToString(p4r.WriteRequest(updates=routes.updates(count)))
    (folder / "entries.txtpb").write_text(text, "utf-8")
    frames = [Ether(routes.frame(number, 60 + number)) for number in range(count + 1)]
    wrpcap(str(folder / "packets.pcap"), frames)
    files = {"program": routes.JSON, "entries": folder / "entries.txtpb", "packets": folder / "packets.pcap"}
    return [word for option, path in files.items() for word in (f"--{option}", str(path))]


def test_measures_a_program(tmp_path: Path) -> None:
    """The program, its entries and frames of any lengths; the share that came out is that of the routes."""
    assert main(["--quick", "--out", str(tmp_path), *_case(tmp_path, 3)]) == 0
    rows = json.loads((tmp_path / "bench.json").read_text("utf-8"))["results"]
    written = ["basic_l3: load", "basic_l3: write 3 entries"]
    assert [row["name"] for row in rows] == [*written, "basic_l3", "basic_l3: traced"]
    assert all(row["value"] > 0 for row in rows[-2:])
    assert "4 frames in turn, 75% of packets came out" in rows[-2]["note"]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("entries.txtpb", b"updates { kind: 1 }", "expected a p4.v1.WriteRequest as text"),
        ("entries.txtpb", b"\xff\xfe", "not UTF-8 text but UTF-16"),
        ("entries.txtpb", b"updates { type: INSERT entity { table_entry { table_id: 5 } } }", "entry 1 of 1"),
        ("packets.pcap", b"no capture, but text", "expected a capture (pcap)"),
    ],
)
def test_bad_files_are_one_line(
    file: str, content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file and what was expected, exit 2; 1 where it is the switch that refuses."""
    options = _case(tmp_path, 1)
    (tmp_path / file).write_bytes(content)
    assert main(["--quick", "--out", str(tmp_path), *options]) == (1 if "entry" in said else 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bench: ")
    assert said in line


@pytest.mark.parametrize("options", [["--program", "a.json"], ["--entries", "a", "--packets", "b"]])
def test_files_belong_together(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One of the three without the others is an error of usage."""
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2
    assert "must be given together" in capsys.readouterr().err
