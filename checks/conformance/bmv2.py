# SPDX-License-Identifier: Apache-2.0
"""A simple_switch_grpc process under test, on free loopback ports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from checks.conformance.p4rt import GrpcSwitch
from checks.conformance.packets import Packet
from checks.conformance.program import CompiledProgram, ConformanceError
from tailrace.bmv2.process import Bmv2Process
from tailrace.p4rt.errors import SwitchError
from tailrace.p4rt.messages import p4r

PRIORITY_QUEUES = 8
PROBE_BYTES = 64
QUEUE_DEPTH = 8192


class Bmv2(GrpcSwitch):
    """A context manager that runs the switch; its exit ends the process."""

    def __init__(self, program: CompiledProgram, log: Path) -> None:
        self.log = log.open("wb")
        self.process = Bmv2Process(self.log, priority_queues=PRIORITY_QUEUES)
        super().__init__(program, self.process.address, self.process.dataplane)

    def stop(self) -> None:
        super().stop()
        self.process.stop()
        self.log.close()

    def install(self, updates: Sequence[p4r.Update]) -> None:
        """Loads the program and writes the updates; value sets by Thrift, as BMv2 refuses them otherwise."""
        self.push()
        self.write([update for update in updates if not update.entity.HasField("value_set_entry")])
        value_sets = {info.preamble.id: info for info in self.program.p4info.value_sets}
        with self.process.thrift() as thrift:
            # Deep enough for all copies of a window (packets sent at once): no drop depends on timing.
            thrift.set_queue_depths(QUEUE_DEPTH)
            for entry in (u.entity.value_set_entry for u in updates if u.entity.HasField("value_set_entry")):
                info = value_sets[entry.value_set_id]
                for member in entry.members:
                    fields = zip(info.match, member.match, strict=True)
                    parts = [m.exact.value.rjust((f.bitwidth + 7) // 8, b"\0") for f, m in fields]
                    thrift.value_set_add(info.preamble.name, b"".join(parts))

    def registers(self) -> dict[str, list[int]]:
        """All registers of at most 63 bits, read by Thrift: BMv2's P4Runtime server refuses registers."""
        with self.process.thrift() as thrift:
            return {
                array["name"]: thrift.register_read_all(array["name"])
                for array in self.program.json["register_arrays"]
                if array["bitwidth"] <= 63
            }


def runs_on_bmv2(program: CompiledProgram, log: Path) -> bool:
    """Whether BMv2 accepts the program and survives a packet. BMv2 exits on JSON that it cannot read, or
    later when it needs something that the JSON lacks.
    """
    with Bmv2(program, log) as bmv2:
        try:
            bmv2.push()
            bmv2.window([Packet(0, bytes(PROBE_BYTES))])
        except (SwitchError, ConformanceError):
            return False
    return True
