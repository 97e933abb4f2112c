# SPDX-License-Identifier: Apache-2.0
"""Exit statuses and errors of commands.

spec.SpecError                   bad input: one line, exit status 2
spec.Error   except SpecError    the command failed: one line, exit status 1
cli.errors.FailedError           the same
cli.errors.StoppedError          a signal ended it: one line, exit status 128 + signal number
"""

from __future__ import annotations

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses; the last one is what a shell reports after SIGINT: 128 + signal number."""

PROGRAM = "tailrace"

DEBUG = "TAILRACE_DEBUG"
"""The environment variable that shows tracebacks, as the option --debug does."""


class FailedError(RuntimeError):
    """The command failed; the text is one line for the user, empty if the output already says why."""

    status = FAILED


class StoppedError(FailedError):
    """SIGINT, SIGTERM or SIGHUP ended the command."""

    def __init__(self, signal_number: int, text: str) -> None:
        """Takes the number of the signal, and a text that says which results are kept."""
        super().__init__(text)
        self.status = 128 + signal_number
