# SPDX-License-Identifier: Apache-2.0
"""Counts of PFC: from a switch that tells what its traffic manager does, and from one that does not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from tailrace.controller.inspect.node import InspectedSwitch
from tailrace.controller.inspect.queues import read_pfc
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.errors import RefusedError, UnreachableError
from tailrace.switch.core import PfcConfig
from tailrace.switch.p4runtime.context import DevicePorts
from tailrace.topology import parse_topology
from tests.controller.inspect.served import install_scheme, served

TOPOLOGY = parse_topology("leaf-spine:leaves=1,spines=1,hosts=1,rate=10Mbps,delay=1ms")
PAUSE = bytes.fromhex("0180c2000001" + "020000000001" + "8808" + "0101" + "0001" + "ffff" + "0000" * 7)


class Silent(GrpcConnection):
    """A switch that does not tell, such as BMv2."""

    def statistics(self) -> None:
        return None


def test_both_ways() -> None:
    """The traffic manager's counts with times, up to the nanosecond; else those of the program, without."""
    with served() as (place,):
        install_scheme(TOPOLOGY, "rlb:variant=presto", {"leaf1": place})
        place.device.ports = DevicePorts(frozenset({1, 2}))
        place.switch.port_pfc(2, PfcConfig((0,), 20_000, 10_000, 20_000))
        place.receive(2, PAUSE + bytes(26))
        place.advance(1_234)
        node = InspectedSwitch("leaf1", GrpcConnection("leaf1", place.address, place.device_id))
        idle = {"pauses_sent": 0, "pfc_received": 0, "storms": 0, "storm_dropped": 0}
        assert read_pfc(node, (1, 2, 9)) == {
            1: {**idle, "paused_ns": 0},
            2: {**idle, "pfc_received": 1, "paused_ns": 1_234},
        }
        silent = InspectedSwitch("leaf1", Silent("leaf1", place.address, place.device_id))
        # the program stands in for PFC only where its controller says so
        assert read_pfc(silent, (1, 2)) == {port: {**idle, "waited_packets": 0} for port in (1, 2)}
        install_scheme(TOPOLOGY, "flowcut", {"leaf1": place})
        assert (
            read_pfc(InspectedSwitch("leaf1", Silent("leaf1", place.address, place.device_id)), (1, 2)) == {}
        )
        other = GrpcConnection("leaf9", place.address, 77)
        with pytest.raises(RefusedError, match=r"leaf9: .* refused: NOT_FOUND: device '77' is not known"):
            other.statistics()


def test_servers_without_statistics() -> None:
    """A server that does not know the call is no error; none at all is."""
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    connection = GrpcConnection("s1", f"127.0.0.1:{port}", 1)
    try:
        assert connection.statistics() is None
    finally:
        server.stop(None).wait()
        connection.close()
    nobody = GrpcConnection("s1", "127.0.0.1:1", 1)
    with pytest.raises(UnreachableError, match="s1: no P4Runtime server answers"):
        nobody.statistics()
    nobody.close()
