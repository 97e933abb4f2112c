# SPDX-License-Identifier: Apache-2.0
"""Messages of client and server: election ids, the request that pushes a program, a WriteRequest in text
format, and Tailrace's gRPC services besides P4Runtime.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from google.protobuf import text_format
from msgspec import Meta

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program
from tailrace.spec import SpecError
from tailrace.spec.text import one_line
from tailrace.spec.units import MOST_BPS

CALL_S = 30.0
PUSH_S = 300.0
"""Default timeouts, in s: of a call, and of a call that sets a program or traces a packet."""

STATISTICS = ("tailrace.Statistics", "Get")
"""gRPC service and method for counts of the traffic manager: a device id as text -> JSON of
switch.p4runtime.statistics. Only native switches have this service.
"""

SET_RATE = ("tailrace.Ports", "SetRate")
"""gRPC service and method that set the rate of a port: a `PortRate` as JSON -> nothing. Only native switches
have this service, for who may reach their address, as there is no P4Runtime message for it.
"""

TRACE = ("tailrace.Trace", "Try")
"""gRPC service and method for traces: a `TraceRequest` as JSON -> a stream of `switch.trace.Trace` as JSON,
and `TraceNeeds` on request. Only native switches have this service.
"""


class PortRate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A port's new rate; 0: no limit."""

    device_id: int
    port: Annotated[int, Meta(ge=0, lt=1 << 9)]
    rate_bps: Annotated[int, Meta(ge=0, le=MOST_BPS)]


class TraceRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request to trace a packet that a port receives.

    frame: the frame's bytes in hexadecimal
    every: whether to trace all possible outcomes of random choices
    needs: whether to also return the state that the packet reads, if the trace is complete
    send: whether to process the packet like an arriving packet, instead of by a dry run, which changes no
        state; excludes `every` and `needs`
    election_id: with `send`, the election id of the primary controller, if there is a primary controller
    """

    device_id: int
    port: int
    frame: str
    every: bool = False
    needs: bool = False
    send: bool = False
    election_id: int | None = None


class TraceNeeds(msgspec.Struct, frozen=True):
    """The state that another switch needs to produce the same trace.

    program: SHA-256 of the p4_device_config, in hexadecimal
    time_ns: the switch's time when it received the packet
    tick_ns: unit of the switch's timestamps, in ns
    entities: serialized p4.v1.Entity messages, in an order in which they can be written
    cpu_port, drop_port, priority_queues: the switch's special ports, and its number of queues per port
    choices: outcomes of random choices, as in switch.trace.dry_run
    """

    program: str
    time_ns: int
    tick_ns: int
    cpu_port: int | None
    drop_port: int
    priority_queues: int
    entities: tuple[bytes, ...]
    choices: tuple[int, ...]


def election_of(message: p4r.Uint128) -> int:
    """The 128-bit election id in a message."""
    return (message.high << 64) | message.low


def set_election(message: p4r.Uint128, election_id: int) -> None:
    """Writes a 128-bit election id into a message."""
    message.high = election_id >> 64
    message.low = election_id & (1 << 64) - 1


def push_request(program: P4Program) -> p4r.SetForwardingPipelineConfigRequest:
    """The request that sets a program, without device id and election id."""
    request = p4r.SetForwardingPipelineConfigRequest()
    request.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    request.config.p4info.CopyFrom(program.p4info)
    request.config.p4_device_config = program.json
    request.config.cookie.cookie = program.cookie
    return request


def parse_write_request(text: str) -> p4r.WriteRequest:
    """Parses a WriteRequest in protobuf's text format.

    Raises:
        SpecError: the text is invalid.
    """
    try:
        return text_format.Parse(text, p4r.WriteRequest())
    except (ValueError, RecursionError, text_format.ParseError) as error:
        problem = one_line(str(error).partition("\n")[0])
    raise SpecError(f"expected a p4.v1.WriteRequest as text: {problem}")
