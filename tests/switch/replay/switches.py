# SPDX-License-Identifier: Apache-2.0
"""A switch with random entries that were written over P4Runtime, and traces of random packets saved from it."""

from __future__ import annotations

import random
from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tailrace.switch.compiler import load_program
from tailrace.switch.core import SwitchConfig, V1ModelSwitch
from tailrace.switch.p4runtime.device import Device, DeviceSettings
from tailrace.switch.replay import document
from tailrace.switch.replay.document import TraceDocument
from tailrace.switch.trace import events
from tailrace.switch.trace.dry_run import DryRun, dry_runs
from tests.switch.trace.test_dry_run import BUILT, PORTS, steps_of

VALUES = (0, 1, 2, 3)
NOW_NS = 5_000_000


def octets(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class Source:
    """A device in this process. What is refused is left out: not every random entry makes sense."""

    def __init__(self, name: str, seed: int, folder: Path = BUILT) -> None:
        self.chooser = random.Random(seed)
        self.p4info = text_format.Parse((folder / f"{name}.p4info.txtpb").read_text(), p4i.P4Info())
        self.config = p4r.ForwardingPipelineConfig(
            p4info=self.p4info, p4_device_config=(folder / f"{name}.json").read_bytes()
        )
        self.switch = V1ModelSwitch(None, SwitchConfig(priority_queues=2, seed=seed))
        self.device = Device(
            self.switch,
            DeviceSettings(bmv2_compat=True),
            lambda: NOW_NS,
            lambda text: load_program(text, source=name),
        )
        self.device.configure(
            p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, self.device.prepare_config(self.config)
        )
        self.tables = {table.preamble.name: table for table in self.p4info.tables}
        self.actions = {action.preamble.id: action for action in self.p4info.actions}
        self.profiles = {profile.preamble.id: profile for profile in self.p4info.action_profiles}
        self.shots = {number: self.chooser.random() < 0.5 for number in self.profiles}
        self._fill()

    def close(self) -> None:
        self.device.close()
        self.switch.close()

    def write(self, kind: p4r.Update.Type.ValueType, **entity: object) -> bool:
        """Whether the switch has taken it."""
        update = p4r.Update(type=kind, entity=p4r.Entity(**entity))  # type: ignore[arg-type]
        (result,) = self.device.write(p4r.WriteRequest(updates=[update]))
        return result is None

    def _fill(self) -> None:
        insert, modify = p4r.Update.INSERT, p4r.Update.MODIFY
        for number in (1, 2, 3):
            replicas = [p4r.Replica(egress_port=port, instance=number) for port in PORTS[:number]]
            group = p4r.MulticastGroupEntry(multicast_group_id=number, replicas=replicas)
            session = p4r.CloneSessionEntry(
                session_id=number, replicas=replicas[-1:], packet_length_bytes=20 * (number - 1)
            )
            for engine in ({"multicast_group_entry": group}, {"clone_session_entry": session}):
                self.write(insert, packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(**engine))
        rates = p4r.MeterConfig(cir=1, cburst=100, pir=2, pburst=200)
        for meter in self.p4info.meters:
            self.write(modify, meter_entry=p4r.MeterEntry(meter_id=meter.preamble.id, config=rates))
        for register in self.p4info.registers:
            bits = register.type_spec.bitstring.bit.bitwidth
            for index in range(min(8, register.size)):
                cell = p4r.RegisterEntry(register_id=register.preamble.id)
                cell.index.index = index
                cell.data.bitstring = octets(self.chooser.getrandbits(bits))
                assert self.write(modify, register_entry=cell)
        for value_set in self.p4info.value_sets:
            entry = p4r.ValueSetEntry(value_set_id=value_set.preamble.id)
            for value in (0x0800, 4791, 2):
                member = entry.members.add()
                for field in value_set.match:
                    member.match.add(field_id=field.id).exact.value = octets(value % (1 << field.bitwidth))
            self.write(modify, value_set_entry=entry)
        for number in self.profiles:
            self._fill_profile(number)

    def _fill_profile(self, number: int) -> None:
        profile = self.profiles[number]
        if self.shots[number] and profile.with_selector:
            return
        table = next(table for table in self.p4info.tables if table.implementation_id == number)
        for member_id in (1, 2, 3):
            member = p4r.ActionProfileMember(action_profile_id=number, member_id=member_id)
            member.action.CopyFrom(self._call(table))
            assert self.write(p4r.Update.INSERT, action_profile_member=member)
        if profile.with_selector:
            group = p4r.ActionProfileGroup(action_profile_id=number, group_id=1)
            for member_id in (1, 2, 3):
                group.members.add(member_id=member_id, weight=member_id)
            assert self.write(p4r.Update.INSERT, action_profile_group=group)

    def _call(self, table: p4i.Table) -> p4r.Action:
        allowed = [ref.id for ref in table.action_refs if ref.scope != p4i.ActionRef.DEFAULT_ONLY]
        action = self.actions[self.chooser.choice(allowed)]
        made = p4r.Action(action_id=action.preamble.id)
        for param in action.params:
            value = self.chooser.choice((*VALUES, (1 << param.bitwidth) - 1)) % (1 << param.bitwidth)
            made.params.add(param_id=param.id, value=octets(value))
        return made

    def _target(self, table: p4i.Table, out: p4r.TableAction) -> None:
        number = table.implementation_id
        if not number:
            out.action.CopyFrom(self._call(table))
        elif self.shots[number] and self.profiles[number].with_selector:
            for _ in range(3):
                item = out.action_profile_action_set.action_profile_actions.add(weight=1)
                item.action.CopyFrom(self._call(table))
        elif self.profiles[number].with_selector and self.chooser.random() < 0.7:
            out.action_profile_group_id = 1
        else:
            out.action_profile_member_id = self.chooser.choice((1, 2, 3))

    def enter(self, steps: tuple[events.Event, ...]) -> None:
        """Of some lookups that missed, entries that the next such packet hits; of some, a default action."""
        for step in steps_of(steps):
            if (
                not isinstance(step, events.TableEvent)
                or step.entry is not None
                or self.chooser.random() < 0.3
            ):
                continue
            table = self.tables.get(step.name)
            if table is None:
                continue
            entry = p4r.TableEntry(table_id=table.preamble.id)
            if not table.match_fields or self.chooser.random() < 0.2:
                if not table.implementation_id:
                    entry.is_default_action = True
                    entry.action.action.CopyFrom(self._call(table))
                    self.write(p4r.Update.MODIFY, table_entry=entry)
                continue
            for field, part in zip(table.match_fields, step.key, strict=True):
                self._match(field, part.value, entry)
            self._target(table, entry.action)
            self.write(p4r.Update.INSERT, table_entry=entry)

    def _match(self, field: p4i.MatchField, value: int, entry: p4r.TableEntry) -> None:
        match, raw, full_mask = entry.match.add(field_id=field.id), octets(value), (1 << field.bitwidth) - 1
        if field.match_type == p4i.MatchField.EXACT:
            match.exact.value = raw
        elif field.match_type == p4i.MatchField.OPTIONAL:
            match.optional.value = raw
        elif field.match_type == p4i.MatchField.LPM:
            bits = self.chooser.randint(1, field.bitwidth)
            mask = full_mask ^ (full_mask >> bits)
            match.lpm.value, match.lpm.prefix_len = octets(value & mask), bits
        elif field.match_type == p4i.MatchField.TERNARY:
            mask = self.chooser.choice((full_mask, full_mask - 1 or 1, 1 << (field.bitwidth - 1)))
            match.ternary.value, match.ternary.mask = octets(value & mask), octets(mask)
        else:
            match.range.low, match.range.high = octets(max(0, value - 1)), octets(min(full_mask, value + 1))
        if field.match_type not in (p4i.MatchField.EXACT, p4i.MatchField.LPM):
            entry.priority = entry.priority or self.chooser.randint(1, 9)

    def tried(self, port: int, frame: bytes) -> DryRun:
        return next(dry_runs(self.switch, port, frame, at_ns=NOW_NS))

    def saved(self, tried: DryRun) -> TraceDocument:
        return document.document_of(tried.trace, self.device.needs(tried.events, NOW_NS), self.config)
