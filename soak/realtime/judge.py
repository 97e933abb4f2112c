# SPDX-License-Identifier: Apache-2.0
"""What must hold of an hour: memory grows less than a limit after a warm-up, descriptors do not grow."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from soak.realtime.measure import Sample

MOST_GROWTH_BYTES = 1 << 20
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
    """By how much a process grew from the first quarter of its calm moments to the last one, by medians."""
    first, last = _quarters(after_warm_up(samples))

    def of(key: str) -> int:
        before, after = ([getattr(one, key) for one in quarter] for quarter in (first, last))
        return round(statistics.median(after) - statistics.median(before))

    return {key: of(key) for key in ("own_bytes", "pss_bytes", "rss_bytes", "descriptors", "threads")}


def problems(samples: Mapping[str, Sequence[Sample]]) -> list[str]:
    """A line for each process that grew."""
    found = []
    for name, seen in samples.items():
        if len(after_warm_up(seen)) < ENOUGH:
            found.append(f"{name}: only {len(after_warm_up(seen))} calm moments: too short to tell growth")
            continue
        grown = growth(seen)
        if grown["own_bytes"] >= MOST_GROWTH_BYTES:
            found.append(f"{name}: grew by {grown['own_bytes'] / (1 << 20):.2f} MiB")
        for key in ("descriptors", "threads"):
            if grown[key] > 0:
                found.append(f"{name}: {grown[key]} {key} more")
    return found
