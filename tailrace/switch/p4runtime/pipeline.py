# SPDX-License-Identifier: Apache-2.0
"""A forwarding pipeline of a device: its configuration and its forwarding state.

`Work` (context.py) is a task in steps, between which other calls are served; `in_quanta` joins short steps.
"""

from __future__ import annotations

import msgspec

from tailrace.p4rt.messages import p4r
from tailrace.switch.compiler import SwitchProgram
from tailrace.switch.p4runtime.context import Work, in_quanta
from tailrace.switch.p4runtime.entities.schema import Schema
from tailrace.switch.p4runtime.packetio import PacketIo
from tailrace.switch.p4runtime.state import ForwardingState


class Prepared(msgspec.Struct, frozen=True):
    """A verified ForwardingPipelineConfig, its compiled program, and what P4Info and program say together."""

    config: p4r.ForwardingPipelineConfig
    program: SwitchProgram
    schema: Schema
    packet_io: PacketIo


class ForwardingPipeline(msgspec.Struct, frozen=True):
    """A pipeline with its state.

    `state.context.switch`: the device's switch if the pipeline is live, else a scratch switch.
    `responses`: serialized GetForwardingPipelineConfigResponses by response type.
    """

    prepared: Prepared
    state: ForwardingState
    responses: dict[int, bytes] = msgspec.field(default_factory=dict)

    def free(self) -> None:
        """Frees the switch of a replaced pipeline; thread-safe."""
        self.state.context.switch.close()

    def forget(self) -> Work:
        """Frees the state and its memory account, in steps; called after `free`."""
        yield from in_quanta(self.state.close())
        self.state.context.memory.close()
