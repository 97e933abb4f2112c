# SPDX-License-Identifier: Apache-2.0
"""What a client learns of a program that cannot be compiled: that it could not be, and no more."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r

from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.compiler import load_program
from tailrace.switch.core import V1ModelSwitch
from tailrace.switch.p4runtime.device import Device, DeviceSettings
from tests.switch.bmv2_builder import Builder

SAYS = "/secret/source.c:7:1: error: root:x:0:0 is no type"


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    with V1ModelSwitch(None) as switch:
        yield Device(
            switch, DeviceSettings(), lambda: 0, lambda t: load_program(t, cache_dir=tmp_path / "cache")
        )


def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    path = tmp_path / "cc"
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))


def refused(device: Device, program: bytes | None = None) -> P4RtError:
    text = Builder([("a", 8)]).text() if program is None else program
    config = p4r.ForwardingPipelineConfig(p4info=p4i.P4Info(), p4_device_config=text)
    with pytest.raises(P4RtError) as caught:
        device.prepare_config(config)
    said = caught.value.message
    assert said.isprintable() and len(said) <= 400
    return caught.value


def test_what_the_compiler_says_stays_in_the_log(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compiler(tmp_path, monkeypatch, f"echo '{SAYS}' >&2; exit 1\n")
    with caplog.at_level(logging.WARNING):
        error = refused(device)
    assert Code.INVALID_ARGUMENT == error.code
    assert "p4_device_config: the program could not be compiled (see the switch's log)" == error.message
    assert any(SAYS in line for line in caplog.messages)


def test_trouble_of_the_machine_names_no_folder(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No compiler; a cache that cannot be written or is not trusted; an object that cannot be loaded."""
    said = "this switch cannot compile programs now (see its log)"
    monkeypatch.setenv("CC", "/secret/cc")
    assert (Code.INTERNAL, said) == ((error := refused(device)).code, error.message)
    monkeypatch.delenv("CC")
    (tmp_path / "cache").chmod(0o777)
    assert (Code.INTERNAL, said) == ((error := refused(device)).code, error.message)
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("")
    assert (Code.INTERNAL, said) == ((error := refused(device)).code, error.message)
    assert 3 == sum(str(tmp_path) in line or "/secret/cc" in line for line in caplog.messages)


@pytest.mark.parametrize("name", ["a\nb", "\x1b]0;x\x07", "\ud800", "x" * 1_000_000, "\u2028"])
def test_names_in_messages_are_made_printable(device: Device, name: str) -> None:
    b = Builder([("a", 8)])
    b.extra = {"calculations": [{"name": "c", "id": 0, "algo": name, "input": []}]}
    assert Code.INVALID_ARGUMENT == refused(device, b.text()).code
