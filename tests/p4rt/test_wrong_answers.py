# SPDX-License-Identifier: Apache-2.0
"""Answers that no correct switch gives end in a SwitchError."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.errors import RefusedError, WriteError
from tailrace.p4rt.requests import TRACE, TraceRequest
from tailrace.p4rt.status import DETAILS, BatchStatus, invalid


def _write(_octets: bytes, context: Any) -> bytes:
    """Refuses one update more than a request of one has."""
    status = BatchStatus()
    status.extend([None, invalid("wrong")])
    context.set_trailing_metadata(((DETAILS, status.packed("write failed")),))
    context.abort(grpc.StatusCode.UNKNOWN, "write failed")
    raise AssertionError


@pytest.fixture(name="connection")
def connection_to_a_wrong_switch() -> Iterator[GrpcConnection]:
    service, method = TRACE
    server = grpc.server(ThreadPoolExecutor(1))
    trace = {method: grpc.unary_stream_rpc_method_handler(lambda *_: iter(()))}
    write = {"Write": grpc.unary_unary_rpc_method_handler(_write)}
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(service, trace),
            grpc.method_handlers_generic_handler("p4.v1.P4Runtime", write),
        )
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with closing(GrpcConnection("s1", f"127.0.0.1:{port}", 1)) as connection:
        yield connection
    server.stop(None).wait()


def test_no_trace(connection: GrpcConnection) -> None:
    with pytest.raises(RefusedError, match="s1: tracing a packet: expected a trace, found an empty response"):
        connection.traces(TraceRequest(1, 1, "00"))


def test_more_errors_than_updates(connection: GrpcConnection) -> None:
    with pytest.raises(
        WriteError, match="the response has more errors than the request has updates"
    ) as caught:
        connection.write([p4r.Update()])
    assert not caught.value.failures
