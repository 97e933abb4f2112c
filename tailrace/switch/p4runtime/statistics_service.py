# SPDX-License-Identifier: Apache-2.0
"""The counts of ports and buffers, and the rates of ports, over gRPC: separate services, as P4Runtime has no
message for them. Their clients need not be primary.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import grpc.aio
import msgspec

from tailrace.p4rt.requests import SET_RATE, STATISTICS, PortRate
from tailrace.p4rt.status import invalid, not_found
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


def rate_handler(device_id: int, set_rate: Callable[[int, int], None]) -> grpc.GenericRpcHandler[Any, Any]:
    """The gRPC handler of the service that sets rates of ports."""

    async def serve(octets: bytes, _context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        try:
            request = msgspec.json.decode(octets, type=PortRate)
        except msgspec.DecodeError as error:
            raise invalid(f"rate: {error}") from None
        if request.device_id != device_id:
            raise not_found(f"device {request.device_id} is not known")
        set_rate(request.port, request.rate_bps)
        return b""

    service, method = SET_RATE
    handlers = {method: grpc.unary_unary_rpc_method_handler(with_status(serve))}
    handler: grpc.GenericRpcHandler[Any, Any] = grpc.method_handlers_generic_handler(service, handlers)
    return handler
