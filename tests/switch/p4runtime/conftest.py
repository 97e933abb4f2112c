# SPDX-License-Identifier: Apache-2.0
"""A real gRPC server on a loopback port, with a real switch behind it and a clock that the test moves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from pathlib import Path
from queue import Empty, Queue
from typing import TypeVar

import grpc
import pytest
import tomli
from finsy.proto import p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format
from msgspec.structs import replace

from tailrace.p4rt.status import Code
from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import SentFrame, SwitchConfig, V1ModelSwitch
from tailrace.switch.p4runtime.context import DevicePorts
from tailrace.switch.p4runtime.device import Device, DeviceSettings
from tailrace.switch.p4runtime.server import Server

BUILD = Path(__file__).parents[2] / "programs" / "build"
CPU_PORT = 510
TIMEOUT_S = 60.0
"""Far longer than anything takes: only a hang runs into it."""

_T = TypeVar("_T")


@dataclass
class ManualPlane:
    """A data plane in the hands of the test: frames go in when the test says, the clock stands still."""

    switch: V1ModelSwitch
    clock_ns: int = 1_000_000_000
    sent: list[SentFrame] = field(default_factory=list)
    to_cpu: list[bytes] = field(default_factory=list)

    def now_ns(self) -> int:
        return self.clock_ns

    def send_packet_out(self, data: bytes) -> None:
        self.receive(CPU_PORT, data)

    def receive(self, port: int, data: bytes) -> None:
        """A frame arrives now, and everything that follows from it happens now."""
        self.switch.inject(port, data, self.clock_ns)
        self.switch.run(self.clock_ns)
        for output in self.switch.outputs():
            if output.port == CPU_PORT:
                self.to_cpu.append(output.data)
            else:
                self.sent.append(output)

    def take(self) -> list[tuple[int, bytes]]:
        """What has been sent on other ports than the CPU's since the last call."""
        sent, self.sent = self.sent, []
        return [(output.port, output.data) for output in sent]

    def packet_ins(self) -> list[bytes]:
        frames, self.to_cpu = self.to_cpu, []
        return frames


class Names:
    """Looks P4Info ids up by name."""

    def __init__(self, info: p4i.P4Info) -> None:
        self.info = info
        self._ids: dict[tuple[str, str], int] = {}
        kinds = ("tables", "actions", "action_profiles", "counters", "direct_counters", "meters")
        for kind in (*kinds, "direct_meters", "value_sets", "registers", "digests"):
            for entity in getattr(info, kind):
                for name in (entity.preamble.name, entity.preamble.alias):
                    self._ids[kind, name] = entity.preamble.id

    def id(self, kind: str, name: str) -> int:
        return self._ids[kind, name]

    def action(self, name: str, *values: int) -> p4r.Action:
        action = p4r.Action(action_id=self.id("actions", name))
        for number, value in enumerate(values, 1):
            size = max(1, (value.bit_length() + 7) // 8)
            action.params.add(param_id=number, value=value.to_bytes(size, "big"))
        return action


class Session:
    """One StreamChannel of a client."""

    def __init__(self, stub: p4r_grpc.P4RuntimeStub) -> None:
        self._requests: Queue[p4r.StreamMessageRequest | None] = Queue()
        self._received: Queue[p4r.StreamMessageResponse | grpc.RpcError | None] = Queue()
        self._call = stub.StreamChannel(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            for message in self._call:
                self._received.put(message)
            self._received.put(None)
        except grpc.RpcError as error:
            self._received.put(error)

    def send(self, message: p4r.StreamMessageRequest) -> None:
        self._requests.put(message)

    def arbitrate(self, election_id: int | None = 1, *, device_id: int = 1, role: str | None = None) -> None:
        message = p4r.StreamMessageRequest()
        message.arbitration.device_id = device_id
        if election_id is not None:
            message.arbitration.election_id.high = election_id >> 64
            message.arbitration.election_id.low = election_id & (1 << 64) - 1
        if role is not None:
            message.arbitration.role.name = role
        self.send(message)

    def next(self) -> p4r.StreamMessageResponse:
        got = self._received.get(timeout=TIMEOUT_S)
        assert isinstance(got, p4r.StreamMessageResponse), got
        return got

    def status(self) -> Code:
        """The code of the next message, which is an arbitration update."""
        message = self.next()
        assert message.HasField("arbitration"), message
        return Code(message.arbitration.status.code)

    def ended(self) -> tuple[grpc.StatusCode, str]:
        """How the stream ended; messages before that are skipped."""
        while True:
            got = self._received.get(timeout=TIMEOUT_S)
            if isinstance(got, grpc.RpcError):
                assert isinstance(got, grpc.Call)
                return got.code(), got.details() or ""
            if got is None:
                return grpc.StatusCode.OK, ""

    def nothing_waits(self) -> bool:
        try:
            self._received.get_nowait()
        except Empty:
            return True
        return False

    def close(self) -> None:
        self._requests.put(None)
        self._call.cancel()
        self._reader.join(TIMEOUT_S)


class Rig:
    """A server with its device, and a client; use its methods, they run in the right thread."""

    def __init__(self, program: SwitchProgram | None, settings: DeviceSettings, ports: DevicePorts) -> None:
        config = SwitchConfig(device_id=settings.device_id, cpu_port=CPU_PORT)
        self.switch = V1ModelSwitch(program, config)
        self.plane = ManualPlane(self.switch)
        self.device = Device(self.switch, settings, self.plane.now_ns, load_program, ports)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.server = self._run_coroutine()
        self.channel = grpc.insecure_channel(
            f"127.0.0.1:{self.port}",
            options=[
                ("grpc.max_receive_message_length", -1),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_metadata_size", 1 << 20),
            ],
        )
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self.sessions: list[Session] = []
        self.election_id: int | None = 1
        self.names = Names(p4i.P4Info())

    def _run_coroutine(self) -> Server:
        async def start() -> Server:
            server = Server(self.device, self.plane)
            self.port = await server.start("127.0.0.1:0")
            return server

        return asyncio.run_coroutine_threadsafe(start(), self._loop).result(TIMEOUT_S)

    def in_server(self, action: Callable[[], _T]) -> _T:
        """Runs `action` in the thread of the server, between two requests."""
        done: Future[_T] = Future()

        def run() -> None:
            try:
                done.set_result(action())
            except BaseException as error:  # the test is told
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result(TIMEOUT_S)

    def receive(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """A frame arrives; what the switch sends because of it. Events go to clients."""

        def run() -> list[tuple[int, bytes]]:
            self.plane.receive(port, data)
            self.server.service.deliver_events()
            return self.plane.take()

        return self.in_server(run)

    def advance(self, delay_ns: int) -> None:
        """Time passes, and timeouts are looked at."""

        def run() -> None:
            self.plane.clock_ns += delay_ns
            self.server.service.deliver_events()
            self.server.service.deliver_idle()

        self.in_server(run)

    def session(self) -> Session:
        session = Session(self.stub)
        self.sessions.append(session)
        return session

    def primary(self, election_id: int = 1) -> Session:
        session = self.session()
        session.arbitrate(election_id, device_id=self.device.settings.device_id)
        assert session.status() == Code.OK
        self.election_id = election_id
        return session

    def announced(self, election_id: int, expected: Code = Code.OK, *, role: str | None = None) -> Session:
        """A client that has announced itself, and the answer that it gets."""
        session = self.session()
        session.arbitrate(election_id, role=role)
        assert session.status() == expected
        return session

    def push(self, name: str, action: int = 3, cookie: int | None = None, build: Path = BUILD) -> p4i.P4Info:
        """Sets the pipeline of a test program, or of another folder's."""
        return self.set_pipeline(self.config_request(name, action, cookie, build))

    def set_pipeline(self, request: p4r.SetForwardingPipelineConfigRequest) -> p4i.P4Info:
        """Sends the request, from whose P4Info names are from now on."""
        self.stub.SetForwardingPipelineConfig(request, timeout=TIMEOUT_S)
        self.names = Names(request.config.p4info)
        return request.config.p4info

    def config_request(
        self, name: str, action: int = 3, cookie: int | None = None, build: Path = BUILD
    ) -> p4r.SetForwardingPipelineConfigRequest:
        request = p4r.SetForwardingPipelineConfigRequest(device_id=self.device.settings.device_id)
        request.action = p4r.SetForwardingPipelineConfigRequest.Action.ValueType(action)
        self._set_election(request.election_id)
        text_format.Parse((build / f"{name}.p4info.txtpb").read_text(), request.config.p4info)
        request.config.p4_device_config = (build / f"{name}.json").read_bytes()
        if cookie is not None:
            request.config.cookie.cookie = cookie
        return request

    def _set_election(self, message: p4r.Uint128) -> None:
        if self.election_id is not None:
            message.high, message.low = self.election_id >> 64, self.election_id & (1 << 64) - 1
            message.SetInParent()

    def write_request(self, *updates: p4r.Update, atomicity: int = 0, role: str = "") -> p4r.WriteRequest:
        request = p4r.WriteRequest(device_id=self.device.settings.device_id, role=role, updates=updates)
        request.atomicity = p4r.WriteRequest.Atomicity.ValueType(atomicity)
        self._set_election(request.election_id)
        return request

    def write(self, *updates: p4r.Update, atomicity: int = 0, role: str = "") -> list[Code]:
        """Sends one Write; the code of every update."""
        request = self.write_request(*updates, atomicity=atomicity, role=role)
        try:
            self.stub.Write(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            return [Code(detail.canonical_code) for detail in details_of(error)]
        return [Code.OK] * len(updates)

    def read(self, *requests: p4r.Entity) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=self.device.settings.device_id, entities=requests)
        return [
            entity for response in self.stub.Read(request, timeout=TIMEOUT_S) for entity in response.entities
        ]

    def close(self) -> None:
        for session in self.sessions:
            session.close()
        self.channel.close()
        asyncio.run_coroutine_threadsafe(self.server.stop(), self._loop).result(TIMEOUT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()
        self.device.close()
        self.switch.close()


def wildcard(kind: str) -> p4r.Entity:
    """A request for all that there is of a kind of entity, by its name in `p4r.Entity`, or of a part of it: `a.b`."""
    entity = p4r.Entity()
    attrgetter(kind)(entity).SetInParent()
    return entity


def everything_of(*kinds: str) -> list[p4r.Entity]:
    """Such a request for each kind."""
    return [wildcard(kind) for kind in kinds]


def status_of(error: grpc.RpcError) -> rpc_status.Status | None:
    """The status in the trailers of a failed call."""
    assert isinstance(error, grpc.Call)
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return rpc_status.Status.FromString(value if isinstance(value, bytes) else value.encode())
    return None


def details_of(error: grpc.RpcError) -> list[p4r.Error]:
    """The p4.v1.Error of each element of a batch, from the trailers of a failed call."""
    assert isinstance(error, grpc.Call)
    assert error.code() == grpc.StatusCode.UNKNOWN, (error.code(), error.details())
    status = status_of(error)
    assert status is not None, "the error has no details"
    details = [p4r.Error() for _ in status.details]
    assert all(packed.Unpack(detail) for packed, detail in zip(status.details, details, strict=True))
    return details


def code_of(call, *arguments) -> tuple[Code, str]:
    """How a call is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, timeout=60)
    assert isinstance(caught.value, grpc.Call)
    return Code(caught.value.code().value[0]), caught.value.details() or ""


def refusal(rig: Rig, *updates: p4r.Update, atomicity: int = 0, role: str = "") -> tuple[Code, str]:
    """Code and message, which is one line, of the first update of a Write that is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        rig.stub.Write(rig.write_request(*updates, atomicity=atomicity, role=role), timeout=TIMEOUT_S)
    detail = next(error for error in details_of(caught.value) if error.canonical_code)
    assert "\n" not in detail.message
    return Code(detail.canonical_code), detail.message


RigMaker = Callable[..., Rig]


@cache
def in_both_modes() -> set[str]:
    """The tests of all requirements that --bmv2-compat changes nothing of."""
    data = tomli.loads((Path(__file__).parent / "requirements.toml").read_text("utf-8"))
    rows = [row for section in data["sections"] for row in section["rows"]]
    return {test for row in rows if "compat" not in row for test in row["tests"]}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs them in both modes; each must go through a server."""
    name = f"{metafunc.definition.path.name}::{metafunc.function.__name__}"
    if name in in_both_modes():
        assert "make_rig" in metafunc.fixturenames, f"{name} shows a requirement, and has no rig"
        metafunc.parametrize("bmv2_compat", [False, True], ids=["default", "compat"], indirect=True)


@pytest.fixture
def bmv2_compat(request: pytest.FixtureRequest) -> bool:
    """Whether rigs are as with --bmv2-compat, even where a test does not ask for that."""
    return bool(getattr(request, "param", False))


@pytest.fixture
def make_rig(bmv2_compat: bool) -> Iterator[RigMaker]:
    """Makes rigs that are closed after the test; one for which `pushed` names a program has a primary as well."""
    rigs: list[Rig] = []

    def make(
        program: str | None = None,
        *,
        settings: DeviceSettings | None = None,
        ports: DevicePorts | None = None,
        pushed: str | None = None,
        build: Path = BUILD,
    ) -> Rig:
        loaded = None if program is None else load_program((BUILD / f"{program}.json").read_bytes())
        chosen = settings or DeviceSettings(device_id=1)
        if bmv2_compat:
            chosen = replace(chosen, bmv2_compat=True)
        rig = Rig(loaded, chosen, ports or DevicePorts())
        rigs.append(rig)
        if pushed is not None:
            rig.primary()
            rig.push(pushed, build=build)
        return rig

    yield make
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(make_rig: RigMaker) -> Rig:
    """A server whose primary has pushed the program `p4rt_all`."""
    return make_rig(pushed="p4rt_all")
