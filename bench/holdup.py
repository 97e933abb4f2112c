# SPDX-License-Identifier: Apache-2.0
"""How long one client's request holds another client up, and how long the switch takes to end meanwhile.

A running switch without ports, in a process of its own; one client asks for much, another asks again and
again for little and notes how long that takes at most.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc
from google.protobuf import text_format

from bench.client import DEVICE_ID, ELECTION_ID, RunningSwitch, running_process
from bench.result import Result

_BUILD = Path(__file__).parents[1] / "tests" / "programs" / "build"
_PROGRAM = "p4rt_all"
_SIZES = {"AllIngress.words": 2_000_000, "AllIngress.by_port": 1024, "AllIngress.mac": 1_000_000}
_QUICK_SIZES = {"AllIngress.words": 20_000, "AllIngress.by_port": 64, "AllIngress.mac": 10_000}
GROUP = "longest wait of another client"
GOAL_MS = 100.0
GOAL_STOP_S = 1.0
_PROBE_TIMEOUT_S = 120.0
_PROBE_PAUSE_S = 0.002
_MS = 1000.0


def config(sizes: dict[str, int]) -> p4r.ForwardingPipelineConfig:
    """The test program with arrays and tables of other sizes, by name."""
    program = json.loads((_BUILD / f"{_PROGRAM}.json").read_bytes())
    for array in (*program["register_arrays"], *program["counter_arrays"]):
        array["size"] = sizes.get(array["name"], array.get("size"))
    tables = {t["name"]: t for p in program["pipelines"] for t in p["tables"]}
    for array in program["meter_arrays"]:
        array["size"] = sizes.get(array.get("binding"), array["size"])
    made = p4r.ForwardingPipelineConfig()
    text_format.Parse((_BUILD / f"{_PROGRAM}.p4info.txtpb").read_text("utf-8"), made.p4info)
    for register in made.p4info.registers:
        register.size = sizes.get(register.preamble.name, register.size)
    for counter in made.p4info.counters:
        counter.size = sizes.get(counter.preamble.name, counter.size)
    for table in made.p4info.tables:
        name = table.preamble.name
        if name in sizes:
            table.size = tables[name]["max_size"] = sizes[name]
    made.p4_device_config = json.dumps(program).encode()
    return made


class Primary:
    """The primary client of a switch, and what it can ask for."""

    def __init__(self, address: str, sizes: dict[str, int]) -> None:
        self.address = address
        self.sizes = sizes
        self.config = config(sizes)
        info = self.config.p4info
        self._ids = {e.preamble.name: e.preamble.id for e in info.tables}
        self._ids |= {e.preamble.name: e.preamble.id for e in info.registers}
        self._ids |= {e.preamble.name: e.preamble.id for e in info.actions}
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.insecure_channel(address, options=options)
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self._sent: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._stream = self.stub.StreamChannel(iter(self._sent.get, None))
        self.arbitrate()
        next(iter(self._stream))

    def arbitrate(self) -> None:
        """Sends an arbitration, and does not wait for its answer."""
        request = p4r.StreamMessageRequest()
        request.arbitration.device_id = DEVICE_ID
        request.arbitration.election_id.low = ELECTION_ID
        self._sent.put(request)

    def close(self) -> None:
        """Ends the session."""
        self._sent.put(None)
        self.channel.close()

    def id(self, name: str) -> int:
        """The P4Info id of a table, register or counter."""
        return self._ids[name]

    def push(self) -> None:
        """Sets the pipeline."""
        request = p4r.SetForwardingPipelineConfigRequest(device_id=DEVICE_ID, config=self.config)
        request.election_id.low = ELECTION_ID
        request.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        self.stub.SetForwardingPipelineConfig(request)

    def reconcile(self) -> None:
        """Sets the same pipeline, keeping all state."""
        request = p4r.SetForwardingPipelineConfigRequest(device_id=DEVICE_ID, config=self.config)
        request.election_id.low = ELECTION_ID
        request.action = p4r.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT
        self.stub.SetForwardingPipelineConfig(request)

    def insert(self, first: int, count: int, atomicity: int = 0) -> None:
        """Adds entries in one Write."""
        self._write(p4r.Update.INSERT, first, count, atomicity)

    def _write(self, kind: int, first: int, count: int, atomicity: int) -> None:
        request = p4r.WriteRequest(device_id=DEVICE_ID)
        request.election_id.low = ELECTION_ID
        request.atomicity = p4r.WriteRequest.Atomicity.ValueType(atomicity)
        table, action = self.id("AllIngress.mac"), self.id("AllIngress.forward")
        for number in range(first, first + count):
            update = request.updates.add()
            update.type = p4r.Update.Type.ValueType(kind)
            entry = update.entity.table_entry
            entry.table_id = table
            match = entry.match.add()
            match.field_id = 1
            match.exact.value = number.to_bytes(6, "big").lstrip(b"\0") or b"\0"
            entry.action.action.action_id = action
            param = entry.action.action.params.add()
            param.param_id, param.value = 1, b"\1"
        self.stub.Write(request)

    def read(self, *entities: p4r.Entity, take: bool = True) -> None:
        """Reads, and takes the answers or leaves them where they are."""
        request = p4r.ReadRequest(device_id=DEVICE_ID, entities=entities)
        call = self.stub.Read(request)
        try:
            for _ in call:
                if not take:
                    return
        except grpc.RpcError as error:
            refused: Any = error  # a Call, too
            if refused.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise

    def fill(self, register: str) -> None:
        """Writes all cells of a register."""
        request = p4r.WriteRequest(device_id=DEVICE_ID)
        request.election_id.low = ELECTION_ID
        entry = request.updates.add(type=p4r.Update.MODIFY).entity.register_entry
        entry.register_id = self.id(register)
        entry.data.bitstring = b"\7"
        self.stub.Write(request)


class Probe:
    """A client in a process of its own that asks for the cookie again and again."""

    def __init__(self, address: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.holdup", address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.worst_ms()

    def worst_ms(self) -> float:
        """The longest that an answer has taken since the last call."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.wait()


def probe(address: str) -> None:
    """The process of Probe: at every line of input the longest time in ms so far, and from anew."""
    stub = p4r_grpc.P4RuntimeStub(grpc.insecure_channel(address))
    request = p4r.GetForwardingPipelineConfigRequest(device_id=DEVICE_ID)
    request.response_type = p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY
    worst = 0.0
    asked = threading.Semaphore(0)

    def listen() -> None:
        for _ in sys.stdin:
            asked.release()

    threading.Thread(target=listen, daemon=True).start()
    while True:
        begin = time.perf_counter()
        stub.GetForwardingPipelineConfig(request, timeout=_PROBE_TIMEOUT_S)
        worst = max(worst, time.perf_counter() - begin)
        if asked.acquire(blocking=False):
            print(worst * _MS, flush=True)
            worst = 0.0
        time.sleep(_PROBE_PAUSE_S)


def _counter() -> p4r.Entity:
    entity = p4r.Entity()
    entity.counter_entry.SetInParent()
    return entity


def _table() -> p4r.Entity:
    entity = p4r.Entity()
    entity.table_entry.SetInParent()
    return entity


def _register() -> p4r.Entity:
    entity = p4r.Entity()
    entity.register_entry.SetInParent()
    return entity


def _requests(primary: Primary, entries: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is asked for, in this order: each of them once brought a switch to a stop."""
    yield "program of a new kind", primary.push
    yield f"Write of {entries:,} inserts", lambda: primary.insert(0, entries)
    yield "Read of 5,000 empty counter entries", lambda: primary.read(*[_counter()] * 5000)
    yield "Read of all entries", lambda: primary.read(_table())
    yield "Read of all registers", lambda: primary.read(_register())
    yield "Read of all registers, not taken", lambda: primary.read(_register(), take=False)
    yield "Write of all cells of a register", lambda: primary.fill("AllIngress.words")
    yield "RECONCILE_AND_COMMIT", primary.reconcile
    yield "VERIFY_AND_COMMIT", primary.push


def _stop_s(switch: RunningSwitch, primary: Primary) -> float:
    """Seconds that the switch takes to end while it reads for somebody."""
    call = primary.stub.Read(p4r.ReadRequest(device_id=DEVICE_ID, entities=[_register()]))
    next(iter(call))
    begin = time.perf_counter()
    switch.process.send_signal(signal.SIGTERM)
    switch.process.wait(_PROBE_TIMEOUT_S)
    return time.perf_counter() - begin


def _peak_mib(switch: RunningSwitch) -> float:
    status = Path(f"/proc/{switch.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def run(quick: bool) -> list[Result]:
    """The longest wait of another client during each of the requests, and the time to end."""
    sizes, entries = (_QUICK_SIZES, 1000) if quick else (_SIZES, 100_000)
    results: list[Result] = []
    with running_process() as switch:
        watcher = Probe(switch.address)
        primary = Primary(switch.address, sizes)
        try:
            for name, ask in _requests(primary, entries):
                watcher.worst_ms()
                begin = time.perf_counter()
                ask()
                took_s = time.perf_counter() - begin
                note = f"took {took_s:.2f} s, peak {_peak_mib(switch):,.0f} MiB"
                results.append(
                    Result(GROUP, name, watcher.worst_ms(), "ms", goal=GOAL_MS, better="less", note=note)
                )
        finally:
            watcher.close()
        name = "end at SIGTERM, during a Read"
        results.append(Result(GROUP, name, _stop_s(switch, primary), "s", goal=GOAL_STOP_S, better="less"))
        primary.close()
    return results


if __name__ == "__main__":
    probe(sys.argv[1])
