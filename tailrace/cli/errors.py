# SPDX-License-Identifier: Apache-2.0
"""Exit statuses and errors of commands.

spec.SpecError                   bad input: one line, exit status 2
spec.Error,  all others          the command failed: one line, exit status 1
cli.errors.FailedError           the same
cli.errors.StoppedError          a signal ended it: one line, exit status 128 and the number of the signal
"""

from __future__ import annotations

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses; the last one is that of a shell for what SIGINT has ended: 128 and the signal's number."""

PROGRAM = "tailrace"

DEBUG = "TAILRACE_DEBUG"
"""The environment variable that shows tracebacks; the option --debug is the same."""


class FailedError(RuntimeError):
    """The command failed; the text is one line for the user, empty where the output is complete."""

    status = FAILED


class StoppedError(FailedError):
    """SIGINT, SIGTERM or SIGHUP ended the command."""

    def __init__(self, number: int, text: str) -> None:
        """Name the signal, and what becomes of what was done."""
        super().__init__(text)
        self.status = 128 + number
