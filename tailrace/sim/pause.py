# SPDX-License-Identifier: Apache-2.0
"""Pauses a run in virtual time at a breakpoint, so that its switches can be inspected.

During the pause one P4Runtime server for all switches listens on the loopback interface, and the run file
(controller/runfile.py) gives its address to the inspection commands. A line on standard input, or end of
file, resumes the run. Inspecting does not change results. Commands may also change links (control.py), and
any client of P4Runtime the switches; such changes are events of the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import msgspec
from google.protobuf.message import Message

from tailrace.controller import runfile
from tailrace.controller.control import ControlServer, Messages, Stream
from tailrace.controller.inband.relay import RelayError
from tailrace.controller.inspect.flows import keeps_flows
from tailrace.controller.runfile import RunFile, RunSwitch
from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.events import LINK_SET, PACKET_OUT, PUSH, WRITE, Event, structured
from tailrace.p4rt.messages import p4r
from tailrace.sim.faults import set_link
from tailrace.sim.network.ranks import RankLostError
from tailrace.sim.network.serve import serving
from tailrace.sim.network.wire import Wire, WireEvent
from tailrace.sim.run import PausedRun
from tailrace.spec import SpecError
from tailrace.spec.text import one_line
from tailrace.spec.units import format_time

LOOPBACK = "127.0.0.1"
STANDARD_INPUT = 0
_READ_BYTES = 4096
_CALL_S = 10.0
_MOST_FRAMES = 4096
"""Captured frames that wait for their client; then the run waits, for _CALL_S at most."""
_MOST_UPDATES = 4
"""Updates of a Write that its event describes."""


class Lines:
    """Waits for the lines of a file, one by one.

    The descriptor is read without Python's buffered files: a thread that still waits in such a file when the
    program ends would hold the file's lock.
    """

    def __init__(self, descriptor: int) -> None:
        """Takes the descriptor of an open file, for example a terminal."""
        self._descriptor = descriptor
        self._unread = b""

    def wait(self) -> None:
        """Returns when another line has been read, or at once at the end of the file."""
        while b"\n" not in self._unread:
            try:
                received = os.read(self._descriptor, _READ_BYTES)
            except OSError:  # the descriptor is not open: there is no input
                return
            if not received:
                return
            self._unread += received
        self._unread = self._unread.partition(b"\n")[2]


async def _in_thread(wait: Callable[[], None]) -> None:
    """Calls `wait` in a daemon thread; an interrupt leaves the thread behind."""
    loop, finished = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            wait()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(finished.set)

    threading.Thread(target=run, daemon=True).start()
    await finished.wait()


class _Control(ControlServer):
    """Lets commands see and change a run; streams that they have begun in a pause go on afterwards."""

    def __init__(self, paused: PausedRun) -> None:
        path = runfile.made_folder() / f"{paused.job.target}-{os.getpid()}.sock"
        super().__init__(path, paused.job.topology, paused.job.time_scale)
        self.paused = paused
        self.loop: asyncio.AbstractEventLoop | None = None  # of the present pause; None: the run goes on
        self._taken_down: set[tuple[str, str]] = set()
        self._wires = {(wire.source.node, wire.target.node): wire for wire in paused.network.wires}
        with contextlib.suppress(RelayError):  # the path is too long for a socket
            self.start_thread()
            paused.at_end(self.end)

    def status(self) -> str:
        return "running" if self.loop is None else f"stopped at {format_time(self.paused.network.now_ns)}"

    def events(self, start: int) -> Messages:
        new = list(self.paused.events)[start:]
        return [{"time": format_time(time_ns), **structured(event)} for time_ns, event in new]

    def link(self, a: str, b: str) -> tuple[bool, float]:
        wire = self._wires[a, b]
        return wire.up, wire.rate_bps / wire.nominal_rate_bps

    def _in_pause(self, action: Callable[[], None]) -> None:
        """Calls a function in the thread of the network."""

        async def call() -> None:
            action()

        loop = self.loop
        if loop is None or self.paused.remote_addresses:
            raise RelayError("only a stopped run of one rank can be changed and captured")
        try:
            asyncio.run_coroutine_threadsafe(call(), loop).result(_CALL_S)
        except (RuntimeError, futures.CancelledError, futures.TimeoutError):
            raise RelayError("the run goes on") from None

    def set_link(self, a: str, b: str, to: bool | float, text: str) -> None:
        def act() -> None:
            network = self.paused.network
            if isinstance(to, bool):
                if to is self._wires[a, b].up:
                    return
                if to and (a, b) not in self._taken_down:
                    raise SpecError(f"{a}-{b} is down by a fault of the run")
                set_link(network, self.paused.control, a, b, network.now_ns, up=to)
                self._taken_down ^= {(a, b)}
            else:
                network.link_rate(a, b, to)
            self._record(LINK_SET, f"{a}-{b}", text)

        self._in_pause(act)

    def _record(self, kind: str, subject: str, text: str, **facts: int) -> None:
        """Records a change as an event."""
        now_ns = self.paused.network.now_ns
        text = f"{one_line(text)} at {format_time(now_ns)}"
        self.paused.on_event(Event(kind, subject, text, {"time_ns": now_ns, **facts}))

    def switch_changed(self, switch: str, request: Message | None) -> None:
        """Records a Write or push of a client; None: a packet-out."""
        if isinstance(request, p4r.WriteRequest):
            device = self.paused.network.p4rt(switch).device
            config = device.config_response(p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE)
            names = ProgramNames(p4r.GetForwardingPipelineConfigResponse.FromString(config).config.p4info)
            count = len(request.updates)
            texts = [*map(names.update_text, request.updates[:_MOST_UPDATES])]
            texts += [f"{count - _MOST_UPDATES} more"] if count > _MOST_UPDATES else []
            self._record(WRITE, switch, f"{switch}, over P4Runtime: {'; '.join(texts)},", updates=count)
        elif request is not None:
            self._record(PUSH, switch, f"{switch}, over P4Runtime: a program,")
        elif self.paused.job.scheme.is_foreign:  # other packet-outs are in-band queries, which change nothing
            self._record(PACKET_OUT, switch, f"{switch}, over P4Runtime: a packet-out,")

    def capture(self, a: str, b: str) -> Stream:
        frames: deque[dict[str, Any]] = deque()
        polled_s: float = time.monotonic()

        def tap(_wire: Wire, event: WireEvent, now_ns: int, frame: bytes, virtual_bytes: int) -> None:
            while len(frames) >= _MOST_FRAMES and time.monotonic() < polled_s + _CALL_S:
                time.sleep(0.001)  # the client is slower than the run
            if event is WireEvent.RECEIVED and len(frames) < _MOST_FRAMES:
                length = len(frame) + virtual_bytes
                frames.append({"time_ns": now_ns, "frame": frame.hex(), "length": length})

        network = self.paused.network
        wires = network.wires_between(a, b) + network.wires_between(b, a)
        self._in_pause(lambda: network.tap(tap, wires))
        yield [{}]
        try:
            while True:
                polled_s = time.monotonic()
                yield [frames.popleft() for _ in range(len(frames))]
        finally:
            polled_s = -_CALL_S  # nothing waits for this client any more


@contextlib.contextmanager
def _announced(paused: PausedRun, port: int, control: _Control) -> Iterator[None]:
    """Writes the run file, which contains the switches' addresses, and removes it after the block."""
    job, switches, remote = paused.job, paused.network.topology.switches, paused.remote_addresses
    programs = job.scheme.programs(job.topology)
    content = RunFile(
        topology=job.topology.spec,
        scheme=msgspec.to_builtins(job.scheme),
        target=job.target,
        tick_ns=job.switches.tick_ns,
        relay=None,
        switches={
            item.name: RunSwitch(
                remote.get(item.name, f"{LOOPBACK}:{port}"), item.id, programs[item.name].name
            )
            for item in switches
        },
        time_scale=job.time_scale,
        down=tuple(sorted(paused.down)),
        # ports that the controller does not use for now (RFC 2439), and the ns until it may use them again
        suppressed=tuple(
            (*path.end, max(0, path.until_ns - paused.network.now_ns)) for path in paused.suppressed
        ),
        control=str(control.path) if control.path.exists() else None,
    )
    path = runfile.write(None, content)
    control.loop = asyncio.get_running_loop()
    try:
        yield
    finally:
        control.loop = None
        runfile.remove(path)


def _instructions(paused: PausedRun, port: int) -> str:
    switches, scheme = paused.network.topology.switches, paused.job.scheme
    flows = "flows, " * any(map(keeps_flows, scheme.programs(paused.job.topology).values()))
    diff = "" if scheme.is_foreign else "diff, "
    first = switches[0]
    addresses = ", ".join(dict.fromkeys([f"{LOOPBACK}:{port}", *paused.remote_addresses.values()]))
    return (
        f"stopped at {format_time(paused.network.now_ns)}{paused.reason and ': ' + paused.reason}; "
        f"{len(switches)} switches serve P4Runtime "
        f"at {addresses}, device ids {first.id} to {switches[-1].id}\n"
        f"inspect from another terminal: tailrace tables, {flows}queues, registers, counters, paths, {diff}"
        f"trace, ls, link, capture, events, write, delete, shell {first.name}\n"
        "press Enter here to resume, Ctrl-C to end the run"
    )


def let_inspect(say: Callable[[str], None], wait: Callable[[], None]) -> Callable[[PausedRun], None]:
    """Makes the callback of `Breakpoints` that serves the switches during a pause.

    Args:
        say: prints instructions for the user.
        wait: blocks until the run is to resume.

    Returns:
        the callback; it raises RunFileError if the run file cannot be written.
    """
    controls: dict[int, _Control] = {}  # by the identity of the network

    async def serve_paused(paused: PausedRun) -> None:
        key = id(paused.network)
        control = controls.get(key) or controls.setdefault(key, _Control(paused))
        control.paused = paused
        # a run of several ranks would not know what clients change at the others
        on_change = None if paused.remote_addresses else control.switch_changed
        async with serving(paused.network, f"{LOOPBACK}:0", on_change=on_change) as port:
            with _announced(paused, port, control):
                say(_instructions(paused, port))
                await _in_thread(wait)
        say("resuming the run")

    return lambda paused: asyncio.run(serve_paused(paused))


def serve_part(paused: PausedRun) -> None:
    """Serves the switches of this rank (a process that simulates a part of the network), which is not the
    first rank, at a breakpoint until the first rank resumes.
    """
    network = paused.network

    def wait() -> None:
        with contextlib.suppress(RankLostError):  # the run reports the lost rank later
            network.all_gather(None)

    async def serve_switches() -> None:
        async with serving(network, f"{LOOPBACK}:0", on_change=None) as port:
            network.all_gather({item.name: f"{LOOPBACK}:{port}" for item in network.switches})
            await _in_thread(wait)

    asyncio.run(serve_switches())
