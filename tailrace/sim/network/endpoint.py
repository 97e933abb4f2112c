# SPDX-License-Identifier: Apache-2.0
"""P4Runtime of a switch of the virtual network, as direct calls: no socket, no thread, no waiting.

    endpoint = network.p4rt("leaf1")
    endpoint.set_pipeline(request)
    endpoint.write(p4r.WriteRequest(updates=[...]))
    endpoint.packet_out(p4r.PacketOut(...))
    endpoint.packet_ins()

Each call takes effect at once, at the network's current virtual time. The endpoint is the primary client of
its switch with election id `ELECTION_ID`; a request without an election id is sent with the endpoint's.
`switch.p4runtime.server.Server(endpoint.device, endpoint.cpu)` serves the same switch over gRPC while the
network does not run.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, MutableMapping, Sequence

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.requests import push_request, set_election
from tailrace.p4rt.status import Code, P4RtError
from tailrace.sim.network.core import Net
from tailrace.sim.network.errors import NetworkError
from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.core import V1ModelSwitch
from tailrace.switch.p4runtime.arbitration import ArbitrationClient
from tailrace.switch.p4runtime.context import DevicePorts
from tailrace.switch.p4runtime.device import Device, DeviceSettings
from tailrace.switch.p4runtime.pipeline import Prepared
from tailrace.switch.p4runtime.state import AnyUpdate, Result

ELECTION_ID = 1
_Request = p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest
PreparedCache = MutableMapping[bytes | P4Program, Prepared]
"""Verified pipeline configurations, by serialised request or program: most switches run the same program."""


@functools.lru_cache(maxsize=64)
def compiled(bmv2_json: bytes) -> SwitchProgram:
    """A program from its BMv2 JSON; cached, so a process compiles it once."""
    return load_program(bmv2_json, source="")


class BatchError(P4RtError):
    """A part of a Write or Read failed; `results` has the error of each update or entity, or None."""

    def __init__(self, what: str, results: list[Result]) -> None:
        failed = [(i, r) for i, r in enumerate(results) if r is not None]
        index, first = failed[0]
        super().__init__(
            Code.UNKNOWN,
            f"{what} failed: number {index + 1} of {len(results)}: {first.code.name}: {first.message}",
        )
        self.results = results


class CpuPort:
    """The CPU port of a switch; implements the protocol switch.p4runtime.service.DataPlane.

    on_packet_out: called after each packet-out; None: nothing is called.
    """

    def __init__(self, net: Net, name: str, node: int, port: int | None, clock: Callable[[], int]) -> None:
        """Args:
        name, node: the switch's name, and its index in the network.
        port: the number of the CPU port; None: there is none.
        clock: returns the virtual time in ns.
        """
        self.now_ns = clock
        self.port = port
        self.on_packet_out: Callable[[], object] | None = None
        self._net = net
        self._name = name
        self._node = node

    def send_packet_out(self, data: bytes) -> None:
        """A frame enters through the CPU port now.

        Raises:
            NetworkError: there is no CPU port, or the switch does not accept the frame.
        """
        if self.port is None:
            raise NetworkError(f"{self._name}: there is no CPU port")
        self._net.inject(self._node, self.port, data)
        if self.on_packet_out is not None:
            self.on_packet_out()

    def packet_ins(self) -> list[bytes]:
        """Removes and returns the frames sent to the CPU port, oldest first; at most the newest 65536."""
        return self._net.to_cpu(self._node)


class SwitchEndpoint:
    """P4Runtime of one switch. A call raises P4RtError where a server would return an error status."""

    def __init__(
        self,
        name: str,
        device_id: int,
        switch: V1ModelSwitch,
        cpu: CpuPort,
        ports: frozenset[int],
        prepared: PreparedCache,
    ) -> None:
        self.name = name
        self.device_id = device_id
        self.cpu = cpu
        self._switch = switch
        self._ports = DevicePorts(ports | ({cpu.port} if cpu.port is not None else set()))
        self._prepared = prepared
        self._client = ArbitrationClient()
        self._handed_over = False
        self.device = self._new_device()
        self._take_over()

    def _new_device(self) -> Device:
        settings = DeviceSettings(device_id=self.device_id)
        return Device(self._switch, settings, self.cpu.now_ns, compiled, self._ports)

    def restart(self) -> None:
        """The switch loses all its state: it has no pipeline until it is set again."""
        self.device.close()
        self._switch.load(None)
        self.device = self._new_device()
        self._client = ArbitrationClient()  # the old client belongs to the old device
        if not self._handed_over:
            self._take_over()

    def hand_over(self) -> None:
        """Gives up the primary role for good; later calls here that change the switch are refused."""
        self._handed_over = True
        self.device.arbiter.disconnect(self._client)

    def _take_over(self) -> None:
        """Becomes the primary client, with an election id higher than any client's."""
        highest = self.device.arbiter.highest()
        self._election_id = ELECTION_ID if highest is None else highest + 1
        update = p4r.MasterArbitrationUpdate(device_id=self.device_id)
        set_election(update.election_id, self._election_id)
        self.device.arbiter.update(self._client, update)

    @contextlib.contextmanager
    def stepped_aside(self) -> Iterator[None]:
        """Within the block other clients may become primary, with any election id; its end resets
        `on_packet_out` of the CPU port.
        """
        self.device.arbiter.disconnect(self._client)
        try:
            yield
        finally:
            self.cpu.on_packet_out = None
            self._take_over()

    def _set_election(self, request: _Request) -> None:
        if not request.HasField("election_id"):
            request.device_id = self.device_id
            set_election(request.election_id, self._election_id)

    def write(self, request: p4r.WriteRequest, updates: Sequence[AnyUpdate] | None = None) -> None:
        """Carries out a Write.

        Args:
            updates: used instead of those in the request, without being copied.

        Raises:
            BatchError: some of the updates failed.
            P4RtError: the whole request is refused.
        """
        copy = p4r.WriteRequest()
        copy.CopyFrom(request)
        self._set_election(copy)
        results = self.device.write(copy, updates)
        if any(result is not None for result in results):
            raise BatchError("write", results)

    def read(self, request: p4r.ReadRequest) -> Iterator[p4r.ReadResponse]:
        """Carries out a Read and returns its responses, all of which describe the state at the call.

        Raises:
            BatchError: some of the requests failed.
            P4RtError: the whole request is refused.
        """
        copy = p4r.ReadRequest(device_id=self.device_id, entities=request.entities)
        responses, results = self.device.read(copy)
        if any(result is not None for result in results):
            raise BatchError("read", results)
        return iter(responses)

    def set_pipeline(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        """Carries out a SetForwardingPipelineConfig; a program is compiled once for the whole network.

        Raises:
            P4RtError: the configuration cannot be realised.
        """
        copy = p4r.SetForwardingPipelineConfigRequest()
        copy.CopyFrom(request)
        self._set_election(copy)
        self.device.authorize(copy)
        prepared: Prepared | None
        if copy.HasField("config"):
            key = bytes([copy.action]) + copy.config.SerializeToString()
            prepared = self._prepared.get(key) or self.device.prepare(copy)
            if prepared is not None:
                self._prepared[key] = prepared
        else:
            prepared = self.device.prepare(copy)  # None: COMMIT, the configuration was saved earlier
        self.device.configure(copy.action, prepared)

    def push(self, program: P4Program) -> None:
        """Carries out the SetForwardingPipelineConfig of a program, which is made once for the whole network.

        Raises:
            P4RtError: the program is refused.
        """
        request = p4r.SetForwardingPipelineConfigRequest()
        self._set_election(request)
        self.device.authorize(request)
        prepared = self._prepared.get(program) or self.device.prepare(push_request(program))
        assert prepared is not None
        self._prepared[program] = prepared
        self.device.configure(p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, prepared)

    def pipeline(
        self, response_type: int = p4r.GetForwardingPipelineConfigRequest.ALL
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Answers a GetForwardingPipelineConfig."""
        return p4r.GetForwardingPipelineConfigResponse.FromString(self.device.config_response(response_type))

    def packet_out(self, message: p4r.PacketOut) -> None:
        """Sends a packet-out; all that it causes at the current virtual time has happened on return.

        Raises:
            P4RtError: the message does not match the P4Info, or there is no CPU port or no pipeline.
        """
        self.cpu.send_packet_out(self.device.packet_out(message))

    def digest_lists(self) -> list[p4r.DigestList]:
        """Removes and returns the digest lists that are due; a list has the time of its first entry."""
        return self.device.digest_lists(self.cpu.now_ns())

    def acknowledge(self, message: p4r.DigestListAck) -> None:
        """Handles a digest acknowledgement.

        Raises:
            P4RtError: there is no such digest, or no pipeline.
        """
        self.device.acknowledge(message)

    def packet_ins(self) -> list[p4r.PacketIn]:
        """Removes and returns the pending packet-ins, oldest first."""
        messages = (self.device.packet_in(frame) for frame in self.cpu.packet_ins())
        return [message for message in messages if message is not None]
