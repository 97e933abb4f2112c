# SPDX-License-Identifier: Apache-2.0
"""Experiments in Python: the keys of an experiment file as arguments."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from tailrace.experiments.faults.parse import FAULTS
from tailrace.experiments.plan.experiment import Experiment, make
from tailrace.experiments.plan.experiment_file import read_experiment
from tailrace.experiments.plan.seeds import MOST_SEEDS
from tailrace.experiments.workloads.workload import WORKLOADS
from tailrace.schemes.registry import SCHEMES
from tailrace.spec import SpecError
from tailrace.spec.registry import Registry
from tailrace.topology.parse import FAMILIES

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tailrace.experiments.faults.fault import FaultKind
    from tailrace.experiments.workloads.transfer import Pattern
    from tailrace.schemes.base import SchemeConfig
    from tailrace.topology.families.options import Family

Base = Experiment | str | os.PathLike[str] | None
"""What arguments change: an experiment, a TOML file, or the name of a preset."""

_STRUCTS: Mapping[str, Registry[Any]] = {
    "scheme": SCHEMES,
    "topology": FAMILIES,
    "workload": WORKLOADS,
    "fault": FAULTS,
}


class Keys(TypedDict, total=False):
    """The keys of an experiment, as an experiment file has them; docs/experiments.md says what each means.

    A scheme, topology, workload or fault is its spec, such as `flowcut:variant=nic`, or the registered
    struct that they mean, such as a family of topologies that `register_topology` was given.
    """

    scheme: str | SchemeConfig
    variant: str
    topology: str | Family
    workload: str | Pattern
    flows: int
    target: str
    seed: int | str | Sequence[int]
    fault: str | FaultKind | Sequence[str | FaultKind]
    time_scale: float
    transport: str
    window: str
    mtu: str
    reorder: int
    pfc: str
    controller: str
    sample: str
    follow: Sequence[int]
    gaps: bool


def experiment(base: Base = None, /, *, scale: str | None = None, **keys: Unpack[Keys]) -> Experiment:
    """An experiment, checked.

    Args:
        base: what it is like but for the keys: an experiment, a TOML file, or a preset such as `basic`.
        scale: `small` or `paper`: a size that the file knows.
        keys: as Keys has them.

    Raises:
        SpecError: a key, value or file that cannot be used.
    """
    values = {key: as_spec(key, value) for key, value in keys.items()}
    if not isinstance(base, Experiment):
        return read_experiment(None if base is None else Path(base), scale, values)
    if scale is not None:
        raise SpecError("scale needs an experiment file that knows it")
    return make(values, base)


def as_spec(key: str, value: Any) -> Any:
    """A key's value in the types that TOML knows.

    Raises:
        SpecError: a struct that no spec means.
    """
    if key == "fault" and isinstance(value, list | tuple):
        return [FAULTS.spec_of(each) for each in value]
    if key in _STRUCTS:
        return _STRUCTS[key].spec_of(value)
    if not isinstance(value, tuple | range):
        return value
    # one more seed than there may be is enough to refuse them
    return list(itertools.islice(value, MOST_SEEDS + 1) if key == "seed" else value)
