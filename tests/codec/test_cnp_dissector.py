# SPDX-License-Identifier: Apache-2.0
"""Wireshark reads a CNP as a RoCEv2 packet of opcode 0x81, with BECN, and finds nothing wrong with it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from tailrace.codec.numbers import Opcode
from tailrace.codec.templates import HostAddress, cnp_frame

_FIELDS = ("infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.p_key", "udp.dstport")
_BECN = 1 << 6  # Wireshark shows FECN, BECN and what follows as eight reserved bits


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not on PATH (Debian's package tshark)")
def test_wireshark_shows_a_cnp(tmp_path: Path) -> None:
    """Queue pair, key and port; no complaint."""
    path = tmp_path / "cnp.pcap"
    address = HostAddress("02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", "10.0.0.2")
    frame = cnp_frame(address, sport=777, qpn=0x123456)
    wrpcap(str(path), [Ether(frame)])
    words = [
        "tshark",
        "-n",
        "-r",
        str(path),
        "-Y",
        "infiniband && !_ws.malformed && !_ws.expert",
        "-T",
        "fields",
    ]
    words += [word for field in _FIELDS for word in ("-e", field)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    opcode, pair, key, port = shown.strip().split("\t")
    assert (Opcode.CNP, 0x123456, 0xFFFF, 4791) == (int(opcode), int(pair, 0), int(key), int(port))
    assert _BECN == frame[46]
