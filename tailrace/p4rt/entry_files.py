# SPDX-License-Identifier: Apache-2.0
"""Files of entries, in three formats: the `sX-runtime.json` of the p4lang tutorials, commands of
simple_switch_CLI (`switch_cli`), and a `p4.v1.WriteRequest` as text.

A tutorial's file may contain all that the tutorials' tool accepts (utils/p4runtime_lib of p4lang/tutorials):
keys that this tool does not read are not errors.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.requests import parse_write_request
from tailrace.p4rt.switch_cli import commands
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.files import MOST_TEXT_BYTES, text_of
from tailrace.spec.schema import KeyProblemError, convert, parse_json
from tailrace.spec.text import one_line

JSON_SUFFIX = ".json"
_MOST_NOTES = 10
_MOST_NAMED = 5  # places of refused updates in a message
_MOST_COMPARED = 1000
"""Limit of unread keys that are compared with known keys, for hints."""
_MOST_LINES = 20
"""Number of first lines among which a file of commands must have a command."""

_Id = Annotated[int, Meta(ge=0, lt=1 << 32, description="a whole number below 2^32")]
_Size = Annotated[int, Meta(ge=0, lt=1 << 31, description="a whole number below 2^31")]


class TableEntry(msgspec.Struct, frozen=True):
    """An entry by names; values in the forms that `p4rt.by_name.parse` accepts."""

    table: str
    action_name: str = ""
    match: dict[str, Any] | None = None
    action_params: dict[str, Any] | None = None
    default_action: bool | None = None
    priority: _Size | None = None


class ReplicaFields(msgspec.Struct, frozen=True):
    """A replica."""

    egress_port: _Id
    instance: _Id = 0


class MulticastGroup(msgspec.Struct, frozen=True):
    """The replicas of a multicast group."""

    multicast_group_id: _Id
    replicas: list[ReplicaFields]


class CloneSession(msgspec.Struct, frozen=True):
    """The replicas of a clone session; packet_length_bytes 0: no truncation."""

    clone_session_id: _Id
    replicas: list[ReplicaFields]
    packet_length_bytes: _Size = 0
    class_of_service: _Id = 0


class Runtime(msgspec.Struct, frozen=True):
    """A tutorial's file. The program named in it is ignored: the command `push` has a program as argument."""

    target: Any = None
    p4info: Any = None
    bmv2_json: Any = None
    table_entries: list[TableEntry] = []
    multicast_group_entries: list[MulticastGroup] = []
    clone_session_entries: list[CloneSession] = []


class Updates(list[p4r.Update]):
    """The updates of a file of entries, in its order.

    places: where each update is in its file
    notes: a line for each part of the file that becomes no update
    """

    def __init__(
        self, updates: Iterable[p4r.Update] = (), places: Iterable[str] = (), notes: Iterable[str] = ()
    ) -> None:
        super().__init__(updates)
        self.places, self.notes = list(places), list(notes)


def read_request(path: Path) -> p4r.WriteRequest:
    """Reads a WriteRequest in text format.

    Raises:
        FileError: the file cannot be read, or is no WriteRequest.
    """
    return _request(path, text_of(path, MOST_TEXT_BYTES))


def _request(path: Path, text: str) -> p4r.WriteRequest:
    try:
        return parse_write_request(text)
    except SpecError as error:
        raise FileError(path, "", str(error)) from error


def read_updates(path: Path, program: P4Program) -> Updates:
    """Reads a file of entries; its name and its first lines determine its format.

    Raises:
        FileError: the file cannot be read, has another format, or names something that the program lacks.
    """
    return updates_of(path, text_of(path, MOST_TEXT_BYTES), ProgramNames(program.p4info))


def updates_of(path: Path, text: str, program: ProgramNames, *, keys_only: bool = False) -> Updates:
    """The updates in the text of a file of entries, like `read_updates`.

    Args:
        keys_only: entries of the tutorials' JSON need no action.
    """
    if path.suffix == JSON_SUFFIX or text.lstrip()[:1] == "{":
        return _of_runtime(path, text, program, keys_only=keys_only)
    if _has_commands(text):
        return Updates(*commands.read(path, text, program))
    updates = _request(path, text).updates
    return Updates(updates, (f"updates[{index}]" for index in range(len(updates))))


def _has_commands(text: str) -> bool:
    """Whether one of the first lines is a command of simple_switch_CLI, or looks like one."""
    for line in itertools.islice(commands.lines(text), _MOST_LINES):
        token = re.split(r"[\s:{<]", line.text, maxsplit=1)[0]
        if token in p4r.WriteRequest.DESCRIPTOR.fields_by_name:
            return False
        # 0.85: least similarity, so that a command with a wrong letter is reported as such
        if difflib.get_close_matches(token[:40], commands.COMMANDS, 1, 0.85):
            return True
    return False


def read_files(paths: Iterable[Path], program: P4Program) -> Updates:
    """Reads several files of entries, one after the other; `places` name the files, too.

    Raises:
        FileError: as `read_updates`.
    """
    all_updates = Updates()
    for path in paths:
        updates = read_updates(path, program)
        all_updates += updates
        all_updates.places += [f"{path}: {place}" for place in updates.places]
        all_updates.notes += updates.notes
    return all_updates


def refusal(updates: Updates, p4info: p4i.P4Info, failures: Mapping[int, str]) -> str:
    """A message: which of the updates of `read_files` a switch has refused, and how many it has executed.

    Args:
        failures: why an update was refused, by its index.
    """
    first, *more = sorted(failures)
    entity = ProgramNames(p4info).described(updates[first].entity)
    text = f"{updates.places[first]}: {entity} was refused: {failures[first]}"
    if more:
        places = ", ".join(updates.places[index].rpartition(": ")[2] for index in more[:_MOST_NAMED])
        text += f"; refused too: {places}{', ...' if len(more) > _MOST_NAMED else ''}"
    return f"{text}; {len(updates) - len(failures)} of {len(updates)} entries are in the switch"


# ---- the tutorials' JSON ----


def _of_runtime(path: Path, text: str, program: ProgramNames, *, keys_only: bool) -> Updates:
    updates = Updates()
    runtime = parse_json(path, text, Runtime, lambda raw, shape: _convert(raw, shape, updates.notes))
    for key, write in _WRITE.items():
        for index, entry in enumerate(getattr(runtime, key)):
            update = p4r.Update(type=p4r.Update.INSERT)
            place = f"{key}[{index}]"
            if isinstance(entry, TableEntry) and not entry.action_name and not keys_only:
                raise FileError(path, f"{place}.action_name", "missing")
            try:
                write(entry, program, update.entity)
            except SpecError as error:
                raise FileError(path, f"key '{place}'", str(error)) from error
            if update.entity.table_entry.is_default_action:
                update.type = p4r.Update.MODIFY
            updates.append(update)
            updates.places.append(place)
    more = len(updates.notes) - _MOST_NOTES
    updates.notes[:] = [f"{path}: {note}" for note in updates.notes[:_MOST_NOTES]]
    if more > 0:
        updates.notes.append(f"{path}: {more} more keys are not read")
    return updates


def _convert(raw: Any, shape: type[Runtime], notes: list[str]) -> Runtime:
    """The struct of a document. Notes unread keys of the document itself, and unread keys of its entries that
    look like a known key.
    """
    if not isinstance(raw, dict):
        raise KeyProblemError("", "expected an object with table_entries")
    if raw and not raw.keys() & set(Runtime.__struct_fields__):
        raise KeyProblemError("", f"expected a key such as {', '.join(_WRITE)}, found none")
    for place, key, kind in itertools.islice(_not_read(raw, Runtime), _MOST_COMPARED):
        close = difflib.get_close_matches(key[:80], kind.__struct_fields__, 1, 0.7)
        if close or not place:
            hint = f"; did you mean {close[0]}?" if close else ""
            notes.append(f"{place}{one_line(key, 80)}: this key is not read{hint}")
    return convert(raw, shape, strict=False)


def _not_read(
    raw: Any, shape: type[msgspec.Struct], place: str = ""
) -> Iterator[tuple[str, str, type[msgspec.Struct]]]:
    """Unread keys: the place, the key, and the struct that lacks it."""
    if not isinstance(raw, dict):
        return
    yield from ((place, key, shape) for key in raw if key not in shape.__struct_fields__)
    for key, kind in _LISTS.items():
        if key in shape.__struct_fields__ and isinstance(raw.get(key), list):
            for index, item in enumerate(raw[key]):
                yield from _not_read(item, kind, f"{place}{key}[{index}].")


def _write_table_entry(entry: TableEntry, program: ProgramNames, out: p4r.Entity) -> None:
    table = program.table(entry.table)
    named = entry.action_name
    action = table.action(named).encode(entry.action_params or {}) if named else p4r.Action()
    out.table_entry.CopyFrom(
        table.encode(
            entry.match or {}, action, priority=entry.priority or 0, default=bool(entry.default_action)
        )
    )


def _write_group(entry: MulticastGroup, _: ProgramNames, out: p4r.Entity) -> None:
    group = out.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = entry.multicast_group_id
    group.replicas.extend(_replicas(entry.replicas))


def _write_clone(entry: CloneSession, _: ProgramNames, out: p4r.Entity) -> None:
    session = out.packet_replication_engine_entry.clone_session_entry
    session.session_id = entry.clone_session_id
    session.packet_length_bytes, session.class_of_service = entry.packet_length_bytes, entry.class_of_service
    session.replicas.extend(_replicas(entry.replicas))


def _replicas(replicas: Iterable[ReplicaFields]) -> Iterator[p4r.Replica]:
    return (p4r.Replica(egress_port=item.egress_port, instance=item.instance) for item in replicas)


_WRITE: Mapping[str, Callable[[Any, ProgramNames, p4r.Entity], None]] = {
    "table_entries": _write_table_entry,
    "multicast_group_entries": _write_group,
    "clone_session_entries": _write_clone,
}
_LISTS: Mapping[str, type[msgspec.Struct]] = {
    "table_entries": TableEntry,
    "multicast_group_entries": MulticastGroup,
    "clone_session_entries": CloneSession,
    "replicas": ReplicaFields,
}
