# SPDX-License-Identifier: Apache-2.0
"""Fuzzes all that takes others' octets, for a time, and notes how much was done.

    python -m tests.switch.fuzz --seconds 120

Kinds, each a share of the time: `guided` (frames and control calls, by coverage), `updates` (of P4Runtime, in process),
`grpc` (the same through a server), `readers` (of words and files), `mutants` (BMv2 JSON), `threads` (the real-time front end under the thread
sanitizer). A fault ends the run with its report, exit 1; the seed repeats it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.switch.fuzz import builds, guided, kinds

RECORD = Path(__file__).with_name("record.jsonl")
WORK = builds.ROOT / "build" / "fuzz"
SHARES: dict[str, tuple[float, kinds.Run]] = {
    "guided": (0.45, kinds.guided),
    "updates": (0.15, kinds.updates),
    "grpc": (0.1, kinds.grpc),
    "readers": (0.1, kinds.readers),
    "mutants": (0.1, kinds.mutants),
    "threads": (0.1, kinds.threads),
}
SUMMED = ("frames", "controls", "updates", "inputs", "programs", "seconds")
"""What adds up over runs; else a row has what the last run saw."""

Row = dict[str, Any]


def noted(rows: list[Row], path: Path = RECORD) -> None:
    """Adds what was done to the record, one line for each kind and name."""
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    record = {(row["kind"], row["name"]): row for row in map(json.loads, lines)}
    for row in rows:
        before = record.get((row["kind"], row["name"]), {})
        sums = {key: round(row[key] + before.get(key, 0), 1) for key in SUMMED if key in row}
        record[row["kind"], row["name"]] = {**before, **row, **sums}
    text = "".join(json.dumps(row) + "\n" for _, row in sorted(record.items()))
    path.write_text(text, "utf-8")


def shown(rows: Iterator[Row]) -> Iterator[Row]:
    """Yields the rows; prints each one as soon as it comes."""
    for row in rows:
        speed = next(
            (row[key] for key in ("frames", "updates", "inputs", "programs") if row.get(key)), 0
        ) / max(row["seconds"], 0.1)
        print(" ".join(f"{key}={value}" for key, value in row.items()), f"per_second={speed:.0f}", flush=True)
        yield row


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.switch.fuzz", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="of all kinds together (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, help="default: another one each time")
    parser.add_argument("--only", action="append", choices=SHARES, help="these kinds alone")
    parser.add_argument("--name", action="append", help="these programs and targets alone")
    parser.add_argument("--record", action="store_true", help=f"note what was done in {RECORD.name}")
    parser.add_argument("--keep", action="store_true", help="keep what was found of coverage in corpus/")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else int.from_bytes(os.urandom(4), "big")
    print(f"seed={seed}", flush=True)
    chosen = given.only or list(SHARES)
    total = sum(SHARES[kind][0] for kind in chosen)
    WORK.mkdir(parents=True, exist_ok=True)
    for kind in chosen:
        share, run = SHARES[kind]
        seconds = given.seconds * share / total
        rng = random.Random(f"{seed} {kind}")
        try:
            # what was done before a fault was done, too
            for row in shown(run(WORK, seconds, rng, set(given.name or ()))):
                if given.record:
                    noted([row])
        except kinds.CannotError as error:
            print(f"fuzz: {kind}: {error}", file=sys.stderr)
            continue
        except (guided.FoundError, AssertionError) as error:
            print(f"fuzz: {kind}: a fault, seed {seed}\n{error}", file=sys.stderr)
            return 1
    if given.keep:
        for target in guided.targets():
            if not given.name or target.name in given.name:
                print(f"{target.name}: {guided.keep(target, WORK)} units", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
