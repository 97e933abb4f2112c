# SPDX-License-Identifier: Apache-2.0
"""Progress reports of a run: JSON lines for the parent program or text lines for a user; errors.

FabricError        the run failed: exit 1
  InputError       the job, or this machine, does not allow the run: exit 2
"""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timezone


class FabricError(Exception):
    """The run failed; `exit_code` is the exit code of the process."""

    exit_code = 1


class InputError(FabricError):
    """The job is impossible, or something is missing on this machine."""

    exit_code = 2


class FabricReport:
    """Reports progress and events of a run on standard output. `events`: those so far, with their times.

    Both methods raise FabricError when the pipe has no reader: then the parent program has ended.
    """

    def __init__(self, *, as_text: bool) -> None:
        """`as_text`: writes text for people, not JSON, which would disturb a prompt."""
        self._as_text = as_text
        self.events: list[dict[str, str]] = []

    def phase(self, name: str, **numbers: int) -> None:
        """Reports that a phase begins, or its progress."""
        text = " ".join([name, *(f"{key} {value}" for key, value in numbers.items())])
        self._emit(text, {"phase": name, **numbers})

    def event(self, name: str, text: str, subject: str = "") -> None:
        """Reports an event of a link or a switch."""
        time = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self.events.append({"time": time, "event": name, "subject": subject, "text": text})
        self._emit(f"{name}: {text}", {"event": name, "text": text})

    def _emit(self, text: str, line: dict[str, object]) -> None:
        try:
            print(text if self._as_text else json.dumps(line), flush=True)
        except BrokenPipeError as error:
            # Python would try to write once more when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise FabricError("nobody reads the progress any more") from error
