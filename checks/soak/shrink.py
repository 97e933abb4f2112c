# SPDX-License-Identifier: Apache-2.0
"""Shrinks a failing scenario, as long as it violates one of the same invariants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from checks.soak.generate import TOPOLOGIES
from checks.soak.run import run
from checks.soak.scenario import Chaos, Scenario
from tailrace.spec import SpecError
from tailrace.topology import parse_topology

T = TypeVar("T")

SMALLEST = ("leaf-spine:leaves=2,spines=2,hosts=1,rate=10Gbps,delay=1us", TOPOLOGIES[0])

MOST_RUNS = 300
"""Limit of runs to shrink one scenario."""


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool] | None = None) -> Scenario:
    """The smallest failing scenario found: no scenario of `smaller` fails, or MOST_RUNS is reached.

    Args:
        fails: whether a smaller scenario still fails; default: it breaks a promise that `scenario` breaks.
    """
    if fails is None:
        kinds = run(scenario).kinds

        def fails(other: Scenario) -> bool:
            return bool(run(other).kinds & kinds)

    attempts = 0
    progress = True
    while progress and attempts < MOST_RUNS:
        progress = False
        for other in smaller(scenario):
            attempts += 1
            if fails(other):
                scenario, progress = other, True
                break
            if attempts >= MOST_RUNS:
                break
    return scenario


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with one feature less, the largest steps first, without those that cannot be planned."""
    for other in _steps(scenario):
        if other != scenario:
            try:
                other.plan()
            except SpecError:
                continue
            yield other


def _steps(scenario: Scenario) -> Iterator[Scenario]:
    settings = scenario.settings
    yield replace(scenario, chaos=Chaos())
    if scenario.faults:
        yield _with(scenario, fault=[])
    yield from _calmer(scenario)
    for faults in _without_one(tuple(scenario.faults)):
        yield _with(scenario, fault=list(faults))
    if settings["topology"] not in SMALLEST:
        for topology in SMALLEST:
            yield _within(_with(scenario, topology=topology))
    for key in ("pfc", "transport", "mtu"):
        if key in settings:
            yield replace(scenario, settings={k: v for k, v in settings.items() if k != key})
    name, _, options = settings["scheme"].partition(":")
    for kept in _without_one(tuple(options.split(",")) if options else ()):
        yield _with(scenario, scheme=f"{name}:{','.join(kept)}" if kept else name)
    for workload in ("random:flows=1,size=1B", "random:flows=1,size=32KiB", "random:flows=3,size=32KiB"):
        yield _with(scenario, workload=workload)


def _calmer(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios without one kind of disturbance, then scenarios with one disturbance less."""
    chaos, default = scenario.chaos, Chaos()
    fields = [name for name in Chaos.__struct_fields__ if name != "until_ns"]
    for name in fields:
        yield replace(scenario, chaos=replace(chaos, **{name: getattr(default, name)}))
    for name in fields:
        value = getattr(chaos, name)
        for fewer in _without_one(value) if isinstance(value, tuple) else ():
            yield replace(scenario, chaos=replace(chaos, **{name: fewer}))


def _within(scenario: Scenario) -> Scenario:
    """The scenario without disturbances of switches and links that its topology does not have."""
    topology, chaos = parse_topology(scenario.settings["topology"]), scenario.chaos
    names = {switch.name for switch in topology.switches}
    chaos = replace(
        chaos,
        breaks=tuple(each for each in chaos.breaks if each.switch in names),
        full=tuple(each for each in chaos.full if each.switch in names),
        stale=tuple(index for index in chaos.stale if index < len(topology.links)),
    )
    return replace(scenario, chaos=chaos)


def _with(scenario: Scenario, **settings: object) -> Scenario:
    return replace(scenario, settings={**scenario.settings, **settings})


def _without_one(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """For each item, the tuple of all other items."""
    return (items[:index] + items[index + 1 :] for index in range(len(items)))
