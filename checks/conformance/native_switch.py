# SPDX-License-Identifier: Apache-2.0
"""The native switch under test, with its P4Runtime device in this process; packets enter one at a time."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from checks.conformance.bmv2 import PRIORITY_QUEUES
from checks.conformance.p4rt import Learned, SwitchUnderTest
from checks.conformance.packets import Packet
from checks.conformance.program import CompiledProgram, ConformanceError
from tailrace.bmv2.dataplane import Outputs
from tailrace.bmv2.process import DEVICE_ID
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import P4RtError
from tailrace.switch.compiler import load_program
from tailrace.switch.core import StateError, SwitchConfig, V1ModelSwitch
from tailrace.switch.p4runtime.device import Device, DeviceSettings

PACKET_SPACING_NS = 1_000_000
CONFIG = SwitchConfig(device_id=DEVICE_ID, priority_queues=PRIORITY_QUEUES)


class NativeSwitch(SwitchUnderTest):
    """One native switch with a program. Like BMv2's server, it accepts some requests that P4Runtime forbids.

    `now_ns` is its time, which stands still between packets; `learned` are the digests received so far.
    """

    def __init__(self, program: CompiledProgram, config: SwitchConfig = CONFIG) -> None:
        self.program = program
        # the same program comes with every push, and is compiled once
        compiled = functools.cache(functools.partial(load_program, source=program.name))
        self.model = compiled(program.json_bytes).model
        self.switch = V1ModelSwitch(None, config)
        settings = DeviceSettings(device_id=DEVICE_ID, bmv2_compat=True)
        # its P4Runtime device, with the clock of this object
        self.device = Device(self.switch, settings, lambda: self.now_ns, compiled)
        self.now_ns = 0
        self.learned: set[Learned] = set()

    def start(self) -> None:
        """Nothing to wait for: the switch is in this process."""

    def stop(self) -> None:
        self.device.close()
        self.switch.close()

    def push(self) -> None:
        request = self.request()
        try:
            self.device.configure(request.action, self.device.prepare(request))
        except P4RtError as error:
            raise ConformanceError(f"native switch: {error}") from error

    def write(self, updates: Sequence[p4r.Update]) -> None:
        results = self.device.write(p4r.WriteRequest(device_id=DEVICE_ID, updates=updates))
        for update, error in zip(updates, results, strict=True):
            if error is not None:
                raise self.refused(error, update)

    def read(self, pattern: p4r.Entity) -> list[p4r.Entity]:
        responses, results = self.device.read(p4r.ReadRequest(device_id=DEVICE_ID, entities=[pattern]))
        for error in results:
            if error is not None:
                raise ConformanceError(f"{self.program.name}: read was refused: {error}")
        return [entity for response in responses for entity in response.entities]

    def window(self, packets: Sequence[Packet]) -> list[Outputs]:
        """Sends a batch of packets one after the other; returns the outputs of each."""
        return [self._send(packet) for packet in packets]

    def _send(self, packet: Packet) -> Outputs:
        try:
            self.switch.inject(packet.port, packet.data, self.now_ns)
            self.now_ns += PACKET_SPACING_NS
            self.switch.run(self.now_ns - 1)  # all events before the next packet
        except StateError as error:
            raise ConformanceError(f"native switch: {error}") from error
        for record in self.switch.digests():
            self.learned.add((self.model.digests[record.digest].name, tuple(record.values)))
        return [(output.port, bytes(output.data)) for output in self.switch.outputs()]

    def registers(self) -> dict[str, list[int]]:
        """All cells of every register of at most 63 bits."""
        return {
            register.name: list(self.switch.register_read_all(register.index))
            for register in self.model.registers
            if register.bits <= 63
        }
