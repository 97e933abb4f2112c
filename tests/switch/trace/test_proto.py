# SPDX-License-Identifier: Apache-2.0
"""Traces as protobuf, which whoever reads BMv2's packet_trace.proto can read."""

from __future__ import annotations

import random
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from tailrace.switch.compiler import load_program
from tailrace.switch.core import SwitchConfig, V1ModelSwitch
from tailrace.switch.trace import Trace, dry_run_packet, events
from tailrace.switch.trace.proto import text_of
from tests.switch.trace.proto_schema import packet_trace
from tests.test_readme import ROOT

BUILD = ROOT / "tests" / "programs" / "build"

STAGE_FIELDS = {"stage_name": (1, 9), "stage_kind": (2, 5), "direction": (3, 5)}
"""Number and kind of BMv2's fields: texts, and enums as numbers."""


def bmv2s_reader() -> Any:
    """PacketTrace with nothing but what BMv2's file has, as a reader of its traces would."""
    file = descriptor_pb2.FileDescriptorProto(name="bmv2.proto", package="p4.bm", syntax="proto3")

    def message(name: str, **fields: tuple[int, str | int, bool]) -> None:
        made = file.message_type.add(name=name)
        for field, (number, kind, many) in fields.items():
            added: Any = made.field.add(name=field, number=number, label=3 if many else 1)
            if isinstance(kind, str):
                added.type, added.type_name = 11, f".p4.bm.{kind}"
            else:
                added.type = kind

    message("PacketTrace", input=(1, "InputPacket", False), root=(2, "TraceTree", False))
    message("InputPacket", packet_id=(1, 4, False), ingress_port=(2, 13, False))
    message(
        "TraceTree",
        events=(1, "TraceEvent", True),
        transmit=(2, "Transmit", False),
        drop=(3, "Drop", False),
    )
    message("TraceEvent", pipeline_stage=(1, "PipelineStageEvent", False))
    message("PipelineStageEvent", **{name: (*of, False) for name, of in STAGE_FIELDS.items()})
    message("Transmit", egress_port=(1, 13, False), packet_size=(2, 13, False))
    message("Drop")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p4.bm.PacketTrace"))


def message_of(trace: Trace) -> Any:
    """The message of a trace, by the documented schema."""
    return text_format.Parse(text_of(trace), packet_trace()())


def traces(name: str, count: int) -> list[Trace]:
    switch = V1ModelSwitch(load_program((BUILD / f"{name}.json").read_bytes()), SwitchConfig())
    made = random.Random(name)
    try:
        return [
            dry_run_packet(switch, made.randrange(8), made.randbytes(made.randrange(14, 200)))
            for _ in range(count)
        ]
    finally:
        switch.close()


@pytest.mark.parametrize("name", ["basic_l3", "control_flow", "header_stacks", "registers", "cloning"])
def test_a_reader_of_bmv2s_traces_reads_them(name: str) -> None:
    """It finds the port, the stages in their order, each with its end, and how the packet ends."""
    reader = bmv2s_reader()
    for trace in traces(name, 10):
        parsed = reader.FromString(message_of(trace).SerializeToString())
        enter = trace.steps[0]
        assert isinstance(enter, events.EnterEvent)
        assert (parsed.input.packet_id, parsed.input.ingress_port) == (1, enter.port)
        stages = [e.pipeline_stage for e in parsed.root.events if e.HasField("pipeline_stage")]
        begun = [step.stage for step in trace.steps if isinstance(step, events.BeginEvent)]
        assert [(s.stage_name, s.direction) for s in stages] == [
            (stage, direction) for stage in begun for direction in (1, 2)
        ]
        sent = [step for step in trace.steps if isinstance(step, events.SentEvent)]
        assert parsed.root.HasField("transmit") == bool(sent)
        assert parsed.root.HasField("drop") == any(isinstance(step, events.DropEvent) for step in trace.steps)
        if sent:
            assert parsed.root.transmit.egress_port == sent[0].port
            assert parsed.root.transmit.packet_size == len(sent[0].frame) // 2


def counted(steps: tuple[events.Event, ...]) -> int:
    """Steps, with those of copies."""
    return sum(1 + (counted(step.steps) if isinstance(step, events.CopyEvent) else 0) for step in steps)


def events_in(tree: Any) -> int:
    ends = tree.HasField("transmit") + tree.HasField("drop")
    exits = sum(e.HasField("pipeline_stage") and e.pipeline_stage.direction == 2 for e in tree.events)
    copies = sum(events_in(e.copy.steps) for e in tree.events if e.HasField("copy"))
    return len(tree.events) - int(exits) + int(ends) + copies


@pytest.mark.parametrize("name", ["control_flow", "cloning", "digests", "meters", "registers"])
def test_nothing_is_left_out(name: str) -> None:
    """As many events as there are steps; wide numbers keep their value."""
    for trace in traces(name, 10):
        message: Any = message_of(trace)
        assert events_in(message.root) == counted(trace.steps)
        changes = [c for s in trace.steps if isinstance(s, events.StatementEvent) for c in s.changes]
        reported = [c for e in message.root.events if e.HasField("statement") for c in e.statement.changes]
        assert [(c.field, int.from_bytes(c.after, "big")) for c in reported] == [
            (c.field, c.after) for c in changes
        ]
    assert text_of(trace).startswith("# proto-file: packet_trace.proto\n")
    assert text_format.MessageToString(message, as_utf8=True) == text_of(trace).partition("PacketTrace\n")[2]


def made_of(kind: Any, name: str) -> Any:
    """A value of a field of a step."""
    if get_origin(kind) is tuple:
        return ()
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    kinds = get_args(kind) or (kind,)
    if bool in kinds:
        return True
    if int in kinds:
        return 1
    return ("00" if name == "frame" else "text") if str in kinds else None


@pytest.mark.parametrize("step", get_args(events.Event))
def test_every_step_has_a_message(step: Any) -> None:
    """Also those that no packet of these has."""
    values = {name: made_of(kind, name) for name, kind in get_type_hints(step).items()}
    trace = Trace(program="p", steps=(step(**values),))
    assert len(message_of(trace).SerializeToString()) > len(
        message_of(Trace(program="p", steps=())).SerializeToString()
    )
