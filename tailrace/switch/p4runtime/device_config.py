# SPDX-License-Identifier: Apache-2.0
"""p4_device_config: its two encodings, and the error for a program that cannot be loaded.

The field contains BMv2 JSON, either plain or in a p4.tmp.P4DeviceConfig message.
"""

from __future__ import annotations

import logging
from codecs import BOM_UTF8

from google.protobuf.message import DecodeError

from tailrace.p4rt.bmv2_messages import DeviceConfig
from tailrace.p4rt.status import Code, P4RtError, invalid
from tailrace.switch.compiler import CompilerError
from tailrace.switch.compiler.errors import NotCompiledError

_log = logging.getLogger("tailrace.switch")


def program_json(device_config: bytes) -> bytes:
    """The BMv2 JSON in a p4_device_config.

    Raises:
        P4RtError: INVALID_ARGUMENT: it is empty, or has neither encoding.
    """
    if not device_config:
        raise invalid("p4_device_config is empty")
    if device_config.removeprefix(BOM_UTF8).lstrip()[:1] == b"{":
        return device_config
    try:
        data: bytes = DeviceConfig.FromString(device_config).device_data
    except DecodeError:
        message = "p4_device_config is neither BMv2 JSON nor a p4.tmp.P4DeviceConfig message"
        raise invalid(message) from None
    if not data:
        raise invalid("p4_device_config: P4DeviceConfig.device_data is empty")
    return data


def refusal(error: CompilerError) -> P4RtError:
    """The error for a client. The C compiler's output and paths go to the log only."""
    if not isinstance(error, NotCompiledError):
        return invalid(f"p4_device_config: {error}")
    _log.error("%s", error)
    if error.refused:  # by the C compiler; otherwise there is no working C compiler
        return invalid("p4_device_config: the program could not be compiled (see the switch's log)")
    return P4RtError(Code.INTERNAL, "this switch cannot compile programs now (see its log)")
