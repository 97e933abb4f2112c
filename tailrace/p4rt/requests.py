# SPDX-License-Identifier: Apache-2.0
"""What both sides of P4Runtime say alike: election ids, the request of a push, the call beside P4Runtime."""

from __future__ import annotations

import msgspec
from finsy.proto import p4r

from tailrace.p4rt.programs import Program

STATISTICS = ("tailrace.Statistics", "Get")
"""Service and method beside P4Runtime, which has no place for counts of the traffic manager: a device id as
text -> JSON as native.server.statistics has it. Switches of others do not know it.
"""


TRACE = ("tailrace.Trace", "Try")
"""Service and method beside P4Runtime: a `TraceRequest` as JSON -> a stream of `native.trace.Trace`, as JSON.
Switches of others do not know it.
"""


class TraceRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a switch would do with a packet that came in by a port; `every`: each way it could take.

    `frame` is in base 16.
    """

    device_id: int
    port: int
    frame: str
    every: bool = False


def election_of(message: p4r.Uint128) -> int:
    """The 128-bit election id in a message."""
    return (message.high << 64) | message.low


def set_election(message: p4r.Uint128, election_id: int) -> None:
    """Writes a 128-bit election id into a message."""
    message.high = election_id >> 64
    message.low = election_id & (1 << 64) - 1


def push(program: Program) -> p4r.SetForwardingPipelineConfigRequest:
    """Makes a switch run a program; whose device id and election id are not in it yet."""
    request = p4r.SetForwardingPipelineConfigRequest()
    request.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    request.config.p4info.CopyFrom(program.p4info)
    request.config.p4_device_config = program.json
    request.config.cookie.cookie = program.cookie
    return request
