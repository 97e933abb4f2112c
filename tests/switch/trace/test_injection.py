# SPDX-License-Identifier: Apache-2.0
"""A packet that is sent for real is told of as a try would, and leaves the marks of one from the wire."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from tailrace.switch.core import SwitchConfig, V1ModelSwitch
from tailrace.switch.trace import TraceError, dry_run_packet, events, injection
from tailrace.switch.trace.injection import send_packet
from tailrace.switch.trace.live_trace import LiveTracer
from tailrace.switch.trace.text import text
from tests.long import some
from tests.switch.daemon.io.test_real_core import add_route, ipv4
from tests.switch.trace.test_dry_run import NAMES, PORTS, Twins, frames, program, steps_of
from tests.switch.trace.test_live_trace import plain

PORT = 1
LONG_S = 600
SECOND_NS = 1_000_000_000


@pytest.mark.parametrize("name", some(NAMES, 4))
def test_what_is_told_is_what_a_try_says(name: str) -> None:
    """Of 30 packets the steps are those of a try before; the state is that of a switch to which they came by the
    wire, while other packets come at the same time.
    """
    twins = Twins(program(name), seed=5 + len(name))
    packets = frames(twins.chooser)
    for number in range(30):
        port, frame, now_ns = twins.chooser.choice(PORTS), next(packets), 1000 * number
        # every other one alone, so that a try before says the same
        other_arrivals = [] if number % 2 else [(PORT, next(packets)), (PORT, next(packets))]
        arrivals = [*other_arrivals[:1], (port, frame), *other_arrivals[1:]]

        come = partial(arrive, arrivals=arrivals, now_ns=now_ns)
        trace = dry_run_packet(twins.tried, port, frame, at_ns=now_ns)
        sent = send_packet(twins.tried, lambda *_, come=come: come(twins.tried), port, frame)
        come(twins.other)
        assert twins.state(twins.tried) == twins.state(twins.other)
        assert (sent.cut, sent.inside) == (False, 0)
        assert sent.steps[0] == events.EnterEvent(port=port, frame=frame.hex())
        if not other_arrivals:
            reported, said = ([plain(step) for step in steps_of(each.steps)] for each in (sent, trace))
            assert reported == said
        twins.enter(trace)


def arrive(switch: V1ModelSwitch, arrivals: list[tuple[int, bytes]], now_ns: int) -> None:
    for port, frame in arrivals:
        switch.inject(port, frame, now_ns)
    switch.run(now_ns)
    switch.outputs()


@contextmanager
def running(switch: V1ModelSwitch, clock: list[int]) -> Iterator[None]:
    """The switch runs in a thread of its own, a millisecond of its time after the other."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(0.001):
            clock[0] += 1_000_000
            switch.run(clock[0])
            switch.outputs()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def slow() -> Iterator[tuple[V1ModelSwitch, bytes]]:
    """A switch with ports of 1 Mb/s, and a frame of 1 KB that leaves by port 1."""
    config = SwitchConfig(port_rate_bps=1_000_000, tick_ns=1000)
    with V1ModelSwitch(program("basic_l3"), config) as switch:
        add_route(switch)
        yield switch, ipv4(1, 1000)


def behind(count: int, switch: V1ModelSwitch, frame: bytes, now_ns: int = 0) -> None:
    """A frame comes after so many others."""
    for _ in range(count):
        switch.inject(0, frame[:-1], now_ns)
    switch.inject(0, frame, now_ns)


def test_it_waits_in_queues_as_others_do() -> None:
    """Behind ten packets, at 8 µs a byte: it is told that they wait, and for how long it did."""
    clock = [0]
    with slow() as (switch, frame):
        with running(switch, clock):
            trace = send_packet(switch, lambda *_: behind(10, switch, frame, clock[0]), 0, frame, most_s=60)
        (queue,) = [step for step in trace.steps if isinstance(step, events.QueueEvent)]
        (leave,) = [step for step in trace.steps if isinstance(step, events.LeaveEvent)]
        assert queue.packets >= 8
        assert leave.waited_ticks >= 8 * queue.bytes
        assert isinstance(trace.steps[-1], events.SentEvent)
        assert not trace.inside
        assert switch.drops() == {}


def test_who_never_leaves_is_not_waited_for() -> None:
    """The switch's clock stands: the packet is in its queue still, and the trace says so."""
    with slow() as (switch, frame):
        trace = send_packet(switch, lambda *_: behind(2, switch, frame), 0, frame, most_s=0.05)
        assert trace.inside == 1
        assert text(trace).endswith("1 packet or copy is still in the switch: the trace ends here\n")
        ended = threading.Event()
        ended.set()
        again = send_packet(switch, lambda *_: behind(2, switch, frame), 0, frame, ended=ended, most_s=LONG_S)
        assert again.inside == 1
        # the switch goes on with its own program
        switch.run(SECOND_NS)
        assert len(switch.outputs()) == 6


def test_who_circles_is_told_of_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet that tells more and more while it is followed ends the trace, not the memory."""
    monkeypatch.setattr(injection, "MOST_RECORD_FIELDS", 100)
    with slow() as (switch, frame):
        trace = send_packet(switch, lambda *_: behind(2, switch, frame), 0, frame, most_s=LONG_S)
        assert trace.cut
        assert trace.inside == 1
        assert trace.steps


def test_another_program_ends_it() -> None:
    """The packet is lost with what waited in the switch."""
    with slow() as (switch, frame):
        other = program("registers")

        def put(_port: int, _frame: bytes) -> None:
            behind(2, switch, frame)
            threading.Timer(0.05, switch.load, [other]).start()

        trace = send_packet(switch, put, 0, frame, most_s=LONG_S)
        assert trace.program == "basic_l3.p4"
        assert switch.program is other


def test_what_cannot_be_sent() -> None:
    """A switch without a program, one that is watched already, a packet that does not come in."""
    frame = next(frames(random.Random(1)))
    with V1ModelSwitch(None) as switch, pytest.raises(TraceError, match="no program"):
        send_packet(switch, lambda *_: None, PORT, frame)
    with V1ModelSwitch(program("basic_l3")) as switch:
        with LiveTracer(switch, None, pytest.fail), pytest.raises(TraceError, match="already"):
            send_packet(switch, lambda *_: None, PORT, frame)
        with pytest.raises(TraceError, match="did not accept the packet"):
            send_packet(switch, lambda *_: None, PORT, frame)
