# SPDX-License-Identifier: Apache-2.0
"""Native switches as processes of their own, which serve P4Runtime on sockets in the file system."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.p4rt.channel import SwitchAddress

ROOT = Path(__file__).resolve().parents[2]
STOP_S = 30.0


class SwitchProcess:
    """A switch that can be killed and started again at the same address."""

    def __init__(self, folder: Path, device_id: int, arguments: tuple[str, ...]) -> None:
        self.address = SwitchAddress(f"unix:{folder}/{device_id}.sock", device_id)
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Starts the switch; returns once it listens."""
        command = [sys.executable, "-m", "tailrace.switch.daemon.cli", "--no-p4", "--cpu-port", "510"]
        command += ["--priority-queues", "8"]
        command += ["--device-id", str(self.address.device_id), "--grpc-server-addr", self.address.address]
        command += self._arguments
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("Server listening on "):
                return
        raise AssertionError(f"the switch ended with status {self._process.wait(STOP_S)}")

    def kill(self) -> None:
        """Ends the switch at once, without its help."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_S)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


SwitchStarter = Callable[..., SwitchProcess]


@pytest.fixture
def start_switch() -> Iterator[SwitchStarter]:
    """Starts switches that end with the test."""
    started: list[SwitchProcess] = []
    # not pytest's own folder, for the path of a socket must be short
    with tempfile.TemporaryDirectory(prefix="tailrace-") as folder:

        def start(device_id: int, *arguments: str) -> SwitchProcess:
            started.append(SwitchProcess(Path(folder), device_id, arguments))
            return started[-1]

        yield start
        for process in started:
            process.kill()
