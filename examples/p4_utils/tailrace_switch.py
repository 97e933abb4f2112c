# SPDX-License-Identifier: Apache-2.0
"""Tailrace's switch in networks of p4-utils (https://github.com/nsg-ethz/p4-utils):

    net.addP4RuntimeSwitch("s1", cls=TailraceSwitch)

Written for p4-utils as it has been since November 2021. p4-utils takes a switch for started once its Thrift
port listens, and waits 10 s for it. This one has P4Runtime alone.
"""

from __future__ import annotations

import time
from typing import Any

from p4utils.mininetlib.node import P4RuntimeSwitch

START_S = 120.0
"""The first switch that starts on a machine compiles the core."""

_POLL_S = 0.1


class TailraceSwitch(P4RuntimeSwitch):
    """A switch process of Tailrace; `tailrace_switch_grpc` must be on PATH, or `sw_bin` names it."""

    switch_pid: int | None = None

    def __init__(self, *args: Any, sw_bin: str = "tailrace_switch_grpc", **params: Any) -> None:
        """As P4RuntimeSwitch."""
        super().__init__(*args, sw_bin=sw_bin, **params)
        self.nanomsg = None

    def thrift_listening(self) -> bool:
        """Whether it has been started: there is no Thrift port that others could have, or to wait for."""
        return self.switch_pid is not None

    def add_arguments(self) -> list[str]:
        """The arguments of the command line, without the Thrift port."""
        arguments: list[str] = super().add_arguments()
        if "--thrift-port" in arguments:
            position = arguments.index("--thrift-port")
            del arguments[position : position + 2]
        return arguments

    def switch_status(self) -> bool:
        """Whether it runs and P4Runtime listens; waits while it compiles."""
        deadline = time.monotonic() + START_S
        while not super().switch_status():
            if not self.switch_running() or time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True
