# SPDX-License-Identifier: Apache-2.0
"""Interface of a switch under test: updates, packets, counters; and its implementation over gRPC."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TypeVar

from checks.conformance.packets import Packet
from checks.conformance.program import CompiledProgram, ConformanceError
from tailrace.bmv2.dataplane import Dataplane, DataplaneError, Outputs
from tailrace.bmv2.process import DEVICE_ID
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once  # runs a coroutine that never suspends
from tailrace.p4rt.errors import SwitchError, WriteError
from tailrace.p4rt.messages import p4i, p4r
from tailrace.spec.text import one_line

READY_S = 60.0
DIGEST_S = 5.0
LONE_S = 10.0
"""Timeout of a single packet, which some programs recirculate for ever."""
NEVER_NS = 3_600_000_000_000
MOST_SHOWN = 300
Learned = tuple[str, tuple[int, ...]]
"""A digest: its name and values."""
Cells = dict[str, list[tuple[int, int]]]
"""(bytes, packets) of all cells by counter name; 0 for the unit that the counter does not count."""

_T = TypeVar("_T", bound="SwitchUnderTest")


class SwitchUnderTest(ABC):
    """A switch that runs one program; a context manager, whose exit stops it."""

    program: CompiledProgram

    def __enter__(self: _T) -> _T:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Waits until the switch serves."""

    @abstractmethod
    def stop(self) -> None:
        """Stops the switch."""

    @abstractmethod
    def push(self) -> None:
        """Sets the program (VERIFY_AND_COMMIT); the state of an earlier program is lost."""

    @abstractmethod
    def write(self, updates: Sequence[p4r.Update]) -> None:
        """Writes updates in order. Raises ConformanceError that names the first refused one."""

    @abstractmethod
    def read(self, pattern: p4r.Entity) -> list[p4r.Entity]:
        """All entities that a pattern matches."""

    @abstractmethod
    def window(self, packets: Sequence[Packet]) -> list[Outputs]:
        """The outputs of each packet, as (port, bytes) in the order in which they leave.

        Raises:
            ConformanceError: some packet recirculates for ever.
        """

    def request(self) -> p4r.SetForwardingPipelineConfigRequest:
        """The request of `push`."""
        config = p4r.ForwardingPipelineConfig(
            p4info=self.program.p4info, p4_device_config=self.program.json_bytes
        )
        action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        return p4r.SetForwardingPipelineConfigRequest(action=action, config=config)

    def install(self, updates: Sequence[p4r.Update]) -> None:
        """Loads the program again and writes the updates."""
        self.push()
        self.write(updates)

    def insert(self, entities: Iterable[p4r.Entity]) -> None:
        """Inserts entities in their order. Raises as `write`."""
        self.write([p4r.Update(type=p4r.Update.INSERT, entity=entity) for entity in entities])

    def refused(self, error: object, update: p4r.Update) -> ConformanceError:
        """The error for a refused update."""
        text = one_line(str(update))[:MOST_SHOWN]
        return ConformanceError(f"{self.program.name}: write was refused: {error} in {text}")

    def counters(self) -> Cells:
        """Every cell of every indirect counter."""
        cells: Cells = {}
        for counter in self.program.p4info.counters:
            if counter.preamble.name not in self.program.names_in_json:
                continue
            entities = self.read(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id)))
            entries = sorted((e.counter_entry for e in entities), key=lambda entry: entry.index.index)
            cells[counter.preamble.name] = [_counted(counter.spec.unit, entry.data) for entry in entries]
        return cells

    def direct_counters(self, updates: Iterable[p4r.Update]) -> Cells:
        """The counters of the entries that `updates` insert, in their order, by table."""
        inserted = [u.entity.table_entry for u in updates if u.type == p4r.Update.INSERT]
        names = {table.preamble.id: table.preamble.name for table in self.program.p4info.tables}
        cells: Cells = {}
        for direct in self.program.p4info.direct_counters:
            table_id, unit = direct.direct_table_id, direct.spec.unit
            if names[table_id] not in self.program.names_in_json:
                continue
            pattern = p4r.DirectCounterEntry(table_entry=p4r.TableEntry(table_id=table_id))
            entities = self.read(p4r.Entity(direct_counter_entry=pattern))
            counts = [entity.direct_counter_entry for entity in entities]
            by_key = {_key(count.table_entry): _counted(unit, count.data) for count in counts}
            cells[names[table_id]] = [by_key[_key(entry)] for entry in inserted if entry.table_id == table_id]
        return cells


class GrpcSwitch(SwitchUnderTest):
    """A switch reached over its P4Runtime server, as the primary controller, and its data plane server.

    Calls to the switch raise SwitchError.
    """

    def __init__(self, program: CompiledProgram, address: str, dataplane: str) -> None:
        self.program = program
        self.connection = GrpcConnection(program.name, address, DEVICE_ID)
        self.client = self.connection.client
        self.dataplane = Dataplane(dataplane, DEVICE_ID)

    def start(self) -> None:
        if not self.connection.wait(READY_S):
            raise ConformanceError(f"{self.connection.address}: no P4Runtime server in {READY_S:.0f} s")
        run_at_once(self.client.become_primary(1))

    def stop(self) -> None:
        self.dataplane.close()
        self.connection.close()

    def push(self) -> None:
        run_at_once(self.client.set_pipeline(self.request(), self.program.name))

    def write(self, updates: Sequence[p4r.Update]) -> None:
        try:
            self.connection.write(updates)
        except WriteError as error:
            first, why = next(iter(error.failures.items()), (0, error.problem))
            raise self.refused(why, updates[first]) from error

    def read(self, pattern: p4r.Entity) -> list[p4r.Entity]:
        return self.connection.read([pattern])

    def window(self, packets: Sequence[Packet]) -> list[Outputs]:
        frames = [(packet.port, packet.data) for packet in packets]
        try:
            # None: the default timeout
            return self.dataplane.window(frames, LONE_S if len(frames) == 1 else None)
        except DataplaneError as error:
            raise ConformanceError(str(error)) from error

    def enable_digests(self) -> None:
        """Enables every digest, one per message, without retransmissions."""
        config = p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=NEVER_NS)
        ids = [digest.preamble.id for digest in self.program.p4info.digests]
        self.insert(p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=i, config=config)) for i in ids)

    def take_digests(self, count: int) -> set[Learned]:
        """Waits for `count` digests, but no longer than DIGEST_S for the next one."""
        names = {digest.preamble.id: digest.preamble.name for digest in self.program.p4info.digests}
        learned: set[Learned] = set()
        while len(learned) < count:
            try:
                digest = run_at_once(self.client.receive(DIGEST_S)).digest
            except SwitchError:
                break  # there are no more, or the stream has ended with the switch
            for data in digest.data:
                members = data.struct.members if data.WhichOneof("data") == "struct" else [data]
                values = tuple(int.from_bytes(member.bitstring, "big") for member in members)
                learned.add((names[digest.digest_id], values))
        return learned


def _key(entry: p4r.TableEntry) -> tuple[int, tuple[bytes, ...]]:
    """The priority and match fields of an entry, which identify it in its table."""
    fields = sorted(entry.match, key=lambda field: field.field_id)
    return entry.priority, tuple(field.SerializeToString(deterministic=True) for field in fields)


def _counted(unit: p4i.CounterSpec.Unit.ValueType, data: p4r.CounterData) -> tuple[int, int]:
    """Bytes and packets; 0 for a unit that the counter does not count."""
    return (
        0 if unit == p4i.CounterSpec.PACKETS else data.byte_count,
        0 if unit == p4i.CounterSpec.BYTES else data.packet_count,
    )
