# SPDX-License-Identifier: Apache-2.0
"""What both sides of P4Runtime say alike: election ids, the request of a push, the call beside P4Runtime."""

from __future__ import annotations

import msgspec
from finsy.proto import p4r

from tailrace.p4rt.programs import P4Program

STATISTICS = ("tailrace.Statistics", "Get")
"""Service and method beside P4Runtime, which has no place for counts of the traffic manager: a device id as
text -> JSON as switch.p4runtime.statistics has it. Switches of others do not know it.
"""


TRACE = ("tailrace.Trace", "Try")
"""Service and method beside P4Runtime: a `TraceRequest` as JSON -> a stream of `switch.trace.Trace`, as JSON,
and where it asks for them `TraceNeeds`. Switches of others do not know it.
"""


class TraceRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a switch would do with a packet that came in by a port.

    every: each way it could take
    needs: of the one that it would take now also what that needs elsewhere, where all of it could be told
    send: what it does, for the packet is sent for real; not with the two above
    election_id: with `send`, where the switch has a primary controller: under whose id it is sent

    `frame` is in base 16.
    """

    device_id: int
    port: int
    frame: str
    every: bool = False
    needs: bool = False
    send: bool = False
    election_id: int | None = None


class TraceNeeds(msgspec.Struct, frozen=True):
    """What another switch needs for the same trace.

    program: SHA-256 of the p4_device_config, in base 16
    time_ns: of the switch, when the packet came in; a tick of its time stamps is `tick_ns`
    entities: each a p4.v1.Entity, as octets; in the order in which they can be written
    choices: outcomes, as switch.trace.trying takes them
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


def push(program: P4Program) -> p4r.SetForwardingPipelineConfigRequest:
    """Makes a switch run a program; whose device id and election id are not in it yet."""
    request = p4r.SetForwardingPipelineConfigRequest()
    request.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    request.config.p4info.CopyFrom(program.p4info)
    request.config.p4_device_config = program.json
    request.config.cookie.cookie = program.cookie
    return request
