# SPDX-License-Identifier: Apache-2.0
"""Encoding of action data and wide integers as 64-bit limbs for the core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tailrace.switch.compiler.model import Action, Model, limbs_of
from tailrace.switch.core.lib import C, ffi
from tailrace.switch.core.types import ActionCall, MemberRef, StateError, Target

_LIMB_BITS = 64
_LIMB_MASK = (1 << _LIMB_BITS) - 1
_ACTION, _MEMBER, _GROUP = C.TR_TARGET_ACTION, C.TR_TARGET_MEMBER, C.TR_TARGET_GROUP
_DATA = ffi.typeof("uint64_t[]")


def limbs_to_int(limbs: Sequence[int]) -> int:
    """The integer that limbs represent, least significant limb first."""
    value = 0
    for limb in reversed(limbs):
        value = value << 64 | limb
    return value


def split_limbs(limbs: Sequence[int], widths: Iterable[int]) -> Iterator[int]:
    """The integers of these widths, in bits, whose limbs follow each other."""
    offset = 0
    for n in map(limbs_of, widths):
        yield limbs_to_int(limbs[offset : offset + n])
        offset += n


def int_to_limbs(value: int, bits: int) -> list[int]:
    """The limbs of an integer of `bits` bits, least significant limb first.

    Raises:
        StateError: the value does not fit into `bits` bits.
    """
    if value < 0 or value >> bits:
        raise StateError("range", f"{value} does not fit into {bits} bits")
    return [value >> 64 * i & _LIMB_MASK for i in range(limbs_of(bits))]


def encode_target(model: Model, target: Target) -> list[tuple[Any, ...]]:
    """What an entry refers to (action, member or group) as the core's ``tr_target``.

    Raises:
        StateError: the action does not exist, or number or size of the values do not fit.
    """
    if not isinstance(target, ActionCall):
        kind = _MEMBER if isinstance(target, MemberRef) else _GROUP
        return [(kind, target.handle, ffi.NULL, 0)]
    if not 0 <= target.action < len(model.actions):
        raise StateError("range", f"there is no action {target.action}")
    action = model.actions[target.action]
    if len(target.data) != len(action.params):
        raise StateError(
            "invalid", f"{action.name} takes {len(action.params)} values, {len(target.data)} are given"
        )
    limbs = _limbs(action, target.data)
    return [(_ACTION, target.action, ffi.new(_DATA, limbs), len(limbs))]


def _limbs(action: Action, data: tuple[int, ...]) -> Sequence[int]:
    wide = False
    for p, value in zip(action.params, data, strict=True):
        if value < 0 or value >> p.bits:
            raise StateError("range", f"{p.name} of {action.name}: {value} does not fit into {p.bits} bits")
        wide = wide or p.bits > _LIMB_BITS
    if not wide:
        return data
    return [
        limb for p, value in zip(action.params, data, strict=True) for limb in int_to_limbs(value, p.bits)
    ]
