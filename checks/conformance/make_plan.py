# SPDX-License-Identifier: Apache-2.0
"""Derive a plan from P4Info: entries with keys from the pools, actions with small arguments, profiles,
meters.
"""

from __future__ import annotations

import random

from finsy.proto import p4i

from checks.conformance.plan import (
    ControlPlan,
    OneShot,
    PlannedCall,
    PlannedEntry,
    PlannedGroup,
    PlannedMatch,
    PlannedMember,
    PlannedRates,
    Target,
    UseGroup,
    UseMember,
)
from checks.conformance.pools import Pools
from checks.conformance.program import CompiledProgram, Json

ENTRIES = 48
MEMBERS = 12
GROUPS = 5
PORTS = 8
NEVER_EXHAUSTED = [1_000_000_000, 1_000_000_000, 2_000_000_000, 2_000_000_000]
KINDS = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    p4i.MatchField.OPTIONAL: "optional",
}


class PlanMaker:
    """Makes the plan of one program; the same seed makes the same plan."""

    def __init__(self, program: CompiledProgram, pools: Pools, seed: int) -> None:
        self.program = program
        self.pools = pools
        self.rng = random.Random(f"{seed}:{program.name}:plan")
        self.actions = {action.preamble.id: action for action in program.p4info.actions}
        self.json_tables: dict[str, Json] = {
            table["name"]: table for pipeline in program.json["pipelines"] for table in pipeline["tables"]
        }
        self.plan = ControlPlan()

    def make(self) -> ControlPlan:
        """Build the whole plan."""
        hints = self.program.hints
        kept = self.program.kept
        tables = {t.preamble.id: t for t in self.program.p4info.tables if t.preamble.name in kept}
        for profile in self.program.p4info.action_profiles:
            users = [tables[table_id] for table_id in profile.table_ids if table_id in tables]
            if users and not self._one_shot(profile):
                self._profile(profile, users[0])
        for table in tables.values():
            self._table(table)
        self.plan.multicast.update(hints.multicast)
        self.plan.clones.update(hints.clones)
        self.plan.value_sets.update(hints.value_sets)
        for meter in self.program.p4info.meters:
            if meter.preamble.name in kept:
                self.plan.meters[meter.preamble.name] = self._rates(meter.preamble.name)
        for direct in self.program.p4info.direct_meters:
            if direct.direct_table_id in tables:
                name = tables[direct.direct_table_id].preamble.name
                self.plan.direct_meters[name] = self._rates(direct.preamble.name)
        return self.plan

    def _rates(self, name: str) -> PlannedRates:
        return PlannedRates(*self.program.hints.meters.get(name, NEVER_EXHAUSTED))

    def _one_shot(self, profile: p4i.ActionProfile) -> bool:
        """Selectors declared second are programmed one-shot, so that both ways are used."""
        selectors = [p for p in self.program.p4info.action_profiles if p.with_selector]
        return profile.with_selector and profile in selectors[1:]

    @staticmethod
    def _usable(table: p4i.Table) -> list[p4i.ActionRef]:
        """The actions that entries may have."""
        return [ref for ref in table.action_refs if ref.scope != p4i.ActionRef.DEFAULT_ONLY]

    def _call(self, table: p4i.Table) -> PlannedCall:
        action = self.actions[self.rng.choice(self._usable(table)).id]
        return PlannedCall(action.preamble.name, tuple(self._argument(param) for param in action.params))

    def _argument(self, param: p4i.Action.Param) -> int:
        hinted = self.program.hints.params.get(param.name)
        if hinted is not None:
            return self.rng.choice(hinted)
        if param.bitwidth == 9:
            return self.rng.randrange(PORTS)
        return self.rng.getrandbits(param.bitwidth)

    def _profile(self, profile: p4i.ActionProfile, table: p4i.Table) -> None:
        name = profile.preamble.name
        for member_id in range(1, MEMBERS + 1):
            self.plan.members.append(PlannedMember(name, member_id, self._call(table)))
        if profile.with_selector:
            for group_id in range(1, GROUPS + 1):
                chosen = self.rng.sample(range(1, MEMBERS + 1), group_id)
                weights = [self.rng.choice([1, 1, 1, 2, 3]) for _ in chosen]
                self.plan.groups.append(
                    PlannedGroup(name, group_id, tuple(zip(chosen, weights, strict=True)))
                )

    def _target(self, table: p4i.Table) -> Target:
        if not table.implementation_id:
            return self._call(table)
        profile = next(
            p for p in self.program.p4info.action_profiles if p.preamble.id == table.implementation_id
        )
        if self._one_shot(profile):
            return OneShot(
                tuple((self._call(table), self.rng.choice([1, 1, 2])) for _ in range(self.rng.randint(1, 4)))
            )
        if profile.with_selector and self.rng.random() < 0.7:
            return UseGroup(self.rng.randint(1, GROUPS))
        return UseMember(self.rng.randint(1, MEMBERS))

    def _table(self, table: p4i.Table) -> None:
        name = table.preamble.name
        if table.is_const_table or not self._usable(table):
            return
        if not table.match_fields:
            if not table.const_default_action_id and not table.implementation_id:
                self.plan.defaults[name] = self._call(table)
            return
        if not all(field.bitwidth for field in table.match_fields):
            return  # keys of the type `error` have no width in P4Info: what values they take is not said
        if self.json_tables[name].get("entries"):
            return  # BMv2 makes a table immutable that has entries of the program's own
        taken: set[tuple[PlannedMatch | None, ...]] = set()
        kinds = {KINDS[field.match_type] for field in table.match_fields}
        ternary_like = bool(kinds & {"ternary", "range", "optional"})
        wanted = min(self.program.hints.entries.get(name, ENTRIES), table.size)
        for _ in range(wanted):
            matches = self._key(table)
            if matches in taken:
                continue
            taken.add(matches)
            # Distinct priorities: which of two equal ones wins is not specified.
            priority = 2 * len(taken) + 1 if ternary_like else 0
            self.plan.entries.append(PlannedEntry(name, matches, priority, self._target(table)))

    def _key(self, table: p4i.Table) -> tuple[PlannedMatch | None, ...]:
        json_key = self.json_tables[table.preamble.name]["key"]
        return tuple(
            self._match(info, json_field)
            for info, json_field in zip(table.match_fields, json_key, strict=False)
        )

    def _match(self, info: p4i.MatchField, json_field: Json) -> PlannedMatch | None:
        kind, bits = KINDS[info.match_type], info.bitwidth
        pool = self.pools.hinted(info.name)
        target = json_field["target"]
        if pool is None and isinstance(target, list) and len(target) == 2:
            pool = self.pools.of_instance(target[0], target[1])
        top = (1 << bits) - 1
        value = (
            self.rng.choice(pool) if pool and self.rng.random() < 0.9 else self.rng.getrandbits(bits)
        ) & top
        if kind == "exact":
            return PlannedMatch(kind, value)
        if kind == "optional":
            return None if self.rng.random() < 0.3 else PlannedMatch(kind, value)
        if kind == "lpm":
            prefix = self.rng.choice([0, bits, self.rng.randint(1, bits), self.rng.randint(1, bits)])
            mask = top ^ (top >> prefix)
            return PlannedMatch(kind, value & mask, prefix=prefix) if prefix else None
        if kind == "ternary":
            mask = self._mask(bits, known=pool is not None)
            return PlannedMatch(kind, value & mask, mask=mask) if mask else None
        other = self.rng.choice(
            [value, self.rng.getrandbits(bits), min(top, value + self.rng.randrange(1 + (top >> 4)))]
        )
        low, high = min(value, other), max(value, other)
        return None if (low, high) == (0, top) else PlannedMatch(kind, low, high=high)

    def _mask(self, bits: int, *, known: bool) -> int:
        """A ternary mask: full, empty, some byte, or a few bits; few bits only where packets do not know the
        value.
        """
        top = (1 << bits) - 1
        few = 0
        for _ in range(self.rng.randint(1, 3)):
            few |= 1 << self.rng.randrange(bits)
        if not known:
            return few
        return self.rng.choice(
            [top, 0, few, self.rng.getrandbits(bits), top & 0xFF << 8 * self.rng.randrange((bits + 7) // 8)]
        )


def make_plan(program: CompiledProgram, pools: Pools, seed: int) -> ControlPlan:
    return PlanMaker(program, pools, seed).make()
