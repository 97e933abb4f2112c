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
"""The experiment that keyword arguments change: an Experiment, a TOML file, or the name of a preset."""

_REGISTRIES: Mapping[str, Registry[Any]] = {
    "scheme": SCHEMES,
    "topology": FAMILIES,
    "workload": WORKLOADS,
    "fault": FAULTS,
}


class Keys(TypedDict, total=False):
    """The keys of an experiment, as in an experiment file; docs/reference/keys.md describes them.

    A scheme, topology, workload or fault is given by its spec, such as `flowcut:variant=nic`, or as an
    instance of a registered class, such as one that was registered by `register_topology`. `reorder`: with
    selective repeat, a packet counts as lost when the packet sent this number of packets later arrives.
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
    record: str
    gaps: bool


def experiment(base: Base = None, /, *, scale: str | None = None, **keys: Unpack[Keys]) -> Experiment:
    """Makes an experiment, and checks it.

    Args:
        base: the experiment that the keys change: an Experiment, a TOML file, or a preset such as `basic`.
        scale: `small` or `paper`: a size that the file defines.
        keys: see Keys.

    Raises:
        SpecError: an invalid key, value or file.
    """
    values = {key: as_spec(key, value) for key, value in keys.items()}
    if not isinstance(base, Experiment):
        return read_experiment(None if base is None else Path(base), scale, values)
    if scale is not None:
        raise SpecError("scale needs an experiment file that defines it")
    return make(values, base)


def as_spec(key: str, value: Any) -> Any:
    """A key's value, converted to types of TOML.

    Raises:
        SpecError: an object that no spec describes.
    """
    if key == "fault" and isinstance(value, list | tuple):
        return [FAULTS.spec_of(each) for each in value]
    if key in _REGISTRIES:
        return _REGISTRIES[key].spec_of(value)
    if not isinstance(value, tuple | range):
        return value
    # at most MOST_SEEDS + 1 are read: enough to report that they are too many
    return list(itertools.islice(value, MOST_SEEDS + 1) if key == "seed" else value)
