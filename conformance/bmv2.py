# SPDX-License-Identifier: Apache-2.0
"""One simple_switch_grpc process on loopback ports of its own, with a program and a plan in it."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

from conformance.dataplane import Dataplane
from conformance.p4rt import Client
from conformance.plan import Plan
from conformance.program import CompiledProgram
from tailrace.bmv2.thrift import ThriftClient

EXECUTABLE = "simple_switch_grpc"
DEVICE_ID = 1
PRIORITY_QUEUES = 8
STOP_S = 10.0
QUEUE_DEPTH = 8192


def available() -> bool:
    """Whether simple_switch_grpc is on PATH."""
    return shutil.which(EXECUTABLE) is not None


def free_ports(count: int) -> list[int]:
    """TCP ports on loopback that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Bmv2:
    """A context that runs the switch; leaving it ends the process by its handle."""

    def __init__(self, program: CompiledProgram, log: Path) -> None:
        self.program = program
        p4rt, dataplane, thrift = free_ports(3)
        self.log = log.open("wb")
        command = [EXECUTABLE, "--device-id", str(DEVICE_ID), "--thrift-port", str(thrift), "--no-p4", "--"]
        command += [
            "--grpc-server-addr",
            f"127.0.0.1:{p4rt}",
            "--dp-grpc-server-addr",
            f"127.0.0.1:{dataplane}",
        ]
        command += ["--priority-queues", str(PRIORITY_QUEUES)]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        self.client = Client(f"127.0.0.1:{p4rt}", program, DEVICE_ID)
        self.dataplane = Dataplane(f"127.0.0.1:{dataplane}", DEVICE_ID)
        self.thrift_port = thrift

    def __enter__(self) -> Bmv2:
        try:
            self.client.become_primary()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.client.__exit__()
        self.dataplane.close()
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def install(self, plan: Plan) -> None:
        """Load the program anew and write the plan; what BMv2's P4Runtime server refuses goes by Thrift."""
        self.client.set_pipeline()
        self.client.install(plan)
        with ThriftClient(self.thrift_port) as thrift:
            # Deep enough for every copy of a whole window, so that nothing is lost to timing.
            thrift.set_queue_depths(QUEUE_DEPTH)
            for name, values in plan.value_sets.items():
                width = next(
                    v["compressed_bitwidth"] for v in self.program.json["parse_vsets"] if v["name"] == name
                )
                for value in values:
                    thrift.value_set_add(name, value.to_bytes((width + 7) // 8, "big"))

    def registers(self) -> dict[str, list[int]]:
        """All registers of at most 64 bits, read by Thrift: BMv2's P4Runtime server refuses registers."""
        with ThriftClient(self.thrift_port) as thrift:
            return {
                array["name"]: thrift.register_read_all(array["name"])
                for array in self.program.json["register_arrays"]
                if array["bitwidth"] <= 63
            }
