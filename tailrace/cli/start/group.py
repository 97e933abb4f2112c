# SPDX-License-Identifier: Apache-2.0
"""The group of subcommands with fast start: only the called command gets its options.

typer reads every option of every command before it shows the names of commands, imports pydantic before it
looks whether there is a value to check, and for its panels what draws Markdown and tracebacks.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from typer import Typer
from typer._click import Command, Context, Parameter
from typer._click.formatting import HelpFormatter
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param
from typer.core import TyperCommand, TyperGroup, _TyperParameter
from typer.main import get_command, get_command_from_info
from typer.models import CommandInfo

_UNUSED = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
"""What typer's panels import and ours do not use: half of the time that help would take."""


@dataclass(frozen=True)
class _When(RuntimeParam):
    """Converts a value by its type as typer does, if the command is called with one."""

    descriptor: TypeDescriptor

    def _coerce_value(self, value: Any, param: _TyperParameter, ctx: Context) -> Any:
        kind = self.annotation
        # completion needs no value; texts and defaults of the right type are not converted
        if ctx.resilient_parsing or (isinstance(kind, type) and isinstance(value, kind)):
            return value
        if kind is Path and isinstance(value, str):
            return Path(value)
        return build_runtime_param(self.descriptor)._coerce_value(value, param, ctx)


class _Fast(Command):
    """What both groups and commands do late."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """The options and arguments, --help among them."""
        params = super().get_params(ctx)
        for param in params:
            if isinstance(param, _TyperParameter) and param._runtime_param is None:
                kind = param.type_descriptor
                param._runtime_param = _When(kind.parameter_info, kind.annotation, kind)
        return params

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Prints the help."""
        _import_panels()
        super().format_help(ctx, formatter)


class _Command(_Fast, TyperCommand):
    pass


class CommandGroup(_Fast, TyperGroup):
    """Commands that are made when they are called."""

    infos: dict[str, CommandInfo]

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """The command that is called, with its options."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in self.infos:
            command = get_command_from_info(
                self.infos[name], pretty_exceptions_short=False, rich_markup_mode=self.rich_markup_mode
            )
        return name, command, rest


def group_of(app: Typer) -> CommandGroup:
    """The group that an app of the class `CommandGroup` declares."""
    infos, app.registered_commands = app.registered_commands, []
    group = get_command(app)
    assert isinstance(group, CommandGroup)
    group.infos = {info.name: info for info in infos if info.name}
    for name, info in group.infos.items():
        info.cls = _Command
        group.commands[name] = TyperCommand(
            name,
            help=inspect.cleandoc(info.help) if info.help else inspect.getdoc(info.callback),
            rich_help_panel=info.rich_help_panel if isinstance(info.rich_help_panel, str) else None,
        )
    return group


def _import_panels() -> None:
    """Imports what draws help, with stand-ins for what it imports and does not use."""
    put = {name: unused for name, unused in _UNUSED.items() if name not in sys.modules}
    for name, unused in put.items():
        module = ModuleType(name)
        setattr(module, unused, type(unused, (), {}))
        sys.modules[name] = module
    try:
        importlib.import_module("typer.rich_utils")
    finally:
        for name in put:
            del sys.modules[name]
