# SPDX-License-Identifier: Apache-2.0
"""A switch process for a benchmark, and a connection to it as the primary controller."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from checks.bench.result import BenchError
from tailrace.bmv2.process import DEVICE_ID, free_ports, stop
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once  # runs a coroutine that never suspends
from tailrace.spec.text import one_line

START_S = 30.0
_POLL_S = 0.1


@contextmanager
def running_switch(command: Sequence[str]) -> Iterator[GrpcConnection]:
    """A switch without a program, for a `with` block.

    Args:
        command: simple_switch_grpc, or a switch with the same options; may have more options.

    Raises:
        BenchError: the switch ends at once, or does not listen in START_S seconds.
        SwitchError: the switch refuses the primary controller.
    """
    address = f"127.0.0.1:{free_ports(1)[0]}"
    arguments = ["--no-p4", "--device-id", str(DEVICE_ID), "--", "--grpc-server-addr", address]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
        )
        connection = GrpcConnection(command[0], address, DEVICE_ID)
        try:
            deadline_s = time.monotonic() + START_S
            while not connection.wait(_POLL_S):
                if process.poll() is not None:
                    log.seek(0)
                    text = one_line(log.read().decode(errors="replace"))
                    raise BenchError(f"{command[0]} ended with {process.returncode}: {text}")
                if time.monotonic() > deadline_s:
                    raise BenchError(f"{command[0]} does not listen after {START_S:.0f} s")
            run_at_once(connection.client.become_primary(1))
            yield connection
        finally:
            connection.close()
            stop(process)
