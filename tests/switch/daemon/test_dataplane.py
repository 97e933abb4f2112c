# SPDX-License-Identifier: Apache-2.0
"""Packets over gRPC (`--dp-grpc-server-addr`): what leaves is what would leave by interfaces, each with the id
of its cause; nothing that a client sends or leaves untaken does harm.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import Queue
from typing import Any

import grpc
import pytest
from finsy.proto import p4r

from checks.conformance.native_switch import NativeSwitch
from checks.conformance.packets import generate
from checks.conformance.program import load_programs
from tailrace.bmv2.dataplane import Dataplane, DataplaneError
from tailrace.p4rt.bmv2_messages import DOWN, SERVICE, SET_STATUS, STREAM, UP, Packet, PortStatus
from tailrace.p4rt.connection import GrpcConnection, load_p4info
from tailrace.spec.constants import MAX_FRAME_BYTES
from tailrace.switch.compiler import load_program
from tailrace.switch.core import SwitchConfig, V1ModelSwitch
from tailrace.switch.daemon.dataplane import KEPT_IDS, MOST_WAITING, DataplaneService, PacketIds
from tailrace.switch.daemon.ports import IoLoop
from tailrace.switch.p4runtime.server import listen, new_server
from tests.eventually import eventually
from tests.switch.daemon.test_cli import COMMAND, LONG_S, free_port

BUILD = Path(__file__).parents[2] / "programs" / "build"
PROGRAMS = {program.name: program for program in load_programs(BUILD)}
DEVICE_ID = 7
CPU_PORT = 510
SEEDS = range(3)


@dataclass
class Plane:
    """A switch whose packets come and go over gRPC, and a client."""

    switch: V1ModelSwitch
    io: IoLoop
    address: str
    client: Dataplane
    changed: list[tuple[int, bool]]

    def calls(self, method: str) -> Any:
        """The method for requests in bytes."""
        kind = self.client.channel.stream_stream if method == STREAM else self.client.channel.unary_unary
        return kind(f"/{SERVICE}/{method}", None, None)

    def set_port(self, port: int, status: int) -> None:
        request = PortStatus(device_id=DEVICE_ID, port=port, oper_status=status)
        self.calls(SET_STATUS)(request.SerializeToString(), timeout=LONG_S)


@contextmanager
def served(switch: V1ModelSwitch) -> Iterator[Plane]:
    changed: list[tuple[int, bool]] = []
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[grpc.aio.Server, int]:
        server = new_server()
        service = DataplaneService(io, DEVICE_ID, lambda port, up: changed.append((port, up)))
        server.add_generic_rpc_handlers((service.handler(),))
        port = listen(server, "127.0.0.1:0")
        await server.start()
        return server, port

    with IoLoop(switch, {}, CPU_PORT, without_interfaces=True) as io:
        io.start()
        server, port = asyncio.run_coroutine_threadsafe(start(), loop).result(LONG_S)
        address = f"127.0.0.1:{port}"
        client = Dataplane(address, DEVICE_ID, LONG_S)
        try:
            yield Plane(switch, io, address, client, changed)
        finally:
            client.close()
            asyncio.run_coroutine_threadsafe(server.stop(None), loop).result(LONG_S)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(LONG_S)
            loop.close()


@pytest.fixture
def plane() -> Iterator[Plane]:
    """A switch that sends each packet to the port that its destination ends in."""
    config = SwitchConfig(DEVICE_ID, cpu_port=CPU_PORT)
    program = load_program((BUILD / "packet_io.json").read_bytes())
    with V1ModelSwitch(program, config) as switch, served(switch) as served_plane:
        yield served_plane


def frame(port: int, payload: bytes = b"") -> bytes:
    return bytes(5) + bytes([port]) + bytes(6) + b"\x12\x34" + payload


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "name", ["multicast", "cloning", "resubmit_recirculate", "header_stacks", "basic_l3"]
)
def test_packets_cause_what_they_cause_one_by_one(name: str, seed: int) -> None:
    """Clones, replicas and recirculated packets have the id of the packet that they come from."""
    program = PROGRAMS[name]
    updates, stream = generate(program, seed)
    packets = list(islice(stream, 200))
    with NativeSwitch(program) as alone, NativeSwitch(program) as together:
        alone.install(updates)
        together.install(updates)
        expected = alone.window(packets)
        with served(together.switch) as plane:
            client = Dataplane(plane.address, DEVICE_ID, LONG_S)
            answers = client.window([(packet.port, packet.data) for packet in packets])
            client.close()
    assert sum(map(len, expected)) > 5
    assert [sorted(outputs) for outputs in answers] == [sorted(outputs) for outputs in expected]


def test_dozens_of_thousands_of_packets_and_none_is_lost() -> None:
    """More than there is room for: the client's next ones wait until it has taken some."""
    with NativeSwitch(PROGRAMS["header_stacks"]) as native:
        updates, stream = generate(native.program, 1)
        native.install(updates)
        packet = next(stream)
        expected = native.window([packet])
        with served(native.switch) as plane:
            answers = plane.client.window([(packet.port, packet.data)] * (8 * MOST_WAITING))
    assert answers == expected * len(answers)


def test_an_id_is_never_anothers() -> None:
    """Of a packet that stays while a million others come, it is forgotten."""
    ids = PacketIds()
    origins = [ids.origin(number) for number in range(1, KEPT_IDS + 3)]
    assert 0 not in origins and len(set(origins)) == len(origins)
    packet_ids = [ids.id(origin) for origin in origins]
    assert packet_ids == [0, 0, *range(3, KEPT_IDS + 3)]
    assert ids.id(0) == 0
    ids.forget()
    assert not any(map(ids.id, origins))
    assert ids.id(ids.origin(7)) == 7


def test_one_client_at_a_time(plane: Plane) -> None:
    requests: Queue[bytes | None] = Queue()
    first = plane.calls(STREAM)(iter(requests.get, None), timeout=LONG_S)
    requests.put(packet(1, frame(2, b"a")))
    assert sent_by(first) == (2, frame(2, b"a"), 1)
    second = plane.calls(STREAM)(iter([]), timeout=LONG_S)
    with pytest.raises(grpc.RpcError) as failed:
        next(second)
    assert failed.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    # nothing of the first one's is lost to that
    requests.put(packet(1, frame(3, b"b")))
    assert sent_by(first) == (3, frame(3, b"b"), 1)
    requests.put(None)
    assert list(first) == []
    assert plane.client.window([(1, frame(4))]) == [[(4, frame(4))]]


def packet(port: int, data: bytes, number: int = 1, device_id: int = DEVICE_ID) -> bytes:
    octets: bytes = Packet(id=number, device_id=device_id, port=port, packet=data).SerializeToString()
    return octets


def sent_by(call: Iterator[bytes]) -> tuple[int, bytes, int]:
    message = Packet.FromString(next(call))
    assert message.device_id == DEVICE_ID
    return message.port, message.packet, message.id


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (b"\xff\xff\xff", "the request is not a valid p4.bm.PacketStreamRequest"),
        (packet(1, frame(2), device_id=8), "device_id: expected 7, found 8"),
        (packet(512, frame(2)), "port 512: expected one from 0 to 511"),
        (packet((1 << 32) - 1, frame(2)), "port 4294967295: expected one from 0 to 511"),
    ],
)
def test_a_request_that_is_none_ends_its_call_alone(plane: Plane, octets: bytes, said: str) -> None:
    with pytest.raises(grpc.RpcError) as failed:
        list(plane.calls(STREAM)(iter([octets]), timeout=LONG_S))
    assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.INVALID_ARGUMENT, said)
    assert plane.client.window([(1, frame(4))]) == [[(4, frame(4))]]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (PortStatus(device_id=8, port=1, oper_status=UP), "device_id: expected 7, found 8"),
        (PortStatus(device_id=7, port=1), "oper_status: expected 1 (down) or 2 (up), found 0"),
        (PortStatus(device_id=7, port=512, oper_status=UP), "there is no port 512 without an interface"),
        (
            PortStatus(device_id=7, port=CPU_PORT, oper_status=DOWN),
            "there is no port 510 without an interface",
        ),
    ],
)
def test_a_status_that_is_none(plane: Plane, request_: Any, said: str) -> None:
    with pytest.raises(grpc.RpcError) as failed:
        plane.calls(SET_STATUS)(request_.SerializeToString(), timeout=LONG_S)
    assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.INVALID_ARGUMENT, said)
    assert plane.changed == []


def test_a_port_that_is_down_carries_nothing(plane: Plane) -> None:
    """In either direction; who chooses ports is told."""
    both = [(1, frame(2)), (2, frame(1)), (1, frame(3))]
    plane.set_port(2, DOWN)
    assert plane.client.window(both) == [[], [], [(3, frame(3))]]
    plane.set_port(2, UP)
    assert plane.client.window(both) == [[(2, frame(2))], [(1, frame(1))], [(3, frame(3))]]
    assert plane.changed == [(2, False), (2, True)]


def test_empty_packets_are_none_and_long_ones_are_dropped(plane: Plane) -> None:
    """What leaves is whole: nothing on its way has less room than the switch."""
    lengths = (65_000, 65_664, 65_665, MAX_FRAME_BYTES, MAX_FRAME_BYTES + 1, 70_000)
    frames = [b"", *(frame(2, bytes(length - len(frame(2)))) for length in lengths), frame(2)]
    taken = [[(2, each)] if 0 < len(each) <= MAX_FRAME_BYTES else [] for each in frames]
    assert plane.client.window([(1, each) for each in frames]) == taken
    assert plane.switch.drops() == {"too_long": 2}


def test_what_the_controller_sends_has_no_id(plane: Plane) -> None:
    """And is lost while nobody takes packets, as nobody's later."""
    out = (3 << 7).to_bytes(2, "big") + frame(1)
    plane.io.send_packet_out(out)
    assert eventually(plane.io.idle)
    requests: Queue[bytes | None] = Queue()
    call = plane.calls(STREAM)(iter(requests.get, None), timeout=LONG_S)
    requests.put(packet(1, frame(2), number=(1 << 64) - 1))
    assert sent_by(call) == (2, frame(2), (1 << 64) - 1)
    plane.io.send_packet_out(out)
    port, _, number = sent_by(call)
    assert (port, number) == (3, 0)
    requests.put(None)
    assert list(call) == []


def test_a_client_that_takes_nothing_holds_up_itself(plane: Plane) -> None:
    """What waits for it is bounded, and gone with it."""
    given = 0

    def requests() -> Iterator[bytes]:
        nonlocal given
        while True:
            given += 1
            yield packet(1, frame(2, bytes(10_000)), number=given)

    call = plane.calls(STREAM)(requests(), timeout=LONG_S)
    assert eventually(lambda: plane.io.waiting() >= MOST_WAITING)
    # two batches of 64 can be between the check and the queue
    assert plane.io.waiting() <= MOST_WAITING + 2 * 64
    call.cancel()
    assert eventually(lambda: plane.io.waiting() == 0)
    assert eventually(lambda: _answers(plane))


def test_what_an_earlier_client_has_left_inside_has_no_id(plane: Plane) -> None:
    """It comes to the next one, as to a cable that was plugged in meanwhile."""
    plane.switch.port_config(2, delay_ns=400_000_000)
    first = plane.calls(STREAM)(iter([packet(1, frame(2), number=5)]), timeout=LONG_S)
    assert eventually(lambda: plane.switch.port_stats(2).tx_packets == 1)
    first.cancel()
    requests: Queue[bytes | None] = Queue()

    def taken() -> bool:
        nonlocal second
        second = plane.calls(STREAM)(iter(requests.get, None), timeout=LONG_S)
        requests.put(packet(1, frame(3), number=6))
        try:
            return sent_by(second) == (3, frame(3), 6)
        except grpc.RpcError:
            return False  # the first one is not gone yet

    second: Any = None
    assert eventually(taken)
    assert sent_by(second) == (2, frame(2), 0)
    requests.put(None)
    assert list(second) == []


def _answers(plane: Plane) -> bool:
    """Whether a new client gets its own, and nothing else; False: the one before is not gone yet."""
    try:
        answers = plane.client.window([(1, frame(6))])
    except DataplaneError as error:
        assert "another client" in str(error)
        return False
    assert answers == [[(6, frame(6))]]
    return True


def test_the_option(tmp_path: Path) -> None:
    """Rates are those of all ports; interfaces are not opened, as with BMv2, and a warning says so."""
    address = f"127.0.0.1:{free_port()}"
    command = [*COMMAND, str(BUILD / "packet_io.json"), "-i", "1@nowhere", "--device-id", "7"]
    command += ["--", "--grpc-server-addr", f"127.0.0.1:{free_port()}", "--dp-grpc-server-addr", address]
    command += [
        "--port-rate",
        "100kbps",
        "--statistics",
        str(tmp_path / "counts.json"),
        "--pfc",
        "0:xoff=2KB,xon=1KB,headroom=18KB",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Server listening on")
            client = Dataplane(address, DEVICE_ID, LONG_S)
            begin = time.monotonic()
            assert client.window([(1, frame(2, bytes(1236)))] * 10) == [[(2, frame(2, bytes(1236)))]] * 10
            assert time.monotonic() - begin > 0.8  # nine wait, each for 100 ms more
            client.close()
        finally:
            process.terminate()
            _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0
    assert err.splitlines() == [
        "tailrace_switch_grpc: warning: --interface is ignored: with --dp-grpc-server-addr ports have no "
        "interfaces, as with BMv2"
    ]
    counts = json.loads((tmp_path / "counts.json").read_text())
    first, second = counts["ports"].pop("1"), counts["ports"].pop("2")
    assert (first["rx_packets"], second["tx_packets"]) == (10, 10)
    assert first["pfc"]["0"]["xoff_sent"] > 0
    assert counts["ports"] == {}


def test_a_program_and_its_p4info_of_the_command_line() -> None:
    """P4Runtime serves them without a push; P4Info of another program ends the start in a line."""
    program, place = str(BUILD / "basic_l3.json"), f"127.0.0.1:{free_port()}"
    info = BUILD / "basic_l3.p4info.txtpb"
    grpc_words = ["--grpc-server-addr", place, "--dp-grpc-server-addr", f"127.0.0.1:{free_port()}"]
    command = [*COMMAND, program, "--p4info", str(info), *grpc_words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Server listening on")
            connection = GrpcConnection("s1", place, 0)
            with closing(connection):
                assert connection.p4info() == load_p4info(info)
                assert connection.read([p4r.Entity(table_entry=p4r.TableEntry())]) == []
        finally:
            process.terminate()
            _, err = process.communicate(timeout=LONG_S)
    assert (process.returncode, err) == (0, "")
    other = [*COMMAND, program, "--p4info", str(BUILD / "match_kinds.p4info.txtpb"), *grpc_words]
    done = subprocess.run(other, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "match_kinds.p4info.txtpb: P4Info does not match the program" in done.stderr
