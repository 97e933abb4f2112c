#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the tables of keys, metrics, programs and limits into docs/, from the declarations in the code.

    key_tables.py [FILE.md ...]          without a FILE: all pages of docs/

A table is between two lines of a page, and is overwritten:

    <!-- keys: transports dcqcn tcp -->
    <!-- end of keys -->

The first line names one of the lists that `tailrace transports`, `tailrace resources` and similar commands
print, and entries of this list; without entries, the table has all of them.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tailrace.cli.complete import KINDS, registry_of
from tailrace.cli.explain.counts import listing as programs
from tailrace.hosts.options.hf2t_spec import Hf2tSpec
from tailrace.results.metrics import BUILT_IN, METRICS
from tailrace.results.units import UNITS
from tailrace.schemes.base import BY_TOPOLOGY, Common
from tailrace.spec.keys import Key, keys_of
from tailrace.spec.units import format_bytes

ROOT = Path(__file__).resolve().parent.parent
EVERY, HF2T = "every-scheme", "hf2t"  # keys of all schemes; keys of HF²T, which stretches gaps in NICs
STRUCTS = {EVERY: Common, HF2T: Hf2tSpec}
"""The structs that declare the keys which schemes share; each has a separate table."""

_BLOCK = re.compile(r"(<!-- keys: ([a-z0-9-]+)((?: [a-z0-9_-]+)*) -->\n).*?(<!-- end of keys -->)", re.DOTALL)


LIMITS = {
    "a file of results or flows": "spec.files.MOST_BYTES",
    "a topology, P4Info, program or certificate": "spec.files.MOST_TEXT_BYTES",
    "an experiment, a distribution of sizes": "spec.schema.MOST_BYTES",
    "characters of specs `name:key=value`": "spec.spec_string.MOST_CHARACTERS",
    "files of a plug-in": "spec.plugins.MOST_FILES",
    "a file of a plug-in": "spec.plugins.MOST_BYTES",
    "a row of the stored runs": "study.store.store.MOST_ROW_BYTES",
    "rows of a file of stored runs": "study.store.store.MOST_ROWS",
    "folders that a report searches": "report.collect.MOST_FOLDERS",
    "panels of a figure": "papers.document.MOST_PANELS",
    "bars, points or squares of a figure": "papers.document.MOST_MARKS",
    "processes of a sweep": "study.pool.MOST_WORKERS",
    "a message to the P4Runtime server": "switch.p4runtime.server.MAX_MESSAGE_BYTES",
    "metadata of a call": "switch.p4runtime.server.MAX_METADATA_BYTES",
    "concurrent connections of a device": "switch.p4runtime.server.MAX_CONNECTIONS",
    "seconds until a connection without a call is closed": "switch.p4runtime.server.IDLE_S",
    "concurrent streams of a device": "switch.p4runtime.service.MAX_STREAMS",
    "seconds until the first arbitration message of a stream": "switch.p4runtime.service.ANNOUNCED_S",
    "concurrent calls of a connection": "switch.p4runtime.server.MAX_CALLS",
    "seconds for the arrival of a request": "switch.p4runtime.calls.ARRIVAL_S",
    "seconds of silence after which a connection is probed": "switch.p4runtime.server.KEEPALIVE_S",
    "seconds that other calls wait for a Read under way": "switch.p4runtime.service.READ_S",
    "seconds that a new primary waits for Writes under way": "switch.p4runtime.service.TAKEOVER_S",
    "seconds that a real packet is tracked for a trace": "switch.trace.injection.MOST_S",
    "seconds for a program's compilation": "switch.p4runtime.program_compiler.MOST_S",
    "the C code generated from a program": "switch.compiler.emit.text.MOST_BYTES",
    "a compiled program": "switch.p4runtime.program_compiler.MAX_PROGRAM_BYTES",
    "the build cache": "cbuild.cache.MOST_BYTES",
    "days that the cache keeps unused objects": "cbuild.cache.MOST_DAYS",
}
"""Limits shown on pages, with the constants that define them (sizes in bytes). A page names the packages
below `tailrace` whose limits it shows."""


def _limit(place: str) -> str:
    """The value of the constant at `place` (module and name below `tailrace`), formatted for people."""
    module, _, name = place.rpartition(".")
    value = getattr(importlib.import_module(f"tailrace.{module}"), name)
    return format_bytes(value) if name.endswith("BYTES") else f"{value:,.0f}"


def table(kind: str, names: Sequence[str] = ()) -> str:
    """The table in Markdown, with a newline at the end.

    Raises:
        SpecError: unknown name.
    """
    rows: list[tuple[str, ...]] = [("name", "key", "values", "default", "meaning"), ("---",) * 5]
    if kind == "resources":
        shown = programs(names, None)
        rows = [tuple(column.title or column.name for column in shown.columns), ("---",) * len(shown.columns)]
        rows += [
            tuple(
                column.show(row[column.name]) if column.show else str(row[column.name])
                for column in shown.columns
            )
            for row in shown.rows
        ]
    elif kind == "limits":
        rows = [("what", "at most", "constant"), ("---",) * 3]
        packages = names or {place.partition(".")[0] for place in LIMITS.values()}
        rows += [
            (what, _limit(place), f"`{place}`")
            for what, place in LIMITS.items()
            if place.partition(".")[0] in packages
        ]
    elif kind == "metrics":
        rows = [("name", "unit", "definition", "source", "better"), ("---",) * 5, *_metrics()]
    elif kind in STRUCTS:
        rows += _keys(keys_of(STRUCTS[kind]), BY_TOPOLOGY)
    else:
        registry = registry_of(KINDS[kind])
        # without those of plug-ins
        built_in = (each.name for each in registry if each.struct.__module__.startswith("tailrace."))
        for name in names or built_in:
            entry = registry.entry(name)
            rows.append((f"`{entry.name}`", "", "", "", entry.help))
            is_scheme = kind == "schemes"
            rows += _keys(
                keys_of(entry.struct) if is_scheme else registry.keys(name), BY_TOPOLOGY if is_scheme else ""
            )
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def _keys(keys: Iterable[Key], open_default: str) -> Iterator[tuple[str, str, str, str, str]]:
    for key in keys:
        section = f" ({key.section})" if key.section else ""
        yield "", f"`{key.name}`", key.values, key.default_text or open_default, key.help + section


def _metrics() -> Iterator[tuple[str, ...]]:
    for name in BUILT_IN:
        entry = METRICS[name]
        # the pages explain the star: results also have this metric for each class of flows
        star = "*" * entry.by_class + "†" * entry.of_all
        yield f"`{name}`{star}", UNITS[entry.unit].name, entry.definition, entry.source, entry.better


def written(text: str) -> str:
    """The text of a page with its tables rewritten."""
    return _BLOCK.sub(lambda block: block[1] + table(block[2], block[3].split()) + block[4], text)


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or sorted((ROOT / "docs").rglob("*.md")):
        path.write_text(written(path.read_text("utf-8")), "utf-8")
