# SPDX-License-Identifier: Apache-2.0
"""Errors of the control plane; every text is one line for the user.

ControllerError          a run fails (exit status 1)
├── P4ProgramError       a compiled program is missing or invalid
├── TlsError             TLS files cannot be used (exit status 2)
└── SwitchError          an error of one switch; the text begins with its name
    ├── UnreachableError     no server responds, or the connection broke
    ├── ElectionError        another controller is primary, or has the same election id
    ├── RefusedError         the switch responds with an error
    │   ├── ReadError        to a read
    │   └── WriteError       to some updates
    ├── UnsupportedError     the program or the target does not support the request (e.g. registers on BMv2)
    ├── NoResponseError      no response to an in-band query, or on the stream, before the timeout
    └── ReconcileError       the switch does not keep the entities that are written
"""

from __future__ import annotations

from tailrace.spec.errors import Error, SpecError


class ControllerError(Error):
    """Something in the control plane failed."""


class P4ProgramError(ControllerError):
    """A compiled program is missing or invalid."""


class TlsError(ControllerError, SpecError):
    """A TLS file is invalid: bad input (exit status 2)."""


class SwitchError(ControllerError):
    """An error of one switch. Its text is the switch's name and `problem`."""

    def __init__(self, switch: str, problem: str) -> None:
        super().__init__(f"{switch}: {problem}")
        self.switch = switch
        self.problem = problem


class UnreachableError(SwitchError):
    """No server responds, or the connection broke."""


class ElectionError(SwitchError):
    """Another controller is primary, or has the same election id.

    Only the primary may change a switch, and send and receive packets (P4Runtime §5, §16.1).
    """


class RefusedError(SwitchError):
    """The switch responds with an error.

    code: the canonical name of the (first) error; empty: unknown
    failures: errors of a batch, by index of the update
    """

    def __init__(
        self, switch: str, problem: str, code: str = "", failures: dict[int, str] | None = None
    ) -> None:
        super().__init__(switch, problem)
        self.code = code
        self.failures = failures or {}


class ReadError(RefusedError):
    """A read was rejected."""


class WriteError(RefusedError):
    """Updates were rejected: the updates in `failures`, or all updates if `failures` is empty."""


class UnsupportedError(SwitchError):
    """The program or its target does not support the request."""


class NoResponseError(SwitchError):
    """No response before the timeout."""


class ReconcileError(SwitchError):
    """The switch does not keep the entities that are written."""
