# SPDX-License-Identifier: Apache-2.0
"""Translates files of simple_switch_CLI commands to P4Runtime updates of a switch with a fresh program.

Commands that only read are ignored; those that P4Runtime cannot express are left out, with a note. Lines that
are empty, or begin with `#` or `//`, are no commands.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.switch_cli.cells import Cells
from tailrace.p4rt.switch_cli.handles import Commands
from tailrace.p4rt.switch_cli.replication import ReplicationCommands
from tailrace.p4rt.switch_cli.tables import PROFILE_DEFAULT, TableCommands
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.suggest import expected

_HASHES = "the program alone determines its hash functions"
_NOT_WRITTEN = {
    "set_queue_depth": "P4Runtime has no queues; start tailrace_switch_grpc with --queue-depth",
    "set_queue_rate": "P4Runtime has no queues; start tailrace_switch_grpc with --port-rate",
    "set_crc16_parameters": _HASHES,
    "set_crc32_parameters": _HASHES,
    "set_toeplitz_hash_key": _HASHES,
    "table_indirect_set_default": PROFILE_DEFAULT,
    "table_indirect_set_default_with_group": PROFILE_DEFAULT,
    "mc_set_lag_membership": "multicast groups of P4Runtime have no LAGs",
    "port_add": "give interfaces to the switch when it starts",
    "port_remove": "give interfaces to the switch when it starts",
    "load_new_config_file": "tailrace push takes the program as its argument",
    "swap_configs": "tailrace push takes the program as its argument",
    "reset_state": "tailrace push resets the switch before it writes",
    "serialize_state": "P4Runtime has no such operation",
    "write_config_to_file": "P4Runtime has no such operation",
    "shell": "shell commands are not run",
}
"""Why some commands become no update."""
_READS = frozenset({
    "help", "greet", "EOF", "switch_info", "show_tables", "show_actions", "show_ports", "show_pvs",
    "table_show_actions", "table_info", "table_num_entries", "table_dump", "table_dump_entry",
    "table_dump_entry_from_key", "table_dump_member", "table_dump_group", "act_prof_dump",
    "act_prof_dump_member", "act_prof_dump_group", "mc_dump", "meter_get_rates", "counter_read",
    "register_read", "pvs_get", "mirroring_get", "get_time_elapsed", "get_time_since_epoch",
})  # fmt: skip


class CommandLine(NamedTuple):
    """A command, and its line number."""

    number: int
    text: str


def lines(text: str) -> Iterator[CommandLine]:
    """The lines of a file that are commands."""
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if content and not content.startswith(("#", "//")):
            yield CommandLine(number, content)


def read(path: Path, text: str, program: ProgramNames) -> tuple[list[p4r.Update], list[str], list[str]]:
    """The updates of a file, the line of each, and notes on commands that become no update.

    Raises:
        FileError: a command is unknown, or simple_switch_CLI or the program does not allow its arguments.
    """
    tables, replication = TableCommands(program), ReplicationCommands()
    cells = Cells(program, tables)
    left_out: dict[str, list[int]] = {}
    updates: list[p4r.Update] = []
    places: list[str] = []
    n_reads = line_number = 0
    try:
        for line_number, line in lines(text):
            command, *arguments = line.split()
            if command in _READS:
                n_reads += 1
            elif command in _NOT_WRITTEN:
                left_out.setdefault(command, []).append(line_number)
            elif command in _COMMANDS:
                _carry_out((tables, replication, cells), line_number, command, arguments)
            else:
                raise SpecError(f"no command {command[:40]!r}; {expected(command, COMMANDS)}")
        # cells.updates also completes entries of `tables`: so it comes before tables.updates
        for line_number, update in itertools.chain(replication.updates(), cells.updates(), tables.updates()):
            updates.append(update)
            places.append(f"line {line_number}")
    except SpecError as error:
        raise FileError(path, f"line {line_number}", str(error)) from error
    notes: list[str] = []
    problems = {
        f"{command} is left out: {_NOT_WRITTEN[command]}": numbers for command, numbers in left_out.items()
    }
    problems["rates are rounded: P4Runtime has whole numbers per second"] = cells.rounded
    for problem, numbers in problems.items():
        more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
        notes.extend(f"{path}: line {line}{more}: {problem}" for line in numbers[:1])
    if n_reads:
        notes.append(f"{path}: commands that only read are passed over: {n_reads}")
    return updates, places, notes


def _carry_out(handlers: Iterable[Commands], line: int, command: str, arguments: list[str]) -> None:
    method, usage, least, most = _COMMANDS[command]
    if not least <= len(arguments) <= most:
        raise SpecError(f"expected {command} {usage}, found {len(arguments)} arguments")
    kind = method.__qualname__.partition(".")[0]  # the class, such as TableCommands
    handler = next(handler for handler in handlers if type(handler).__name__ == kind)
    handler.line = line
    method(handler, *arguments)


_Method = Callable[..., None]


def _described(method: _Method) -> tuple[_Method, str, int, int]:
    """A method with its arguments: their names, and how many there are at least and at most."""
    arguments, least, most = [], 0, 0
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.kind is parameter.VAR_POSITIONAL:
            arguments.append(f"[{parameter.name.upper()} ...]")
            most = 1 << 20
        else:
            arguments.append(parameter.name.upper())
            least, most = least + 1, most + 1
    return method, " ".join(arguments), least, most


_METHODS: Mapping[str, _Method] = {
    "table_add": TableCommands.add,
    "table_set_default": TableCommands.set_default,
    "table_reset_default table_indirect_reset_default": TableCommands.reset_default,
    "table_modify": TableCommands.modify,
    "table_delete table_indirect_delete": TableCommands.delete,
    "table_clear": TableCommands.clear,
    "table_set_timeout": TableCommands.set_timeout,
    "table_indirect_add": TableCommands.add_indirect,
    "table_indirect_add_with_group": TableCommands.add_with_group,
    # table_indirect_...: older commands, which name a table instead of its action profile
    "act_prof_create_member table_indirect_create_member": TableCommands.create_member,
    "act_prof_modify_member table_indirect_modify_member": TableCommands.modify_member,
    "act_prof_delete_member table_indirect_delete_member": TableCommands.delete_member,
    "act_prof_create_group table_indirect_create_group": TableCommands.create_group,
    "act_prof_delete_group table_indirect_delete_group": TableCommands.delete_group,
    "act_prof_add_member_to_group table_indirect_add_member_to_group": TableCommands.add_to_group,
    "act_prof_remove_member_from_group table_indirect_remove_member_from_group": (
        TableCommands.remove_from_group
    ),
    "mc_mgrp_create": ReplicationCommands.create_group,
    "mc_mgrp_destroy": ReplicationCommands.destroy_group,
    "mc_node_create": ReplicationCommands.create_node,
    "mc_node_update": ReplicationCommands.update_node,
    "mc_node_destroy": ReplicationCommands.destroy_node,
    "mc_node_associate": ReplicationCommands.associate,
    "mc_node_dissociate": ReplicationCommands.dissociate,
    "mirroring_add": ReplicationCommands.mirror_to_port,
    "mirroring_add_mc": ReplicationCommands.mirror_to_group,
    "mirroring_delete": ReplicationCommands.delete_session,
    "register_write": Cells.write_register,
    "register_reset": Cells.reset_register,
    "counter_write": Cells.write_counter,
    "counter_reset": Cells.reset_counter,
    "meter_set_rates": Cells.set_rates,
    "meter_array_set_rates": Cells.set_all_rates,
    "pvs_add": Cells.add_value,
    "pvs_remove": Cells.remove_value,
    "pvs_clear": Cells.clear_values,
}
_COMMANDS = {name: _described(method) for names, method in _METHODS.items() for name in names.split()}
COMMANDS = (*_COMMANDS, *_NOT_WRITTEN, *sorted(_READS))
"""All commands of simple_switch_CLI."""
