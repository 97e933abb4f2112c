# SPDX-License-Identifier: Apache-2.0
"""Switch copy: a native switch in this process with program and entities of a switch, read over P4Runtime.

A copy makes dry runs possible for any switch that runs BMv2 JSON. State that cannot be read has its initial
value, and is listed in `unread`: registers are 0, value sets and queues are empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import RefusedError, UnsupportedError
from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.requests import TraceNeeds
from tailrace.spec import SpecError
from tailrace.switch.compiler import CompilerError
from tailrace.switch.core import StateError, SwitchConfig
from tailrace.switch.replay.document import update_of
from tailrace.switch.replay.runner import LocalSwitch
from tailrace.switch.trace import Trace, TraceError, dry_runs

_BATCH = 1000
"""Updates in one Write."""
_PROFILE_KINDS = ("action_profile_member", "action_profile_group")


class SwitchCopy(LocalSwitch):
    """The copy of one switch; a context manager, which frees it.

    updates: the updates written to the copy
    unread: names of state that could not be read, such as "register r"
    """

    def __init__(self, connection: GrpcConnection, *, cpu_port: int | None, priority_queues: int) -> None:
        """Reads a switch.

        Args:
            connection: a connection to the switch.
            cpu_port: the switch's CPU port, which P4Runtime cannot query.
            priority_queues: its number of priority queues per port, which P4Runtime cannot query either.

        Raises:
            SwitchError: the switch is unreachable, or its program cannot be read.
            TraceError: the copy rejects the program or an entity; the message begins with the switch's name.
        """
        self.name, self.unread, self.updates = connection.name, list[str](), list[p4r.Update]()
        config = run_at_once(connection.client.config())  # its coroutines block instead of waiting
        if not config.p4_device_config or not config.p4info.ByteSize():
            raise UnsupportedError(self.name, "its program cannot be read, so dry runs are not possible")
        self._info = config.p4info
        try:
            super().__init__(SwitchConfig(cpu_port=cpu_port, priority_queues=priority_queues))
            try:
                self._populate(connection, config)
            except BaseException:
                self.close()
                raise
        except (StateError, CompilerError, SpecError) as error:
            raise TraceError(f"{self.name}: cannot be copied for a dry run: {error}") from None

    def traces(self, port: int, frame: bytes, *, every: bool) -> list[Trace]:
        """The trace of a frame; if `every`, one trace per possible outcome. Raises TraceError."""
        runs = dry_runs(self.switch, port, frame, describe=self.device.entity_text)
        return [run.trace for run in (runs if every else islice(runs, 1))]

    def needs(self, port: int, frame: bytes) -> tuple[Trace, TraceNeeds]:
        """The trace of a frame, and what another switch needs to repeat it (p4runtime/read_set.py).

        Raises:
            TraceError: as `traces`, or the trace is cut.
        """
        trace, events = next(dry_runs(self.switch, port, frame, describe=self.device.entity_text))
        if trace.cut:
            raise TraceError("the trace is incomplete, as it exceeds the limit of events: it cannot be saved")
        return trace, self.device.needs(events, 0)

    def _populate(self, connection: GrpcConnection, config: p4r.ForwardingPipelineConfig) -> None:
        self.load(self._info.pkg_info.name or "its program", config.p4_device_config, self._info)
        initial: dict[int, list[p4r.Entity]] = defaultdict(list)
        for entity in self.initial_entries():
            if not entity.table_entry.is_const:
                initial[entity.table_entry.table_id].append(entity)
        for name, request in _read_requests(self._info):
            try:
                # BMv2 returns a member once for each of its copies in groups
                entities = list({e.SerializeToString(): e for e in connection.read([request])}.values())
            except RefusedError:
                # BMv2 cannot read the members of one-shots, which are not needed; other missing members need
                # not be listed, as the copy rejects entries that refer to them
                if request.WhichOneof("entity") not in _PROFILE_KINDS:
                    self.unread.append(name)
                continue
            if not request.table_entry.is_default_action:
                replaced = initial[request.table_entry.table_id]
                self.updates += [p4r.Update(type=p4r.Update.DELETE, entity=entity) for entity in replaced]
            self.updates += [
                update_of(_without_counters(entity)) for entity in entities if not _is_initial(entity)
            ]
        for first in range(0, len(self.updates), _BATCH):
            self.write("an entity", self.updates[first : first + _BATCH])


def _read_requests(info: p4i.P4Info) -> Iterator[tuple[str, p4r.Entity]]:
    """Wildcard read requests with names, in an order in which their entities can be written."""
    for profile in info.action_profiles:
        profile_id, name = profile.preamble.id, profile.preamble.name
        member = p4r.ActionProfileMember(action_profile_id=profile_id)
        yield f"members of {name}", p4r.Entity(action_profile_member=member)
        if profile.with_selector:
            group = p4r.ActionProfileGroup(action_profile_id=profile_id)
            yield f"groups of {name}", p4r.Entity(action_profile_group=group)
    for value_set in info.value_sets:
        members = p4r.ValueSetEntry(value_set_id=value_set.preamble.id)
        yield f"value set {value_set.preamble.name}", p4r.Entity(value_set_entry=members)
    for kind in ("multicast_group_entry", "clone_session_entry"):
        replication = p4r.PacketReplicationEngineEntry()
        getattr(replication, kind).SetInParent()
        name = kind.removesuffix("_entry").replace("_", " ") + "s"
        yield name, p4r.Entity(packet_replication_engine_entry=replication)
    for register in info.registers:
        cells = p4r.RegisterEntry(register_id=register.preamble.id)
        yield f"register {register.preamble.name}", p4r.Entity(register_entry=cells)
    for meter in info.meters:
        cells_of_meter = p4r.MeterEntry(meter_id=meter.preamble.id)
        yield f"meter {meter.preamble.name}", p4r.Entity(meter_entry=cells_of_meter)
    for table in info.tables:
        yield from _of_table(table, {meter.direct_table_id for meter in info.direct_meters})


def _of_table(table: p4i.Table, metered: set[int]) -> Iterator[tuple[str, p4r.Entity]]:
    """Read requests for a table's entries and its default action, unless they are constant.

    `metered`: ids of the tables with a direct meter.
    """
    table_id, name = table.preamble.id, table.preamble.name
    if not table.is_const_table:
        entries = p4r.TableEntry(table_id=table_id)
        if table_id in metered:
            entries.meter_config.SetInParent()
        yield f"entries of {name}", p4r.Entity(table_entry=entries)
    if not table.const_default_action_id and not table.implementation_id:
        default = p4r.TableEntry(table_id=table_id, is_default_action=True)
        yield f"default action of {name}", p4r.Entity(table_entry=default)


def _is_initial(entity: p4r.Entity) -> bool:
    """Whether an entity needs no update: a constant entry, a register cell of 0, a meter without rates."""
    kind = entity.WhichOneof("entity")
    if kind == "register_entry":
        data = entity.register_entry.data
        return data.WhichOneof("data") == "bitstring" and not data.bitstring.strip(b"\0")
    return entity.table_entry.is_const or (
        kind == "meter_entry" and not entity.meter_entry.HasField("config")
    )


def _without_counters(entity: p4r.Entity) -> p4r.Entity:
    """Removes counters and idle times from an entity."""
    if entity.HasField("table_entry"):
        entry = entity.table_entry
        entry.ClearField("counter_data")
        entry.ClearField("meter_counter_data")
        entry.ClearField("time_since_last_hit")
        entry.ClearField("idle_timeout_ns")
    return entity
