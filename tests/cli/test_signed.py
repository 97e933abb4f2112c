# SPDX-License-Identifier: Apache-2.0
"""A register of int<32>: its values are negative wherever they are shown, written, saved and exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.controller.inspect.served import served
from tests.test_readme import ROOT

BUILD = ROOT / "tests" / "programs" / "build"
PACKET = "00" * 12 + "0800" + "00" + "03" + "00" * 42
"""It adds 1 to the cell 3."""


@pytest.fixture(name="program")
def signed_program(tmp_path: Path) -> Path:
    """The program of registers, of which one is of a signed type."""
    program = json.loads((BUILD / "registers.json").read_text("utf-8"))
    (scalars,) = (kind for kind in program["header_types"] if kind["name"] == "scalars_0")
    scalars["fields"] = [[name, bits, name == "seen_0"] for name, bits, _ in scalars["fields"]]
    (tmp_path / "signed.json").write_text(json.dumps(program), "utf-8")
    info = (BUILD / "registers.p4info.txtpb").read_text("utf-8")
    kind = 'alias: "packets_seen" } type_spec { bitstring { bit { bitwidth: 32 } }'
    assert kind in info
    (tmp_path / "signed.p4info.txtpb").write_text(info.replace(kind, kind.replace("bit {", "int {")), "utf-8")
    return tmp_path / "signed.json"


def test_a_signed_register(command: Command, program: Path, tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("register_write packets_seen 3 -5\n", "utf-8")
    with served(1) as (switch,):
        place = ("--address", f"s1={switch.address}@{switch.device_id}")
        pushed = command("push", "s1", str(program), "--entries", str(tmp_path / "c.txt"), *place)
        assert pushed.status == 0, pushed.err
        (row,) = command("registers", "-o", "json", *place).rows
        assert (row["index"], row["value"]) == (3, -5)
        saved, stf, ptf = (str(tmp_path / name) for name in ("t.json", "t.stf", "t.py"))
        traced = command("trace", "s1", "--port", "1", PACKET, "--save", saved, *place)
        assert "read RegisterIngress.packets_seen[3]: -5" in traced.out
        assert "write RegisterIngress.packets_seen[3]: -4" in traced.out
        steps = command("trace", "s1", "--port", "1", PACKET, "--json", *place).out
        assert '"value": -5' in steps and '"after": -4' in steps
        assert command("trace", "s1", "--port", "1", PACKET, "--proto", *place).status == 0
        bad = command("push", "s1", str(program), "--entries", bad_value(tmp_path), *place)
        assert "does not fit int<32>" in bad.err
    again = command("trace", "--replay", saved)
    assert again.status == 0 and "packets_seen[3]: -5" in again.out, again.err
    for path in (stf, ptf):
        assert command("trace", "--replay", saved, "--export", path).status == 0
    assert "register_write RegisterIngress.packets_seen 3 -5\n" in Path(stf).read_text("utf-8")
    # the shortest form of P4Runtime 8.3
    assert 'bitstring: "\\\\373"' in Path(ptf).read_text("utf-8")


def bad_value(folder: Path) -> str:
    """Commands that write what is no value of the register."""
    path = folder / "bad.txt"
    path.write_text(f"register_write packets_seen 3 {1 << 31}\n", "utf-8")
    return str(path)
