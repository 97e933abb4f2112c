# SPDX-License-Identifier: Apache-2.0
"""The kept formats of headers are those of the Scapy layers, and go with the layers' sources."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scapy.contrib.mac_control import MACControl
from scapy.contrib.roce import CNP_OPCODE

from tailrace.codec import formats
from tailrace.codec.numbers import PFC_OPCODE, Opcode
from tailrace.codec.scapy_formats import read_formats


def test_the_kept_formats_are_those_of_the_layers() -> None:
    assert formats.formats() == read_formats()


def test_a_changed_layer_has_formats_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever changes a layer runs with the change at once."""
    before = formats._digest()
    layers = shutil.copytree(formats._LAYERS, tmp_path / "layers")
    monkeypatch.setattr(formats, "_LAYERS", layers)
    assert formats._digest() == before
    shim = layers / "nic_shim.py"
    shim.write_text(shim.read_text("utf-8").replace("ByteField", "ShortField"), "utf-8")
    assert formats._digest() != before


def test_constants_that_scapy_has_too() -> None:
    assert Opcode.CNP == CNP_OPCODE
    assert PFC_OPCODE == MACControl.OP_CODE_CLASS_BASED_FLOW_CONTROL
