# SPDX-License-Identifier: Apache-2.0
"""An experiment: everything that determines its result, both as written and parsed.

Functions of spec.schema: `convert` checks values against the types of a struct's fields; `given` returns the
fields that are set, with their values.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from tailrace.experiments.faults.fault import Fault
from tailrace.experiments.faults.parse import parse_fault
from tailrace.experiments.plan import defaults
from tailrace.experiments.plan.controller import parse_controller
from tailrace.experiments.plan.known import scheme_of, topology_of
from tailrace.experiments.plan.nic import Window, parse_window
from tailrace.experiments.plan.pfc import NoPfc, Pfc, parse_pfc
from tailrace.experiments.plan.seeds import EXPECTED as SEEDS
from tailrace.experiments.plan.seeds import parse_seeds, seeds_text
from tailrace.experiments.workloads.workload import Workload, parse_workload
from tailrace.hosts.options.nic import MAX_MTU_BYTES
from tailrace.hosts.options.transport import Transport
from tailrace.hosts.options.transports import parse_transport
from tailrace.schemes.base import SchemeConfig
from tailrace.sim.job import RECORDS, RealControllerConfig
from tailrace.spec import Spec, SpecError, parse, plugins
from tailrace.spec.schema import KeyProblemError, convert, given
from tailrace.spec.suggest import unknown
from tailrace.spec.units import parse_bytes, parse_time_ns
from tailrace.topology import Topology

MOST_REORDER = (1 << 22) - 1
MOST_TIME_SCALE = 1e9
"""At this scale a nanosecond takes a second."""

NO_FAULT = "none"
"""Given instead of a fault: no faults, not even those of the experiment file."""

TARGETS = ("auto", "bmv2", "native", "virtual")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of an experiment file, which are also the options of the command line, with values as written.

    seed:    seed of all random choices; each of several seeds gives a separate run (syntax: seeds.py)
    time_scale: factor by which rates are divided and times multiplied
    mtu:     payload of a full packet
    reorder: selective repeat declares a packet lost when a packet sent this many packets later arrives
    pfc:     priority flow control of data: `off`, `default`, or options (tailrace/experiments/plan/pfc.py);
             without this key the transport decides
    controller: of a run in virtual time: ideal, or real with options (plan/controller.py)
    sample:  interval at which queues are sampled, for the report's timelines; without it there are no samples
    follow:  ids of flows whose path is recorded; flows are numbered from 1
    record:  what `tailrace view` needs: events, or packets (every frame on every link)
    gaps:    whether NICs measure the gaps between data packets of a flow
    """

    scheme: Annotated[str, Meta(description="a string such as 'flowcut:variant=full'")] | UnsetType = UNSET
    variant: Annotated[str, Meta(description="a string such as 'ingress'")] | UnsetType = UNSET
    topology: (
        Annotated[str, Meta(description="a string such as 'leaf-spine:leaves=2,spines=4,hosts=4'")]
        | UnsetType
    ) = UNSET
    workload: Annotated[str, Meta(description="a string such as 'permutation:size=1MiB'")] | UnsetType = UNSET
    flows: Annotated[int, Meta(description="a number of flows, 1 or more", ge=1)] | UnsetType = UNSET
    target: Annotated[str, Meta(description=f"one of {', '.join(TARGETS)}")] | UnsetType = UNSET
    seed: Annotated[int | str | list[int], Meta(description=SEEDS)] | UnsetType = UNSET
    fault: (
        Annotated[
            str | list[str],
            Meta(description="a string such as 'link-slow:fraction=0.1,factor=0.1', or a list of them"),
        ]
        | UnsetType
    ) = UNSET
    time_scale: (
        Annotated[float, Meta(description=f"a number from 1 (full speed) to {MOST_TIME_SCALE:g}")] | UnsetType
    ) = UNSET
    transport: Annotated[str, Meta(description="a string such as 'gbn'")] | UnsetType = UNSET
    window: Annotated[str, Meta(description="a size such as '64KiB', or '1.5BDP'")] | UnsetType = UNSET
    mtu: Annotated[str, Meta(description="a size such as '2KiB'")] | UnsetType = UNSET
    reorder: (
        Annotated[
            int, Meta(description=f"a number of packets from 1 to {MOST_REORDER}", ge=1, le=MOST_REORDER)
        ]
        | UnsetType
    ) = UNSET
    pfc: (
        Annotated[str, Meta(description="'off', 'default', or a string such as 'xoff=256KiB'")] | UnsetType
    ) = UNSET
    controller: Annotated[str, Meta(description="'ideal', or a string such as 'real'")] | UnsetType = UNSET
    sample: Annotated[str, Meta(description="a time such as '10us'")] | UnsetType = UNSET
    follow: (
        Annotated[
            list[Annotated[int, Meta(description="the id of a flow, 1 or more", ge=1)]],
            Meta(description="a list of ids of flows, each 1 or more"),
        ]
        | UnsetType
    ) = UNSET
    record: Annotated[str, Meta(description="'events' or 'packets'")] | UnsetType = UNSET
    gaps: bool | UnsetType = UNSET


KEYS = Settings.__struct_fields__
"""The keys of an experiment, in the order in which help texts list them."""

FLAGS = frozenset(field.name for field in structs.fields(Settings) if bool in get_args(field.type))
"""Keys whose command-line option takes no value."""


class ParsedSpecs(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed specs of an experiment; None if the experiment does not give one.

    Topology and scheme are at full speed, that is, before the time scale is applied.
    """

    scheme: SchemeConfig
    topology: Topology
    workload: Workload | None = None
    faults: tuple[Fault, ...] = ()
    transport: Transport | None = None
    window: Window | None = None
    pfc: Pfc | NoPfc | None = None
    controller: RealControllerConfig | None = None


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment as written; `parsed` has the parsed specs. `tailrace.experiment` makes it.

    Each of several `seeds` is a run of its own (`each_seed`). `workload` None means the default workload,
    `flows` is the number of flows if the workload does not give it, `time_scale` None lets the target choose
    (tailrace/experiments/plan/budget.py), `transport`, `window` and `reorder` None mean the defaults of
    tailrace/experiments/plan/nic.py, `pfc` None lets the transport decide (plan/pause.py), `controller`
    None means ideal, `sample_ns` None takes no samples, `follow` has the ids of flows whose path is recorded,
    `record` None records no frames,
    `gaps`: NICs measure packet gaps.
    """

    parsed: ParsedSpecs
    scheme: str
    topology: str = defaults.TOPOLOGY
    workload: str | None = None
    flows: int | None = None
    target: str = "auto"
    seeds: tuple[int, ...] = (defaults.SEED,)
    faults: tuple[str, ...] = ()
    time_scale: float | None = None
    transport: str | None = None
    window: str | None = None
    mtu_bytes: int = defaults.MTU_BYTES
    reorder: int | None = None
    pfc: str | None = None
    controller: str | None = None
    sample_ns: int | None = None
    follow: tuple[int, ...] = ()
    record: str | None = None
    gaps: bool = False

    def __repr__(self) -> str:
        """One line with the most important specs."""
        specs = (self.scheme, self.topology, self.workload or "the default workload", *self.faults)
        return f"<Experiment {'   '.join(specs)}>"

    @property
    def seed(self) -> int:
        """The seed of one run.

        Raises:
            SpecError: there are several.
        """
        if len(self.seeds) > 1:
            raise SpecError(f"seed: {seeds_text(self.seeds)} are {len(self.seeds)} seeds, expected one here")
        return self.seeds[0]

    def each_seed(self) -> tuple[Experiment, ...]:
        """One experiment for each seed, otherwise equal to this one."""
        return tuple(structs.replace(self, seeds=(seed,)) for seed in self.seeds)

    def without(self, *names: str) -> Experiment:
        """The experiment without the named settings, such as faults or transport."""
        empty = {name: () if name == "faults" else None for name in names}
        return structs.replace(self, parsed=structs.replace(self.parsed, **empty), **empty)

    @property
    def option_string(self) -> str:
        """The options of `tailrace run` for this experiment, quoted for a shell; defaults are left out."""
        return shlex.join(self.options())

    def options(self, *without: str) -> list[str]:
        """The options of `option_string` as a list, and `--plugin` for each plug-in; `without` omits keys."""
        arguments = plugins.options()
        for name, value in (self.written | {"seeds": seeds_text(self.seeds)}).items():
            key = _KEYS_OF.get(name, name)
            if key in without or value in (None, (), False) or (key == "mtu" and value == defaults.MTU_BYTES):
                continue
            option = f"--{key.replace('_', '-')}"
            if value is True:
                arguments.append(option)
            for each in value if isinstance(value, tuple) else () if value is True else (value,):
                arguments += [option, f"{each}{_UNITS.get(key, '')}"]
        return arguments

    @property
    def written(self) -> dict[str, Any]:
        """All fields as they were written."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "parsed"}


def _one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in choices:
            raise SpecError(unknown(text, choices))
        return text

    return check


def _time_scale(value: float) -> float:
    if not (math.isfinite(value) and 1 <= value <= MOST_TIME_SCALE):
        raise SpecError(f"expected from 1 (full speed) to {MOST_TIME_SCALE:g}, found {value}")
    return float(value)


def _mtu(text: str) -> int:
    size_bytes = parse_bytes(text)
    if size_bytes < 1:
        raise SpecError("expected more than 0 bytes")
    if size_bytes > MAX_MTU_BYTES:
        raise SpecError(f"expected at most {MAX_MTU_BYTES} bytes, found {text!r}")
    return size_bytes


def _period(text: str) -> int:
    time_ns = parse_time_ns(text)
    if time_ns < 1:
        raise SpecError("expected more than 0 ns")
    return time_ns


def _fault_specs(value: str | Sequence[str]) -> tuple[str, ...]:
    items = (value,) if isinstance(value, str) else tuple(value)
    return () if items == (NO_FAULT,) else items


def _parsed_faults(items: Sequence[str]) -> tuple[Fault, ...]:
    return tuple(map(parse_fault, items))


_SETTING_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "target": _one_of(TARGETS),
    "time_scale": _time_scale,
    "mtu": _mtu,
    "sample": _period,
    "follow": tuple,
    "record": _one_of(RECORDS),
    "seed": parse_seeds,
    "fault": _fault_specs,
}
"""Parsers of settings that are not specs."""

_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "scheme": scheme_of,
    "topology": topology_of,
    "workload": parse_workload,
    "fault": _parsed_faults,
    "transport": parse_transport,
    "window": parse_window,
    "pfc": parse_pfc,
    "controller": parse_controller,
}
_FIELDS = {"seed": "seeds", "fault": "faults", "mtu": "mtu_bytes", "sample": "sample_ns"}
_KEYS_OF = {field: key for key, field in _FIELDS.items()}
_UNITS = {"mtu": "B", "sample": "ns"}
"""Units of the fields of an Experiment that are plain numbers, by key."""


def make(values: Mapping[str, Any] | Settings, base: Experiment | None = None) -> Experiment:
    """The experiment with these values; a missing value is that of `base`, or else the default.

    Args:
        values: by key, as values of TOML types.
        base: an experiment to start from.

    Raises:
        KeyProblemError: an unknown key, or a value that the key does not accept.
    """
    return of_settings(given(values if isinstance(values, Settings) else convert(values, Settings)), base)


def of_settings(settings: Mapping[str, Any], base: Experiment | None = None) -> Experiment:
    """As `make`, from the fields of Settings; a spec may also be a parsed Spec instead of a string."""
    plugins.load()  # its errors are not those of the first key that is parsed
    if base is None:
        settings = {"topology": defaults.TOPOLOGY, **settings}
        if "scheme" not in settings:
            raise KeyProblemError("scheme", "missing; expected a string such as 'flowcut:variant=full'")
    changes: dict[str, Any] = {}
    parsed: dict[str, Any] = {}
    for key, value in _complete(settings, base).items():
        name = _FIELDS.get(key, key)
        try:
            written = _SETTING_PARSERS[key](value) if key in _SETTING_PARSERS else value
            if key in _PARSERS:
                parsed[name] = _PARSERS[key](written)
        except SpecError as error:
            # the scheme's spec contains the value of the key `variant`
            of_variant = key == "scheme" and "variant" in settings
            raise KeyProblemError("variant" if of_variant else key, str(error)) from error
        changes[name] = str(written) if isinstance(written, Spec) else written
    if base is None:
        return Experiment(parsed=ParsedSpecs(**parsed), **changes)
    return structs.replace(base, parsed=structs.replace(base.parsed, **parsed), **changes)


def _complete(settings: Mapping[str, Any], base: Experiment | None) -> dict[str, Any]:
    """The settings, with `variant` and `flows` added as options to the specs of scheme and workload."""
    complete = dict(settings)
    variant = complete.pop("variant", None)
    if variant is not None:
        scheme = complete["scheme"] if base is None or "scheme" in complete else base.scheme
        try:
            complete["scheme"] = parse(scheme, "scheme").adding("variant", variant)
        except SpecError as error:
            raise KeyProblemError("variant", str(error)) from error
    flows = complete.get("flows", base and base.flows)
    workload = complete.get("workload", base and base.workload)
    if flows is not None and workload is not None and complete.keys() & {"flows", "workload"}:
        try:
            complete["workload"] = parse(workload, "workload").setting("flows", str(flows))
        except SpecError as error:
            raise KeyProblemError("workload", str(error)) from error
    return complete
