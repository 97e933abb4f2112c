"""Closed-loop benchmark: simple_switch_grpc and the native switch side by side, over veth, in the same run.

W packets are kept in flight: each packet that comes out of the switch makes the generator send the next.
The packet rate is thus what the switch sustains without loss, and the latency is that of a packet through it.
Rounds of the targets alternate, so that other load on the machine affects all of them; the table shows
medians. "wire" is a bare veth pair without a switch, the generator's upper bound. "limit" is a thread in the
switch's place that returns each frame unchanged, the upper bound of any switch with these sockets. "bmv2-log"
is simple_switch_grpc with its log, which is discarded: the cost of writing it is measured.

The benchmark needs root. It runs in a separate process, which moves itself into a new network namespace; the
interfaces that it creates disappear with the namespace.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from checks.bench import library, program, routes, tables
from checks.bench.library import ffi
from checks.bench.noise import Round, alternating
from checks.bench.program import ProgramCase
from checks.bench.result import BenchError, BenchResult
from checks.bench.switch_process import running_switch
from checks.bench.virtual import in_fresh_process
from tailrace.bmv2.process import EXECUTABLE, MISSING
from tailrace.hosts.gaps.histogram import MOST_BINS, GapHistogram
from tailrace.spec.errors import Error

_CLONE_NEWNET, _PR_SET_PDEATHSIG = 0x40000000, 1
_ROUTES = 1000
_ROUNDS = 3
WIRE, LIMIT, BMV2, BMV2_LOG, NATIVE = "wire", "limit", "bmv2", "bmv2-log", "native"
GOALS = (
    (LIMIT, "packets_per_s", 0.7),
    (BMV2, "packets_per_s", 3.0),
    (BMV2, "p50_ns", 1.0),
    (BMV2, "p99_ns", 1.0),
)
"""What the native switch should reach, as a multiple of another target's figure: the rate at least, latencies
at most.
"""
_PORTS = ("-i", "0@p0", "-i", "1@p1")
_HEADER_BYTES, _STAMP_BYTES = routes.MIN_FRAME_BYTES, 16
"""Headers that the caller makes, and the generator's payload: run and time of sending (closed_loop.c)."""


Files = tuple[Path, Path, Path]
"""Program, entries and packets of a user, as `ProgramCase.read` takes them."""


@dataclass(frozen=True, slots=True)
class LoadCase:
    """One load: frame length without check sequence, flows used in turn, packets in flight."""

    frame_bytes: int
    flows: int
    window: int


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """Figures of one target under one load."""

    packets_per_s: float
    p50_ns: float
    p99_ns: float
    lost: float


def headers(flows: int, frame_bytes: int) -> bytes:
    """Ethernet, IPv4 and UDP headers of different flows to _ROUTES routes, 42 bytes per flow."""
    return b"".join(routes.frame(flow, frame_bytes, _ROUTES)[:_HEADER_BYTES] for flow in range(flows))


def headers_of(frames: Sequence[bytes], flows: int, frame_bytes: int) -> bytes:
    """The headers (first 42 bytes) of the user's frames, in place of `headers`.

    Raises:
        BenchError: a frame is too short.
    """
    if min(map(len, frames)) < frame_bytes:
        raise BenchError(f"a frame has {min(map(len, frames))} bytes; expected at least {frame_bytes}")
    return b"".join(frame[:_HEADER_BYTES] for frame in frames[:flows])


class Generator:
    """The C load generator."""

    def __init__(self, warm_up_s: float, measure_s: float, heads: Callable[[int, int], bytes]) -> None:
        """Compiles the generator if needed. `heads` makes the headers, with the arguments of `headers`."""
        self._heads = heads
        self._run = library.load("closed_loop.c").bench_closed_loop
        self._times = int(warm_up_s * 1e9), int(measure_s * 1e9)

    def measure(self, tx: str, rx: str, case: LoadCase) -> LoadFigures:
        """Loads interface `tx` and takes packets from `rx`.

        Raises:
            BenchError: a socket failed, or nothing came through.
        """
        header_bytes = self._heads(case.flows, case.frame_bytes)
        names = [ffi.new("char[]", name.encode()) for name in (tx, rx)]
        frames = ffi.from_buffer(header_bytes)
        bins = ffi.new("uint64_t[]", MOST_BINS)
        load = (*names, frames, case.flows, case.frame_bytes, case.window, *self._times, bins, MOST_BINS)
        out = ffi.new("bench_result *")
        if self._run([load], out) != 0:
            raise BenchError(f"load generator: {os.strerror(out.error)}")
        if out.packets == 0:
            raise BenchError(f"no packet came through from {tx} to {rx}")
        latencies = GapHistogram(bins)  # its bins fit latencies as well as gaps
        p50_ns, p99_ns = latencies.quantile_ns(5000), latencies.quantile_ns(9900)  # in 1/10,000
        return LoadFigures(out.packets / (out.elapsed_ns / 1e9), p50_ns, p99_ns, out.lost)


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def enter_namespace() -> None:
    """Moves this process into a new network namespace with two veth pairs, h0-p0 and h1-p1. If the parent
    process ends, this process ends, too, and stops the switches.

    Raises:
        BenchError: not permitted.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # runs the finally clauses
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise BenchError(f"needs root and network namespaces: {os.strerror(ctypes.get_errno())}")
    for scope in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if setting.exists():
            setting.write_text("1")
    _ip("link", "set", "dev", "lo", "up")
    for i in (0, 1):
        _ip("link", "add", "name", f"p{i}", "type", "veth", "peer", "name", f"h{i}")
        _ip("link", "set", "dev", f"p{i}", "up")
        _ip("link", "set", "dev", f"h{i}", "up")


@contextmanager
def reflector() -> Iterator[None]:
    """Sends on p1 what p0 receives, during a `with` block."""
    lib = library.load("reflect.c")
    reflector = lib.bench_reflect_start(*(ffi.new("char[]", name) for name in (b"p0", b"p1")))
    if not reflector:
        raise BenchError("the limit cannot be measured: packet sockets have no receive rings here")
    try:
        yield
    finally:
        lib.bench_reflect_stop(reflector)


def find_targets() -> dict[str, tuple[str, ...]]:
    """The command of each installed switch, by name of the target."""
    targets: dict[str, tuple[str, ...]] = {NATIVE: (*tables.NATIVE, *_PORTS)}
    if (bmv2 := shutil.which(EXECUTABLE)) is None:
        print(f"bench: {MISSING}: no ratios to it", file=sys.stderr)
        return targets
    return targets | {BMV2: (bmv2, *_PORTS), BMV2_LOG: (bmv2, *_PORTS, "--log-console")}


def _measure(files: Files | None, quick: bool) -> list[BenchResult]:
    """Measures every target under every load, in a process that is only for this.

    Raises:
        BenchError: something cannot be measured here. (Other errors cannot be sent to another process.)
    """
    windows, flows = ((32,), (1,)) if quick else ((1, 32), (1, _ROUTES))
    measure_s = 0.2 if quick else 2.0
    if files is None:
        heads, program_case = headers, routes.case(_ROUTES)
        loads = [LoadCase(size, count, w) for size in (64, 1500) for count in flows for w in windows]
    else:
        program_case = ProgramCase.read(*files)
        heads = partial(headers_of, program_case.frames)
        # 60 bytes: the shortest Ethernet frame, without its check sequence
        length, count = _HEADER_BYTES + _STAMP_BYTES + 2, len(program_case.frames)
        loads = [LoadCase(length, count, w) for w in windows]

    def all_loads(tx: str, rx: str) -> list[LoadFigures]:
        return [generator.measure(tx, rx, load) for load in loads]

    def limit() -> list[LoadFigures]:
        with reflector():
            return all_loads("h0", "h1")

    def switch(command: Sequence[str]) -> list[LoadFigures]:
        with running_switch(command) as connection:
            program.load(connection, program_case)
            return all_loads("h0", "h1")

    try:
        generator = Generator(measure_s / 4, measure_s, heads)
        tasks: dict[str, Callable[[], list[LoadFigures]]] = {
            WIRE: partial(all_loads, "h0", "p0"),
            LIMIT: limit,
        }
        tasks |= {name: partial(switch, command) for name, command in find_targets().items()}
        enter_namespace()
        rounds = alternating(tasks, 1 if quick else _ROUNDS)
    except Error as error:
        raise BenchError(str(error)) from None
    return [
        row
        for index, load in enumerate(loads)
        for row in results(
            load,
            {name: [Round(r.value[index], r.noise) for r in of_target] for name, of_target in rounds.items()},
        )
    ]


def results(load: LoadCase, rounds: Mapping[str, Sequence[Round[LoadFigures]]]) -> list[BenchResult]:
    """The rows of a load: every target, and the native switch as a multiple of "limit" and of BMv2."""
    group = f"closed loop, {load.frame_bytes} B, {load.flows} flows, {load.window} in flight"

    def median(target: str, figure: str) -> float:
        return float(statistics.median(getattr(each.value, figure) for each in rounds[target]))

    rows = []
    for target, of_target in rounds.items():
        p50_us, p99_us = median(target, "p50_ns") / 1e3, median(target, "p99_ns") / 1e3
        note = f"latency {p50_us:.1f} us, p99 {p99_us:.1f} us; {median(target, 'lost'):.0f} lost"
        rates, noise = zip(*((each.value.packets_per_s, each.noise) for each in of_target), strict=True)
        rate = statistics.median(rates)
        rows.append(BenchResult(group, target, rate, "packets/s", note=note, runs=rates, noise=noise))
    for other, figure, goal in GOALS:
        if other in rounds:
            times = median(NATIVE, figure) / median(other, figure)
            name = f"{NATIVE} / {other}, {figure.partition('_')[0]}"
            better: Literal["more", "less"] = "more" if figure == "packets_per_s" else "less"
            rows.append(BenchResult(group, name, times, "times", goal, better))
    return rows


def run(quick: bool, files: Files | None = None) -> list[BenchResult]:
    """Rates and latencies of all targets, with the router, or with the files of `ProgramCase.read`."""
    return in_fresh_process(_measure, files, quick)
