# SPDX-License-Identifier: Apache-2.0
"""Requests that do not arrive, and connections whose peer has gone: neither stays (switch/p4runtime/calls.py)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Awaitable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

import grpc
import pytest
from finsy.proto import p4r

from tailrace.p4rt.requests import STATISTICS, TRACE
from tailrace.switch.p4runtime import calls as server_calls
from tailrace.switch.p4runtime import server
from tests.eventually import LONG_S, eventually
from tests.switch.p4runtime.conftest import Rig, RigMaker

SERVICE = "p4.v1.P4Runtime"
UNARY = [
    *((SERVICE, f"{what}ForwardingPipelineConfig") for what in ("Set", "Get")),
    *((SERVICE, method) for method in ("Write", "Read", "Capabilities")),
    *(TRACE, STATISTICS),
]
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0])
"""How an HTTP/2 client begins, its settings, of which there are none, and that it has seen the server's."""
NOT_OTHERWISE_S = 30
"""Far less than gRPC's own times, and far more than those that are set here."""
CAPABILITIES = p4r.CapabilitiesRequest(device_id=1).SerializeToString()


@contextmanager
def client(rig: Rig) -> Iterator[grpc.Channel]:
    """A connection of its own."""
    with grpc.insecure_channel(
        f"127.0.0.1:{rig.port}", options=[("grpc.use_local_subchannel_pool", 1)]
    ) as channel:
        yield channel


def later(given: threading.Event, octets: bytes | None) -> Iterator[bytes]:
    """One request, or none, once it is given."""
    given.wait(LONG_S)
    if octets is not None:
        yield octets


def outcome(call: Any) -> tuple[grpc.StatusCode, str | None]:
    """How a call is refused; answers come before."""
    with pytest.raises(grpc.RpcError) as refused:
        list(call)
    return refused.value.code(), refused.value.details()


@pytest.mark.parametrize("method", UNARY)
def test_a_request_that_does_not_arrive(
    make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch, method: tuple[str, str]
) -> None:
    """The call ends with the time that it may take; one without a request is refused, too."""
    rig, never = make_rig("p4rt_all"), threading.Event()
    with client(rig) as channel:
        call = channel.stream_stream(f"/{'/'.join(method)}", bytes, bytes)
        never.set()
        result = outcome(call(later(never, None), timeout=LONG_S))
        assert result == (grpc.StatusCode.INVALID_ARGUMENT, "the call has no request")
        never.clear()
        monkeypatch.setattr(server_calls, "ARRIVAL_S", 0.2)
        result = outcome(call(later(never, None), timeout=LONG_S))
        assert result == (grpc.StatusCode.DEADLINE_EXCEEDED, "the request has not arrived within 0.2 s")
        never.set()


def test_requests_that_do_not_arrive_are_bounded(make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest call gives way: each may have a connection of its own, and others want that."""
    monkeypatch.setattr(server_calls, "MAX_PENDING", 3)
    first, arrived = server_calls.PendingRequests.first, list[int]()

    async def counted(pending: server_calls.PendingRequests, message: Awaitable[bytes]) -> bytes:
        arrived.append(len(arrived))
        return await first(pending, message)

    monkeypatch.setattr(server_calls.PendingRequests, "first", counted)
    rig, given = make_rig("p4rt_all"), threading.Event()
    calls: list[Any] = []
    with client(rig) as channel:
        for service in ((SERVICE, "Write"), STATISTICS, TRACE, (SERVICE, "Capabilities")):
            call = channel.stream_stream("/" + "/".join(service), bytes, bytes)
            calls.append(call(later(given, CAPABILITIES), timeout=LONG_S))
            # calls that begin together arrive in any order
            assert eventually(lambda: len(arrived) == len(calls))
        message = "too many calls wait for their request (limit 3); this one was the oldest"
        assert outcome(calls[0]) == (grpc.StatusCode.RESOURCE_EXHAUSTED, message)
        given.set()
        assert list(calls[3])


def test_calls_of_a_connection_are_bounded(make_rig: RigMaker) -> None:
    """One more waits until another one has ended; other connections have their own."""
    rig, given = make_rig("p4rt_all"), threading.Event()
    with client(rig) as full, client(rig) as other:
        ask = f"/{SERVICE}/Capabilities"
        begin, unary = full.stream_unary(ask, bytes, bytes), full.unary_unary(ask, bytes, bytes)
        calls = [begin.future(later(given, CAPABILITIES), timeout=LONG_S) for _ in range(server.MAX_CALLS)]
        with pytest.raises(grpc.RpcError) as late:
            unary(CAPABILITIES, timeout=2)
        assert late.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        answer = other.unary_unary(ask, bytes, bytes)(CAPABILITIES, timeout=LONG_S)
        calls.pop().cancel()
        assert unary(CAPABILITIES, timeout=LONG_S) == answer
        given.set()
        assert {call.result(LONG_S) for call in calls} == {answer}


def test_connections_are_bounded(make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes when all places are taken is sent away, who has one keeps it, and who goes makes room."""
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 8)
    rig = make_rig("p4rt_all")
    ask = f"/{SERVICE}/Capabilities"
    with client(rig) as first, ExitStack() as silent:
        answer = first.unary_unary(ask, bytes, bytes)(CAPABILITIES, timeout=LONG_S)
        attempts = [
            silent.enter_context(closing(socket.create_connection(("127.0.0.1", rig.port), NOT_OTHERWISE_S)))
            for _ in range(3 * server.MAX_CONNECTIONS)
        ]
        kept = [attempt for attempt in attempts if _welcomed(attempt)]
        # the first client has a place, and the rig's own if it has spoken already
        assert server.MAX_CONNECTIONS - 2 <= len(kept) < server.MAX_CONNECTIONS
        assert first.unary_unary(ask, bytes, bytes)(CAPABILITIES, timeout=LONG_S) == answer
        for attempt in kept:
            attempt.close()
        with client(rig) as last:
            call = last.unary_unary(ask, bytes, bytes)(CAPABILITIES, timeout=LONG_S, wait_for_ready=True)
            assert call == answer


def test_connections_without_a_call_make_room(make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether HTTP/2 has begun on them or not: after some seconds; here after half a second."""
    times = {"grpc.max_connection_idle_ms", "grpc.server_handshake_timeout_ms"}
    options = dict(server._OPTIONS)
    assert all(options[time] <= 10_000 for time in times)
    monkeypatch.setattr(server, "_OPTIONS", tuple((options | dict.fromkeys(times, 500)).items()))
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 8)
    rig = make_rig("p4rt_all")
    with ExitStack() as silent:
        for number in range(2 * server.MAX_CONNECTIONS):
            connection = closing(socket.create_connection(("127.0.0.1", rig.port), NOT_OTHERWISE_S))
            attempt = silent.enter_context(connection)
            if number % 2:
                with suppress(ConnectionError):
                    attempt.sendall(PREFACE)
        with client(rig) as last:
            call = last.unary_unary(f"/{SERVICE}/Capabilities", bytes, bytes)
            assert call(CAPABILITIES, timeout=NOT_OTHERWISE_S, wait_for_ready=True)


def _welcomed(attempt: socket.socket) -> bool:
    """Whether the server says something to a new client, instead of closing."""
    try:
        attempt.sendall(PREFACE)
        return bool(attempt.recv(1 << 16))
    except ConnectionError:
        return False


def test_a_peer_that_says_nothing_is_dropped(make_rig: RigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even when it is asked: after a minute, and another one; here a second, as gRPC allows no less."""
    times = {"grpc.keepalive_time_ms": 1000, "grpc.http2.ping_timeout_ms": 1000}
    assert times.keys() < dict(server._OPTIONS).keys()
    monkeypatch.setattr(server, "_OPTIONS", tuple((dict(server._OPTIONS) | times).items()))
    rig = make_rig("p4rt_all")
    with closing(socket.create_connection(("127.0.0.1", rig.port), NOT_OTHERWISE_S)) as silent:
        silent.sendall(PREFACE)
        while silent.recv(1 << 16):
            pass
