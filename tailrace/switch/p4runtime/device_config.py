# SPDX-License-Identifier: Apache-2.0
"""p4_device_config: its two encodings, and the error for a program that cannot be loaded.

The field contains BMv2 JSON, either plain or in a p4.tmp.P4DeviceConfig message. P4DeviceConfig (p4lang/PI,
proto/p4/tmp/p4config.proto) has a bool `reassign` (1), a message `extras` (2) and bytes `device_data` (3),
which is the JSON. The message is decoded by hand, as no package on PyPI contains its Python module.
"""

from __future__ import annotations

import logging
from codecs import BOM_UTF8

from tailrace.p4rt.status import Code, P4RtError, invalid
from tailrace.switch.compiler import CompilerError
from tailrace.switch.compiler.errors import NotCompiledError

_log = logging.getLogger("tailrace.switch")

_DEVICE_DATA = 3
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def program_json(device_config: bytes) -> bytes:
    """The BMv2 JSON in a p4_device_config.

    Raises:
        P4RtError: INVALID_ARGUMENT: it is empty, or has neither encoding.
    """
    if not device_config:
        raise invalid("p4_device_config is empty")
    if device_config.removeprefix(BOM_UTF8).lstrip()[:1] == b"{":
        return device_config
    data = _unwrap(device_config)
    if not data:
        raise invalid("p4_device_config: P4DeviceConfig.device_data is empty")
    return data


def _not_a_config() -> P4RtError:
    return invalid("p4_device_config is neither BMv2 JSON nor a p4.tmp.P4DeviceConfig message")


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while offset < len(data) and shift < 70:  # a varint has at most 10 bytes of 7 bits
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7
    raise _not_a_config()


def _unwrap(data: bytes) -> bytes:
    offset, device_data = 0, b""
    while offset < len(data):
        tag, offset = _varint(data, offset)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            _, offset = _varint(data, offset)
            continue
        if kind == _BYTES:
            size, offset = _varint(data, offset)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise _not_a_config()
        if number == 0 or offset + size > len(data):
            raise _not_a_config()
        if number == _DEVICE_DATA and kind == _BYTES:
            device_data = data[offset : offset + size]
        offset += size
    return device_data


def refusal(error: CompilerError) -> P4RtError:
    """The error for a client. The C compiler's output and paths go to the log only."""
    if not isinstance(error, NotCompiledError):
        return invalid(f"p4_device_config: {error}")
    _log.error("%s", error)
    if error.refused:  # by the C compiler; otherwise there is no working C compiler
        return invalid("p4_device_config: the program could not be compiled (see the switch's log)")
    return P4RtError(Code.INTERNAL, "this switch cannot compile programs now (see its log)")
