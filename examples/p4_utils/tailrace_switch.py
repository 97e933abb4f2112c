# SPDX-License-Identifier: Apache-2.0
"""Tailrace's switch in networks of p4-utils (https://github.com/nsg-ethz/p4-utils):

    net.addP4RuntimeSwitch("s1", cls=TailraceSwitch)

Works with versions of p4-utils since November 2021. p4-utils waits 10 s until a switch listens on its Thrift
port. This switch has no Thrift port, only P4Runtime.
"""

from __future__ import annotations

import time
from typing import Any

from p4utils.mininetlib.node import P4RuntimeSwitch

START_S = 120.0
"""How long to wait for a switch to start: the first start on a machine compiles the switch core."""

_POLL_S = 0.1


class TailraceSwitch(P4RuntimeSwitch):
    """A process of Tailrace's switch; `tailrace_switch_grpc` must be on PATH, or `sw_bin` is its path."""

    switch_pid: int | None = None

    def __init__(self, *args: Any, sw_bin: str = "tailrace_switch_grpc", **params: Any) -> None:
        """Takes the arguments of P4RuntimeSwitch."""
        super().__init__(*args, sw_bin=sw_bin, **params)
        self.nanomsg = None

    def thrift_listening(self) -> bool:
        """Whether the process has been started; p4-utils asks for the Thrift port, which does not exist."""
        return self.switch_pid is not None

    def add_arguments(self) -> list[str]:
        """The command line's arguments, without that of the Thrift port."""
        arguments: list[str] = super().add_arguments()
        if "--thrift-port" in arguments:
            position = arguments.index("--thrift-port")
            del arguments[position : position + 2]
        return arguments

    def switch_status(self) -> bool:
        """Whether the switch runs and P4Runtime listens; waits while the switch compiles."""
        deadline = time.monotonic() + START_S
        while not super().switch_status():
            if not self.switch_running() or time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True
