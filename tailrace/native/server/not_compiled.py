# SPDX-License-Identifier: Apache-2.0
"""What a client is told of a program that cannot be loaded, and what stays with the operator."""

from __future__ import annotations

import logging

from tailrace.native.compiler import ProgramError
from tailrace.native.compiler.errors import NotCompiledError
from tailrace.p4rt.status import Code, P4RtError, invalid

_log = logging.getLogger("tailrace.switch")


def refusal(error: ProgramError) -> P4RtError:
    """The answer to a client. What the C compiler said, and where things lie, goes to the log only."""
    if not isinstance(error, NotCompiledError):
        return invalid(f"p4_device_config: {error}")
    _log.error("%s", error)
    if error.refused:
        return invalid("p4_device_config: the program could not be compiled (see the switch's log)")
    return P4RtError(Code.INTERNAL, "this switch cannot compile programs now (see its log)")
