# SPDX-License-Identifier: Apache-2.0
"""A forwarding pipeline of a device: its configuration and its forwarding state.

`Work` (context.py) is a task in steps, between which other calls are served; `in_quanta` joins short steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from finsy.proto import p4r

from tailrace.p4rt.status import invalid
from tailrace.switch.compiler import SwitchProgram
from tailrace.switch.p4runtime.context import Context, Work, in_quanta
from tailrace.switch.p4runtime.entities.schema import Schema
from tailrace.switch.p4runtime.packetio import PacketIo
from tailrace.switch.p4runtime.state import ForwardingState


@dataclass(frozen=True, slots=True)
class Prepared:
    """A verified ForwardingPipelineConfig, its compiled program, and their schema."""

    config: p4r.ForwardingPipelineConfig
    program: SwitchProgram
    schema: Schema


@dataclass(frozen=True, slots=True)
class ForwardingPipeline:
    """A pipeline with its state. `context.switch`: the device's switch if it is live, else a scratch switch.

    `responses`: serialized GetForwardingPipelineConfigResponses by response type.
    """

    prepared: Prepared
    state: ForwardingState
    packet_io: PacketIo
    context: Context
    responses: dict[int, bytes] = field(default_factory=dict)

    def free(self) -> None:
        """Frees the switch of a replaced pipeline; thread-safe."""
        self.context.switch.close()

    def forget(self) -> Work:
        """Frees the state and its memory account, in steps; called after `free`."""
        yield from in_quanta(self.state.close())
        self.context.memory.close()


def config_response(
    stored: p4r.ForwardingPipelineConfig | None, response_type: int
) -> p4r.GetForwardingPipelineConfigResponse:
    """The GetForwardingPipelineConfigResponse for a configuration; for None `config` is unset.

    Raises:
        P4RtError: INVALID_ARGUMENT for an unknown response type.
    """
    request = p4r.GetForwardingPipelineConfigRequest
    response = p4r.GetForwardingPipelineConfigResponse()
    with_info = response_type in (request.ALL, request.P4INFO_AND_COOKIE)
    with_program = response_type in (request.ALL, request.DEVICE_CONFIG_AND_COOKIE)
    if not with_info and not with_program and response_type != request.COOKIE_ONLY:
        raise invalid(f"response type {response_type} is not known")
    if stored is None:
        return response
    response.config.SetInParent()
    if stored.HasField("cookie"):
        response.config.cookie.CopyFrom(stored.cookie)
    if with_info:
        response.config.p4info.CopyFrom(stored.p4info)
    if with_program:
        response.config.p4_device_config = stored.p4_device_config
    return response
