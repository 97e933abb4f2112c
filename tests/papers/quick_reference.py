# SPDX-License-Identifier: Apache-2.0
"""Writes tailrace/papers/quick.toml from results at the small scale, with the seeds of --quick.

    tailrace paper all --scale small --seed 1..3 --workers 2 --out OUT
    .venv/bin/python -m tests.papers.quick_reference OUT

Figures without results in OUT keep their entries.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tailrace.papers import quick
from tailrace.papers.document import RESULT, read_document
from tailrace.papers.model import names, read_paper


def entry_of(name: str, path: Path) -> quick.Reference:
    """The reference of a figure, from its results."""
    document = read_document(path)
    if document.seeds not in ((), quick.SEEDS):
        sys.exit(f"{path}: expected the seeds {quick.SEEDS}")
    rows = quick.rows_of(document, read_paper(name).claims(quick.SCALE), ())
    cpu_s = 0.0 if document.cost is None else document.cost.cpu_s
    fails = (*(row.key for row in rows if row.result == quick.FAIL), *document.failed)
    return quick.Reference(round(cpu_s, 1), fails)


def main(out: Path) -> None:
    """Writes the file."""
    entries = quick.references() if quick.FILE.exists() else {}
    for name in names():
        path = out / quick.SCALE / name / RESULT
        if path.exists():
            entries[name] = entry_of(name, path)
    lines = ["# Written by tests/papers/quick_reference.py: CPU time of the runs in s, and what fails"]
    for name, entry in entries.items():
        lines += ["", f"[{name}]", f"cpu_s = {entry.cpu_s}"]
        if entry.fails:
            lines += ["fails = [", *(f"  {json.dumps(key, ensure_ascii=False)}," for key in entry.fails), "]"]
    quick.FILE.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
