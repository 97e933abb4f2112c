# SPDX-License-Identifier: Apache-2.0
"""P4Runtime of a switch of the virtual network, as calls: no socket, no thread, no waiting.

    endpoint = network.p4rt("leaf1")
    endpoint.set_pipeline(request)
    endpoint.write(p4r.WriteRequest(updates=[...]))
    endpoint.packet_out(p4r.PacketOut(...))
    endpoint.packet_ins()

Everything happens at the network's virtual time, at once. The endpoint is the primary client of its switch
with election id `ELECTION_ID`; requests that name no election id are taken to be its own.
`switch.p4runtime.server.Server(endpoint.device, endpoint.cpu)` serves the same switch over gRPC while the
network stands still.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, MutableMapping, Sequence

from finsy.proto import p4r

from tailrace.p4rt.requests import set_election
from tailrace.p4rt.status import Code, P4RtError
from tailrace.sim.network.errors import NetworkError
from tailrace.sim.network.switch_node import SwitchNode
from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.p4runtime.arbitration import ArbitrationClient
from tailrace.switch.p4runtime.context import DevicePorts
from tailrace.switch.p4runtime.device import Device, DeviceSettings
from tailrace.switch.p4runtime.pipeline import Prepared
from tailrace.switch.p4runtime.state import AnyUpdate, Result

ELECTION_ID = 1
_Request = p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest
PreparedCache = MutableMapping[bytes, Prepared]
"""Verified configurations by request: the switches of a network mostly run the same program."""


@functools.lru_cache(maxsize=64)
def compiled(text: bytes) -> SwitchProgram:
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
    """Frames through the CPU port: what switch.p4runtime.service.DataPlane asks for."""

    def __init__(self, node: SwitchNode, cpu_port: int | None, clock: Callable[[], int]) -> None:
        self.now_ns = clock
        self._node = node
        self._port = cpu_port

    def send_packet_out(self, data: bytes) -> None:
        """A frame enters through the CPU port now.

        Raises:
            NetworkError: there is no CPU port.
        """
        if self._port is None:
            raise NetworkError(f"{self._node.name}: there is no CPU port")
        self._node.receive(self._port, data)

    def packet_ins(self) -> list[bytes]:
        """Takes the frames that the switch sent to the CPU port, oldest first; of too many the newest."""
        return self._node.to_cpu()


class SwitchEndpoint:
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
        self._switch = node.switch
        self._ports = DevicePorts(ports | ({cpu_port} if cpu_port is not None else set()))
        self._clock = clock
        self._prepared = prepared
        self._client = ArbitrationClient()
        self._handed_over = False
        self.device = self._new_device()
        self._take_over()

    def _new_device(self) -> Device:
        settings = DeviceSettings(device_id=self.device_id)
        return Device(self._switch, settings, self._clock, compiled, self._ports)

    def restart(self) -> None:
        """The switch has lost everything: it has no pipeline until one is set again."""
        self.device.close()
        self._switch.load(None)
        self.device = self._new_device()
        self._client = ArbitrationClient()  # unknown to the device
        if not self._handed_over:
            self._take_over()

    def hand_over(self) -> None:
        """Leaves the switch to other clients for good; calls here that change something are refused then."""
        self._handed_over = True
        self.device.arbiter.disconnect(self._client)

    def _take_over(self) -> None:
        """Becomes the primary, with a higher election id than the last one."""
        highest = self.device.arbiter.highest()
        self._election_id = ELECTION_ID if highest is None else highest + 1
        update = p4r.MasterArbitrationUpdate(device_id=self.device_id)
        set_election(update.election_id, self._election_id)
        self.device.arbiter.update(self._client, update)

    @contextlib.contextmanager
    def stepped_aside(self) -> Iterator[None]:
        """Lets other clients be primary for a while, with any election id that `ELECTION_ID` allows."""
        self.device.arbiter.disconnect(self._client)
        try:
            yield
        finally:
            self._take_over()

    def _own(self, request: _Request) -> None:
        if not request.HasField("election_id"):
            request.device_id = self.device_id
            set_election(request.election_id, self._election_id)

    def write(self, request: p4r.WriteRequest, updates: Sequence[AnyUpdate] | None = None) -> None:
        """Carries out a Write.

        Args:
            updates: instead of those in the request, without a copy of them.

        Raises:
            BatchError: some of the updates failed.
            P4RtError: the whole request is refused.
        """
        mine = p4r.WriteRequest()
        mine.CopyFrom(request)
        self._own(mine)
        results = self.device.write(mine, updates)
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

    def digest_lists(self) -> list[p4r.DigestList]:
        """Takes the digest lists that are to be sent now; their time is when their first message was made."""
        return self.device.digest_lists(self._clock())

    def acknowledge(self, message: p4r.DigestListAck) -> None:
        """Handles a digest acknowledgement.

        Raises:
            P4RtError: there is no such digest, or no pipeline.
        """
        self.device.acknowledge(message)

    def packet_ins(self) -> list[p4r.PacketIn]:
        """Takes the packet-ins that wait, oldest first."""
        messages = (self.device.packet_in(frame) for frame in self.cpu.packet_ins())
        return [message for message in messages if message is not None]
