# SPDX-License-Identifier: Apache-2.0
"""Makes a scenario that fails smaller, as long as it breaks one of the same promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from soak.run import run
from soak.scenario import TOPOLOGIES, Chaos, Scenario

MOST_RUNS = 300
"""Tries for one scenario."""


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool] | None = None) -> Scenario:
    """The smallest that was found: no single step of `smaller` leaves it failing.

    Args:
        fails: whether one breaks what it should still break; without it, any promise that `scenario` breaks.
    """
    if fails is None:
        kinds = run(scenario).kinds

        def fails(other: Scenario) -> bool:
            return bool(run(other).kinds & kinds)

    tries = 0
    progress = True
    while progress and tries < MOST_RUNS:
        progress = False
        for other in smaller(scenario):
            tries += 1
            if fails(other):
                scenario, progress = other, True
                break
            if tries >= MOST_RUNS:
                break
    return scenario


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Each with one thing less, the largest steps first; those that cannot be planned are left out."""
    for other in _steps(scenario):
        if other != scenario:
            try:
                other.plan()
            except Exception:  # noqa: BLE001, S112 - no scenario
                continue
            yield other


def _steps(scenario: Scenario) -> Iterator[Scenario]:
    words, chaos = scenario.words, scenario.chaos
    plain = Chaos()
    yield replace(scenario, chaos=plain)
    if scenario.faults:
        yield _with(scenario, fault=[])
    for name in Chaos.__struct_fields__:
        yield replace(scenario, chaos=replace(chaos, **{name: getattr(plain, name)}))
    for index in range(len(chaos.kills)):
        yield replace(scenario, chaos=replace(chaos, kills=_without(chaos.kills, index)))
    for index in range(len(chaos.breaks)):
        yield replace(scenario, chaos=replace(chaos, breaks=_without(chaos.breaks, index)))
    for index in range(len(scenario.faults)):
        yield _with(scenario, fault=list(_without(tuple(scenario.faults), index)))
    if words["topology"] != TOPOLOGIES[0]:
        yield _with(scenario, topology=TOPOLOGIES[0])
    for key in ("pfc", "transport", "mtu"):
        if key in words:
            yield replace(scenario, words={k: v for k, v in words.items() if k != key})
    name, _, options = words["scheme"].partition(":")
    kept = options.split(",") if options else []
    for index in range(len(kept)):
        left = ",".join(_without(tuple(kept), index))
        yield _with(scenario, scheme=f"{name}:{left}" if left else name)
    for workload in ("random:flows=1,size=1B", "random:flows=1,size=32KiB", "random:flows=3,size=32KiB"):
        yield _with(scenario, workload=workload)


def _with(scenario: Scenario, **words: object) -> Scenario:
    return replace(scenario, words={**scenario.words, **words})


def _without(items: tuple, index: int) -> tuple:  # type: ignore[type-arg]
    return items[:index] + items[index + 1 :]
