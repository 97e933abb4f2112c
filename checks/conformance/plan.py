# SPDX-License-Identifier: Apache-2.0
"""The control-plane state installed before packets run: entries, members, groups, sessions, meters.

Everything is by P4Info name and plain integers, so that one plan drives both switches.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PlannedMatch:
    """One key field. exact and optional: `value`; lpm: `value`, `prefix`; ternary: `value`, `mask`; range:
    `value`..`high`.
    """

    kind: str
    value: int
    mask: int = 0
    prefix: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """An action and its arguments, in the order of the P4Info parameters."""

    action: str
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedMember:
    """A member of an action profile."""

    profile: str
    member_id: int
    call: PlannedCall


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """A group of a selector: member ids with weights."""

    profile: str
    group_id: int
    members: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class UseMember:
    """Entry target: one member."""

    member_id: int


@dataclass(frozen=True, slots=True)
class UseGroup:
    """Entry target: one group."""

    group_id: int


@dataclass(frozen=True, slots=True)
class OneShot:
    """Entry target: an action set given in the entry itself, with weights."""

    calls: tuple[tuple[PlannedCall, int], ...]


Target = PlannedCall | UseMember | UseGroup | OneShot


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """A table entry. `matches` follows the key; None is a field that matches everything. Larger priority
    wins.
    """

    table: str
    matches: tuple[PlannedMatch | None, ...]
    priority: int
    target: Target


@dataclass(frozen=True, slots=True)
class PlannedRates:
    """Meter rates in units a second and bursts in units."""

    cir: int
    cburst: int
    pir: int
    pburst: int


@dataclass(frozen=True, slots=True)
class ControlPlan:
    """All control-plane state of one program."""

    entries: list[PlannedEntry] = field(default_factory=list)
    defaults: dict[str, PlannedCall] = field(default_factory=dict)
    members: list[PlannedMember] = field(default_factory=list)
    groups: list[PlannedGroup] = field(default_factory=list)
    multicast: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    clones: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    meters: dict[str, PlannedRates] = field(default_factory=dict)
    direct_meters: dict[str, PlannedRates] = field(default_factory=dict)
    value_sets: dict[str, list[int]] = field(default_factory=dict)
