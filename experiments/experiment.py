# SPDX-License-Identifier: Apache-2.0
"""An experiment as words: everything that decides its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from controller.scheme import parse_scheme
from experiments import defaults
from experiments.fault import parse_fault
from experiments.words import with_option
from experiments.workload import parse_workload
from hosts.config import TRANSPORTS
from spec import SpecError
from spec.units import parse_bytes
from topology import parse_topology

TARGETS = ("auto", "bmv2", "native", "virtual")


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment. `make` checks the words; this only holds them.

    `workload` None is defaults.workload, `flows` the number of flows where the workload leaves it open,
    `time_scale` None lets the target choose (experiments/budget.py), `window_bytes` None is the default of
    experiments/nic.py.
    """

    scheme: str
    topology: str = defaults.TOPOLOGY
    workload: str | None = None
    flows: int | None = None
    target: str = "auto"
    seed: int = defaults.SEED
    faults: tuple[str, ...] = ()
    time_scale: float | None = None
    transport: str = TRANSPORTS[0]
    window_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an experiment: how to check its value, and what to say is expected."""

    check: Callable[[Any], Any]
    expected: str
    types: tuple[type, ...] = (str,)


def _checked_by(parse: Callable[[str], object]) -> Callable[[str], str]:
    """The text itself, if the parser takes it."""

    def check(text: str) -> str:
        parse(text)
        return text

    return check


def _one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in choices:
            raise SpecError(f"expected {', '.join(choices)}, found {text!r}")
        return text

    return check


def _seed(value: int) -> int:
    if value < 0:
        raise SpecError(f"expected 0 or more, found {value}")
    return value


def _flows(value: int) -> int:
    if value < 1:
        raise SpecError(f"expected 1 or more, found {value}")
    return value


def _time_scale(value: float) -> float:
    if not (math.isfinite(value) and value >= 1):
        raise SpecError(f"expected 1 (full speed) or more, found {value}")
    return float(value)


def _faults(value: str | list[object]) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    for item in items:
        if not isinstance(item, str):
            raise SpecError(f"expected texts, found {item!r}")
        parse_fault(item)
    return tuple(str(item) for item in items)


def _window(text: str) -> int:
    size_bytes = parse_bytes(text)
    if size_bytes < 1:
        raise SpecError("expected more than 0 bytes")
    return size_bytes


KEYS: Mapping[str, Key] = {
    "scheme": Key(_checked_by(parse_scheme), "a text such as 'flowcut:variant=full'"),
    "variant": Key(str, "a text such as 'ingress'"),
    "topology": Key(_checked_by(parse_topology), "a text such as 'leaf-spine:leaves=2,spines=4,hosts=4'"),
    "workload": Key(_checked_by(parse_workload), "a text such as 'permutation:size=1MiB'"),
    "flows": Key(_flows, "a number of flows", (int,)),
    "target": Key(_one_of(TARGETS), f"one of {', '.join(TARGETS)}"),
    "seed": Key(_seed, "a whole number", (int,)),
    "fault": Key(
        _faults, "a text such as 'link-slow:fraction=0.1,factor=0.1', or a list of them", (str, list)
    ),
    "time_scale": Key(_time_scale, "a number from 1 on", (int, float)),
    "transport": Key(_one_of(TRANSPORTS), f"one of {', '.join(TRANSPORTS)}"),
    "window": Key(_window, "a size such as '64KiB'"),
}
"""The keys of an experiment file, which are also the options of the command line."""

_FIELDS = {"fault": "faults", "window": "window_bytes"}


class KeyProblemError(SpecError):
    """A value that a key does not take; `key` names it."""

    def __init__(self, key: str, problem: str) -> None:
        """Remember the key, for whoever knows which file or option it came from."""
        super().__init__(problem if problem.startswith(key) else f"{key}: {problem}")
        self.key = key
        self.problem = problem


def make(values: Mapping[str, Any], base: Experiment | None = None) -> Experiment:
    """The experiment with these values; what is missing is as in `base`, or the default.

    Args:
        values: by key, in the types that TOML knows.
        base: an experiment to start from.

    Raises:
        KeyProblemError: an unknown key, or a value that is not what it takes.
    """
    changes: dict[str, Any] = {}
    for name, value in values.items():
        key = KEYS.get(name)
        if key is None:
            raise KeyProblemError(name, f"unknown key; expected {', '.join(KEYS)}")
        # TOML's booleans are Python's, which are integers
        if isinstance(value, bool) or not isinstance(value, key.types):
            raise KeyProblemError(name, f"expected {key.expected}, found {value!r}")
        try:
            changes[_FIELDS.get(name, name)] = key.check(value)
        except SpecError as error:
            raise KeyProblemError(name, str(error)) from error
    variant = changes.pop("variant", None)
    if base is None and "scheme" not in changes:
        raise KeyProblemError("scheme", f"missing; expected {KEYS['scheme'].expected}")
    made = Experiment(**changes) if base is None else replace(base, **changes)
    return made if variant is None else _with_variant(made, variant)


def _with_variant(experiment: Experiment, variant: str) -> Experiment:
    try:
        words = with_option(experiment.scheme, "variant", variant)
        parse_scheme(words)
    except SpecError as error:
        raise KeyProblemError("variant", str(error)) from error
    return replace(experiment, scheme=words)
