# SPDX-License-Identifier: Apache-2.0
"""python -m checks.soak --seeds A..B [--workers N] [--shrink] | --seed N [--shrink]
| --scenario JSON [--shrink]

Exit codes: 0 all promises (invariants) were kept, 1 some were broken (each line repeats one of these runs),
2 bad input.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import msgspec

from checks.soak.generate import draw
from checks.soak.run import ScenarioResult, run
from checks.soak.scenario import Scenario
from checks.soak.shrink import shrink
from tailrace.experiments.plan.seeds import number_range
from tailrace.spec import SpecError
from tailrace.spec.arguments import ArgumentParser
from tailrace.spec.text import one_line

MOST_SHRUNK = 3
"""Number of failing scenarios that --shrink makes smaller in one call."""

COLLECTS_EVERY = 16
"""Number of scenarios between two garbage collections; automatic collections take a tenth of the time."""


def _run_seed(seed: int) -> tuple[int, ScenarioResult]:
    if seed % COLLECTS_EVERY == 0:
        gc.collect()
    return seed, run(draw(seed))


def _begin() -> None:
    """Stops automatic garbage collection, and exempts all objects made so far from later collections."""
    gc.disable()
    gc.freeze()


def _all(seeds: Sequence[int], workers: int) -> Iterator[tuple[int, ScenarioResult]]:
    if workers == 1:
        _begin()
        yield from map(_run_seed, seeds)
        return
    with ProcessPoolExecutor(workers, initializer=_begin) as pool:
        yield from pool.map(_run_seed, seeds, chunksize=4)


def _scenario(text: str) -> Scenario:
    """Decodes a scenario. Raises SpecError if `text` is not one."""
    try:
        return msgspec.json.decode(text, type=Scenario)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SpecError(f"--scenario: {error}") from error


def _seeds(text: str) -> range:
    """The seeds A..B, or the single seed A. Raises SpecError if `text` is neither."""
    first, last = number_range(text if ".." in text else f"{text}..{text}") or (0, -1)
    if last < first:
        raise SpecError(f"--seeds: expected A..B, found {text[:40]!r}")
    return range(first, last + 1)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = ArgumentParser(prog="soak", description=__doc__, allow_abbrev=False)
    parser.add_argument("--seeds", default="1..200", help="a range such as 1..200")
    parser.add_argument("--seed", type=int, help="run this seed's scenario, and print it")
    parser.add_argument("--scenario", help="a scenario as --seed prints it")
    parser.add_argument("--shrink", action="store_true", help="make failing scenarios smaller")
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    options = parser.parse_args(argv)
    if options.workers < 1:
        parser.error("--workers must be at least 1")
    try:
        if options.scenario is not None:
            return _run_scenario(_scenario(options.scenario), shrinks=options.shrink)
        if options.seed is not None:
            return _run_scenario(draw(options.seed), shrinks=options.shrink)
        return _many(_seeds(options.seeds), options.workers, shrinks=options.shrink)
    except (OSError, UnicodeError, SpecError) as error:
        print(f"soak: {one_line(str(error))}", file=sys.stderr)
        return 2


def _run_scenario(scenario: Scenario, *, shrinks: bool) -> int:
    result = run(scenario)
    print(msgspec.json.encode(scenario).decode())
    for problem in result.problems:
        print(problem)
    if result.problems and shrinks:
        print(f"smaller: {msgspec.json.encode(shrink(scenario)).decode()}")
    return bool(result.problems)


def _many(seeds: range, workers: int, *, shrinks: bool) -> int:
    began_s = time.monotonic()
    failed: list[int] = []
    for seed, result in _all(seeds, workers):
        if result.problems:
            failed.append(seed)
            print(f"python -m checks.soak --seed {seed}  # {result.problems[0][:200]}", flush=True)
    took_s = time.monotonic() - began_s
    for seed in failed[: MOST_SHRUNK if shrinks else 0]:
        document = msgspec.json.encode(shrink(draw(seed))).decode()
        print(f"python -m checks.soak --scenario '{document}'  # seed {seed} made smaller")
    print(f"{len(seeds)} scenarios, {len(failed)} failed, {took_s:.0f} s")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
