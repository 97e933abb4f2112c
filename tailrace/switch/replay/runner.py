# SPDX-License-Identifier: Apache-2.0
"""A saved trace once more, on a native switch made for it in this process; and how outcomes differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from finsy.proto import p4i, p4r

from tailrace.p4rt.status import P4RtError
from tailrace.spec import SpecError
from tailrace.switch.compiler import CompilerError
from tailrace.switch.core import StateError, SwitchConfig, V1ModelSwitch
from tailrace.switch.p4runtime.device import Device, DeviceSettings
from tailrace.switch.p4runtime.program_compiler import ProgramCompiler
from tailrace.switch.replay.document import Frame, SavedTrace, TraceOutcome
from tailrace.switch.trace import Trace, TraceError, dry_run_packet

_ONLY_MODIFIED = ("register_entry", "meter_entry", "value_set_entry")


def run(saved: SavedTrace) -> Trace:
    """What a switch with no more than what was saved does with the packet.

    Raises:
        SpecError: the program or an entity is no good; begins with the key.
        ProgramError: the program cannot be compiled on this machine.
    """
    document = saved.document
    settings = document.switch
    config = SwitchConfig(
        cpu_port=settings.cpu_port,
        drop_port=settings.drop_port,
        priority_queues=settings.priority_queues,
        tick_ns=settings.tick_ns,
    )
    compiler = ProgramCompiler()
    try:
        with V1ModelSwitch(None, config) as switch:
            device = Device(switch, DeviceSettings(bmv2_compat=True), lambda: settings.time_ns, compiler)
            push(device, saved.document.program.name, saved.json, saved.p4info)
            for key, update in updates(saved, initial_entries(device)):
                write(device, key, [update])
            return dry_run_packet(
                switch,
                document.packet.port,
                document.packet.data,
                at_ns=settings.time_ns,
                choices=document.choices,
            )
    except (StateError, TraceError) as error:
        raise SpecError(f"switch: {error}") from None
    finally:
        compiler.stop()


def push(device: Device, name: str, json: bytes, p4info: p4i.P4Info) -> None:
    """Loads a program. Raises SpecError."""
    config = p4r.ForwardingPipelineConfig(p4_device_config=json)
    config.p4info.CopyFrom(alone(p4info))
    try:
        prepared = device.prepare_config(config)
        device.configure(p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, prepared)
    except (P4RtError, CompilerError) as error:
        raise SpecError(f"program: {name}: {error}") from None


def initial_entries(device: Device) -> list[p4r.Entity]:
    """The entries that the program brings along, of a device that has just got it."""
    asked = p4r.ReadRequest(entities=[p4r.Entity(table_entry=p4r.TableEntry())])
    return [entity for response in device.read(asked)[0] for entity in response.entities]


def write(device: Device, key: str, updates: Sequence[p4r.Update]) -> None:
    """Carries out updates. Raises SpecError, which begins with the key, at the first that is refused."""
    try:
        results = device.write(p4r.WriteRequest(updates=updates))
    except P4RtError as error:
        results = [error]
    for result in results:
        if result is not None:
            raise SpecError(f"{key}: {result.message}")


# ---- what is the same for all switches ----


def alone(info: p4i.P4Info) -> p4i.P4Info:
    """P4Info without what annotations say of fields: they refer to entries, of which only some are there."""
    found = p4i.P4Info()
    found.CopyFrom(info)
    fields = [field for table in found.tables for field in table.match_fields]
    for one in (*fields, *(param for action in found.actions for param in action.params)):
        one.ClearField("annotations")
        one.ClearField("structured_annotations")
    return found


def updates(saved: SavedTrace, there: Sequence[p4r.Entity]) -> Iterator[tuple[str, p4r.Update]]:
    """What makes a switch that has just got the program one that does the same, each with its key.

    Args:
        there: the entries that it has already; those that are not constant may have been deleted where the
            trace is from.
    """
    for entity in there:
        if not entity.table_entry.is_const and not entity.table_entry.is_default_action:
            yield "program", p4r.Update(type=p4r.Update.DELETE, entity=entity)
    for at, entity in enumerate(saved.entities):
        yield f"entities[{at}]", setting(entity)


def setting(entity: p4r.Entity) -> p4r.Update:
    """The update that gives an entity to a switch that has just got its program."""
    modified = entity.WhichOneof("entity") in _ONLY_MODIFIED or entity.table_entry.is_default_action
    return p4r.Update(type=p4r.Update.MODIFY if modified else p4r.Update.INSERT, entity=entity)


def differences(expected: TraceOutcome, found: TraceOutcome, *, reasons: bool) -> Iterator[str]:
    """Each difference in a line; the order of frames does not count.

    Args:
        reasons: those of drops count.
    """
    missing, more = _less(expected.sent, found.sent), _less(found.sent, expected.sent)
    for frame in tuple(missing):
        other = next(
            (one for one in more if one.port == frame.port and len(one.data) == len(frame.data)), None
        )
        if other is not None:
            missing.remove(frame)
            more.remove(other)
            yield from _bytes(frame, other)
    for what, frames in (("missing", missing), ("not expected", more)):
        for frame in frames:
            yield f"{what}: port {frame.port}: {frame.frame or 'an empty frame'}"
    if reasons:
        for reason in (Counter(expected.dropped) - Counter(found.dropped)).elements():
            yield f"missing: dropped: {reason}"
        for reason in (Counter(found.dropped) - Counter(expected.dropped)).elements():
            yield f"not expected: dropped: {reason}"


def _less(these: Sequence[Frame], those: Sequence[Frame]) -> list[Frame]:
    return list((Counter(these) - Counter(those)).elements())


def _bytes(expected: Frame, found: Frame) -> Iterator[str]:
    """Where two frames of one length differ."""
    first = None
    pairs = [*zip(expected.data, found.data, strict=True), (0, 0)]
    for at, (one, other) in enumerate(pairs):
        if one != other and first is None:
            first = at
        elif one == other and first is not None:
            yield (
                f"port {expected.port}, bytes from {first} on: expected {expected.data[first:at].hex()}, "
                f"found {found.data[first:at].hex()}"
            )
            first = None
