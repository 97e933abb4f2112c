# SPDX-License-Identifier: Apache-2.0
"""Packet rate of any compiled program with its entries and packets, on one core without sockets.

python -m checks.bench --program build/l3.json --entries entries.txtpb --packets packets.pcap

The P4Info lies beside the JSON as NAME.p4info.txtpb. Entries are a `p4.v1.WriteRequest` in protobuf's text
form; the P4Runtime server of the switch carries them out without a socket. All packets enter by one port,
repeated in order.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from checks.bench import library
from checks.bench.result import BenchError, BenchResult
from tailrace.codec.captures import CaptureError, packets_of
from tailrace.p4rt import programs, requests
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once  # runs a coroutine that never suspends
from tailrace.p4rt.entry_files import read_request
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program
from tailrace.spec.files import MOST_BYTES, read_bytes
from tailrace.switch.compiler import load_program
from tailrace.switch.core import SwitchConfig, V1ModelSwitch
from tailrace.switch.p4runtime.device import Device, DeviceSettings
from tailrace.switch.trace import dry_run_packet

GROUP = "program, one core"
GOAL_PACKETS_PER_S = 1e6
RUNS = 5
PACKETS = 1_000_000
TRACED = 1_000
"""Packets of a run with a trace of every step."""
MOST_FRAME_BYTES = 9216


@dataclass(frozen=True, slots=True)
class ProgramCase:
    """A program, its table entries, and the frames that enter it by `port`."""

    program: P4Program
    entries: p4r.WriteRequest
    frames: Sequence[bytes]
    port: int = 0

    @classmethod
    def read(cls, json: Path, entries: Path, packets: Path, port: int = 0) -> ProgramCase:
        """Reads the files of a case.

        Raises:
            OSError: a file cannot be read.
            P4ProgramError, ProgramError: the program or its P4Info is invalid.
            FileError, BenchError: another file is invalid.
        """
        program = programs.read(json)
        load_program(program.json, source=str(json))
        return cls(program, read_request(entries), read_frames(packets), port)


def read_frames(path: Path) -> list[bytes]:
    """The frames of a capture. Raises OSError, BenchError."""
    try:
        frames = list(packets_of(read_bytes(path, MOST_BYTES)))
    except CaptureError as error:
        raise BenchError(f"{path}: expected a capture (pcap): {error}") from None
    if not frames or any(not 0 < len(frame) <= MOST_FRAME_BYTES for frame in frames):
        raise BenchError(f"{path}: expected frames of 1 to {MOST_FRAME_BYTES} bytes")
    return frames


def configure(switch: V1ModelSwitch, case: ProgramCase) -> tuple[float, float]:
    """Loads the program and the entries into a switch; returns the seconds that each took.

    Raises:
        BenchError: an entry was refused.
        P4RtError: the program, or the whole request, was refused.
    """
    # bmv2_compat: like simple_switch_grpc, writes need no primary controller
    # the clock (lambda: 0) stands still
    device = Device(switch, DeviceSettings(bmv2_compat=True), lambda: 0, load_program)
    began_s = time.perf_counter()
    push = requests.push_request(case.program)
    device.configure(push.action, device.prepare(push))  # prepare: verifies and compiles
    loaded_s = time.perf_counter()
    request = p4r.WriteRequest(device_id=device.settings.device_id, updates=case.entries.updates)
    results = device.write(request)
    for number, result in enumerate(results, start=1):
        if result is not None:
            raise BenchError(f"entry {number} of {len(results)}: {result.code.name}: {result.message}")
    return loaded_s - began_s, time.perf_counter() - loaded_s


def load(connection: GrpcConnection, case: ProgramCase) -> None:
    """Loads a case's program and entries into a switch, as its primary controller. Raises SwitchError."""
    run_at_once(connection.client.push(case.program))
    connection.write(case.entries.updates)


@contextmanager
def one_core() -> Iterator[None]:
    """Keeps this thread on one of its permitted cores, so that it never migrates during a run."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


class InjectionLoop:
    """Sends the frames of a case into its port, repeated in order, and discards the output."""

    def __init__(self, switch: V1ModelSwitch, case: ProgramCase) -> None:
        self._run = library.load("loop.c").tr_bench_loop
        self._switch, self._port = switch, case.port
        self._data = b"".join(case.frames)
        self._lens = library.ffi.new("uint32_t[]", [len(frame) for frame in case.frames])
        self._now_ps, self._n_out = library.ffi.new("uint64_t *"), library.ffi.new("uint64_t *")

    def send(self, count: int) -> tuple[float, float]:
        """Sends `count` packets; returns packets per second of CPU time, and the share that came out.

        Raises:
            BenchError: the switch refused a frame.
        """
        frames = (self._data, self._lens, len(self._lens))
        took_ns = int(self._run(self._switch.handle, self._port, *frames, count, self._now_ps, self._n_out))
        if took_ns < 0:
            raise BenchError(f"the switch refused a frame (error {took_ns})")
        return count * 1e9 / max(took_ns, 1), self._n_out[0] / count


def packet_rates(switch: V1ModelSwitch, case: ProgramCase, packets: int) -> tuple[tuple[float, ...], float]:
    """Packets/s of RUNS runs, after a run that warms up caches and the packet pool; and the share of packets
    that came out.
    """
    loop = InjectionLoop(switch, case)
    with one_core():
        loop.send(packets)
        runs = [loop.send(packets) for _ in range(RUNS)]
    return tuple(rate for rate, _ in runs), statistics.mean(share for _, share in runs)


def traced_rate(switch: V1ModelSwitch, case: ProgramCase, packets: int) -> float:
    """Packets per second of this thread's CPU time, sent one by one with a trace of every step."""
    dry_run_packet(switch, case.port, case.frames[0])  # compiles the tracing build
    began_ns = time.thread_time_ns()
    for number in range(packets):
        dry_run_packet(switch, case.port, case.frames[number % len(case.frames)])
    return packets * 1e9 / max(time.thread_time_ns() - began_ns, 1)


def run(quick: bool, case: ProgramCase) -> list[BenchResult]:
    """Set-up times, and packets per second without and with a trace of each packet."""
    with V1ModelSwitch(None, SwitchConfig()) as switch:
        load_s, write_s = configure(switch, case)
        rates, share = packet_rates(switch, case, 10_000 if quick else PACKETS)
        with one_core():
            traced_rates = tuple(traced_rate(switch, case, 20 if quick else TRACED) for _ in range(RUNS))
    name, entries = case.program.name, len(case.entries.updates)
    note = f"{len(case.frames):,} frames in turn, {share:.0%} of packets came out"
    return [
        BenchResult(GROUP, f"{name}: load", load_s, "s"),
        BenchResult(GROUP, f"{name}: write {entries:,} entries", write_s, "s"),
        BenchResult(
            GROUP,
            name,
            statistics.median(rates),
            "packets/s",
            GOAL_PACKETS_PER_S,
            note=note,
            runs=rates,
        ),
        BenchResult(
            GROUP, f"{name}: traced", statistics.median(traced_rates), "packets/s", runs=traced_rates
        ),
    ]
