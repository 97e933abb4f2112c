# SPDX-License-Identifier: Apache-2.0
"""Tries tell what a switch then does, and leave no mark on it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Dot1Q, Ether

from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.compiler.model import Table
from tailrace.switch.core import (
    ActionCall,
    GroupRef,
    MemberRef,
    MeterRates,
    Replica,
    StateError,
    SwitchConfig,
    V1ModelSwitch,
)
from tailrace.switch.core.lib import C, load
from tailrace.switch.trace import Trace, TraceError, dry_run, dry_run_packet, dry_runs, events
from tailrace.switch.trace.text import text, tree
from tailrace.switch.trace.watcher import TracingBuild
from tests.long import some
from tests.switch.bmv2_builder import Builder, const, field, pack
from tests.switch.bmv2_builder import call as call_of

BUILT = Path("tests/programs/build")
# those first whose state has most kinds: every third of them is in `make test`
NAMES = [
    "resubmit_recirculate",
    "cloning",
    "registers",
    "counters",
    "meters",
    "multicast",
    "action_profiles",
    "digests",
    "loops",
    "header_unions",
    "truncate_log_random",
    "parser_errors",
    "value_sets",
    "control_flow",
    "varbit_options",
    "match_kinds",
    "checksums",
    "header_stacks",
    "parser_select",
    "hash_algorithms",
    "priorities",
    "packet_io",
    "const_entries",
    "header_ops",
    "arithmetic_wide",
    "arithmetic_signed",
    "arithmetic_narrow",
    "basic_l3",
    "p4rt_all",
]
PORTS = range(1, 6)


def program(name: str, folder: Path = BUILT) -> SwitchProgram:
    return load_program((folder / f"{name}.json").read_bytes(), source=name)


def steps_of(steps: tuple[events.Event, ...]) -> Iterator[events.Event]:
    """The steps of a packet and of its copies."""
    for step in steps:
        yield step
        if isinstance(step, events.CopyEvent):
            yield from steps_of(step.steps)


def sent(trace: Trace) -> Counter[tuple[int, bytes]]:
    return Counter(
        (s.port, bytes.fromhex(s.frame)) for s in steps_of(trace.steps) if isinstance(s, events.SentEvent)
    )


def frames(chooser: random.Random) -> Iterator[bytes]:
    """Packets of which some are as programs want them, and some are cut or have random bytes."""
    while True:
        packet = Ether(dst=f"02:00:00:00:00:{chooser.randrange(8):02x}", src="02:00:00:00:00:99")
        if chooser.random() < 0.3:
            packet /= Dot1Q(vlan=chooser.randrange(8))
        options = bytes([1] * 4 * chooser.randrange(4))
        packet /= IP(dst=f"10.0.0.{chooser.randrange(8)}", ttl=chooser.choice((0, 1, 64)), options=options)
        packet /= chooser.choice((UDP, TCP))(dport=chooser.choice((80, 4791, 5000)))
        raw = bytearray(bytes(packet) + chooser.randbytes(chooser.randrange(60)))
        if chooser.random() < 0.3:
            for _ in range(4):
                raw[chooser.randrange(len(raw))] = chooser.randrange(256)
        if chooser.random() < 0.2:
            raw = raw[: chooser.randrange(len(raw))]
        if chooser.random() < 0.3:
            raw = bytearray(bytes(chooser.randrange(4) for _ in range(chooser.randrange(70))))
        yield bytes(raw)


def call(program: SwitchProgram, chooser: random.Random, table: Table) -> ActionCall:
    action = program.model.actions[chooser.choice(table.actions)]
    return ActionCall(
        action.index,
        tuple(chooser.choice((0, 1, 2, 3, (1 << p.bits) - 1)) % (1 << p.bits) for p in action.params),
    )


class Twins:
    """Two switches that get the same packets and entries; on one of them each packet is tried before."""

    def __init__(self, loaded: SwitchProgram, seed: int) -> None:
        self.program = loaded
        self.chooser = random.Random(seed)
        config = SwitchConfig(priority_queues=2, seed=seed)
        self.tried, self.other = V1ModelSwitch(loaded, config), V1ModelSwitch(loaded, config)
        model = loaded.model
        for switch in (self.tried, self.other):
            for group in (1, 2, 3):
                switch.mcast_set(group, [Replica(port, group) for port in PORTS[:group]])
                switch.clone_set(group, [Replica(group, 7)], truncate_bytes=20 * (group - 1))
            for meter in model.meters:
                if not meter.direct:
                    switch.meter_set_cells(meter.index, 0, meter.size, MeterRates(1, 100, 2, 200))
            for register in model.registers:
                value = random.Random(seed).getrandbits(register.bits)
                switch.register_set_cells(register.index, 0, min(register.size, 8), value)
        self._groups = {t.index: self._group(t) for t in model.tables if t.profile is not None and t.actions}

    def _group(self, table: Table) -> list[MemberRef | GroupRef]:
        assert table.profile is not None
        targets: list[MemberRef | GroupRef] = []
        calls = [call(self.program, self.chooser, table) for _ in range(3)]
        for switch in (self.tried, self.other):
            members = [switch.members_add(table.profile, c, 1)[0] for c in calls]
            targets = [MemberRef(members[0])]
            if self.program.model.profiles[table.profile].with_selector:
                group = switch.group_add(table.profile)
                switch.group_set(table.profile, group, members)
                targets.append(GroupRef(group))
        return targets

    def enter(self, trace: Trace, *, timeout_ns: int = 0) -> None:
        """Of some lookups of a trace, entries that the next such packet hits."""
        model = self.program.model
        for step in steps_of(trace.steps):
            if (
                not isinstance(step, events.TableEvent)
                or step.entry is not None
                or self.chooser.random() < 0.4
            ):
                continue
            table = model.table(step.name)
            if not table.key or not table.actions:
                continue
            key = b"".join(
                k.value.to_bytes(f.nbytes, "big") for k, f in zip(step.key, table.key, strict=True)
            )
            # of a range the mask is its upper bound
            mask = b"".join(
                k.value.to_bytes(f.nbytes, "big") if f.kind == "range" else b"\xff" * f.nbytes
                for k, f in zip(step.key, table.key, strict=True)
            )
            target = (
                call(self.program, self.chooser, table)
                if table.profile is None
                else self.chooser.choice(self._groups[table.index])
            )
            for switch in (self.tried, self.other):
                try:
                    handle = switch.table_insert(
                        table.index, key, mask, prefix_bits=8 * len(key), priority=1, target=target
                    )
                except StateError as error:
                    assert error.code in ("exists", "full", "invalid"), error
                    continue
                if table.meter is not None:
                    switch.entry_meter_set(table.index, handle, MeterRates(1, 100, 2, 200))

    def state(self, switch: V1ModelSwitch) -> list[object]:
        model = self.program.model
        return [
            *(switch.counter_cells(c.index, 0, c.size) for c in model.counters if not c.direct),
            *(switch.register_read_all(r.index) for r in model.registers),
            *(
                switch.entry_counter(t.index, handle)
                for t in model.tables
                if t.with_counters
                for handle in range(switch.table_count(t.index))
            ),
            switch.drops(),
            switch.account(),
            switch.digests(),
            *(switch.port_stats(port) for port in PORTS),
        ]


@pytest.mark.parametrize("name", some(NAMES, 3))
def test_a_try_tells_what_happens_and_changes_nothing(name: str) -> None:
    """Of 120 packets, with entries that come as they miss: the same frames leave as the try has said, and a
    switch without tries has the same state in the end.
    """
    twins = Twins(program(name), seed=len(name))
    packets = frames(twins.chooser)
    for number in range(120):
        port, frame, now_ns = twins.chooser.choice(PORTS), next(packets), 1000 * number
        trace = dry_run_packet(twins.tried, port, frame, at_ns=now_ns)
        assert not trace.cut
        assert text(trace)
        left: list[Counter[tuple[int, bytes]]] = []
        for switch in (twins.tried, twins.other):
            switch.inject(port, frame, now_ns)
            switch.run(now_ns)
            left.append(Counter((o.port, o.data) for o in switch.outputs()))
        assert left[0] == left[1]
        if name != "priorities":  # of a port without limit nothing waits, so the order of queues shows
            assert sent(trace) == left[0], text(trace)
        assert twins.state(twins.tried) == twins.state(twins.other)
        twins.enter(trace)


def test_a_packet_without_end_is_cut_and_leaves_no_mark() -> None:
    """A packet that is resubmitted for ever: the trace says that it ends early, and the switch is as before."""
    b = Builder([("a", 8)], [("b", 8)])
    b.extra["register_arrays"] = [{"name": "r", "id": 0, "size": 1, "bitwidth": 8}]
    b.extra["field_lists"] = [{"name": "none", "id": 1, "elements": []}]
    b.run(
        [
            call_of("register_write", {"type": "register_array", "value": "r"}, const(0), field("in", "a")),
            call_of("resubmit", const(1)),
        ]
    )
    with V1ModelSwitch(load_program(b.text())) as switch:
        switch.register_write(0, 0, 7)
        before = switch.account(), switch.drops()
        trace = dry_run_packet(switch, 1, pack([("a", 8), ("b", 8)], [9, 0]))
        assert trace.cut
        written = [s for s in trace.steps if isinstance(s, events.RegisterEvent)]
        assert len(written) > 100
        assert {(s.access, s.index, s.inside, s.value) for s in written} == {("write", 0, True, 9)}
        assert switch.register_read(0, 0) == 7
        assert (switch.account(), switch.drops()) == before
        assert "size limit and ends here" in text(trace)


def test_every_outcome() -> None:
    """Of a group of three members each is taken once, and of `random` each number; the natural one comes first."""
    loaded = program("action_profiles")
    twins = Twins(loaded, seed=3)
    chooser = random.Random(3)
    seen: Counter[int] = Counter()
    for _, frame in zip(range(200), frames(chooser), strict=False):
        natural = dry_run_packet(twins.tried, 1, frame)
        ways = [run.trace for run in dry_runs(twins.tried, 1, frame)]
        assert ways[0] == natural
        choices = [tuple(s.taken for s in way.steps if isinstance(s, events.ChoiceEvent)) for way in ways]
        assert len(set(choices)) == len(choices)
        possible = 1
        for s in natural.steps:
            if isinstance(s, events.ChoiceEvent):
                possible *= s.of
        if all(len(c) == len(choices[0]) for c in choices):
            assert len(ways) == possible
        seen[len(ways)] += 1
        twins.enter(natural)
    assert seen[3] > 0, seen


def test_colours_and_random_numbers() -> None:
    loaded = program("meters")
    with V1ModelSwitch(loaded) as switch:
        for meter in loaded.model.meters:
            if not meter.direct:
                switch.meter_set_cells(meter.index, 0, meter.size, MeterRates(1, 1000, 2, 2000))
        frame = next(frames(random.Random(1)))
        ways = [run.trace for run in dry_runs(switch, 1, frame)]
        colours = {tuple(s.colour for s in way.steps if isinstance(s, events.MeterEvent)) for way in ways}
        # a meter without rates has no choice
        n = sum(isinstance(s, events.ChoiceEvent) for s in ways[0].steps)
        assert n > 0
        assert len(ways) == len(colours) == 3**n


def test_the_number_of_ways_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By number, and by what all of them tell together."""
    loaded = program("truncate_log_random")
    with V1ModelSwitch(loaded) as switch:
        frame = next(frames(random.Random(2)))
        ways = [run.trace for run in dry_runs(switch, 1, frame)]
        assert list(tree(ways[:20]))
        monkeypatch.setattr(dry_run, "MOST_RECORD_FIELDS", 1000)
        assert 1 <= len(list(dry_runs(switch, 1, frame))) < len(ways)
        monkeypatch.setattr(dry_run, "MOST_OUTCOMES", 5)
        monkeypatch.setattr(dry_run, "MOST_RECORD_FIELDS", 1 << 21)
        assert len(list(dry_runs(switch, 1, frame))) == 5


@pytest.mark.parametrize(
    ("port", "length", "said"),
    [(512, 60, "port 512"), (2**32, 60, "no such port"), (-1, 60, "no such port"), (1, 66_001, "too long")],
)
def test_what_cannot_be_tried(port: int, length: int, said: str) -> None:
    with V1ModelSwitch(program("basic_l3")) as switch, pytest.raises(TraceError, match=said):
        dry_run_packet(switch, port, bytes(length))


def test_another_program_of_the_same_shape_is_not_tried() -> None:
    """A switch that has got another program meanwhile, with as many tables and fields: its state has other places."""

    def with_cells(size: int) -> SwitchProgram:
        b = Builder([("a", 8)], [("b", 8)])
        b.extra["register_arrays"] = [{"name": "r", "id": 0, "size": size, "bitwidth": 64}]
        b.run(
            [call_of("register_write", {"type": "register_array", "value": "r"}, const(size - 1), const(1))]
        )
        return load_program(b.text())

    large, small = TracingBuild(with_cells(1 << 16)), with_cells(1)
    core, tracer = load(), large.new_tracer(1 << 12)
    with V1ModelSwitch(small) as switch:
        assert (
            core.tr_dry_run(switch.handle, tracer, large.regular, large.tracing, 1, b"\0", 1, 0, [], 0)
            == C.TR_EINVAL
        )
        assert core.tr_tracer_attach(switch.handle, tracer, large.regular, large.tracing, 1) == C.TR_EINVAL
        switch.inject(1, b"\0", 0)
        assert switch.register_read(0, 0) == 1


def test_without_a_program() -> None:
    with V1ModelSwitch(None) as switch, pytest.raises(TraceError, match="no program"):
        dry_run_packet(switch, 1, b"")


def test_steps_survive_json() -> None:
    """What a trace says is the same after it went through JSON."""
    twins = Twins(program("p4rt_all"), seed=5)
    for _, frame in zip(range(40), frames(twins.chooser), strict=False):
        trace = dry_run_packet(twins.tried, 2, frame)
        assert msgspec.json.decode(msgspec.json.encode(trace), type=Trace) == trace
        twins.enter(trace)


def test_changes_and_lines_of_the_program() -> None:
    """Of a program's statement: its text, its place, and its field before and after."""
    twins = Twins(program("basic_l3"), seed=1)
    frame = bytes(Ether(dst="02:00:00:00:00:01") / IP(dst="10.0.0.7", ttl=9) / UDP())
    first = dry_run_packet(twins.tried, 1, frame)
    (lookup,) = (s for s in first.steps if isinstance(s, events.TableEvent) and s.match == "lpm")
    assert [(k.bits, k.value) for k in lookup.key] == [(32, 0x0A000007)]
    assert lookup.entry is None
    table = twins.program.model.table(lookup.name)
    action = next(a for a in table.actions if len(twins.program.model.actions[a].params) >= 1)
    params = twins.program.model.actions[action].params
    handle = twins.tried.table_insert(
        table.index,
        bytes([10, 0, 0, 0]),
        bytes([255, 255, 255, 0]),
        prefix_bits=24,
        target=ActionCall(action, tuple(3 for _ in params)),
    )
    trace = dry_run_packet(twins.tried, 1, frame)
    (lookup,) = (s for s in trace.steps if isinstance(s, events.TableEvent) and s.name == table.name)
    assert lookup.entry == handle
    assert lookup.place is not None
    assert lookup.place.file.endswith("basic_l3.p4")
    done = next(s for s in trace.steps if isinstance(s, events.ActionEvent) and s.arguments)
    assert [a.value for a in done.arguments] == [3] * len(params)
    ttl = [
        c
        for s in trace.steps
        if isinstance(s, events.StatementEvent)
        for c in s.changes
        if c.field.endswith("ttl")
    ]
    assert [(c.before, c.after) for c in ttl] == [(9, 8)]
    (left,) = (s for s in trace.steps if isinstance(s, events.SentEvent))
    assert left.port == 3
    assert IP(bytes.fromhex(left.frame)[14:]).ttl == 8
