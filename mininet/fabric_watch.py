# SPDX-License-Identifier: Apache-2.0
"""Reads JSON lines from child processes, and detects processes that end unexpectedly."""

from __future__ import annotations

import json
import os
import selectors
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fabric_process import FabricProcess
from fabric_report import FabricError

POLL_S = 0.1
"""Interval at which processes without output are checked."""

_READ_BYTES = 1 << 16
Handler = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class _OutputReader:
    """The standard output of a process: its incomplete last line, and the handler of complete ones."""

    process: FabricProcess
    handler: Handler
    rest: bytes = b""


class ProcessMonitor:
    """Monitors all processes of a run. Any thread may poll, one at a time."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._guarded: list[FabricProcess] = []
        self._lock = threading.RLock()

    def listen(self, process: FabricProcess, handler: Handler) -> None:
        """Calls `handler` with every object that the process writes to its standard output."""
        self._selector.register(process.stdout, selectors.EVENT_READ, _OutputReader(process, handler))

    def guard(self, process: FabricProcess) -> None:
        """From now on an exit of the process is a failure."""
        self._guarded.append(process)

    def release(self, process: FabricProcess) -> None:
        """From now on the process may end; harmless when it was not guarded."""
        with self._lock:
            self._guarded = [guarded for guarded in self._guarded if guarded is not process]

    def forget(self, process: FabricProcess) -> None:
        """From now on the process may end, and its output is not read; harmless when repeated."""
        with self._lock:
            self.release(process)
            for key in list(self._selector.get_map().values()):
                if key.data.process is process:
                    self._selector.unregister(key.fileobj)

    def poll(self, timeout_s: float = POLL_S) -> None:
        """Waits for output of the processes, handles it, and checks the guarded processes.

        Raises:
            FabricError: one of them has ended, or a message is malformed. The next call checks the rest.
        """
        with self._lock:
            for key, _ in self._selector.select(timeout_s):
                self._read(key.data)
            for process in [guarded for guarded in self._guarded if guarded.ended()]:
                self._drain_output(process)
                # its last message may have released it
                if process in self._guarded:
                    self.release(process)
                    raise FabricError(process.end_message())

    def wait(self, done: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Polls until `done`. `what`: the failure, for the message of a timeout ("the hosts are not ready").

        Raises:
            FabricError: as `poll`, or a timeout.
        """
        deadline = time.monotonic() + timeout_s
        while not done():
            if time.monotonic() > deadline:
                raise FabricError(f"{what} after {timeout_s:.0f} s")
            self.poll()

    def _drain_output(self, process: FabricProcess) -> None:
        """Reads the remaining output of a process that has ended."""
        readers = [key.data for key in self._selector.get_map().values() if key.data.process is process]
        for reader in readers:
            while self._read(reader):
                pass

    def _read(self, reader: _OutputReader) -> bool:
        """Handles new lines of output; false at its end."""
        data = os.read(reader.process.stdout.fileno(), _READ_BYTES)
        if not data:
            self._selector.unregister(reader.process.stdout)
            return False
        *lines, reader.rest = (reader.rest + data).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError as error:
                raise FabricError(f"{reader.process.name} wrote {line[:80]!r}, which is not JSON") from error
            reader.handler(message)
        return True
