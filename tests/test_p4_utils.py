# SPDX-License-Identifier: Apache-2.0
"""The switch class for p4-utils' networks, on a stand-in for p4-utils."""

from __future__ import annotations

import runpy
import sys
from types import ModuleType
from typing import Any

import pytest

from tailrace.switch.daemon.command_line import make_parser, parse_options
from tests.test_readme import ROOT

CLASS = ROOT / "examples" / "p4_utils" / "tailrace_switch.py"


class Standard:
    """What p4-utils' P4RuntimeSwitch does of what matters here: it refuses a Thrift port in use, gives one on the
    command line, and a status in which gRPC listens after some looks."""

    looks = 0

    def __init__(self, name: str, device_id: int, sw_bin: str, thrift_port: int, grpc_port: int) -> None:
        self.name, self.device_id, self.sw_bin = name, device_id, sw_bin
        self.thrift_port, self.grpc_port = thrift_port, grpc_port
        self.nanomsg: str | None = "ipc:///tmp/bm-1-log.ipc"
        self.switch_pid: int | None = None
        self.alive = True
        if self.thrift_listening():
            raise ConnectionRefusedError(name)

    def thrift_listening(self) -> bool:
        return False

    def add_arguments(self) -> list[str]:
        words = [self.sw_bin, "-i", "1@s1-eth1", "--pcap=/tmp", "--thrift-port", str(self.thrift_port)]
        words += ["--nanolog", self.nanomsg] if self.nanomsg else []
        return [*words, "--device-id", "1", "--no-p4", f"-- --grpc-server-addr 0.0.0.0:{self.grpc_port}"]

    def switch_running(self) -> bool:
        return self.switch_pid is not None and self.alive

    def switch_status(self) -> bool:
        self.looks += 1
        return self.switch_running() and self.thrift_listening() and self.looks > 2


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType("p4utils.mininetlib.node")
    vars(module)["P4RuntimeSwitch"] = Standard
    for name in ("p4utils", "p4utils.mininetlib"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    made = runpy.run_path(str(CLASS))["TailraceSwitch"]
    return made("s1", 1, thrift_port=9090, grpc_port=9559)


def test_it_is_started_without_what_it_has_not(switch: Any) -> None:
    """The words are those of our switch, which warns of none."""
    words = " ".join(switch.add_arguments()).split()
    assert words[0] == "tailrace_switch_grpc"
    assert not {"--thrift-port", "9090", "--nanolog"} & set(words)
    _, options = parse_options(make_parser(), words[1:])
    assert (options.device_id, options.address, options.interfaces) == (1, "0.0.0.0:9559", {1: "s1-eth1"})
    assert not options.warnings


def test_it_has_started_when_p4runtime_listens(switch: Any) -> None:
    """However long that takes, for a first start compiles; a Thrift port is not waited for."""
    switch.switch_pid = 4711
    assert switch.switch_status()
    assert switch.looks == 3


def test_a_switch_that_has_ended_is_not_waited_for(switch: Any) -> None:
    switch.switch_pid, switch.alive = 4711, False
    assert not switch.switch_status()
    assert switch.looks == 1
