# SPDX-License-Identifier: Apache-2.0
"""A simple_switch_grpc process on free loopback ports, with a program and a plan installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from checks.conformance.p4rt import PrimaryClient
from checks.conformance.packets import Packet
from checks.conformance.plan import ControlPlan
from checks.conformance.program import CompiledProgram, ConformanceError
from checks.conformance.served import Served
from tailrace.bmv2.dataplane import Dataplane, DataplaneError, Outputs
from tailrace.bmv2.process import DEVICE_ID, Bmv2Process
from tailrace.p4rt.errors import SwitchError

PRIORITY_QUEUES = 8
PROBE_BYTES = 64
LONE_S = 10.0
"""For one packet: some programs send it round for ever."""
QUEUE_DEPTH = 8192


class Bmv2(Served):
    """A context that runs the switch; leaving it ends the process by its handle."""

    def __init__(self, program: CompiledProgram, log: Path) -> None:
        self.program = program
        self.log = log.open("wb")
        self.process = Bmv2Process(self.log, priority_queues=PRIORITY_QUEUES)
        self.client = PrimaryClient(self.process.address, program, DEVICE_ID)
        self.dataplane = Dataplane(self.process.dataplane, DEVICE_ID)

    def stop(self) -> None:
        self.dataplane.close()
        self.process.stop()
        self.log.close()

    def install(self, plan: ControlPlan) -> None:
        """Load the program anew and write the plan; what BMv2's P4Runtime server refuses goes by Thrift."""
        self.client.set_pipeline()
        self.client.install(plan)
        with self.process.thrift() as thrift:
            # Deep enough for every copy of a whole window, so that nothing is lost to timing.
            thrift.set_queue_depths(QUEUE_DEPTH)
            for name, values in plan.value_sets.items():
                width = next(
                    v["compressed_bitwidth"] for v in self.program.json["parse_vsets"] if v["name"] == name
                )
                for value in values:
                    thrift.value_set_add(name, value.to_bytes((width + 7) // 8, "big"))

    def window(self, packets: Sequence[Packet]) -> list[Outputs]:
        """What each packet causes, as (port, bytes) in the order of leaving."""
        return self._window(packets, None)

    def send(self, packet: Packet) -> Outputs:
        return self._window([packet], LONE_S)[0]

    def _window(self, packets: Sequence[Packet], timeout_s: float | None) -> list[Outputs]:
        try:
            return self.dataplane.window([(packet.port, packet.data) for packet in packets], timeout_s)
        except DataplaneError as error:
            raise ConformanceError(str(error)) from error

    def registers(self) -> dict[str, list[int]]:
        """All registers of at most 64 bits, read by Thrift: BMv2's P4Runtime server refuses registers."""
        with self.process.thrift() as thrift:
            return {
                array["name"]: thrift.register_read_all(array["name"])
                for array in self.program.json["register_arrays"]
                if array["bitwidth"] <= 63
            }


def runs(program: CompiledProgram, log: Path) -> bool:
    """Whether BMv2 takes the program and lives through a packet; it ends on JSON that it cannot read, or
    later on what it has not found in it.
    """
    with Bmv2(program, log) as bmv2:
        try:
            bmv2.client.set_pipeline()
            bmv2.send(Packet(0, bytes(PROBE_BYTES)))
        except (SwitchError, ConformanceError):
            return False
    return True
