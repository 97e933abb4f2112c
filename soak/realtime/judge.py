# SPDX-License-Identifier: Apache-2.0
"""What must hold of an hour: memory grows less than a limit after a warm-up, descriptors do not grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from soak.realtime.measure import Sample

MOST_GROWTH_BYTES = 1 << 20
MOST_THREADS = 2
"""More of them are a leak; pools start theirs when two calls first meet, which may be late."""

WARM_UP = 1 / 6
"""Share of the time in which a process may still grow into its size."""

ENOUGH = 4
"""Calm moments after the warm-up; fewer tell nothing of growth."""


def after_warm_up(samples: Sequence[Sample]) -> list[Sample]:
    """The calm moments after the warm-up."""
    calm = [one for one in samples if one.calm]
    if not calm:
        return []
    first_s, last_s = calm[0].at_s, calm[-1].at_s
    return [one for one in calm if one.at_s >= first_s + WARM_UP * (last_s - first_s)]


def _quarters(samples: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Sample]]:
    size = max(1, len(samples) // 4)
    return samples[:size], samples[-size:]


def growth(samples: Sequence[Sample]) -> dict[str, int]:
    """By how much the least that a process takes at a calm moment grew from the first quarter of them to the
    last one: memory that is only late in going back comes and goes, a leak raises the floor.
    """
    first, last = _quarters(after_warm_up(samples))

    def of(read: Callable[[Sample], int]) -> int:
        return min(map(read, last)) - min(map(read, first))

    return {
        "own_bytes": of(lambda one: one.own_bytes),
        "pss_bytes": of(lambda one: one.pss_bytes),
        "rss_bytes": of(lambda one: one.rss_bytes),
        "descriptors": of(lambda one: one.descriptors),
        "threads": of(lambda one: one.threads),
    }


def problems(samples: Mapping[str, Sequence[Sample]]) -> list[str]:
    """A line for each process that grew."""
    found = []
    for name, seen in samples.items():
        moments = len(after_warm_up(seen))
        if moments < ENOUGH:
            found.append(f"{name}: {moments} calm moments are too few to tell growth")
            continue
        grown = growth(seen)
        if grown["own_bytes"] >= MOST_GROWTH_BYTES:
            found.append(f"{name}: grew by {grown['own_bytes'] / (1 << 20):.2f} MiB")
        for key, most in (("descriptors", 0), ("threads", MOST_THREADS)):
            if grown[key] > most:
                found.append(f"{name}: {grown[key]} {key} more")
    return found
