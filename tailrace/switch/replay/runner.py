# SPDX-License-Identifier: Apache-2.0
"""Replays a saved trace on a native switch in this process, and compares outcomes."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence

from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.status import P4RtError
from tailrace.spec import SpecError
from tailrace.switch.compiler import CompilerError
from tailrace.switch.core import StateError, SwitchConfig, V1ModelSwitch
from tailrace.switch.p4runtime.device import Device, DeviceSettings
from tailrace.switch.p4runtime.program_compiler import ProgramCompiler
from tailrace.switch.replay.document import Frame, SavedTrace, TraceOutcome
from tailrace.switch.trace import Trace, TraceError, dry_run_packet


class LocalSwitch(contextlib.ExitStack):
    """A native switch in this process, with its P4Runtime device; a context manager, which frees it."""

    def __init__(self, config: SwitchConfig, now_ns: int = 0) -> None:
        """`now_ns`: the constant time of the device. Raises StateError if the settings are invalid."""
        super().__init__()
        compiler = ProgramCompiler()
        self.callback(compiler.stop)
        try:
            self.switch = self.enter_context(V1ModelSwitch(None, config))
        except StateError:
            self.close()
            raise
        # bmv2_compat: a Write needs no client that is primary
        self.device = Device(self.switch, DeviceSettings(bmv2_compat=True), lambda: now_ns, compiler)

    def load(self, name: str, json: bytes, p4info: p4i.P4Info) -> None:
        """Loads a program. Raises SpecError if it is rejected."""
        config = p4r.ForwardingPipelineConfig(p4_device_config=json)
        config.p4info.CopyFrom(without_annotations(p4info))
        try:
            prepared = self.device.prepare_config(config)
            self.device.configure(p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, prepared)
        except (P4RtError, CompilerError) as error:
            raise SpecError(f"program: {name}: {error}") from None

    def initial_entries(self) -> list[p4r.Entity]:
        """The initial entries of the program, before any write."""
        request = p4r.ReadRequest(entities=[p4r.Entity(table_entry=p4r.TableEntry())])
        return [entity for response in self.device.read(request)[0] for entity in response.entities]

    def write(self, key: str, updates: Sequence[p4r.Update]) -> None:
        """Writes updates. Raises SpecError for the first rejected update; the message begins with `key`."""
        try:
            results = self.device.write(p4r.WriteRequest(updates=updates))
        except P4RtError as error:
            results = [error]
        for result in results:
            if result is not None:
                raise SpecError(f"{key}: {result.message}")


def run(saved: SavedTrace) -> Trace:
    """Replays a saved trace on a new switch that has only the saved state.

    Raises:
        SpecError: the program or an entity is rejected; the message begins with its key.
        CompilerError: the program cannot be compiled on this machine.
    """
    document = saved.document
    settings = document.switch
    config = SwitchConfig(
        cpu_port=settings.cpu_port,
        drop_port=settings.drop_port,
        priority_queues=settings.priority_queues,
        tick_ns=settings.tick_ns,
    )
    try:
        with LocalSwitch(config, settings.time_ns) as local:
            local.load(document.program.name, saved.json, saved.p4info)
            for key, update in updates(saved, local.initial_entries()):
                local.write(key, [update])
            return dry_run_packet(
                local.switch,
                document.packet.port,
                document.packet.data,
                at_ns=settings.time_ns,
                choices=document.choices,
            )
    except (StateError, TraceError) as error:
        raise SpecError(f"switch: {error}") from None


# ---- used for replays on other switches, too ----


def without_annotations(info: p4i.P4Info) -> p4i.P4Info:
    """P4Info without annotations of fields and parameters: @refers_to may need entries that are not saved."""
    copy = p4i.P4Info()
    copy.CopyFrom(info)
    fields = [field for table in copy.tables for field in table.match_fields]
    for item in (*fields, *(param for action in copy.actions for param in action.params)):
        item.ClearField("annotations")
        item.ClearField("structured_annotations")
    return copy


def updates(saved: SavedTrace, initial: Sequence[p4r.Entity]) -> Iterator[tuple[str, p4r.Update]]:
    """The updates that bring a switch with the program to the saved state, and the key of each for errors.

    Args:
        initial: the switch's initial entries; those that are not constant are deleted first.
    """
    for entity in initial:
        if not entity.table_entry.is_const and not entity.table_entry.is_default_action:
            yield "program", p4r.Update(type=p4r.Update.DELETE, entity=entity)
    for index, update in enumerate(saved.updates):
        yield f"updates[{index}]", update


def differences(expected: TraceOutcome, actual: TraceOutcome, *, reasons: bool) -> Iterator[str]:
    """The differences, one line for each; the order of frames is ignored.

    Args:
        reasons: whether to compare the reasons of drops, too.
    """
    missing, extra = _without(expected.sent, actual.sent), _without(actual.sent, expected.sent)
    for frame in tuple(missing):
        other = next(
            (item for item in extra if item.port == frame.port and len(item.data) == len(frame.data)), None
        )
        if other is not None:
            missing.remove(frame)
            extra.remove(other)
            yield from _byte_differences(frame, other)
    for what, frames in (("missing", missing), ("not expected", extra)):
        for frame in frames:
            yield f"{what}: port {frame.port}: {frame.frame or 'an empty frame'}"
    if reasons:
        for reason in (Counter(expected.dropped) - Counter(actual.dropped)).elements():
            yield f"missing: dropped: {reason}"
        for reason in (Counter(actual.dropped) - Counter(expected.dropped)).elements():
            yield f"not expected: dropped: {reason}"


def _without(these: Sequence[Frame], those: Sequence[Frame]) -> list[Frame]:
    """The multiset difference."""
    return list((Counter(these) - Counter(those)).elements())


def _byte_differences(expected: Frame, actual: Frame) -> Iterator[str]:
    """The ranges of bytes in which two frames of the same length differ, one line for each."""
    first = None
    # the last pair, of equal bytes, ends a range at the end of the frames
    pairs = [*zip(expected.data, actual.data, strict=True), (0, 0)]
    for offset, (octet, other) in enumerate(pairs):
        if octet != other and first is None:
            first = offset
        elif octet == other and first is not None:
            yield (
                f"port {expected.port}, bytes from {first} on: expected {expected.data[first:offset].hex()}, "
                f"found {actual.data[first:offset].hex()}"
            )
            first = None
