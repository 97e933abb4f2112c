# SPDX-License-Identifier: Apache-2.0
"""Writes pages of docs/reference: api.md from the docstrings of the package `tailrace`, commands.md from the
command line, results.schema.json from the type of results.json. Runs docs/learn/tour.ipynb again.

make_docs.py            all of them
make_docs.py --api      all but the notebook
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

import tailrace
from tailrace.cli.app import COMMANDS
from tailrace.cli.arguments import Command, CommandArgument, OptionGroup
from tailrace.results.results import ResultsDocument
from tailrace.results.rows import SCHEMA, FlowRow
from tailrace.tables.arrow import INTEGER, NUMBER, TEXT

DOCS = Path(__file__).resolve().parent.parent / "docs"
REFERENCE, TOUR = DOCS / "reference", DOCS / "learn" / "tour.ipynb"
API, COMMANDS_PAGE = REFERENCE / "api.md", REFERENCE / "commands.md"
SCHEMA_FILE = REFERENCE / "results.schema.json"
CELL_TIMEOUT_S = 300

BEGIN = "<!-- from the docstrings -->\n"
SECTIONS = {
    "Experiments": ("experiment", "Keys", "Experiment"),
    "Running them": ("run", "repeat", "compare", "sweep"),
    "Results": ("Result", "Results", "Summary"),
    "Earlier results": ("open_result", "open_results"),
    "Figures": ("figure", "view"),
    "Files of other tools": ("convert",),
    "Errors": ("Error", "SpecError", "FileError", "TargetError", "RunError"),
}
_ITEMS = ("Args:", "Raises:")
_WIDTH = 90


def api_page() -> str:
    """The text of docs/reference/api.md."""
    parts = [
        API.read_text("utf-8").partition(BEGIN)[0] + BEGIN,
        "```\n" + inspect.cleandoc(tailrace.__doc__ or "").partition("\n\n")[2] + "\n```\n",
    ]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        for name in names:
            parts += _entry(name, getattr(tailrace, name))
    parts += ["## Columns of flows\n", _flows()]
    return "\n".join(parts)


def _entry(name: str, thing: Any) -> Iterator[str]:
    """The section of a function, or of a class with its public members."""
    if inspect.isfunction(thing):
        yield f"### tailrace.{name}\n"
        yield f"```\n{_signature(name, thing)}\n```\n"
        yield _prose(thing)
        return
    bases = ", ".join(base.__name__ for base in thing.__bases__) if issubclass(thing, Exception) else ""
    yield f"### tailrace.{name}{bases and f'({bases})'}\n"
    yield _prose(thing)
    fields = _fields(thing)
    if fields:
        yield "```\n" + "\n".join(fields) + "\n```\n"
    for member, value in vars(thing).items():
        if member.startswith("_") or issubclass(thing, Exception):
            continue
        function = value.fget if isinstance(value, property) else getattr(value, "func", None)
        if isinstance(value, property | cached_property) and function is not None:
            kind = function.__annotations__["return"]
            yield f"**{name.lower()}.{member}** → `{kind}`\n\n{_prose(value)}"
        elif inspect.isfunction(value):
            yield f"**{_signature(f'{name.lower()}.{member}', value)}**\n\n{_prose(value)}"


def _fields(thing: type) -> list[str]:
    """Fields with their types and defaults, one per line."""
    defaults = {field.name: field.default for field in _declared(thing)}
    fields = []
    for name, kind in inspect.get_annotations(thing).items():
        default = defaults.get(name, dataclasses.MISSING)
        is_literal = isinstance(default, str | int | float | tuple) or default is None
        text = str(getattr(kind, "__forward_arg__", kind)).replace("UnsetType", "Unset")
        fields.append(f"{name}: {text} = {default!r}" if is_literal else f"{name}: {text}")
    return fields


def _declared(thing: Any) -> tuple[Any, ...]:
    """The fields of a dataclass or of a msgspec struct; empty for other classes."""
    if dataclasses.is_dataclass(thing):
        return dataclasses.fields(thing)
    return msgspec.structs.fields(thing) if issubclass(thing, msgspec.Struct) else ()


def _signature(name: str, function: Any) -> str:
    """The signature, on several lines if it is long."""
    parameters, previous_kind = [], None
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if previous_kind is parameter.POSITIONAL_ONLY and parameter.kind is not previous_kind:
            parameters.append("/")
        if parameter.kind is parameter.KEYWORD_ONLY and previous_kind is not parameter.kind:
            parameters.append("*")
        kind = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        parameters.append(f"{stars}{parameter.name}{kind}{default}")
        previous_kind = parameter.kind
    line = f"{name}({', '.join(parameters)}) -> {signature.return_annotation}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join(
        [
            f"{name}(",
            *(f"    {parameter}," for parameter in parameters),
            f") -> {signature.return_annotation}",
        ]
    )


def _prose(thing: Any) -> str:
    """The docstring in Markdown; the items of `Args:` and `Raises:` become lists."""
    lines = []
    in_list = False
    for line in inspect.cleandoc(thing.__doc__ or "").splitlines():
        if line in _ITEMS:
            lines.append(f"{line}\n")
            in_list = True
        elif in_list and (match := re.fullmatch(r"    (\w+): (.*)", line)):
            lines.append(f"- `{match[1]}`: {match[2]}")
        elif match := re.fullmatch(r"(\w+(?:, \w+)*): ( *\S.*)", line):
            names = "`, `".join(match[1].split(", "))
            lines.append(f"- `{names}`: {match[2].strip()}")
        else:
            lines.append(f"  {line.strip()}" if in_list and line else line)
    return "\n".join(lines) + "\n"


def _flows() -> str:
    """The table of a flow's columns, below their description."""
    kinds = {INTEGER: "integer", NUMBER: "number", TEXT: "text"}
    rows = "".join(f"| `{name}` | {kinds[kind]} |\n" for name, kind in SCHEMA.items())
    return f"{_prose(FlowRow)}\n| column | type |\n|---|---|\n{rows}"


COMMANDS_HEAD = """# Commands and options

Every command of `tailrace`, with its arguments. `tailrace COMMAND --help` shows the same; `make docs` writes
this page.

**Exit status:** 0 done; 1 failed, or a difference was found; 2 bad input; 130 interrupted; 143 ended by
SIGTERM; 129 by SIGHUP (a closed terminal). Each but 0 comes with one line that says why. An unexpected error
is one line, too; `tailrace --debug …` (or `TAILRACE_DEBUG=1`) shows its traceback.

**Completion:** `eval "$(tailrace --show-completion)"` in the start file of bash, zsh or fish completes
commands, schemes, files and columns.
"""


def commands_page() -> str:
    """The text of docs/reference/commands.md; options that several commands have stand once, at its end."""
    parts = [COMMANDS_HEAD]
    shared = dict[str, tuple[CommandArgument, ...]]()
    for heading, entries in COMMANDS.items():
        parts.append(f"## {heading}\n")
        for name, (module, _) in entries.items():
            command: Command = getattr(importlib.import_module(f"tailrace.cli.{module}"), name)
            parts.append(f"### tailrace {name}\n\n{_code_blocks(command.help)}\n")
            parts.append(_arguments(each for each in command.arguments if isinstance(each, CommandArgument)))
            groups = [each for each in command.arguments if isinstance(each, OptionGroup)]
            shared |= {group.title: group.options for group in groups}
            links = (f"[{title}](#{title.lower().replace(' ', '-')})" for title, _ in groups)
            parts += [f"Also: {', '.join(links)}.\n"] if groups else []
    parts.append("## Options of several commands\n")
    parts += (f"### {title}\n\n{_arguments(options)}" for title, options in shared.items())
    return "\n".join(parts)


def _code_blocks(text: str) -> str:
    """Help as Markdown: paragraphs with indented lines are code."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"```\n{each}\n```" if "\n " in f"\n{each}" else each for each in paragraphs)


def _arguments(arguments: Iterable[CommandArgument]) -> str:
    """A table of arguments with their defaults; empty if there are none."""
    rows = ""
    for names, settings, _ in arguments:
        value = f" {settings['metavar']}" if names[0].startswith("-") and settings.get("metavar") else ""
        written = ", ".join(names) if names[0].startswith("-") else settings.get("metavar", names[0])
        text = (settings["help"] % settings).replace("|", "\\|")
        rows += f"| `{(written + value).replace('|', chr(92) + '|')}` | {text} |\n"
    return rows and f"| argument | meaning |\n|---|---|\n{rows}"


def results_schema() -> str:
    """The text of docs/reference/results.schema.json: the JSON Schema of results.json."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(ResultsDocument),
    }
    return json.dumps(schema, indent=1) + "\n"


def run_tour(path: Path) -> dict[str, Any]:
    """The notebook with its cells' outputs, without metadata about this machine."""
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    # the kernel uses Unix sockets, which no other user of this machine can reach
    config = Config({"KernelManager": {"transport": "ipc"}})
    NotebookClient(notebook, timeout=CELL_TIMEOUT_S, kernel_name="python3", config=config).execute()
    document: dict[str, Any] = json.loads(nbformat.writes(notebook))  # type: ignore[no-untyped-call]
    document["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
    }
    for cell in document["cells"]:
        cell["metadata"] = {}
    return document


def main() -> int:
    """Write the files."""
    API.write_text(api_page(), "utf-8")
    COMMANDS_PAGE.write_text(commands_page(), "utf-8")
    SCHEMA_FILE.write_text(results_schema(), "utf-8")
    if "--api" not in sys.argv[1:]:
        TOUR.write_text(json.dumps(run_tour(TOUR), indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
