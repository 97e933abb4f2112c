# SPDX-License-Identifier: Apache-2.0
"""python -m soak.realtime [--minutes M] [--seed N] [--out DIR] | --restarts N

Chaos on native switches in real time (root, Debian's package mininet); DIR gets chaos.json, chaos.jsonl,
chaos.png and logs/. Exit codes: 0 all held, 1 something did not (the last line says how it is run again), 2
bad input, 130 and 143 when it was interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabric_plan import NATIVE, check_target
from fabric_report import FabricError, InputError
from fabric_sandbox import make_run_dir, remove_stale, run_sandboxed

from soak.realtime.left import left_behind, mark
from tailrace.toolchain.debian import see_mininet
from tailrace.words import SpecError
from tailrace.words.arguments import Parser

MOST_MINUTES = 7 * 24 * 60
MOST_RESTARTS = 10_000


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = Parser(prog="soak.realtime", description=__doc__, allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--seed", type=int, default=1, help="of what happens (1)")
    parser.add_argument("--restarts", type=int, help="no chaos: so many restarts of switches and controllers")
    parser.add_argument("--out", type=Path, default=Path("out/chaos"), help="folder of the results")
    options = parser.parse_args(argv)
    try:
        _check(options)
        options.out.mkdir(parents=True, exist_ok=True)
        remove_stale()
        before = mark()
        folder = make_run_dir()
        inside = False

        def body() -> int:
            nonlocal inside
            inside = True
            return _run(options, folder)

        code = run_sandboxed(body, folder)
        if not inside:
            left = left_behind(before, folder)
            for line in left:
                print(f"soak.realtime: left behind: {line}")
            code = code or bool(left)
    except (FabricError, SpecError) as error:
        print(f"soak.realtime: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code if isinstance(error, FabricError) else 2
    except KeyboardInterrupt:
        return 130
    return code


def _check(options: argparse.Namespace) -> None:
    """Whether the run can be at all. Raises InputError."""
    if os.geteuid() != 0:
        raise InputError("namespaces need root")
    if not see_mininet():
        raise InputError("Debian's package mininet is not installed")
    if not 0 < options.minutes <= MOST_MINUTES:
        raise InputError(f"--minutes: expected more than 0 and at most {MOST_MINUTES}")
    if options.restarts is not None and not 1 <= options.restarts <= MOST_RESTARTS:
        raise InputError(f"--restarts: expected 1 to {MOST_RESTARTS}")
    check_target(NATIVE)
    os.environ["GRPC_VERBOSITY"] = "NONE"


def _run(options: argparse.Namespace, folder: Path) -> int:
    """What happens in the sandbox."""
    from soak.realtime.figure import draw
    from soak.realtime.run import Restarts, Soak

    restarts = options.restarts is not None
    run = (Restarts if restarts else Soak)(options.out, folder, options.seed)
    try:
        run.up()
        if isinstance(run, Restarts):
            result = run.restarts(options.restarts)
        else:
            result = run.soak(options.minutes)
            draw(result, options.out / "chaos.png")
    finally:
        run.down()
    _show(result)
    if result["problems"]:
        how = f"--restarts {options.restarts}" if restarts else f"--minutes {options.minutes:g}"
        print(f"again: python -m soak.realtime {how} --seed {options.seed}")
    return bool(result["problems"])


def _show(result: dict[str, Any]) -> None:
    """The figures, a line each."""
    for key in ("acts", "growth", "latency_s", "lost", "failed_calls", "recovered_s", "restart_s"):
        found = result.get(key)
        if key in ("growth", "latency_s", "lost", "restart_s") and found:
            for name, values in found.items():
                print(f"{key} {name}: " + ", ".join(f"{k} {v:g}" for k, v in values.items()))
        elif found:
            print(f"{key}: " + ", ".join(f"{k} {v:g}" for k, v in found.items()))
    for problem in result["problems"]:
        print(f"problem: {problem}")


if __name__ == "__main__":
    sys.exit(main())
