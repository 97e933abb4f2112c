# SPDX-License-Identifier: Apache-2.0
"""Replays a saved trace on a simple_switch_grpc process without interfaces; the packet comes over gRPC.

Its CPU port is a port like others here. What its P4Runtime server has not, registers and value sets, is
written over Thrift.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from finsy.proto import p4i, p4r

from tailrace.bmv2.dataplane import Dataplane
from tailrace.bmv2.process import DEVICE_ID, EXECUTABLE, Bmv2Process
from tailrace.bmv2.thrift import ThriftClient, ThriftError
from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import SwitchError
from tailrace.spec import SpecError
from tailrace.switch.replay.document import Frame, SavedTrace, TraceOutcome
from tailrace.switch.replay.runner import updates

_ELECTION_ID = 1
_PACKET_S = 20.0
"""For the packet and its copies, which may be under way for ever."""

_MOST_REGISTER_BITS = 63


def run(saved: SavedTrace) -> TraceOutcome:
    """What BMv2 sends; why it drops it does not say.

    Raises:
        SpecError: BMv2 refuses the program or an entity; begins with the key.
        ProcessError: it is not on PATH, or has ended.
        DataplaneError: it has ended, or does not come to an end with the packet.
    """
    settings = saved.document.switch
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        switch = stack.enter_context(
            Bmv2Process(log, priority_queues=settings.priority_queues, drop_port=settings.drop_port)
        )
        switch.wait_ready()
        connection = GrpcConnection(EXECUTABLE, switch.address, DEVICE_ID)
        stack.callback(connection.close)
        _fill(connection, switch, saved)
        dataplane = Dataplane(switch.dataplane, DEVICE_ID, _PACKET_S)
        stack.callback(dataplane.close)
        packet = saved.document.packet
        (sent,) = dataplane.window([(packet.port, packet.data)])
    return TraceOutcome(tuple(Frame(port, data.hex()) for port, data in sent), ())


def _fill(connection: GrpcConnection, switch: Bmv2Process, saved: SavedTrace) -> None:
    client = connection.client
    run_at_once(client.become_primary(_ELECTION_ID))
    request = p4r.SetForwardingPipelineConfigRequest(
        action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    )
    request.config.p4info.CopyFrom(saved.p4info)
    request.config.p4_device_config = saved.json
    with _refused("program"):
        run_at_once(client.set_pipeline(request, saved.document.program.name))
    by_thrift = dict(_by_thrift(saved))
    # its P4Runtime server can neither read nor delete the entries that a program brings along
    brought = {table.preamble.id for table in saved.p4info.tables if table.has_initial_entries}
    for key, update in updates(saved, ()):
        with _refused(key):
            if key in by_thrift:
                with switch.thrift() as thrift:
                    by_thrift[key](thrift)
                continue
            try:
                run_at_once(client.write([update]))
            except SwitchError:
                # it is one of them, most likely; if not, the outcome says so
                if update.entity.table_entry.table_id not in brought:
                    raise


@contextlib.contextmanager
def _refused(key: str) -> Iterator[None]:
    try:
        yield
    except (SwitchError, ThriftError) as error:
        raise SpecError(f"{key}: {error}") from None


def _by_thrift(saved: SavedTrace) -> Iterator[tuple[str, Callable[[ThriftClient], None]]]:
    """What is written over Thrift, by its key."""
    program = ProgramNames(saved.p4info)
    for key, update in updates(saved, ()):
        kind = update.entity.WhichOneof("entity")
        if kind == "register_entry":
            cell = update.entity.register_entry
            value = program.register_number(cell)
            if not -1 << _MOST_REGISTER_BITS <= value < 1 << _MOST_REGISTER_BITS:
                raise SpecError(
                    f"{key}: BMv2 takes values of {_MOST_REGISTER_BITS} bits at most, over Thrift"
                )
            name = program.registers.full(cell.register_id)
            yield key, partial(_write_register, name, cell.index.index, value)
        elif kind == "value_set_entry":
            entry = update.entity.value_set_entry
            fields = program.value_sets.item(entry.value_set_id).match
            values = [_concatenated_key(key, member, fields) for member in entry.members]
            yield key, partial(_add_values, program.value_sets.full(entry.value_set_id), values)


def _write_register(name: str, index: int, value: int, thrift: ThriftClient) -> None:
    thrift.register_write(name, index, value)


def _add_values(name: str, values: Sequence[bytes], thrift: ThriftClient) -> None:
    for value in values:
        thrift.value_set_add(name, value)


def _concatenated_key(key: str, member: p4r.ValueSetMember, fields: Iterable[p4i.MatchField]) -> bytes:
    """A member of a value set as BMv2 takes it: all its fields one after the other."""
    value = bits = 0
    given = {match.field_id: match for match in member.match}
    for field in fields:
        match = given.get(field.id)
        if match is None or not match.HasField("exact"):
            raise SpecError(f"{key}: BMv2's value sets have exact fields, and all of them")
        value = value << field.bitwidth | int.from_bytes(match.exact.value, "big")
        bits += field.bitwidth
    if value >> bits:
        raise SpecError(f"{key}: a value does not fit into {bits} bits")
    return value.to_bytes((bits + 7) // 8, "big")
