# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in the control plane; every text is one line for the user.

ControllerError          a run fails (exit status 1)
├── P4ProgramError       a compiled program is missing or no good
├── TlsError             TLS files cannot be used (exit status 2)
└── SwitchError          something about one switch, which it names
    ├── UnreachableError     nobody answers, or the switch went away
    ├── ElectionError        another controller is primary, or has our election id
    ├── RefusedError         the switch answers with an error
    │   ├── ReadError        to a read
    │   └── WriteError       to some updates
    ├── NotOfferedError      the program or the target has no such thing (registers on BMv2, no flow table)
    ├── NoResponseError      something was asked by a packet or on the stream, nothing came back in time
    └── ReconcileError       the switch does not keep what is written
"""

from __future__ import annotations

from tailrace.spec.errors import Error, SpecError


class ControllerError(Error):
    """Something in the control plane failed."""


class P4ProgramError(ControllerError):
    """A compiled program is missing, or is no good."""


class TlsError(ControllerError, SpecError):
    """A TLS file cannot be used, which is bad input (exit status 2)."""


class SwitchError(ControllerError):
    """Something about one switch. Its text begins with the switch's name; `problem` is what follows."""

    def __init__(self, switch: str, problem: str) -> None:
        super().__init__(f"{switch}: {problem}")
        self.switch = switch
        self.problem = problem


class UnreachableError(SwitchError):
    """Nobody answers, or the switch went away."""


class ElectionError(SwitchError):
    """Another controller is primary, or has our election id. Only the primary may change a switch, send and
    receive packets (P4Runtime §5, §16.1).
    """


class RefusedError(SwitchError):
    """The switch answers with an error.

    code: the canonical name of the (first) reason, empty where it is not known
    failures: of a batch, which (by index) and why
    """

    def __init__(
        self, switch: str, problem: str, code: str = "", failures: dict[int, str] | None = None
    ) -> None:
        super().__init__(switch, problem)
        self.code = code
        self.failures = failures or {}


class ReadError(RefusedError):
    """A read was refused."""


class WriteError(RefusedError):
    """Updates were refused; those that `failures` does not name were carried out where it names any."""


class NotOfferedError(SwitchError):
    """The program or its target does not have what was asked for."""


class NoResponseError(SwitchError):
    """Nothing came back in time."""


class ReconcileError(SwitchError):
    """The switch does not keep what is written."""
