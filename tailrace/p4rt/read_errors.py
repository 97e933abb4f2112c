# SPDX-License-Identifier: Apache-2.0
"""What can go wrong while looking at a switch. Every message is one line for the user.

InspectError            (a ControllerError: the run failed, exit status 1)
├── SwitchUnreachableError   no answer from the P4Runtime server
├── SwitchRefusedError       the server answered with an error; .code is gRPC's name of it
├── NotOfferedError          the program or the target has no such thing (registers on BMv2, no flow table)
├── NotPrimaryError          packets are asked for, another controller is primary and offers no relay
├── NoAnswerError            a packet-out was sent, no packet-in came back in time
└── RelayError          the socket of the running controller does not do as it should
"""

from __future__ import annotations

from tailrace.p4rt.errors import ControllerError


class InspectError(ControllerError):
    """Base of all; str() is one line."""


class SwitchUnreachableError(InspectError):
    """No P4Runtime server answers at the address."""


class SwitchRefusedError(InspectError):
    """The server refused a request."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class NotOfferedError(InspectError):
    """The program or its target does not have what was asked for."""


class NotPrimaryError(InspectError):
    """Only the primary controller may send and receive packets (P4Runtime §16.1)."""


class NoAnswerError(InspectError):
    """The switch did not answer a packet-out."""


class RelayError(InspectError):
    """The relay of the running controller cannot be used."""
