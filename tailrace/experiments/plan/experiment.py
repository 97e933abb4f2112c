# SPDX-License-Identifier: Apache-2.0
"""An experiment as words: everything that decides its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tailrace.experiments.faults.parse import parse_fault
from tailrace.experiments.plan import defaults
from tailrace.experiments.plan.known import scheme_of, topology_of, workload_of
from tailrace.experiments.plan.nic import parse_window
from tailrace.experiments.plan.pfc import parse_pfc
from tailrace.experiments.plan.words import with_option
from tailrace.hosts.options.nic import MAX_MTU_BYTES
from tailrace.hosts.options.transports import parse_transport
from tailrace.words import SpecError
from tailrace.words.schema import KeyProblemError, convert, given
from tailrace.words.units import parse_bytes, parse_time_ns

MOST_REORDER = (1 << 22) - 1
MOST_SEED = (1 << 63) - 1
"""What every TOML and JSON reader holds."""

MOST_TIME_SCALE = 1e9
"""A nanosecond is a second then."""

NO_FAULT = "none"
"""Instead of a fault: not even those of the file."""

TARGETS = ("auto", "bmv2", "native", "virtual")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of an experiment file, which are also the options of the command line, as they are written.

    mtu:     payload of a full packet
    reorder: packets; selective repeat takes one for lost when another so much later has arrived
    pfc:     priority flow control of data: default, or tailrace/experiments/plan/pfc.py's words; none without
    it
    sample:  how often queues are looked at, for the report's timelines; without it they are not
    watch:   the flows whose path is recorded, by number from 1 on
    gaps:    whether NICs measure the gaps between data packets of a flow
    """

    scheme: Annotated[str, Meta(description="a text such as 'flowcut:variant=full'")] | UnsetType = UNSET
    variant: Annotated[str, Meta(description="a text such as 'ingress'")] | UnsetType = UNSET
    topology: (
        Annotated[str, Meta(description="a text such as 'leaf-spine:leaves=2,spines=4,hosts=4'")] | UnsetType
    ) = UNSET
    workload: Annotated[str, Meta(description="a text such as 'permutation:size=1MiB'")] | UnsetType = UNSET
    flows: Annotated[int, Meta(description="a number of flows from 1 on", ge=1)] | UnsetType = UNSET
    target: Annotated[str, Meta(description=f"one of {', '.join(TARGETS)}")] | UnsetType = UNSET
    seed: (
        Annotated[int, Meta(description="a whole number from 0 to 2**63 - 1", ge=0, le=MOST_SEED)] | UnsetType
    ) = UNSET
    fault: (
        Annotated[
            str | list[str],
            Meta(description="a text such as 'link-slow:fraction=0.1,factor=0.1', or a list of them"),
        ]
        | UnsetType
    ) = UNSET
    time_scale: (
        Annotated[float, Meta(description=f"a number from 1 (full speed) to {MOST_TIME_SCALE:g}")] | UnsetType
    ) = UNSET
    transport: Annotated[str, Meta(description="a text such as 'gbn'")] | UnsetType = UNSET
    window: Annotated[str, Meta(description="a size such as '64KiB', or '1.5BDP'")] | UnsetType = UNSET
    mtu: Annotated[str, Meta(description="a size such as '2KiB'")] | UnsetType = UNSET
    reorder: (
        Annotated[
            int, Meta(description=f"a number of packets from 1 to {MOST_REORDER}", ge=1, le=MOST_REORDER)
        ]
        | UnsetType
    ) = UNSET
    pfc: Annotated[str, Meta(description="'default', or a text such as 'xoff=256KiB'")] | UnsetType = UNSET
    sample: Annotated[str, Meta(description="a time such as '10us'")] | UnsetType = UNSET
    watch: (
        Annotated[
            list[Annotated[int, Meta(description="the number of a flow, from 1 on", ge=1)]],
            Meta(description="a list of numbers of flows, from 1 on"),
        ]
        | UnsetType
    ) = UNSET
    gaps: bool | UnsetType = UNSET


KEYS = Settings.__struct_fields__
"""The keys of an experiment, in the order in which they are told."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment. `make` checks the words; this only holds them.

    `workload` None is defaults.workload, `flows` the number of flows where the workload leaves it open,
    `time_scale` None lets the target choose (tailrace/experiments/plan/budget.py), `transport`, `window`
    (words) and `reorder` None are the defaults of tailrace/experiments/plan/nic.py, `pfc` None is without,
    `sample_ns` None takes no samples, `watch` names flows whose path is recorded, `gaps` has NICs measure
    gaps between packets.
    """

    scheme: str
    topology: str = defaults.TOPOLOGY
    workload: str | None = None
    flows: int | None = None
    target: str = "auto"
    seed: int = defaults.SEED
    faults: tuple[str, ...] = ()
    time_scale: float | None = None
    transport: str | None = None
    window: str | None = None
    mtu_bytes: int = defaults.MTU_BYTES
    reorder: int | None = None
    pfc: str | None = None
    sample_ns: int | None = None
    watch: tuple[int, ...] = ()
    gaps: bool = False


def _checked_by(parse: Callable[[str], object]) -> Callable[[str], str]:
    """The text itself, if the parser takes it."""

    def check(text: str) -> str:
        parse(text)
        return text

    return check


def _one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in choices:
            raise SpecError(f"expected one of {', '.join(choices)}, found {text!r}")
        return text

    return check


def _time_scale(value: float) -> float:
    if not (math.isfinite(value) and 1 <= value <= MOST_TIME_SCALE):
        raise SpecError(f"expected from 1 (full speed) to {MOST_TIME_SCALE:g}, found {value}")
    return float(value)


def _faults(value: str | list[str]) -> tuple[str, ...]:
    items = (value,) if isinstance(value, str) else tuple(value)
    if items == (NO_FAULT,):
        return ()
    for item in items:
        parse_fault(item)
    return items


def _size(text: str) -> int:
    size_bytes = parse_bytes(text)
    if size_bytes < 1:
        raise SpecError("expected more than 0 bytes")
    return size_bytes


def _mtu(text: str) -> int:
    size_bytes = _size(text)
    if size_bytes > MAX_MTU_BYTES:
        raise SpecError(f"expected at most {MAX_MTU_BYTES} bytes, found {text!r}")
    return size_bytes


def _period(text: str) -> int:
    time_ns = parse_time_ns(text)
    if time_ns < 1:
        raise SpecError("expected more than 0 ns")
    return time_ns


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "scheme": _checked_by(scheme_of),
    "topology": _checked_by(topology_of),
    "workload": _checked_by(workload_of),
    "target": _one_of(TARGETS),
    "fault": _faults,
    "time_scale": _time_scale,
    "transport": _checked_by(parse_transport),
    "window": _checked_by(parse_window),
    "mtu": _mtu,
    "pfc": _checked_by(parse_pfc),
    "sample": _period,
    "watch": tuple,
}
_FIELDS = {"fault": "faults", "mtu": "mtu_bytes", "sample": "sample_ns"}


def make(values: Mapping[str, Any] | Settings, base: Experiment | None = None) -> Experiment:
    """The experiment with these values; what is missing is as in `base`, or the default.

    Args:
        values: by key, in the types that TOML knows.
        base: an experiment to start from.

    Raises:
        KeyProblemError: an unknown key, or a value that is not what it takes.
    """
    settings = values if isinstance(values, Settings) else convert(values, Settings)
    changes: dict[str, Any] = {}
    for name, value in given(settings).items():
        try:
            changes[_FIELDS.get(name, name)] = _CHECKS[name](value) if name in _CHECKS else value
        except SpecError as error:
            raise KeyProblemError(name, str(error)) from error
    variant = changes.pop("variant", None)
    if base is None and "scheme" not in changes:
        raise KeyProblemError("scheme", "missing; expected a text such as 'flowcut:variant=full'")
    made = Experiment(**changes) if base is None else replace(base, **changes)
    return made if variant is None else _with_variant(made, variant)


def _with_variant(experiment: Experiment, variant: str) -> Experiment:
    try:
        words = with_option(experiment.scheme, "variant", variant)
        scheme_of(words)
    except SpecError as error:
        raise KeyProblemError("variant", str(error)) from error
    return replace(experiment, scheme=words)
