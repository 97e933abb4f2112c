"""Loads the benchmarks' L3 program into a switch over P4Runtime: pipeline, routes, port addresses."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path

import grpc
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format

__all__ = ["ControlError", "load_l3"]

_BUILD = Path(__file__).resolve().parent.parent / "tests" / "programs" / "build"
_TIMEOUT_S = 30.0


class ControlError(Exception):
    """The switch refused something; one line."""


class _Program:
    """The compiled program with its names resolved."""

    def __init__(self) -> None:
        self.info = p4i.P4Info()
        text_format.Parse((_BUILD / "basic_l3.p4info.txtpb").read_text(), self.info)
        self.config = (_BUILD / "basic_l3.json").read_bytes()

    def table(self, alias: str) -> int:
        return next(t.preamble.id for t in self.info.tables if t.preamble.alias == alias)

    def action(self, alias: str) -> int:
        return next(a.preamble.id for a in self.info.actions if a.preamble.alias == alias)


def _bytes(value: int) -> bytes:
    """The shortest big-endian string (P4Runtime 8.4)."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def _entry(table: int, match: p4r.FieldMatch, action: int, values: tuple[int, ...]) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.INSERT)
    entry = update.entity.table_entry
    entry.table_id = table
    entry.match.append(match)
    entry.action.action.action_id = action
    for number, value in enumerate(values, start=1):
        entry.action.action.params.add(param_id=number, value=_bytes(value))
    return update


def _updates(program: _Program, routes: int) -> list[p4r.Update]:
    """Routes of 10.1.0.0 and the addresses after it, one each, to port 1; the MAC address of port 1."""
    table, forward = program.table("route"), program.action("forward")
    updates = []
    for i in range(routes):
        match = p4r.FieldMatch(
            field_id=1, lpm=p4r.FieldMatch.LPM(value=_bytes(0x0A010000 + i), prefix_len=32)
        )
        updates.append(_entry(table, match, forward, (0x020000000003, 1)))
    exact = p4r.FieldMatch(field_id=1, exact=p4r.FieldMatch.Exact(value=_bytes(1)))
    updates.append(
        _entry(program.table("port_mac"), exact, program.action("rewrite_source"), (0x020000000004,))
    )
    return updates


def _detail(error: grpc.RpcError) -> str:
    """The server's own words where there are any."""
    details = getattr(error, "details", None)
    return str(details() if callable(details) else error)


def _requests(
    outbox: queue.SimpleQueue[p4r.StreamMessageRequest | None],
) -> Iterator[p4r.StreamMessageRequest]:
    while (request := outbox.get()) is not None:
        yield request


def load_l3(address: str, *, routes: int, device_id: int = 0) -> None:
    """Becomes primary at `address` ("host:port"), loads the program and `routes` entries, leaves.

    Raises:
        ControlError: the switch does not answer or refuses.
    """
    program = _Program()
    election = p4r.Uint128(low=1)
    outbox: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
    hello = p4r.StreamMessageRequest()
    hello.arbitration.device_id = device_id
    hello.arbitration.election_id.CopyFrom(election)
    outbox.put(hello)
    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        try:
            stream = stub.StreamChannel(_requests(outbox), timeout=_TIMEOUT_S)
            answer = next(iter(stream))
            if answer.arbitration.status.code != 0:
                raise ControlError("another controller is primary")
            push = p4r.SetForwardingPipelineConfigRequest(
                device_id=device_id,
                election_id=election,
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            )
            push.config.p4info.CopyFrom(program.info)
            push.config.p4_device_config = program.config
            stub.SetForwardingPipelineConfig(push, timeout=_TIMEOUT_S)
            write = p4r.WriteRequest(device_id=device_id, election_id=election)
            write.updates.extend(_updates(program, routes))
            stub.Write(write, timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            raise ControlError(f"P4Runtime: {_detail(error)}") from error
        finally:
            outbox.put(None)
