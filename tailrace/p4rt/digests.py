# SPDX-License-Identifier: Apache-2.0
"""Digests: messages of the data plane to the controller (P4Runtime §9.8, §16.3).

Every digest that a program declares is enabled, each message sent at once and by itself: they are rare and
urgent. A switch does not repeat a message that says the same before the last one was acknowledged.
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
"""After so long without an acknowledgement a switch may send the same again."""


@dataclass(frozen=True, slots=True)
class DigestMessage:
    """A message of a switch.

    name: of the digest, as P4Info has it
    fields: what it says by name, in the order of the declaration; bits are numbers
    time_ns: when the switch sent it, by the switch's clock; 0: it does not say
    """

    switch: str
    name: str
    fields: dict[str, Any]
    time_ns: int = 0


def entries(program: P4Program) -> Iterator[P4Entity]:
    """What enables every digest of a program."""
    for digest in program.p4info.digests:
        yield P4DigestEntry(digest.preamble.name, max_list_size=1, ack_timeout_ns=ACK_TIMEOUT_NS)


def decode(program: P4Program, switch: str, message: p4r.DigestList) -> list[DigestMessage]:
    """The messages of a list; none where the program has no such digest, for it may be an older one's."""
    if message.digest_id not in {digest.preamble.id for digest in program.p4info.digests}:
        return []
    batch = P4DigestList.decode(p4r.StreamMessageResponse(digest=message), program.schema)
    return [DigestMessage(switch, batch.digest_id, _by_name(data), message.timestamp) for data in batch.data]


def _by_name(data: object) -> dict[str, Any]:
    """The fields of a struct by name; of anything else by their places."""
    if isinstance(data, dict):
        return {str(name): value for name, value in data.items()}
    values = data if isinstance(data, tuple) else (data,)
    return {str(place): value for place, value in enumerate(values)}


def acknowledgement(message: p4r.DigestList) -> p4r.DigestListAck:
    """What says that a list was received."""
    return p4r.DigestListAck(digest_id=message.digest_id, list_id=message.list_id)
