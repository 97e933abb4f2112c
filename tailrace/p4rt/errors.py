# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in the control plane; every text is one line for the user.

spec.SpecError           the user's words cannot be used (exit status 2)
├── IntentError          topology, scheme and target do not go together
└── RunFileError         no run file, or none that can be read
ControllerError          a run fails (exit status 1)
├── ProgramError         a compiled program is missing or no good
├── TlsError             TLS files cannot be used
└── SwitchError          something about one switch, which it names
    ├── UnreachableError     nobody answers, or the switch went away
    ├── ElectionError        another controller has our election id
    ├── ReadError            a read was refused
    ├── WriteError           updates were refused
    └── ReconcileError       the switch does not keep what is written
"""

from __future__ import annotations

from tailrace.words import SpecError


class IntentError(SpecError):
    """Topology, scheme and target do not go together."""


class RunFileError(SpecError):
    """There is no run file, or none that can be read."""


class ControllerError(Exception):
    """Something in the control plane failed."""


class ProgramError(ControllerError):
    """A compiled program is missing, or is no good."""


class TlsError(ControllerError):
    """A TLS file cannot be used."""


class SwitchError(ControllerError):
    """Something about one switch, which the text begins with."""

    def __init__(self, switch: str, text: str) -> None:
        super().__init__(f"{switch}: {text}")
        self.switch = switch


class UnreachableError(SwitchError):
    """Nobody answers, or the switch went away."""


class ElectionError(SwitchError):
    """Another controller has our election id."""


class ReadError(SwitchError):
    """A read was refused. `code` is gRPC's name of the reason, empty where it is not known."""

    def __init__(self, switch: str, text: str, code: str = "") -> None:
        super().__init__(switch, text)
        self.code = code


class WriteError(SwitchError):
    """Updates were refused. `failures` says which (index in the batch) and why."""

    def __init__(self, switch: str, text: str, failures: dict[int, str] | None = None) -> None:
        super().__init__(switch, text)
        self.failures = failures or {}


class ReconcileError(SwitchError):
    """The switch does not keep what is written."""
