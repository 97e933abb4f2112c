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


def test_an_entry_that_the_switch_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with its place, exit 1. What is no such file: tests/bad_input/results.py."""
    options = _case(tmp_path, 1)
    (tmp_path / "entries.txtpb").write_text("updates { type: INSERT entity { table_entry { table_id: 5 } } }")
    assert main(["--quick", "--out", str(tmp_path), *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bench: ")
    assert "entry 1 of 1" in line
