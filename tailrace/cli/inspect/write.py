# SPDX-License-Identifier: Apache-2.0
"""`tailrace write` and `tailrace delete`: entries of a running switch, by name."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from tailrace.cli.arguments import CommandArgument, OptionGroup, argument, command, flag
from tailrace.cli.complete import complete_file
from tailrace.cli.options import PRIMARY_ELECTION_ID, SOURCE, SWITCH

if TYPE_CHECKING:
    from tailrace.p4rt.by_name.program import ProgramNames
    from tailrace.p4rt.connection import GrpcConnection
    from tailrace.p4rt.entry_files import Updates

_ARGUMENTS: tuple[CommandArgument | OptionGroup, ...] = (
    SWITCH,
    argument(
        "entries",
        metavar="ENTRY|FILE",
        complete=complete_file,
        help="An element of table_entries of the tutorials' runtime.json, or a file as for push --entries.",
    ),
    flag("--dry-run", help="Print the P4Runtime updates as text, and write nothing."),
    PRIMARY_ELECTION_ID,
    SOURCE,
)


@command(*_ARGUMENTS)
def write(args: Namespace) -> None:
    """Write entries of tables into a switch; an entry whose key is there gets the new action. A file may also
    have multicast groups and clone sessions.

    If the switch has a primary controller, the command uses its election id. The controller of `tailrace run`
    restores its own entries when links change.

        tailrace write leaf1 '{"table": "port_role", "match": {"ingress_port": 9},
            "action_name": "fabric_port"}'
        tailrace write s1 s1-runtime.json --dry-run --address s1=127.0.0.1:50051
    """
    _change(args, "write")


@command(*_ARGUMENTS)
def delete(args: Namespace) -> None:
    """Delete entries of tables from a switch, by table, match and priority. A default action becomes that of
    the program again.

        tailrace delete leaf1 '{"table": "port_role", "match": {"ingress_port": 9}}'
    """
    _change(args, "delete")


def _change(args: Namespace, kind: str) -> None:
    from contextlib import closing
    from pathlib import Path

    from google.protobuf import text_format

    from tailrace.cli.inspect.network import find
    from tailrace.controller.session import DEFAULT_ELECTION_ID
    from tailrace.p4rt.by_name.program import ProgramNames
    from tailrace.p4rt.endpoint import run_at_once
    from tailrace.p4rt.entry_files import refusal, updates_of
    from tailrace.p4rt.errors import ElectionError, WriteError
    from tailrace.p4rt.messages import p4r
    from tailrace.spec.files import MOST_TEXT_BYTES, text_of

    with closing(find(args, args.p4info).connection_to(args.switch)) as connection:
        names = ProgramNames(connection.p4info())
        is_entry = args.entries.lstrip().startswith("{")
        path = Path("ENTRY" if is_entry else args.entries)
        text = f'{{"table_entries": [{args.entries}]}}' if is_entry else text_of(path, MOST_TEXT_BYTES)
        updates = updates_of(path, text, names, keys_only=kind == "delete")
        updates.places = [f"{path}: {place}" for place in updates.places]
        _choose_types(updates, connection, names, kind)
        if args.dry_run:
            for update in updates:
                sys.stdout.write(f"# {names.described(update.entity)}\n")
                sys.stdout.write(text_format.MessageToString(p4r.WriteRequest(updates=[update])))
            return
        client = connection.client
        try:
            run_at_once(client.become_primary(args.election_id or 1))
        except ElectionError:
            client.election_id = args.election_id or DEFAULT_ELECTION_ID
        try:
            connection.write(updates)
        except WriteError as error:
            if not error.failures:
                raise
            problem = refusal(updates, names.info, error.failures)
            raise WriteError(connection.name, problem) from error
        verb = "written" if kind == "write" else "deleted"
        sys.stdout.write(f"{connection.name}: {len(updates)} {verb}\n")


def _choose_types(updates: Updates, connection: GrpcConnection, names: ProgramNames, kind: str) -> None:
    """Makes each update INSERT, MODIFY or DELETE, by the entries that the switch has.

    Raises:
        SpecError: an update to write is a deletion, or what is to be deleted is not there.
    """
    from tailrace.p4rt.canonical import canonical
    from tailrace.p4rt.diff import identity
    from tailrace.p4rt.messages import p4r
    from tailrace.spec import SpecError

    patterns = {}
    for update in updates:
        pattern = p4r.Entity(table_entry=p4r.TableEntry(table_id=update.entity.table_entry.table_id))
        if not pattern.table_entry.table_id:
            entry = update.entity.packet_replication_engine_entry
            getattr(pattern.packet_replication_engine_entry, str(entry.WhichOneof("type"))).SetInParent()
        patterns[pattern.SerializeToString()] = pattern
    present = {canonical(entity)[0] for entity in connection.read(list(patterns.values()))}
    for update, place in zip(updates, updates.places, strict=True):
        is_there = canonical(update.entity)[0] in present
        if kind == "write" and update.type == p4r.Update.DELETE:
            raise SpecError(f"{place}: a deletion; use `tailrace delete`")
        if update.entity.table_entry.is_default_action:
            update.type = p4r.Update.MODIFY
            if kind == "delete":
                update.entity.table_entry.ClearField("action")
        elif kind == "write":
            update.type = p4r.Update.MODIFY if is_there else p4r.Update.INSERT
        elif is_there:
            update.CopyFrom(p4r.Update(type=p4r.Update.DELETE, entity=identity(update.entity)))
        else:
            raise SpecError(f"{place}: {connection.name} has no {names.described(update.entity)}")
