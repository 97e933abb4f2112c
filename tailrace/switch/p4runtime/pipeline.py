# SPDX-License-Identifier: Apache-2.0
"""A forwarding pipeline of a device: its configuration and its forwarding state.

The field p4_device_config contains BMv2 JSON, either plain or in a p4.tmp.P4DeviceConfig message.

`Work` (context.py) is a task in steps, between which other calls are served; `in_quanta` joins short steps.
"""

from __future__ import annotations

import logging
from codecs import BOM_UTF8

import msgspec
from google.protobuf.message import DecodeError

from tailrace.p4rt.bmv2_messages import DeviceConfig
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import Code, P4RtError, invalid
from tailrace.switch.compiler import CompilerError, SwitchProgram
from tailrace.switch.compiler.errors import NotCompiledError
from tailrace.switch.p4runtime.context import Work, in_quanta
from tailrace.switch.p4runtime.entities.schema import Schema
from tailrace.switch.p4runtime.packetio import PacketIo
from tailrace.switch.p4runtime.state import ForwardingState

_log = logging.getLogger("tailrace.switch")


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


def program_json(device_config: bytes) -> bytes:
    """The BMv2 JSON in a p4_device_config.

    Raises:
        P4RtError: INVALID_ARGUMENT: it is empty, or has neither encoding.
    """
    if not device_config:
        raise invalid("p4_device_config is empty")
    if device_config.removeprefix(BOM_UTF8).lstrip()[:1] == b"{":
        return device_config
    try:
        data: bytes = DeviceConfig.FromString(device_config).device_data
    except DecodeError:
        message = "p4_device_config is neither BMv2 JSON nor a p4.tmp.P4DeviceConfig message"
        raise invalid(message) from None
    if not data:
        raise invalid("p4_device_config: P4DeviceConfig.device_data is empty")
    return data


def refusal(error: CompilerError) -> P4RtError:
    """The error for a client. The C compiler's output and paths go to the log only."""
    if not isinstance(error, NotCompiledError):
        return invalid(f"p4_device_config: {error}")
    _log.error("%s", error)
    if error.refused:  # by the C compiler; otherwise there is no working C compiler
        return invalid("p4_device_config: the program could not be compiled (see the switch's log)")
    return P4RtError(Code.INTERNAL, "this switch cannot compile programs now (see its log)")
