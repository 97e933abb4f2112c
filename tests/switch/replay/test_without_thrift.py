# SPDX-License-Identifier: Apache-2.0
"""BMv2 as it is built without Thrift: the option that names a port is refused, and what needs it is said in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.bmv2 import process
from tailrace.bmv2.process import NO_THRIFT, Bmv2Process, ProcessError, has_thrift
from tailrace.bmv2.thrift import ThriftError

REFUSES = """#!/bin/sh
# what boost::program_options makes of an option that it does not know
for word in "$@"; do [ "$word" = --thrift-port ] && { echo "Error while parsing command line arguments"; exit 1; }; done
exec sleep 60
"""
TAKES = """#!/bin/sh
[ "$3" = --version ] && exit 0
exec sleep 60
"""


@pytest.fixture(params=[REFUSES, TAKES], ids=["refuses", "takes"])
def thrift(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the simple_switch_grpc on PATH takes the option; nothing listens at its port."""
    program = tmp_path / "simple_switch_grpc"
    program.write_text(request.param)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return request.param is TAKES


def test_it_starts_and_says_what_is_missing(thrift: bool, tmp_path: Path) -> None:
    """The option is given where it is taken; a connection is refused in one line either way."""
    assert thrift == has_thrift()
    with (tmp_path / "log").open("wb") as log, Bmv2Process(log, priority_queues=8) as switch:
        with pytest.raises(ThriftError, match=NO_THRIFT):
            switch.thrift()
        words = switch.command
    assert thrift == ("--thrift-port" in words)
    assert ("--priority-queues", "8") == words[-2:]


def test_no_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProcessError, match=f"{process.EXECUTABLE} .BMv2. is not on PATH"):
        has_thrift()
