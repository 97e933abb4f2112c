# SPDX-License-Identifier: Apache-2.0
"""The call that sets the rate of a port of a running native switch."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tailrace.cli.main import main
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import RefusedError
from tailrace.p4rt.requests import SET_RATE
from tests.controller.inspect.served import served
from tests.test_readme import ROOT

FRAME = bytes(Ether(dst="02:00:00:00:00:01") / IP(dst="10.0.2.2") / UDP() / bytes(958))


def test_frames_leave_at_the_new_rate() -> None:
    """One of 1000 bytes at a time, a second each; without a limit again at once."""
    program, entries = ROOT / "tests/programs/build/basic_l3.json", ROOT / "examples/router/entries.json"
    with served() as (switch,):
        where = ("--address", f"s1={switch.address}@{switch.device_id}")
        assert main(["push", "s1", str(program), "--entries", str(entries), *where]) == 0
        connection = GrpcConnection("s1", switch.address, switch.device_id)
        assert [len(switch.receive(0, FRAME)) for _ in range(3)] == [1, 1, 1]
        run_at_once(connection.client.set_rate(1, 8_000))
        assert [len(switch.receive(0, FRAME)) for _ in range(3)] == [1, 0, 0]
        for _ in range(2):
            switch.advance(1_000_000_000)
            assert len(switch.receive(0, b"")) == 1
        run_at_once(connection.client.set_rate(1, 0))
        switch.advance(1_000_000_000)
        assert [len(switch.receive(0, FRAME)) for _ in range(2)] == [1, 1]
        for port, rate_bps in ((512, 1), (1, -1), (1, 1 << 70)):
            with pytest.raises(RefusedError, match="INVALID_ARGUMENT: rate: "):
                run_at_once(connection.client.set_rate(port, rate_bps))
        call = connection._channel.raw.unary_unary(f"/{'/'.join(SET_RATE)}", bytes, bytes)
        for request in (b"", b"[]", b'{"device_id": 7, "port": 1, "rate_bps": 1}', b"[" * 100_000):
            with pytest.raises(Exception, match=r"INVALID_ARGUMENT|NOT_FOUND"):
                call(request, timeout=30)
        connection.close()
