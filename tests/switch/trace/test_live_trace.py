# SPDX-License-Identifier: Apache-2.0
"""Watching tells of every packet what a try would have said, and BMv2's log words for it."""

from __future__ import annotations

import random
import threading
from collections import defaultdict

import pytest

from tailrace.switch.compiler import SwitchProgram
from tailrace.switch.core import V1ModelSwitch
from tailrace.switch.trace import dry_run_packet, events
from tailrace.switch.trace.bmv2_log import PacketLogs
from tailrace.switch.trace.live_trace import LiveTracer
from tailrace.switch.trace.watcher import PacketWatcher
from tests.long import some
from tests.switch.trace.test_dry_run import NAMES, PORTS, Twins, frames, program, steps_of


@pytest.mark.parametrize("name", some(NAMES, 4))
def test_what_is_told_is_what_a_try_says(name: str) -> None:
    """Of 60 packets of a watched switch the steps are those of a try before, queues' lengths aside; and the
    state is that of a switch that nobody watches.
    """
    twins = Twins(program(name), seed=2 + len(name))
    steps_by_packet: dict[int, list[events.Event]] = defaultdict(list)
    said: list[str] = []
    packets = frames(twins.chooser)
    with LiveTracer(
        twins.tried, lambda _, number, step: steps_by_packet[number].append(step), said.append
    ) as watch:
        watch.poll()
        for number in range(60):
            port, frame, now_ns = twins.chooser.choice(PORTS), next(packets), 1000 * number
            trace = dry_run_packet(twins.tried, port, frame, at_ns=now_ns)
            for switch in (twins.tried, twins.other):
                switch.inject(port, frame, now_ns)
                switch.run(now_ns)
                switch.outputs()
            watch.poll()
            assert twins.state(twins.tried) == twins.state(twins.other)
            first = min(steps_by_packet)
            expected = [plain(step) for step in trace.steps]
            assert [plain(step) for step in steps_by_packet.pop(first)] == expected
            copies = [s for s in steps_of(trace.steps) if isinstance(s, events.CopyEvent)]
            assert len(steps_by_packet) == sum(bool(copy.steps) for copy in copies)
            steps_by_packet.clear()
            twins.enter(trace)
    assert not said


def plain(step: events.Event) -> object:
    """A step without what tells packets apart: numbers of copies, and how long queues are."""
    if isinstance(step, events.CopyEvent):
        return "copy", step.port, step.instance
    if isinstance(step, events.QueueEvent):
        return "queue", step.port, step.priority
    if isinstance(step, events.BeginEvent):
        changes = tuple(change for change in step.changes if not change.field.endswith("_qdepth"))
        return "begin", step.stage, changes, step.headers
    return step


def test_other_programs_are_watched_too() -> None:
    """After another program is loaded its packets are told; after the end nobody is, and nothing is slower."""
    sources: list[str] = []

    def tell(loaded: SwitchProgram, _: int, step: events.Event) -> None:
        if isinstance(step, events.EnterEvent):
            sources.append(loaded.source)

    first, second = program("basic_l3"), program("registers")
    frame = next(frames(random.Random(1)))
    with V1ModelSwitch(first) as switch:
        with LiveTracer(switch, tell, pytest.fail) as watch:
            watch.poll()
            switch.inject(1, frame, 0)
            switch.load(second)
            watch.poll()
            switch.inject(1, frame, 1000)
            watch.poll()
            assert sources == ["basic_l3", "registers"]
        switch.inject(1, frame, 2000)
        assert sources == ["basic_l3", "registers"]


def test_too_many_packets_are_counted() -> None:
    """More packets between two looks than there is room for: some are told as a whole, of the others how many."""
    steps_by_packet: dict[int, list[events.Event]] = defaultdict(list)
    said: list[str] = []
    frame = next(frames(random.Random(1)))
    sent = 20_000
    with V1ModelSwitch(program("loops")) as switch:
        watch = LiveTracer(switch, lambda _, number, step: steps_by_packet[number].append(step), said.append)
        watch.poll()
        with watch._polling:
            for number in range(sent):
                switch.inject(1, frame, number)
                if number % 1000 == 0:
                    switch.outputs()
        watch.close()
    (line,) = said
    untold = int(line.split()[0])
    assert untold + len(steps_by_packet) == sent
    assert len(steps_by_packet) > 10
    for steps in steps_by_packet.values():
        assert isinstance(steps[0], events.EnterEvent)
        assert isinstance(steps[-1], events.SentEvent | events.DropEvent)


def test_selected_arrivals_are_recorded_in_full() -> None:
    """The others in brief. After the selection another thread can use the switch: its lock is free."""
    frame = next(frames(random.Random(1)))
    records: list[int] = []

    def inject(switch: V1ModelSwitch, watcher: PacketWatcher) -> None:
        for now_ns in (0, 1000):
            switch.inject(1, frame, now_ns)
            records.append(len(watcher.take()))

    with V1ModelSwitch(program("basic_l3")) as switch:
        watcher = PacketWatcher(switch, 1 << 14)
        watcher.attach()
        watcher.select([(1_000_000, 1)])
        thread = threading.Thread(target=inject, args=(switch, watcher), daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        watcher.detach()
    in_brief, in_full = records
    assert 0 < in_brief < in_full


def test_lines_of_bmv2s_log() -> None:
    """The words of BMv2's log about one packet: these are simple_switch's own, but for the checksum's name and the
    place of its value, and in one line what it says in several of a key.
    """
    frame = bytes.fromhex("020000000001 020000000009 0800 45000014000000004011 63cf 0a000109 0a000202")
    logs = PacketLogs(511)
    condition = "hdr.ipv4.isValid() && std.checksum_error == 0 && hdr.ipv4.ttl > 1"
    with V1ModelSwitch(program("basic_l3")) as switch:
        steps = dry_run_packet(switch, 1, frame).steps
    assert [(level[0], text) for step in steps for level, text in logs.lines(7, step)] == [
        ("d", "[0.0] Processing packet received on port 1"),
        ("d", "[0.0] Parser 'parser': start"),
        ("d", "[0.0] Parser 'parser' entering state 'start'"),
        ("d", "[0.0] Extracting header 'ethernet'"),
        ("d", "[0.0] Parser state 'start': key is 0800"),
        ("t", "[0.0] Bytes parsed: 14"),
        ("d", "[0.0] Parser 'parser' entering state 'ipv4'"),
        ("d", "[0.0] Extracting header 'ipv4'"),
        ("d", "[0.0] Parser state 'ipv4' has no switch, going to default next state"),
        ("t", "[0.0] Bytes parsed: 34"),
        ("d", "[0.0] Verified checksum 'ipv4.checksum': passed"),
        ("d", "[0.0] Parser 'parser': end"),
        ("d", "[0.0] Pipeline 'ingress': start"),
        ("t", f'[0.0] basic_l3.p4(89) Condition "{condition}" (node_2) is true'),
        ("t", "[0.0] Applying table 'L3Ingress.route'"),
        ("d", "[0.0] Looking up key: * dst                 : 0a000202"),
        ("d", "[0.0] Table 'L3Ingress.route': miss"),
        ("d", "[0.0] Action entry is L3Ingress.drop - "),
        ("t", "[0.0] Action L3Ingress.drop"),
        ("t", "[0.0] basic_l3.p4(71) Primitive mark_to_drop(std)"),
        ("d", "[0.0] Pipeline 'ingress': end"),
        ("d", "[0.0] Egress port is 511"),
        ("d", "[0.0] Dropping packet at the end of ingress"),
    ]


def test_bytes_of_packets_are_dumped_where_they_come_in_and_go_out() -> None:
    """A packet that goes round came in once."""
    twins = Twins(program("resubmit_recirculate"), seed=4)
    logs = PacketLogs(511, dump_bytes=4)
    lines: list[str] = []

    def tell(_: object, number: int, step: events.Event) -> None:
        lines.extend(text for level, text in logs.lines(number, step) if level == "info")

    sent = []
    with LiveTracer(twins.tried, tell, pytest.fail) as watch:
        watch.poll()
        packets = frames(random.Random(4))
        came = [next(packets) for _ in range(50)]
        for number, frame in enumerate(came):
            twins.tried.inject(2, frame, number)
            sent += twins.tried.outputs()
    assert [line for line in lines if line.startswith("Received")] == [
        f"Received packet of length {len(frame)} on port 2: {frame[:4].hex()}" for frame in came
    ]
    assert sent
    assert [line for line in lines if line.startswith("Sending")] == [
        f"Sending packet of length {len(o.data)} on port {o.port}: {o.data[:4].hex()}" for o in sent
    ]


@pytest.mark.parametrize("name", ["multicast", "cloning", "resubmit_recirculate"])
def test_lines_of_copies(name: str) -> None:
    """A packet's copies have its number, and their own behind it; numbers are forgotten when all have left."""
    twins = Twins(program(name), seed=4)
    logs = PacketLogs(511)
    copies = set()
    with LiveTracer(
        twins.tried, lambda _, number, step: copies.update(_heads(logs, number, step)), pytest.fail
    ) as watch:
        watch.poll()
        packets = frames(random.Random(4))
        for number in range(50):
            twins.tried.inject(2, next(packets), number)
            twins.tried.outputs()
        watch.poll()
        assert watch._reader is not None
        assert not watch._reader._packets
    heads = {head.partition(".")[0] for head in copies}
    assert heads == {str(number) for number in range(50)}
    assert name == "resubmit_recirculate" or any(not head.endswith(".0") for head in copies)
    assert not logs._made
    assert not logs._logs


def _heads(logs: PacketLogs, number: int, step: events.Event) -> list[str]:
    return [text[1:].partition("]")[0] for _, text in logs.lines(number, step)]
