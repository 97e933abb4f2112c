# SPDX-License-Identifier: Apache-2.0
"""Resources of programs as a listing: one row per program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from tailrace.cbuild.artifacts import P4_BUILD
from tailrace.cli.explain.counts import Resources, resources
from tailrace.p4rt.programs import load
from tailrace.spec import SpecError, plugins
from tailrace.spec.suggest import unknown
from tailrace.tables.listing import Column, Listing, Row

_KIBIBIT = 1 << 10
# `rank`: a narrow terminal hides the columns of the highest rank first
COLUMNS = (
    Column("program", key=True),
    Column("matches", title="match tables"),
    Column("entries", rank=2),
    Column("registers", rank=1),
    Column("register_bits", title="register bits (Kibit)", show=lambda bits: f"{bits / _KIBIBIT:,.1f}"),
    Column("counters", title="counter cells", rank=2),
    Column("most_matches", title="most matches per packet"),
    Column("most_steps", title="most steps per packet", rank=1),
    Column("most_conditions", title="most conditions per packet", rank=1),
    Column("most_accesses", title="most register accesses per packet"),
    Column("most_hashes", title="most hashes per packet"),
    Column("again", title="further passes", show=", ".join),
)


def programs() -> list[str]:
    """The names of all compiled programs, including those of plug-ins."""
    names = {path.stem for folder in (P4_BUILD, *plugins.builds()) for path in folder.glob("*.json")}
    return sorted(names)


def listing(names: Sequence[str], over: str | None) -> Listing:
    """One row per program.

    Args:
        names: programs to show; empty: all.
        over: a program whose numbers are subtracted; None: nothing is subtracted.

    Raises:
        SpecError: there is no such program.
        P4ProgramError: one cannot be read.
    """
    known = programs()
    for name in (*names, *([over] if over is not None else [])):
        if name not in known:
            raise SpecError(f"program {unknown(name, known)}")
    base = None if over is None else resources(load(over))
    rows = [_row(resources(load(name)), base) for name in names or [each for each in known if each != over]]
    caption = () if over is None else (f"beyond what {over} has",)
    return Listing("programs", COLUMNS, tuple(rows), caption=caption)


def _row(usage: Resources, base: Resources | None) -> Row:
    values = {field.name: getattr(usage, field.name) for field in fields(Resources)}
    if base is None:
        return values
    numbers = {name: value for name, value in values.items() if isinstance(value, int)}
    return values | {name: value - getattr(base, name) for name, value in numbers.items()}
