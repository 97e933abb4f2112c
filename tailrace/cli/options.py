# SPDX-License-Identifier: Apache-2.0
"""Options that many commands share, declared once.

`with_source` and `with_inspect` add them to a command: the function gets them as one value, while typer sees
them one by one. Nothing heavy is imported here, so that `tailrace --help` and completion are fast.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tailrace.cli.complete import complete_column, complete_columns, complete_switch

_WHERE_PANEL, _VIEW_PANEL, _SOURCE_PANEL = "What to show", "How to show it", "Where the switches are"


class OutputFormat(str, enum.Enum):
    """What -o takes."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


def _names(kind: str | None = None) -> Any:
    """The argument that names switches, and objects of their programs."""
    also = "" if kind is None else f" Another argument is the name of a {kind}."
    return typer.Argument(
        metavar="SWITCH" if kind is None else f"SWITCH|{kind.upper()}",
        help=f"Names or patterns such as 'leaf*'; none: all.{also}",
        autocompletion=complete_switch,
        show_default=False,
    )


SwitchNames = Annotated[list[str] | None, _names()]
TableNames = Annotated[list[str] | None, _names("table")]
CounterNames = Annotated[list[str] | None, _names("counter")]
RegisterNames = Annotated[list[str] | None, _names("register")]

MOST_ELECTION_ID = (1 << 64) - 1

ElectionId = Annotated[
    int,
    typer.Option(
        "--election-id",
        metavar="N",
        min=1,
        max=MOST_ELECTION_ID,
        help="The highest election id may write.",
    ),
]

Plugin = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="DIR",
        help="Load the Python files in DIR, or one file, which add schemes, topologies, workloads, metrics; "
        "repeatable, and as TAILRACE_PLUGINS=DIR:DIR.",
        show_default=False,
    ),
]

_VIEW: dict[str, Any] = {
    "output": Annotated[
        OutputFormat,
        typer.Option(
            "-o",
            "--output",
            help="How to write it; wide: a table with all columns, however wide.",
            rich_help_panel=_VIEW_PANEL,
        ),
    ],
    "json": Annotated[bool, typer.Option("--json", help="The same as -o json.", rich_help_panel=_VIEW_PANEL)],
    "columns": Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="NAME,NAME",
            help="Only these columns, in this order.",
            rich_help_panel=_VIEW_PANEL,
            autocompletion=complete_columns,
            show_default=False,
        ),
    ],
    "sort_by": Annotated[
        str | None,
        typer.Option(
            "--sort-by",
            metavar="NAME",
            help="Order rows by this column; -NAME: the largest first.",
            rich_help_panel=_VIEW_PANEL,
            autocompletion=complete_column,
            show_default=False,
        ),
    ],
}
_INSPECT: dict[str, Any] = {
    "where": Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="EXPR",
            help='Only rows that pass, such as "port == spine1 and dst in 10.0.0.0/8".',
            rich_help_panel=_WHERE_PANEL,
            show_default=False,
        ),
    ],
    "watch": Annotated[
        float | None,
        typer.Option(
            "--watch",
            metavar="SEC",
            min=0.01,
            help="Repeat every SEC seconds, until Ctrl-C; changes stand out, counters get rates.",
            rich_help_panel=_WHERE_PANEL,
            show_default=False,
        ),
    ],
    "rounds": Annotated[
        int | None,
        typer.Option(
            "--rounds",
            metavar="N",
            min=1,
            help="Stop --watch after N readings.",
            rich_help_panel=_WHERE_PANEL,
            show_default=False,
        ),
    ],
}
_SOURCE: dict[str, Any] = {
    "run": Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="FILE",
            help="Run file of a running network; none: the latest of this user.",
            rich_help_panel=_SOURCE_PANEL,
            show_default=False,
        ),
    ],
    "address": Annotated[
        list[str] | None,
        typer.Option(
            "--address",
            metavar="[NAME=]HOST:PORT[@ID]",
            help="A P4Runtime server, with any program; repeatable, instead of --run.",
            rich_help_panel=_SOURCE_PANEL,
            show_default=False,
        ),
    ],
    "device_id": Annotated[
        int,
        typer.Option(
            "--device-id",
            metavar="N",
            help="P4Runtime device id with --address.",
            rich_help_panel=_SOURCE_PANEL,
        ),
    ],
    "p4info": Annotated[
        Path | None,
        typer.Option(
            "--p4info",
            metavar="FILE",
            help="P4Info of the program; none: the switch tells.",
            rich_help_panel=_SOURCE_PANEL,
            show_default=False,
        ),
    ],
    "topology": Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="SPEC",
            help="Names neighbours: leaf-spine:… or FILE.json; with --run the run file tells.",
            rich_help_panel=_SOURCE_PANEL,
            show_default=False,
        ),
    ],
    "ca": Annotated[
        Path | None,
        typer.Option(
            "--ca",
            metavar="PEM",
            help="Use TLS, and trust this authority.",
            rich_help_panel=_SOURCE_PANEL,
            show_default=False,
        ),
    ],
    "cert": Annotated[
        Path | None,
        typer.Option(
            "--cert",
            metavar="PEM",
            help="Use TLS with this certificate of ours.",
            rich_help_panel=_SOURCE_PANEL,
            show_default=False,
        ),
    ],
    "key": Annotated[
        Path | None,
        typer.Option(
            "--key", metavar="PEM", help="Its key.", rich_help_panel=_SOURCE_PANEL, show_default=False
        ),
    ],
}
_DEFAULTS: dict[str, Any] = {"output": OutputFormat.TABLE, "json": False, "device_id": 0}


@dataclass(frozen=True, slots=True)
class View:
    """How listings are shown: output format, columns (none: all), and the column to sort by."""

    format: OutputFormat = OutputFormat.TABLE
    columns: tuple[str, ...] = ()
    sort_by: str | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where the switches are."""

    run: Path | None
    address: list[str] | None
    device_id: int
    p4info: Path | None
    topology: str | None
    ca: Path | None
    cert: Path | None
    key: Path | None


@dataclass(frozen=True, slots=True)
class InspectOptions:
    """What to show, and how; and where the switches are."""

    source: SourceOptions
    view: View
    where: str | None
    watch: float | None
    rounds: int | None


def _view(given: dict[str, Any]) -> View:
    """What the options of `_VIEW` say, which are taken out.

    Raises:
        SpecError: --json and another output format.
    """
    from tailrace.spec import SpecError

    output, json = given.pop("output"), given.pop("json")
    if json and output not in (OutputFormat.TABLE, OutputFormat.JSON):
        raise SpecError(f"--json and -o {output.value} contradict each other; give one")
    names = [name.strip() for name in (given.pop("columns") or "").split(",")]
    return View(OutputFormat.JSON if json else output, tuple(filter(None, names)), given.pop("sort_by"))


def with_view(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command that takes `view: View` the options of how listings are shown."""

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        view = _view(given)
        command(**given, view=view)

    return with_signature(wrapper, command, "view", _VIEW)


def with_source(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command that takes `source: SourceOptions` the options of `SourceOptions`."""

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        source = SourceOptions(**{name: given.pop(name) for name in _SOURCE})
        command(**given, source=source)

    return with_signature(wrapper, command, "source", _SOURCE)


def with_inspect(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command that takes `options: InspectOptions` the options of both."""

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        source = SourceOptions(**{name: given.pop(name) for name in _SOURCE})
        options = InspectOptions(source, _view(given), **{name: given.pop(name) for name in _INSPECT})
        command(**given, options=options)

    return with_signature(wrapper, command, "options", {**_INSPECT, **_VIEW, **_SOURCE})


def with_signature(
    wrapper: Callable[..., None], command: Callable[..., None], replaced: str, options: dict[str, Any]
) -> Callable[..., None]:
    """Shows typer the parameters of the command and the options, not the parameter that bundles them."""
    of_command = inspect.signature(command, eval_str=True).parameters
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in of_command.items()
        if name != replaced
    ]
    parameters += [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(name), annotation=annotation
        )
        for name, annotation in options.items()
    ]
    wrapper.__dict__["__signature__"] = inspect.Signature(parameters)
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper
