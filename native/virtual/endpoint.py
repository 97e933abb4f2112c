# SPDX-License-Identifier: Apache-2.0
"""P4Runtime of a switch of the virtual network, as calls: no socket, no thread, no waiting.

    endpoint = network.p4rt("leaf1")
    endpoint.set_pipeline(request)
    endpoint.write(p4r.WriteRequest(updates=[...]))
    endpoint.packet_out(p4r.PacketOut(...))
    endpoint.packet_ins()

Everything happens at the network's virtual time, at once. The endpoint is the primary client of its switch
with election id `ELECTION_ID`; requests that name no election id are taken to be its own.
`native.switchd.server.Server(endpoint.device, endpoint.cpu)` serves the same switch over gRPC while the
network stands still.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, MutableMapping

from finsy.proto import p4r

from native.compiler import Program, load_program
from native.switchd.p4rt.arbitration import Client
from native.switchd.p4rt.context import Ports
from native.switchd.p4rt.device import Device, Prepared, Settings
from native.switchd.p4rt.errors import Code, P4RtError
from native.switchd.p4rt.state import Result
from native.virtual.errors import NetworkError
from native.virtual.switch_node import SwitchNode

ELECTION_ID = 1
QUEUED_PACKET_INS = 65536
"""Packet-ins kept for nobody in particular; the oldest are dropped and counted."""

_Request = p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest
PreparedCache = MutableMapping[bytes, Prepared]
"""Verified configurations by request: the switches of a network mostly run the same program."""


@functools.lru_cache(maxsize=16)
def compiled(text: bytes) -> Program:
    """A program from its BMv2 JSON; read once in a process."""
    return load_program(text)


class BatchError(P4RtError):
    """Something in a Write or Read failed; `results` says what became of each update or request."""

    def __init__(self, what: str, results: list[Result]) -> None:
        failed = [(i, r) for i, r in enumerate(results) if r is not None]
        index, first = failed[0]
        super().__init__(
            Code.UNKNOWN,
            f"{what} failed: number {index + 1} of {len(results)}: {first.code.name}: {first.message}",
        )
        self.results = results


class CpuPort:
    """Frames through the CPU port: what native.switchd.p4rt.service.DataPlane asks for."""

    def __init__(self, node: SwitchNode, cpu_port: int | None, clock: Callable[[], int]) -> None:
        self.now_ns = clock
        self.dropped = 0
        self._node = node
        self._port = cpu_port
        self._waiting: list[bytes] = []
        node.to_cpu = self._take

    def _take(self, frame: bytes) -> None:
        if len(self._waiting) >= QUEUED_PACKET_INS:
            del self._waiting[0]
            self.dropped += 1
        self._waiting.append(frame)

    def send_packet_out(self, data: bytes) -> None:
        """A frame enters through the CPU port now.

        Raises:
            NetworkError: there is no CPU port.
        """
        if self._port is None:
            raise NetworkError(f"{self._node.name}: there is no CPU port")
        self._node.receive(self.now_ns(), self._port, data, 0)

    def packet_ins(self) -> list[bytes]:
        """Takes the frames that the switch sent to the CPU port, oldest first."""
        frames, self._waiting = self._waiting, []
        return frames


class Endpoint:
    """P4Runtime of one switch. All calls raise P4RtError where a server would answer with an error."""

    def __init__(
        self,
        node: SwitchNode,
        *,
        device_id: int,
        cpu_port: int | None,
        ports: frozenset[int],
        clock: Callable[[], int],
        prepared: PreparedCache,
    ) -> None:
        self.name = node.name
        self.device_id = device_id
        self.cpu = CpuPort(node, cpu_port, clock)
        self.device = Device(
            node.switch,
            Settings(device_id=device_id),
            clock,
            compiled,
            Ports(ports | ({cpu_port} if cpu_port is not None else set())),
        )
        self._prepared = prepared
        self._client = Client()
        update = p4r.MasterArbitrationUpdate(device_id=device_id)
        update.election_id.low = ELECTION_ID
        self.device.arbiter.update(self._client, update)

    def _own(self, request: _Request) -> None:
        if not request.HasField("election_id"):
            request.device_id = self.device_id
            request.election_id.low = ELECTION_ID

    def write(self, request: p4r.WriteRequest) -> None:
        """Carries out a Write.

        Raises:
            BatchError: some of the updates failed.
            P4RtError: the whole request is refused.
        """
        mine = p4r.WriteRequest()
        mine.CopyFrom(request)
        self._own(mine)
        results = self.device.write(mine)
        if any(result is not None for result in results):
            raise BatchError("write", results)

    def read(self, request: p4r.ReadRequest) -> Iterator[p4r.ReadResponse]:
        """Carries out a Read: the responses, all made before the first is handed out.

        Raises:
            BatchError: some of the requests failed.
            P4RtError: the whole request is refused.
        """
        mine = p4r.ReadRequest(device_id=self.device_id, entities=request.entities)
        responses, results = self.device.read(mine)
        if any(result is not None for result in results):
            raise BatchError("read", results)
        return iter(responses)

    def set_pipeline(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        """Carries out a SetForwardingPipelineConfig; a program is compiled once for the whole network.

        Raises:
            P4RtError: the configuration cannot be realised.
        """
        mine = p4r.SetForwardingPipelineConfigRequest()
        mine.CopyFrom(request)
        self._own(mine)
        self.device.authorize(mine)
        prepared: Prepared | None
        if mine.HasField("config"):
            key = bytes([mine.action]) + mine.config.SerializeToString()
            prepared = self._prepared.get(key) or self.device.prepare(mine)
            if prepared is not None:
                self._prepared[key] = prepared
        else:
            prepared = self.device.prepare(mine)
        self.device.configure(mine.action, prepared)

    def pipeline(
        self, response_type: int = p4r.GetForwardingPipelineConfigRequest.ALL
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Answers a GetForwardingPipelineConfig."""
        return self.device.pipeline_config(response_type)

    def packet_out(self, message: p4r.PacketOut) -> None:
        """Sends a packet-out; what follows from it at this time has happened when the call returns.

        Raises:
            P4RtError: the message is not what P4Info asks for, or there is no CPU port or no pipeline.
        """
        self.cpu.send_packet_out(self.device.packet_out(message))

    def packet_ins(self) -> list[p4r.PacketIn]:
        """Takes the packet-ins that wait, oldest first."""
        messages = (self.device.packet_in(frame) for frame in self.cpu.packet_ins())
        return [message for message in messages if message is not None]
