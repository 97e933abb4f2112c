# SPDX-License-Identifier: Apache-2.0
"""Action data and wide numbers as the 64-bit limbs that the C side wants."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_uint64

from tailrace.native.compiler.model import Action, Model, limbs_of
from tailrace.native.runtime import lib
from tailrace.native.runtime.types import ActionCall, MemberRef, StateError, Target

_WORD = (1 << 64) - 1


def limbs_to_int(limbs: Sequence[int]) -> int:
    """A number from its limbs, least significant first."""
    value = 0
    for limb in reversed(limbs):
        value = value << 64 | limb
    return value


def int_to_limbs(value: int, bits: int) -> list[int]:
    """A number of so many bits as limbs, least significant first.

    Raises:
        StateError: the number does not fit.
    """
    if value < 0 or value >> bits:
        raise StateError("range", f"{value} does not fit {bits} bits")
    return [value >> 64 * i & _WORD for i in range(limbs_of(bits))]


class TargetEncoder:
    """Turns targets into ``tr_target``; keeps the array type of each action."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._narrow = [all(p.bits <= 64 for p in a.params) for a in model.actions]
        self._arrays = [c_uint64 * max(a.limbs, 1) for a in model.actions]

    def __call__(self, target: Target) -> lib.CTarget:
        """The C form of a target; the result keeps its data alive.

        Raises:
            StateError: no such action, wrong number of values, or a value too large.
        """
        if not isinstance(target, ActionCall):
            kind = lib.TARGET_MEMBER if isinstance(target, MemberRef) else lib.TARGET_GROUP
            return lib.CTarget(kind, target.handle, None, 0)
        if not 0 <= target.action < len(self.model.actions):
            raise StateError("range", f"no action {target.action}")
        action = self.model.actions[target.action]
        if len(target.data) != len(action.params):
            raise StateError(
                "invalid", f"{action.name} takes {len(action.params)} values, {len(target.data)} are given"
            )
        limbs = self._limbs(action, target.data)
        array = self._arrays[target.action](*limbs)
        return lib.CTarget(
            lib.TARGET_ACTION, target.action, ctypes.cast(array, ctypes.POINTER(c_uint64)), len(limbs)
        )

    def _limbs(self, action: Action, data: tuple[int, ...]) -> Sequence[int]:
        if self._narrow[action.index]:
            for p, value in zip(action.params, data, strict=True):
                if value < 0 or value >> p.bits:
                    raise StateError(
                        "range", f"{p.name} of {action.name}: {value} does not fit {p.bits} bits"
                    )
            return data
        limbs: list[int] = []
        for p, value in zip(action.params, data, strict=True):
            limbs += int_to_limbs(value, p.bits)
        return limbs
