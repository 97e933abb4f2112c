# SPDX-License-Identifier: Apache-2.0
"""The counts of ports and buffers over gRPC: a separate service, as P4Runtime has no message for them.

Its clients need not be primary, as it changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import grpc.aio

from tailrace.p4rt.requests import STATISTICS
from tailrace.p4rt.status import not_found
from tailrace.switch.p4runtime.calls import with_status

_MAX_ID_DIGITS = 20
"""Digits of the largest device id."""

Statistics = Callable[[], dict[str, object]]
"""Returns the counts of one device: see statistics.py."""


def statistics_handler(devices: Mapping[int, Statistics]) -> grpc.GenericRpcHandler[Any, Any]:
    """The gRPC handler of the service; `devices` by device id."""

    async def get(request: bytes, _context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        text = request[:_MAX_ID_DIGITS].decode(errors="replace")
        statistics = devices.get(int(text)) if text.isdecimal() and len(request) <= _MAX_ID_DIGITS else None
        if statistics is None:
            raise not_found(f"device {text!r} is not known")
        return json.dumps(statistics()).encode()

    service, method = STATISTICS
    handlers = {method: grpc.unary_unary_rpc_method_handler(with_status(get))}
    handler: grpc.GenericRpcHandler[Any, Any] = grpc.method_handlers_generic_handler(service, handlers)
    return handler
