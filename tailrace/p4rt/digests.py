# SPDX-License-Identifier: Apache-2.0
"""Digests: messages of the data plane to the controller (P4Runtime §9.8, §16.3).

All digests of a program are enabled. Messages are rare and urgent, so each is sent at once, as a list with
one element. A switch does not repeat an equal message before the previous message is acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tailrace.p4rt.encoding import names_of
from tailrace.p4rt.entities import P4DigestEntry, P4Entity
from tailrace.p4rt.messages import p4d, p4r
from tailrace.p4rt.programs import P4Program

ACK_TIMEOUT_NS = 1_000_000_000
"""Time without an acknowledgement after which a switch may repeat a message."""


class DigestMessage(msgspec.Struct, frozen=True):
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
    known = names_of(program).digests.by_id
    if message.digest_id not in known:
        return []
    digest = known[message.digest_id]
    struct = program.p4info.type_info.structs.get(digest.type_spec.struct.name)
    names = [] if struct is None else [member.name for member in struct.members]
    return [
        DigestMessage(switch, digest.preamble.alias, dict(_by_name(data, names)), message.timestamp)
        for data in message.data
    ]


def _by_name(data: p4d.P4Data, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The fields of a struct by name; the values of other types by position."""
    kind = data.WhichOneof("data")
    values = data.struct.members if kind == "struct" else data.tuple.members if kind == "tuple" else [data]
    for position, member in enumerate(values):
        value = getattr(member, member.WhichOneof("data") or "bitstring")
        shown = int.from_bytes(value, "big") if isinstance(value, bytes) else str(value)
        yield names[position] if position < len(names) else str(position), shown


def acknowledgement(message: p4r.DigestList) -> p4r.DigestListAck:
    """The acknowledgement of a list."""
    return p4r.DigestListAck(digest_id=message.digest_id, list_id=message.list_id)
