# SPDX-License-Identifier: Apache-2.0
"""Digests: messages of the data plane to the controller (P4Runtime §9.8, §16.3).

All digests of a program are enabled. Messages are rare and urgent, so each is sent at once, as a list with
one element. A switch does not repeat an equal message before the previous message is acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from finsy import P4DigestEntry, P4DigestList
from finsy.p4entity import P4Entity
from finsy.proto import p4r

from tailrace.p4rt.programs import P4Program

ACK_TIMEOUT_NS = 1_000_000_000
"""Time without an acknowledgement after which a switch may repeat a message."""


@dataclass(frozen=True, slots=True)
class DigestMessage:
    """A digest message of a switch.

    name: the digest's alias in P4Info
    fields: values by name, in the order of the declaration; bits are numbers
    time_ns: when the switch sent the message, by the switch's clock; 0: unknown
    """

    switch: str
    name: str
    fields: dict[str, Any]
    time_ns: int = 0


def entries(program: P4Program) -> Iterator[P4Entity]:
    """The entities that enable all digests of a program."""
    for digest in program.p4info.digests:
        yield P4DigestEntry(digest.preamble.name, max_list_size=1, ack_timeout_ns=ACK_TIMEOUT_NS)


def decode(program: P4Program, switch: str, message: p4r.DigestList) -> list[DigestMessage]:
    """The messages of a list; empty if the program does not have the digest, for example after a new push."""
    if message.digest_id not in {digest.preamble.id for digest in program.p4info.digests}:
        return []
    # in finsy, digest_id is the digest's alias
    batch = P4DigestList.decode(p4r.StreamMessageResponse(digest=message), program.schema)
    return [DigestMessage(switch, batch.digest_id, _by_name(data), message.timestamp) for data in batch.data]


def _by_name(data: object) -> dict[str, Any]:
    """The fields of a struct by name; the values of other types by position."""
    if isinstance(data, dict):
        return {str(name): value for name, value in data.items()}
    values = data if isinstance(data, tuple) else (data,)
    return {str(position): value for position, value in enumerate(values)}


def acknowledgement(message: p4r.DigestList) -> p4r.DigestListAck:
    """The acknowledgement of a list."""
    return p4r.DigestListAck(digest_id=message.digest_id, list_id=message.list_id)
