# SPDX-License-Identifier: Apache-2.0
"""The state of a pipeline without a server: whole calls where the server does slices."""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4r

from tailrace.switch.compiler import SwitchProgram
from tailrace.switch.core import V1ModelSwitch
from tailrace.switch.p4runtime.context import Context, DevicePorts, finish
from tailrace.switch.p4runtime.device import DeviceSettings
from tailrace.switch.p4runtime.entities.schema import Schema
from tailrace.switch.p4runtime.memory import MemoryAccount, MemoryBudget
from tailrace.switch.p4runtime.state import ForwardingState, Result


def new_state(
    program: SwitchProgram,
    schema: Schema,
    now_ns: int = 0,
    *,
    lenient: bool = False,
) -> ForwardingState:
    """A fresh pipeline on a switch of its own."""
    account = MemoryAccount(MemoryBudget(1 << 30))
    context = Context(
        V1ModelSwitch(program), lambda: now_ns, DevicePorts(), account, DeviceSettings(bmv2_compat=lenient)
    )
    return ForwardingState(schema, context)


def written(state: ForwardingState, batch: Sequence[p4r.Update], *, whole: bool = False) -> list[Result]:
    """Carries out a batch; what became of each update."""
    results: list[Result] = []
    finish(state.write_all_or_none(batch, results) if whole else state.write(batch, results))
    return results + [None] * (len(batch) - len(results))


def answered(state: ForwardingState, requests: Sequence[p4r.Entity]) -> tuple[list[p4r.Entity], list[Result]]:
    """Carries out a Read: the entities, and what became of each request."""
    results: list[Result] = []
    messages = [message for message in state.read(requests, results) if message is not None]
    return [entity for message in messages for entity in message.entities], results
