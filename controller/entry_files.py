# SPDX-License-Identifier: Apache-2.0
"""Files of entries: a `p4.v1.WriteRequest` as text, or the `sX-runtime.json` of the p4lang tutorials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from finsy import (
    P4CloneSessionEntry,
    P4MulticastGroupEntry,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from finsy.proto import p4r
from google.protobuf import text_format

from tailrace.words.errors import FileError
from tailrace.words.files import MOST_TEXT_BYTES, read_text
from tailrace.words.schema import read_json
from tailrace.words.text import one_line

JSON_SUFFIX = ".json"
_MOST_SHOWN = 200


class TableEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry by names. A match is one value, or [address, prefix length], [value, mask], [low, high]."""

    table: str
    action_name: str
    match: dict[str, int | str | list[int | str]] = {}
    action_params: dict[str, int | str] = {}
    default_action: bool = False
    priority: int = 0


class Replica(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A copy."""

    egress_port: int
    instance: int = 0


class MulticastGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Copies for each packet of a group."""

    multicast_group_id: int
    replicas: list[Replica]


class CloneSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Copies that a program asks for."""

    clone_session_id: int
    replicas: list[Replica]
    packet_length_bytes: int = 0


class Runtime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the tutorials. It names the program, too, which who pushes names himself."""

    target: str = ""
    p4info: str = ""
    bmv2_json: str = ""
    table_entries: list[TableEntry] = []
    multicast_group_entries: list[MulticastGroup] = []
    clone_session_entries: list[CloneSession] = []


def read_request(path: Path) -> p4r.WriteRequest:
    """A WriteRequest from its text.

    Raises:
        FileError: it cannot be read, or is none.
    """
    try:
        return text_format.Parse(read_text(path, MOST_TEXT_BYTES), p4r.WriteRequest())
    except OSError as error:
        raise FileError(path, "", error.strerror or str(error)) from error
    except UnicodeDecodeError:
        problem = "no UTF-8"
    except (ValueError, RecursionError, text_format.ParseError) as error:
        problem = one_line(str(error).partition("\n")[0])
    raise FileError(path, "", f"expected a p4.v1.WriteRequest as text: {problem}")


def read_updates(path: Path, schema: P4Schema) -> Sequence[p4r.Update]:
    """What a file of entries writes, in its order; JSON as the tutorials have it, else a WriteRequest.

    Raises:
        FileError: it cannot be read, is no such file, or names what the program has not.
    """
    if path.suffix != JSON_SUFFIX:
        return read_request(path).updates
    runtime = read_json(path, Runtime, MOST_TEXT_BYTES)
    entries: list[tuple[str, Any]] = [
        *((f"table_entries[{at}]", entry) for at, entry in enumerate(runtime.table_entries)),
        *((f"multicast_group_entries[{at}]", e) for at, e in enumerate(runtime.multicast_group_entries)),
        *((f"clone_session_entries[{at}]", e) for at, e in enumerate(runtime.clone_session_entries)),
    ]
    return [_update(path, key, entry, schema) for key, entry in entries]


def _update(path: Path, key: str, entry: Any, schema: P4Schema) -> p4r.Update:
    try:
        entity = _ENTITIES[type(entry)](entry).encode(schema)
    # finsy tells in these what the program has not, or what does not fit
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError) as error:
        said = one_line(str(error.args[0] if error.args else error))[:_MOST_SHOWN]
        raise FileError(path, f"key '{key}'", said) from error
    whole = getattr(entry, "default_action", False)
    return p4r.Update(type=p4r.Update.MODIFY if whole else p4r.Update.INSERT, entity=entity)


def _table_entry(entry: TableEntry) -> P4TableEntry:
    return P4TableEntry(
        entry.table,
        match=P4TableMatch({name: _match(value) for name, value in entry.match.items()}),
        action=P4TableAction(entry.action_name, **entry.action_params),
        priority=entry.priority,
        is_default_action=entry.default_action,
    )


def _match(value: int | str | list[int | str]) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _multicast(entry: MulticastGroup) -> P4MulticastGroupEntry:
    return P4MulticastGroupEntry(entry.multicast_group_id, replicas=_replicas(entry.replicas))


def _clone(entry: CloneSession) -> P4CloneSessionEntry:
    return P4CloneSessionEntry(
        entry.clone_session_id,
        replicas=_replicas(entry.replicas),
        packet_length_bytes=entry.packet_length_bytes,
    )


def _replicas(replicas: Sequence[Replica]) -> list[tuple[int, int]]:
    return [(replica.egress_port, replica.instance) for replica in replicas]


_ENTITIES: dict[type, Any] = {TableEntry: _table_entry, MulticastGroup: _multicast, CloneSession: _clone}
