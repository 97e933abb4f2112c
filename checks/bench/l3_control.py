"""Loads the benchmarks' L3 program into a switch over P4Runtime: pipeline, routes, port addresses."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from pathlib import Path

from finsy.proto import p4r

from tailrace.p4rt import programs
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import SwitchError
from tailrace.p4rt.programs import P4Program

__all__ = ["ControlError", "load_l3"]

_BUILD = Path(__file__).resolve().parents[2] / "tests" / "programs" / "build"


class ControlError(Exception):
    """The switch refused something; one line."""


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


def _action(program: P4Program, alias: str) -> int:
    return next(a.preamble.id for a in program.p4info.actions if a.preamble.alias == alias)


def _updates(program: P4Program, routes: int) -> list[p4r.Update]:
    """Routes of 10.1.0.0 and the addresses after it, one each, to port 1; the MAC address of port 1."""
    table, forward = program.table("route").preamble.id, _action(program, "forward")
    updates = []
    for i in range(routes):
        match = p4r.FieldMatch(
            field_id=1, lpm=p4r.FieldMatch.LPM(value=_bytes(0x0A010000 + i), prefix_len=32)
        )
        updates.append(_entry(table, match, forward, (0x020000000003, 1)))
    exact = p4r.FieldMatch(field_id=1, exact=p4r.FieldMatch.Exact(value=_bytes(1)))
    updates.append(
        _entry(
            program.table("port_mac").preamble.id,
            exact,
            _action(program, "rewrite_source"),
            (0x020000000004,),
        )
    )
    return updates


def load_l3(address: str, *, routes: int, device_id: int = 0) -> None:
    """Becomes primary at `address` ("host:port"), loads the program and `routes` entries, leaves.

    Raises:
        ControlError: the switch does not answer or refuses.
    """
    program = programs.load("basic_l3", _BUILD)
    connection = GrpcConnection("P4Runtime", address, device_id)
    try:
        run_at_once(connection.client.become_primary(1))
        run_at_once(connection.client.push(program))
        run_at_once(connection.client.write(_updates(program, routes)))
    except SwitchError as error:
        raise ControlError(str(error)) from error
    finally:
        connection.close()
