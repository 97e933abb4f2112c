# SPDX-License-Identifier: Apache-2.0
"""The native switch behind the interface of `Bmv2`: installs a plan, runs packets, reads state."""

from __future__ import annotations

from collections.abc import Sequence

from checks.conformance.bmv2 import PRIORITY_QUEUES
from checks.conformance.packets import Packet
from checks.conformance.plan import (
    ControlPlan,
    OneShot,
    PlannedCall,
    PlannedEntry,
    PlannedGroup,
    PlannedMatch,
    PlannedRates,
    UseGroup,
    UseMember,
)
from checks.conformance.program import CompiledProgram
from tailrace.bmv2.dataplane import Outputs
from tailrace.switch.compiler import load_program
from tailrace.switch.compiler.model import Table
from tailrace.switch.core import (
    ActionCall,
    GroupRef,
    MemberRef,
    MeterRates,
    Replica,
    SwitchConfig,
    V1ModelSwitch,
)

PACKET_SPACING_NS = 1_000_000


def pack_key(table: Table, matches: Sequence[PlannedMatch | None]) -> tuple[bytes, bytes, int]:
    """(key, mask, prefix bits) of an entry as the runtime wants them; a None matches everything."""
    key, mask, prefix_bits = bytearray(table.key_bytes), bytearray(table.key_bytes), 0
    for field, match in zip(table.key, matches, strict=True):
        place, top = slice(field.offset, field.offset + field.nbytes), (1 << field.bits) - 1
        low, second = 0, 0
        if field.kind == "range":
            low, second = (0, top) if match is None else (match.value, match.high)
        elif match is not None:
            low = match.value
            second = match.mask if match.kind == "ternary" else top
            if match.kind == "lpm":
                prefix_bits = match.prefix
                second = top ^ (top >> match.prefix)
        key[place] = low.to_bytes(field.nbytes, "big")
        mask[place] = second.to_bytes(field.nbytes, "big")
    return bytes(key), bytes(mask), prefix_bits


class NativeSwitch:
    """One native switch with a program; outputs are attributed by running packets one at a time."""

    def __init__(self, program: CompiledProgram) -> None:
        self.program = program
        self.compiled = load_program(program.json_bytes, source=program.name)
        self.model = self.compiled.model
        self.switch = V1ModelSwitch(self.compiled, SwitchConfig(device_id=1, priority_queues=PRIORITY_QUEUES))
        self.now_ns = 0
        self.learned: set[tuple[str, tuple[int, ...]]] = set()
        self.handles: list[int] = []
        self.members: dict[tuple[str, int], list[int]] = {}
        self.groups: dict[tuple[str, int], int] = {}

    def __enter__(self) -> NativeSwitch:
        return self

    def __exit__(self, *_: object) -> None:
        self.switch.close()

    def _call(self, table: Table, call: PlannedCall) -> ActionCall:
        index = next(i for i in table.actions if self.model.actions[i].name == call.action)
        return ActionCall(index, call.arguments)

    def _profile_call(self, profile: str, call: PlannedCall) -> ActionCall:
        index = self._profile(profile)
        return self._call(next(t for t in self.model.tables if t.profile == index), call)

    def _profile(self, name: str) -> int:
        return next(p.index for p in self.model.profiles if p.name == name)

    def install(self, plan: ControlPlan) -> None:
        """Load the program anew and write the plan."""
        switch = self.switch
        switch.load(self.compiled)
        self.handles, self.members, self.groups = [], {}, {}
        for member in plan.members:
            handle = switch.member_add(
                self._profile(member.profile), self._profile_call(member.profile, member.call)
            )
            self.members[member.profile, member.member_id] = [handle]
        for group in plan.groups:
            weighted = self._weighted(group, plan)
            self.groups[group.profile, group.group_id] = self._group(self._profile(group.profile), weighted)
        for entry in plan.entries:
            self.handles.append(self._insert(entry, plan))
        for name, call in plan.defaults.items():
            table = self.model.table(name)
            switch.table_set_default(table.index, self._call(table, call))
        for group_id, pairs in plan.multicast.items():
            switch.mcast_set(group_id, [Replica(port, instance) for port, instance in pairs])
        for session, pairs in plan.clones.items():
            switch.clone_set(session, [Replica(port, instance) for port, instance in pairs])
        for name, rates in plan.meters.items():
            meter = self.model.meter(name)
            for index in range(meter.size):
                switch.meter_set(meter.index, index, _meter_rates(rates))
        for name, values in plan.value_sets.items():
            vset = self.model.vset(name)
            size = vset.key_bytes
            switch.vset_set(vset.index, [(v.to_bytes(size, "big"), b"\xff" * size) for v in values])

    def _weighted(self, group: PlannedGroup, plan: ControlPlan) -> list[int]:
        """Handles of the group's members, each as often as it weighs.

        The P4Runtime server of BMv2 makes copies of a member, in order of member ids, when a group first
        needs its weight; later groups share them. As the choice goes by the order of handles, the same copies
        are made here.
        """
        handles = []
        for member_id, weight in sorted(group.members):
            member_handles = self.members[group.profile, member_id]
            call = next(
                m.call for m in plan.members if (m.profile, m.member_id) == (group.profile, member_id)
            )
            while len(member_handles) < weight:
                member_handles.append(
                    self.switch.member_add(
                        self._profile(group.profile), self._profile_call(group.profile, call)
                    )
                )
            handles += member_handles[:weight]
        return handles

    def _group(self, profile: int, members: list[int]) -> int:
        handle: int = self.switch.group_add(profile)
        # The order BMv2 chooses from: by member handle.
        self.switch.group_set(profile, handle, sorted(members))
        return handle

    def _insert(self, entry: PlannedEntry, plan: ControlPlan) -> int:
        table = self.model.table(entry.table)
        key, mask, prefix_bits = pack_key(table, entry.matches)
        target: ActionCall | MemberRef | GroupRef
        if isinstance(entry.target, PlannedCall):
            target = self._call(table, entry.target)
        elif table.profile is None:
            raise ValueError(f"{entry.table}: an entry that names a member, but no profile")
        else:
            target = self._reference(table, table.profile, entry)
        handle: int = self.switch.table_insert(
            table.index, key, mask, prefix_bits=prefix_bits, priority=entry.priority, target=target
        )
        if entry.table in plan.direct_meters:
            self.switch.entry_meter_set(table.index, handle, _meter_rates(plan.direct_meters[entry.table]))
        return handle

    def _reference(self, table: Table, profile: int, entry: PlannedEntry) -> MemberRef | GroupRef:
        name, target = self.model.profiles[profile].name, entry.target
        if isinstance(target, UseMember):
            return MemberRef(self.members[name, target.member_id][0])
        if isinstance(target, UseGroup):
            return GroupRef(self.groups[name, target.group_id])
        assert isinstance(target, OneShot)
        members = []
        for call, weight in target.calls:
            members += [self.switch.member_add(profile, self._call(table, call)) for _ in range(weight)]
        return GroupRef(self._group(profile, members))

    def window(self, packets: Sequence[Packet]) -> list[Outputs]:
        """What each packet causes, as (port, bytes) in the order of leaving."""
        results = []
        for packet in packets:
            self.switch.inject(packet.port, packet.data, self.now_ns)
            self.now_ns += PACKET_SPACING_NS
            self.switch.run(self.now_ns - 1)
            results.append([(output.port, bytes(output.data)) for output in self.switch.outputs()])
            for record in self.switch.digests():
                self.learned.add((self.model.digests[record.digest].name, tuple(record.values)))
        return results

    def counters(self) -> dict[str, list[tuple[int, int]]]:
        """(bytes, packets) of every cell of every indirect counter, zeroed where its type does not count."""
        counts = {}
        for info in self.program.p4info.counters:
            if info.preamble.name not in self.program.kept:
                continue
            counter = self.model.counter(info.preamble.name)
            cells = self.switch.counter_read_all(counter.index)
            counts[info.preamble.name] = [_masked(info.spec.unit, cell) for cell in cells]
        return counts

    def direct_counters(self, plan: ControlPlan) -> dict[str, list[tuple[int, int]]]:
        """(bytes, packets) of the entries of the plan, in its order, by table name."""
        tables = {t.preamble.id: t.preamble.name for t in self.program.p4info.tables}
        counts = {}
        for info in self.program.p4info.direct_counters:
            name = tables[info.direct_table_id]
            if name not in self.program.kept:
                continue
            index = self.model.table(name).index
            handles = [h for h, entry in zip(self.handles, plan.entries, strict=True) if entry.table == name]
            counts[name] = [_masked(info.spec.unit, self.switch.entry_counter(index, h)) for h in handles]
        return counts

    def registers(self) -> dict[str, list[int]]:
        """All cells of every register of at most 63 bits."""
        return {
            register.name: list(self.switch.register_read_all(register.index))
            for register in self.model.registers
            if register.bits <= 63
        }


def _meter_rates(rates: PlannedRates) -> MeterRates:
    return MeterRates(rates.cir, rates.cburst, rates.pir, rates.pburst)


def _masked(unit: int, cell: tuple[int, int]) -> tuple[int, int]:
    """A counter cell without what its type (1 bytes, 2 packets, 3 both) does not count."""
    return (0 if unit == 2 else cell[0], 0 if unit == 1 else cell[1])
