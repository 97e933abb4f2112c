# SPDX-License-Identifier: Apache-2.0
"""Child processes of the harness: each has a separate process group and a log file."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from fabric_report import FabricError

from tailrace.emulation.mininet import last_line

STOP_S = 5.0
_MOST_CHARACTERS = 300  # of the last line of a log, in a message


class FabricProcess:
    """A child process. `stdout` is its pipe when `piped`, else all its output goes to the log file."""

    def __init__(self, name: str, command: Sequence[str], log: Path, *, piped: bool = False) -> None:
        """Starts the process.

        Args:
            name: the process's name in messages, such as leaf1 or controller.
            command: the program and its arguments.
            log: file for its messages; overwritten.
            piped: standard input and output are pipes for lines of text; messages still go to the log.

        Raises:
            FabricError: it cannot be started.
        """
        self.name = name
        self.log = log
        try:
            with log.open("wb") as messages:
                self._popen: subprocess.Popen[str] = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if piped else messages,
                    stderr=messages,
                    text=True,
                    start_new_session=True,
                )
        except OSError as error:
            raise FabricError(f"cannot start {name}: {error.strerror}: {error.filename}") from error

    @property
    def pid(self) -> int:
        """The process id in this PID namespace."""
        return self._popen.pid

    @property
    def stdin(self) -> IO[str]:
        """Its standard input, only when piped."""
        assert self._popen.stdin is not None
        return self._popen.stdin

    @property
    def stdout(self) -> IO[str]:
        """Its standard output, only when piped."""
        assert self._popen.stdout is not None
        return self._popen.stdout

    def ended(self) -> bool:
        """Whether it has ended, for any reason."""
        return self._popen.poll() is not None

    def check(self) -> None:
        """Raises FabricError with the last line of its log if it has ended."""
        if self.ended():
            raise FabricError(self.end_message())

    def end_message(self) -> str:
        """One line with the exit status and the last line of its log."""
        code = self._popen.returncode
        how = f"exit code {code}" if code >= 0 else f"signal {-code} ({signal.strsignal(-code)})"
        line = last_line(self.log)[:_MOST_CHARACTERS]
        return f"{self.name} ended with {how}" + (f": {line}" if line else f"; its log {self.log} is empty")

    def ask_to_end(self) -> None:
        """Sends SIGTERM to its group; harmless when it has ended."""
        self._signal(signal.SIGTERM)

    def end(self) -> None:
        """Sends SIGTERM to its group, waits, and sends SIGKILL if needed. Harmless when repeated."""
        self.ask_to_end()
        try:
            self._popen.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None:
                stream.close()

    def _signal(self, number: int) -> None:
        # the process has not been reaped, so its group id cannot belong to others
        if self._popen.poll() is None:
            os.killpg(self.pid, number)


def run(command: Sequence[str], text: str = "") -> str:
    """Runs a short command; returns its output. `text`: its input. Raises FabricError when it fails."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FabricError(f"{' '.join(command)}: {' '.join(done.stderr.split())}")
    return done.stdout


def end_all(processes: Iterable[FabricProcess]) -> None:
    """Stops many at once: sends SIGTERM to all before it waits for any."""
    processes = list(processes)
    for process in processes:
        process.ask_to_end()
    for process in processes:
        process.end()
