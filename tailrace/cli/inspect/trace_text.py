# SPDX-License-Identifier: Apache-2.0
"""Traces on the terminal: lines in colours, or JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tailrace.switch.trace.text import Line

_STYLES = {
    "packet": "bold", "stage": "bold cyan", "table": "bold", "hit": "green", "miss": "yellow",
    "action": "magenta", "change": "blue", "extern": "cyan", "sent": "bold green", "drop": "bold red",
    "bad": "bold red", "choice": "yellow",
}  # fmt: skip


def print_lines(lines: Iterable[Line]) -> None:
    """Prints the lines of a trace, in colours if standard output is a terminal."""
    from rich.text import Text

    from tailrace.cli.output import console
    from tailrace.switch.trace.text import INDENT

    out = console()
    for depth, style, line in lines:
        out.print(Text(f"{INDENT * depth}{line}", _STYLES.get(style, "")), soft_wrap=True)


def print_json(value: object) -> None:
    """Prints a value as JSON."""
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
