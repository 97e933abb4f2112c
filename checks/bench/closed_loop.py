"""Closed-loop benchmark: simple_switch_grpc and the native switch side by side, over veth, in the same run.

W packets are kept in flight: each packet that comes out of the switch makes the generator send the next.
The packet rate is thus what the switch sustains without loss, and the latency is that of a packet through it.
Repetitions of the targets alternate, so that other load on the machine affects all of them; the table shows
medians. "wire" is a bare veth pair without a switch, the generator's upper bound. "limit" is a thread in the
switch's place that returns each frame unchanged, the upper bound of any switch with these sockets.

This is a separate program (`python -m checks.bench.closed_loop --out DIR`), which needs root. It moves itself
into a new network namespace; the interfaces that it creates disappear with the namespace.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from checks.bench import library, program, routes
from checks.bench.library import ffi
from checks.bench.noise import Noise, measured, remark
from checks.bench.program import ProgramCase
from checks.bench.result import WIDTH, BenchError, spread
from checks.bench.switch_process import running_switch
from tailrace.hosts.gaps.histogram import MOST_BINS, GapHistogram
from tailrace.spec.errors import Error

__all__ = ["LoadCase", "LoadFigures", "main"]

_CLONE_NEWNET = 0x40000000
_ROUTES = 1000
_MAX_NUMBER = 16384
# Goal: at least this many times the packets/s of simple_switch_grpc, and lower latencies.
_GOAL = 3.0
_GOAL_OF_LIMIT = 0.7  # share of the packets/s of "limit"
WIRE, LIMIT, BMV2, BMV2_LOG, NATIVE = "wire", "limit", "bmv2", "bmv2-log", "native"
_PORTS = ("-i", "0@p0", "-i", "1@p1")
_LOGGING = {BMV2_LOG: ("--log-console",)}
"""Additional options by target. The log is discarded; the cost of writing it is measured."""
_HEADER_BYTES, _STAMP_BYTES = routes.MIN_FRAME_BYTES, 16
"""Headers that the caller makes, and the generator's payload: run and time of sending (closed_loop.c)."""


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

    def __init__(
        self, warm_up_s: float, measure_s: float, heads: Callable[[int, int], bytes] = headers
    ) -> None:
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
    """Moves this process into a new network namespace with two veth pairs, h0-p0 and h1-p1.

    Raises:
        BenchError: not permitted.
    """
    libc = ctypes.CDLL(None, use_errno=True)
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


def find_targets() -> dict[str, str]:
    """The executables of the installed switches, by name of the target."""
    programs = {BMV2: shutil.which("simple_switch_grpc"), NATIVE: shutil.which("tailrace_switch_grpc")}
    beside_python = Path(sys.executable).with_name("tailrace_switch_grpc")
    if programs[NATIVE] is None and beside_python.exists():
        programs[NATIVE] = str(beside_python)
    return {name: path for name, path in programs.items() if path is not None}


def median(runs: Sequence[LoadFigures]) -> LoadFigures:
    """The median of each figure."""
    columns = zip(*(tuple(asdict(r).values()) for r in runs), strict=True)
    return LoadFigures(*(statistics.median(column) for column in columns))


def run(
    targets: dict[str, str],
    cases: Sequence[LoadCase],
    repetitions: int,
    generator: Generator,
    program_case: ProgramCase,
) -> dict[str, Any]:
    """Measures every target under every load; returns this benchmark's part of bench.json."""
    runs: dict[tuple[LoadCase, str], list[LoadFigures]] = {}
    noises: list[Noise] = []

    def all_cases(name: str, tx: str, rx: str) -> None:
        for case in cases:
            runs.setdefault((case, name), []).append(generator.measure(tx, rx, case))

    def one_target(name: str, executable: str) -> None:
        with running_switch([executable], *_PORTS, *_LOGGING.get(name, ())) as connection:
            program.load(connection, program_case)
            all_cases(name, "h0", "h1")

    def the_limit() -> None:
        with reflector():
            all_cases(LIMIT, "h0", "h1")

    for repetition in range(repetitions):
        noises.append(measured(partial(all_cases, WIRE, "h0", "p0")).noise)
        noises.append(measured(the_limit).noise)
        for name, executable in targets.items():
            print(f"closed loop: repetition {repetition + 1} of {repetitions}, {name}", file=sys.stderr)
            noises.append(measured(partial(one_target, name, executable)).noise)
    rows = []
    for case in cases:
        row: dict[str, Any] = asdict(case)
        for name in (WIRE, LIMIT, *targets):
            row[name] = {**asdict(median(runs[case, name])), "runs": [asdict(r) for r in runs[case, name]]}
        if NATIVE in targets:
            row["of_limit"] = row[NATIVE]["packets_per_s"] / row[LIMIT]["packets_per_s"]
        if BMV2 in targets and NATIVE in targets:
            row["ratio"] = {
                key: row[NATIVE][key] / row[BMV2][key] for key in ("packets_per_s", "p50_ns", "p99_ns")
            }
            ratio = row["ratio"]
            row["met"] = ratio["packets_per_s"] >= _GOAL and ratio["p50_ns"] < 1 and ratio["p99_ns"] < 1
        rows.append(row)
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "machine": platform.machine()}
    return {"machine": machine, "repetitions": repetitions, "targets": sorted(targets), "cases": rows} | {
        "noise": remark(noises)
    }


def table(part: dict[str, Any]) -> str:
    """The result as text, one line for each load and target."""
    head = f"{'bytes':>6}{'flows':>7}{'window':>8}  {'target':8}"
    lines = [head + f"{'packets/s':>11}{'p50 us':>9}{'p99 us':>9}{'lost':>6}{'spread':>7}"]
    for row in part["cases"]:
        load = f"{row['frame_bytes']:>6}{row['flows']:>7}{row['window']:>8}"
        for name in (WIRE, LIMIT, BMV2, BMV2_LOG, NATIVE):
            if name in row:
                f = row[name]
                lines.append(
                    f"{load}  {name:8}{f['packets_per_s']:>11,.0f}{f['p50_ns'] / 1e3:>9.1f}"
                    f"{f['p99_ns'] / 1e3:>9.1f}{f['lost']:>6.0f}"
                    f"{'±' + format(spread([each['packets_per_s'] for each in f['runs']]), '.0%'):>6}"
                )
        if "of_limit" in row:
            lines.append(f"{load}  {'of limit':8}{row['of_limit']:>10.0%}{'':31}>={_GOAL_OF_LIMIT:.0%}")
        if "ratio" in row:
            r = row["ratio"]
            lines.append(
                f"{load}  {'ratio':8}{r['packets_per_s']:>10.2f}x{r['p50_ns']:>8.2f}x{r['p99_ns']:>8.2f}x"
                f"   >={_GOAL:.0f}x: {'yes' if row['met'] else 'NO'}"
            )
    return "\n".join(lines + (textwrap.wrap(f"! {part['noise']}", WIDTH) if part["noise"] else []))


def save(out: Path, part: dict[str, Any]) -> None:
    """Puts `part` under "closed_loop" of OUT/bench.json and keeps the rest."""
    path = out / "bench.json"
    out.mkdir(parents=True, exist_ok=True)
    document = json.loads(path.read_text()) if path.exists() else {}
    document["closed_loop"] = part
    path.write_text(json.dumps(document, indent=1) + "\n")


def _end(_signal: int, _frame: object) -> None:
    sys.exit(143)  # runs the finally clauses, which stop the switches


def _numbers(parser: argparse.ArgumentParser, option: str, text: str) -> list[int]:
    """The comma-separated integers (1 to 16384) of an option; anything else ends the program."""
    numbers = text.split(",")
    if not all(number.isdecimal() and 1 <= int(number) <= _MAX_NUMBER for number in numbers):
        parser.error(f"{option} {text}: expected comma-separated integers from 1 to {_MAX_NUMBER}")
    return [int(number) for number in numbers]


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns 0 on success, 1 on failure."""
    parser = argparse.ArgumentParser(
        prog="python -m checks.bench.closed_loop", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of bench.json")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds of one measurement")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of every measurement (default: 3)")
    parser.add_argument("--windows", default="1,32", help="packets in flight, comma-separated")
    parser.add_argument("--flows", default="1,1000", help="numbers of flows, comma-separated")
    parser.add_argument("--logging", action="store_true", help="also measure simple_switch_grpc with its log")
    for option in ("program", "entries", "packets"):
        parser.add_argument(f"--{option}", type=Path, help="see python -m checks.bench --help")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    windows = _numbers(parser, "--windows", options.windows)
    flows = _numbers(parser, "--flows", options.flows)
    if options.seconds <= 0 or options.repetitions < 1:
        parser.error("--seconds and --repetitions must be more than 0")
    custom = [options.program, options.entries, options.packets]
    if any(custom) and not all(custom):
        parser.error("--program, --entries and --packets must be given together")
    try:
        cases = [LoadCase(size, n, w) for size in (64, 1500) for n in flows for w in windows]
        heads, case = headers, routes.case(_ROUTES)
        if all(custom):
            case = ProgramCase.read(*custom)
            heads = partial(headers_of, case.frames)
            # 60 bytes: the shortest Ethernet frame, without its check sequence
            cases = [LoadCase(_HEADER_BYTES + _STAMP_BYTES + 2, len(case.frames), w) for w in windows]
        targets = find_targets()
        if NATIVE not in targets:
            raise BenchError("tailrace_switch_grpc is not installed: run `make setup`")
        if BMV2 not in targets:
            print("closed loop: simple_switch_grpc is not on PATH: no ratios", file=sys.stderr)
        generator = Generator(warm_up_s=options.seconds / 4, measure_s=options.seconds, heads=heads)
        enter_namespace()
        if options.logging and BMV2 in targets:
            targets[BMV2_LOG] = targets[BMV2]
        part = run(targets, cases, options.repetitions, generator, case)
        save(options.out, part)
    except (Error, OSError) as error:
        print(f"closed loop: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(table(part))
    return 0


if __name__ == "__main__":
    sys.exit(main())
