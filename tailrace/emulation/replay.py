# SPDX-License-Identifier: Apache-2.0
"""Replays a saved trace on a simple_switch_grpc process without interfaces, which gets the packet over gRPC.

The CPU port is a port like any other here. Registers and value sets, which BMv2's P4Runtime server does not
support, are written over Thrift.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator

from tailrace.bmv2.dataplane import Dataplane
from tailrace.bmv2.process import DEVICE_ID, EXECUTABLE, Bmv2Process
from tailrace.bmv2.thrift import ThriftClient, ThriftError
from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import SwitchError
from tailrace.p4rt.messages import p4i, p4r
from tailrace.spec import SpecError
from tailrace.switch.replay.document import Frame, SavedTrace, TraceOutcome
from tailrace.switch.replay.runner import updates

_ELECTION_ID = 1
_PACKET_S = 20.0
"""Timeout of the packet and its copies, which may be recirculated for ever."""

_MOST_REGISTER_BITS = 63


def run(saved: SavedTrace) -> TraceOutcome:
    """The frames that BMv2 sends; the outcome has no drops, as BMv2 does not report their reasons.

    Raises:
        SpecError: BMv2 rejects the program or an entity; the message begins with the key of what it rejects.
        ProcessError: BMv2 is not on PATH, or has ended.
        DataplaneError: BMv2 has ended, or still processes the packet after the timeout.
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
    program = ProgramNames(saved.p4info)
    # BMv2's P4Runtime server can neither read nor delete the program's initial entries
    with_initial = {table.preamble.id for table in saved.p4info.tables if table.has_initial_entries}
    # updates(saved, initial) also deletes the entries `initial`; here there are none to delete
    for key, update in updates(saved, ()):
        with _refused(key):
            if update.entity.WhichOneof("entity") in ("register_entry", "value_set_entry"):
                with switch.thrift() as thrift:
                    _write_by_thrift(thrift, program, key, update.entity)
                continue
            try:
                run_at_once(client.write([update]))
            except SwitchError:
                # the entry probably exists as an initial entry; if not, the outcome will differ
                if update.entity.table_entry.table_id not in with_initial:
                    raise


@contextlib.contextmanager
def _refused(key: str) -> Iterator[None]:
    try:
        yield
    except (SwitchError, ThriftError) as error:
        raise SpecError(f"{key}: {error}") from None


def _write_by_thrift(thrift: ThriftClient, program: ProgramNames, key: str, entity: p4r.Entity) -> None:
    """Writes a register cell or a value set; `key`: its place in the trace, for messages."""
    if entity.HasField("register_entry"):
        cell = entity.register_entry
        value = program.register_number(cell)
        if not -1 << _MOST_REGISTER_BITS <= value < 1 << _MOST_REGISTER_BITS:
            raise SpecError(
                f"{key}: over Thrift BMv2 takes register values of {_MOST_REGISTER_BITS} bits at most"
            )
        thrift.register_write(program.registers.full(cell.register_id), cell.index.index, value)
        return
    entry = entity.value_set_entry
    fields = program.value_sets.item(entry.value_set_id).match
    for value_bytes in [_concatenated_key(key, member, fields) for member in entry.members]:
        thrift.value_set_add(program.value_sets.full(entry.value_set_id), value_bytes)


def _concatenated_key(key: str, member: p4r.ValueSetMember, fields: Iterable[p4i.MatchField]) -> bytes:
    """A member of a value set as BMv2 expects it: the concatenation of all its fields."""
    value = bits = 0
    given = {match.field_id: match for match in member.match}
    for field in fields:
        match = given.get(field.id)
        if match is None or not match.HasField("exact"):
            raise SpecError(f"{key}: BMv2's value sets need an exact match of every field")
        value = value << field.bitwidth | int.from_bytes(match.exact.value, "big")
        bits += field.bitwidth
    if value >> bits:
        raise SpecError(f"{key}: a value does not fit into {bits} bits")
    return value.to_bytes((bits + 7) // 8, "big")
