# SPDX-License-Identifier: Apache-2.0
"""Wireshark reads the pause frames of our captures as what they are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from tailrace.sim.network import SWITCH_CONFIG
from tailrace.switch.core import PfcConfig
from tests.sim.network.chain import chain
from tests.sim.network.l3 import OVERHEAD_BYTES, Frame, network, packet
from tests.sim.network.obeying import ObeyingNic

# complaints of the dissector about pause frames, and about any frame
_COMPLAINTS = (
    "_ws.malformed",
    "macc.opcode.unknown",
    "macc.cbfc.enbv.not_zero",
    "macc.dst_address_invalid",
)
_FIELDS = (
    "macc.opcode",
    "macc.cbfc.enbv",
    "macc.cbfc.pause_time.c0",
    "eth.dst",
    "frame.len",
    "frame.time_epoch",
)


def tshark(path: Path, shown: str) -> list[list[str]]:
    """The fields of all frames that a filter shows."""
    words = ["tshark", "-n", "-r", str(path), "-Y", shown, "-T", "fields"]
    words += [word for field in _FIELDS for word in ("-e", field)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not on PATH (Debian's package tshark)")
def test_wireshark_shows_pauses_and_resumes(tmp_path: Path) -> None:
    """Each that a host has got, at its time, with the same quanta; and it finds nothing wrong with any frame."""
    path = tmp_path / "all.pcapng"
    topo = chain(2, [10**10] * 3, [1000] * 3, sources=3)
    pfc = PfcConfig((0,), xoff_bytes=10_000, xon_bytes=5000, headroom_bytes=20_000, quanta=300)
    with network(topo, config=replace(SWITCH_CONFIG, pfc=pfc)) as net:
        nics = {host.name: ObeyingNic(rate_bps=host.rate_bps) for host in topo.hosts}
        for name, nic in nics.items():
            net.attach(name, nic)
            if name != "h4":
                frame = Frame(packet(topo, name, "h4", b""), virtual_bytes=1500 - OVERHEAD_BYTES)
                nic.script = [(0, frame)] * 60
        net.capture(path, [wire for host in ("h1", "h2", "h3") for wire in net.wires_between("s1", host)])
        assert net.run()
    pauses = sorted(pause for nic in nics.values() for pause in nic.pauses)
    assert {quanta for _, quanta in pauses} == {300, 0}
    shown = tshark(path, "macc")
    assert {tuple(int(field, 0) for field in line[:2]) for line in shown} == {(0x0101, 1)}
    assert {(line[3], line[4]) for line in shown} == {("01:80:c2:00:00:01", "60")}
    assert sorted((int(line[5].replace(".", "")), int(line[2])) for line in shown) == pauses
    assert tshark(path, " or ".join(_COMPLAINTS)) == []
