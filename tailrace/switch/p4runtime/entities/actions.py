# SPDX-License-Identifier: Apache-2.0
"""Converts Action messages to action calls of the data plane and back (P4Runtime specification 9.1.2).

A plan (schema.py) describes an object of P4Info and its index in the program. `names` of a parameter: the
numbers of its values, if they are strings in messages; None: they are numbers. members.py explains
`group_action`.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.status import Code, P4RtError, invalid
from tailrace.switch.core import ActionCall
from tailrace.switch.p4runtime.entities.bytestring import decode, encode
from tailrace.switch.p4runtime.entities.schema import ABSENT, GROUP_ACTION, ActionPlan, absent


class ActionUse(Enum):
    """How a table uses an action."""

    ENTRY = "in entries"
    DEFAULT = "as default action"
    GROUP = "as group_action"

    def denies(self, scope: int) -> bool:
        """Whether the action's scope (P4Info's ActionRef.Scope) forbids this use."""
        if self is ActionUse.GROUP:
            return scope != GROUP_ACTION
        other = p4i.ActionRef.TABLE_ONLY if self is ActionUse.DEFAULT else p4i.ActionRef.DEFAULT_ONLY
        return scope in (GROUP_ACTION, other)


class ActionSpec(NamedTuple):
    """An action with its parameters: `plan` for messages, `call` for the data plane."""

    plan: ActionPlan
    call: ActionCall

    def fill(self, action: p4r.TableAction) -> None:
        """Writes the action in canonical form into an empty message."""
        self.fill_action(action.action)

    def fill_action(self, action: p4r.Action) -> None:
        """Writes the action in canonical form into an empty message."""
        action.action_id = self.plan.id
        for param, value in zip(self.plan.ordered, self.call.data, strict=True):
            item = action.params.add()
            item.param_id = param.id
            item.value = encode(value) if param.names is None else param.names.to_sdn(value)


def parse_action(
    action: p4r.Action, actions: dict[int, ActionPlan], owner: str, use: ActionUse = ActionUse.ENTRY
) -> ActionSpec:
    """Parses an Action message; `owner`: the table or profile that has `actions`, for errors.

    Raises:
        P4RtError: INVALID_ARGUMENT: the message is invalid, or violates an @action_restriction; OUT_OF_RANGE;
            PERMISSION_DENIED: the action is used outside of its scope.
    """
    plan = actions.get(action.action_id)
    if plan is None:
        raise invalid(f"{owner} has no action with id {action.action_id}")
    if plan.index == ABSENT:
        raise absent(f"action '{plan.name}' of {owner}")
    if use.denies(plan.scope):
        why = (
            f": its scope is {plan.scope}, not {GROUP_ACTION} (@groupaction)"
            if use is ActionUse.GROUP
            else ""
        )
        raise P4RtError(
            Code.PERMISSION_DENIED, f"action '{plan.name}' must not be used {use.value} of {owner}{why}"
        )
    params = plan.params
    if len(action.params) != len(params):
        raise _wrong_params(action, plan)
    if not params:
        if plan.restriction is not None:
            plan.restriction.check(())
        return ActionSpec(plan, ActionCall(plan.index, ()))
    data = [-1] * len(params)
    for given in action.params:
        param = params.get(given.param_id)
        if param is None:
            raise invalid(f"action '{plan.name}' has no parameter with id {given.param_id}")
        value = given.value
        if param.names is None:
            number = int.from_bytes(value, "big")
            if number >> param.bits or not value:
                decode(value, param.bits, f"action '{plan.name}', parameter '{param.name}'")
        else:
            number = param.names.to_wire(value, f"action '{plan.name}', parameter '{param.name}'")
        data[param.position] = number
    if -1 in data:
        raise _wrong_params(action, plan)
    if plan.restriction is not None:
        plan.restriction.check(data)
    return ActionSpec(plan, ActionCall(plan.index, tuple(data)))


def _wrong_params(action: p4r.Action, plan: ActionPlan) -> P4RtError:
    given = [param.param_id for param in action.params]
    for param in plan.ordered:
        if param.id not in given:
            return invalid(f"action '{plan.name}': parameter '{param.name}' is missing")
    return invalid(f"action '{plan.name}': expected each of its {len(plan.params)} parameters once")
