# SPDX-License-Identifier: Apache-2.0
"""Commands as data, and the parser of command lines: a command is a function, decorated with the table of
its arguments, `@command(…)`.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from tailrace.cli.complete import Completer, complete_file
from tailrace.spec.arguments import ArgumentParser

_FLAGS = ("store_true", argparse.BooleanOptionalAction)
"""Actions of options without a value."""


class CommandArgument(NamedTuple):
    """An argument: its names and settings, as argparse's `add_argument` takes them, and a completer."""

    names: tuple[str, ...]
    settings: Mapping[str, Any]
    complete: Completer | None = None

    @property
    def has_value(self) -> bool:
        """Whether this, as an option, takes a value."""
        return self.settings.get("action") not in _FLAGS

    @property
    def expected(self) -> str:
        """What an option's value may be, for an error; empty without a value."""
        choices = self.settings.get("choices") or self.settings.get("metavar", "a value").split("|")
        return " or ".join(choices) if self.has_value else ""

    @property
    def usage(self) -> str:
        """How a positional argument is written; empty for an option."""
        name = self.settings.get("metavar", self.names[0])
        notations = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}
        return "" if self.names[0].startswith("-") else notations.get(self.settings.get("nargs", ""), name)


class OptionGroup(NamedTuple):
    """Options that the help lists below a heading."""

    title: str
    options: tuple[CommandArgument, ...]


class Command(NamedTuple):
    """A command: its arguments, the function that runs it, and its help."""

    arguments: tuple[CommandArgument | OptionGroup, ...]
    run: Callable[[Namespace], None]
    help: str


def command(*arguments: CommandArgument | OptionGroup) -> Callable[[Callable[[Namespace], None]], Command]:
    """Makes a function a command; its docstring becomes the help."""
    return lambda run: Command(arguments, run, inspect.getdoc(run) or "")


def argument(*names: str, help: str, complete: Completer | None = None, **settings: Any) -> CommandArgument:  # noqa: A002
    """Declares an argument; its default is appended to its help. Paths are completed as file names."""
    text = help.replace("%", "%%") + (" [default: %(default)s]" if "default" in settings else "")
    if settings.get("type") is Path:
        complete = complete or complete_file
    return CommandArgument(names, {"help": text, **settings}, complete)


def flag(*names: str, help: str) -> CommandArgument:  # noqa: A002 - argparse's name
    """Declares an option without a value."""
    return CommandArgument(names, {"help": help, "action": "store_true"})


def number(kind: type[int] | type[float], least: float, most: float | None = None) -> Callable[[str], float]:
    """The argparse type of a number from `least` to `most`."""

    def parsed(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= (value if most is None else most):
            bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"expected a number {bounds}, found {text[:40]!r}")
        return value

    return parsed


class _HelpFormatter(argparse.HelpFormatter):
    """Fills paragraphs one by one, and leaves those with indented lines, such as examples, as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n\n".join(
            each if "\n " in f"\n{each}" else fill(each, width, indent) for each in text.split("\n\n")
        )


class CommandParser(ArgumentParser):
    """Parses the arguments of a command."""

    def __init__(self, arguments: Sequence[CommandArgument | OptionGroup], **settings: Any) -> None:
        """Takes the arguments, and settings of argparse's parser."""
        super().__init__(allow_abbrev=False, formatter_class=_HelpFormatter, **settings)
        self._values: dict[str, str] = {}  # what the value of each option may be; "": it has none
        self.usage = self.usage or "%(prog)s [OPTIONS]"
        for each in arguments:
            group = self.add_argument_group(each.title) if isinstance(each, OptionGroup) else self
            for argument in each.options if isinstance(each, OptionGroup) else (each,):
                self._add(argument, group)

    def _add(self, argument: CommandArgument, group: argparse._ActionsContainer) -> None:
        action = group.add_argument(*argument.names, **argument.settings)
        self.usage = f"{self.usage} {argument.usage}".rstrip()
        if action.option_strings:
            self._values.update(dict.fromkeys(argument.names, argument.expected))
        if (complete := argument.complete) is not None:
            # the attribute that argcomplete reads
            action.completer = lambda prefix, **_: complete(prefix)  # type: ignore[attr-defined]

    def read(self, arguments: Sequence[str]) -> Namespace:
        """Parses the arguments; exits with status 2 if they are invalid, with 0 after help."""
        args, extra = self.parse_known_args(list(self._arranged(arguments)))
        if extra:
            from tailrace.spec.suggest import close

            hints = [f"; did you mean {name}?" for name in close(extra[0], self._values)]
            self.error("".join([f"unrecognized arguments: {' '.join(extra)}", *hints]))
        return args

    def _arranged(self, arguments: Sequence[str]) -> Iterator[str]:
        """Options first, joined to their values, then positional arguments: argparse refuses a separate value
        that begins with a dash, and optional positional arguments on both sides of an option.
        """
        positional: list[str] = []
        remaining = iter(arguments)
        for argument in remaining:
            if argument == "--":
                positional += remaining
            elif expected := self._values.get(argument):
                if (value := next(remaining, None)) is None:
                    self.error(f"{argument}: expected {expected}")
                yield f"{argument}={value}" if argument.startswith("--") else f"{argument}{value}"
            elif argument.startswith("-") and argument != "-":
                yield argument
            else:
                positional.append(argument)
        if any(argument.startswith("-") for argument in positional):
            yield "--"
        yield from positional

    def print_help(self, file: IO[str] | None = None) -> None:  # type: ignore[override]
        """Prints the help; raises OSError if it cannot be written, which argparse would ignore."""
        (file or sys.stdout).write(self.format_help())
