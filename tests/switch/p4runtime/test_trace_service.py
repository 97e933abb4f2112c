# SPDX-License-Identifier: Apache-2.0
"""Traces for several clients: whoever takes none holds nobody up, and not its place for ever either."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import msgspec
import pytest

from tailrace.p4rt.requests import TRACE, TraceRequest
from tailrace.p4rt.status import Code
from tailrace.switch.p4runtime import trace_service
from tailrace.switch.trace import Trace
from tests.eventually import LONG_S, eventually
from tests.switch.p4runtime.conftest import Rig, code_of
from tests.switch.p4runtime.test_profiles import group, hop, member

MEMBERS = 60
FRAME = bytes(12) + b"\x08\0\x45\0" + (9000).to_bytes(2, "big") + bytes(4) + b"\x40\x11\0\0"
FRAME += bytes([10, 0, 0, 1, 10, 0, 0, 2]) + bytes(8980)
ONE, EVERY = (msgspec.json.encode(TraceRequest(1, 1, FRAME.hex(), every=every)) for every in (False, True))


@pytest.fixture
def rig(rig: Rig) -> Rig:
    """One whose packets can go many ways: together their traces are more than anything on the way holds."""
    members = [member(rig, number + 1) for number in range(MEMBERS)]
    ways = group(rig, 1, *((number + 1, 1) for number in range(MEMBERS)))
    assert set(rig.write(*members, ways, hop(rig, group_id=1))) == {Code.OK}
    return rig


@contextmanager
def client(rig: Rig) -> Iterator[Callable[..., Any]]:
    """A connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.http2.bdp_probe", 0)]
    with grpc.insecure_channel(f"127.0.0.1:{rig.port}", options=options) as channel:
        yield channel.unary_stream(f"/{'/'.join(TRACE)}", bytes, bytes)


def under_way(rig: Rig) -> int:
    return rig.in_server(lambda: rig.server._traces.under_way)


def test_a_client_that_takes_no_trace(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have theirs meanwhile; after a while its call is ended, and its place is free."""
    with client(rig) as slow, client(rig) as other:
        assert len(list(other(EVERY, timeout=LONG_S))) == MEMBERS
        call = slow(EVERY)
        assert eventually(lambda: under_way(rig) == 1)
        for _ in range(3):
            assert len(list(other(EVERY, timeout=LONG_S))) == MEMBERS
        assert under_way(rig) == 1
        call.cancel()
        assert eventually(lambda: under_way(rig) == 0)
        monkeypatch.setattr(trace_service, "STALLED_S", 0.2)
        call = slow(EVERY)
        assert eventually(lambda: under_way(rig) == 1) and eventually(lambda: under_way(rig) == 0)
        assert code_of(lambda timeout: list(call)) == (
            Code.DEADLINE_EXCEEDED,
            "the client has read no trace for 0.2 s",
        )


def test_memory_of_traces_is_given_back(rig: Rig) -> None:
    """A trace of many copies has some 10 MB, of a request that has hardly any."""
    freed = threading.Event()
    rig.in_server(lambda: setattr(rig.server._traces, "_on_freed", freed.set))
    with client(rig) as ask:
        assert list(ask(ONE, timeout=LONG_S))
    assert freed.wait(LONG_S)


def test_traces_under_way_are_counted(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each keeps room in the switch, so what is one too many is refused with the number."""
    monkeypatch.setattr(trace_service, "MAX_TRACES", 2)
    with ExitStack() as clients:
        slow = [clients.enter_context(client(rig)) for _ in range(2)]
        other = clients.enter_context(client(rig))
        calls = [client_call(EVERY) for client_call in slow]
        assert eventually(lambda: under_way(rig) == 2)
        refused = "2 requests for traces are under way; the limit is 2"
        asked = code_of(lambda octets, timeout: list(other(octets, timeout=timeout)), ONE)
        assert asked == (Code.RESOURCE_EXHAUSTED, refused)
        for call in calls:
            call.cancel()
        assert eventually(lambda: under_way(rig) == 0)
        assert len(list(other(ONE, timeout=LONG_S))) == 1


def test_packets_that_are_sent_hold_up_no_traces(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that circles is followed for seconds: others are traced meanwhile, and few are sent at a time."""
    ended, begun = threading.Event(), threading.Event()

    def follow(*_: object, **__: object) -> Trace:
        begun.set()
        ended.wait(LONG_S)
        return Trace(program="p", steps=())

    monkeypatch.setattr(trace_service, "send_packet", follow)
    rig.in_server(lambda: rig.server.enable_injection(lambda port, data: None))
    sent = msgspec.json.encode(TraceRequest(1, 1, FRAME.hex(), send=True, election_id=1))
    with client(rig) as first, client(rig) as other:
        calls = [first(sent, timeout=LONG_S) for _ in range(trace_service.MAX_SENT)]
        assert begun.wait(LONG_S)
        assert eventually(lambda: rig.in_server(lambda: rig.server._traces._sent) == trace_service.MAX_SENT)
        assert len(list(other(EVERY, timeout=LONG_S))) == MEMBERS
        refused = code_of(lambda octets, timeout: list(other(octets, timeout=timeout)), sent)
        message = f"{trace_service.MAX_SENT} packets are being sent for traces; the limit is {trace_service.MAX_SENT}"
        assert refused == (Code.RESOURCE_EXHAUSTED, message)
        ended.set()
        assert [len(list(call)) for call in calls] == [1] * len(calls)
