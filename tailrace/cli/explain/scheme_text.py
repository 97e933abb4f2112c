# SPDX-License-Identifier: Apache-2.0
"""The keys of schemes as a listing: values, defaults, meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.hosts.options.hf2t_spec import HF2T, Hf2tSpec
from tailrace.results.queues import queue_text, queues_of
from tailrace.schemes.base import BY_TOPOLOGY, Common, SchemeConfig
from tailrace.schemes.registry import SCHEMES, parse_scheme
from tailrace.schemes.resolved import Resolved
from tailrace.spec import SpecError
from tailrace.spec.keys import Key, fields_of
from tailrace.spec.units import format_bytes
from tailrace.tables.listing import Column, Listing, Row
from tailrace.topology import Topology

# `rank`: a narrow terminal hides the columns of the highest rank first
COLUMNS = (
    Column("scheme", key=True, grouped=True),
    Column("key", key=True),
    Column("values"),
    Column("default"),
    Column("meaning"),
    Column("paper", rank=1),
)
_OFF = "off"


def listing(
    names: Sequence[str], topology: Topology | None = None, values: Mapping[str, Any] = MappingProxyType({})
) -> Listing:
    """One row per key of a scheme.

    Args:
        names: schemes to list; empty: all. Those that cannot run are left out, and named below the table.
        topology: the topology from which defaults are computed.
        values: keys of an experiment from which defaults are computed; without both, none are computed.

    Raises:
        SpecError: unknown scheme, a value that cannot be used, or an experiment that no scheme can run.
    """
    if topology is not None:
        values = {**values, "topology": topology.spec}
    wanted = {SCHEMES.entry(name).name for name in names}
    rows: list[Row] = []
    title = ""
    schemes_by_limits: dict[str, list[str]] = {}
    refused: list[SpecError] = []
    for name in [name for name in SCHEMES.names if not names or name in wanted]:
        resolved = None
        if values:
            experiment = make({**values, "scheme": name}).each_seed()[0]
            try:
                planned = plan(experiment, "virtual" if experiment.target == "auto" else experiment.target)
            except SpecError as error:
                refused.append(error)
                continue
            resolved = planned.job.scheme
            title = f"{planned.experiment.topology}   {planned.experiment.workload}"
            limits = queue_text([queues_of(planned.job)])
            schemes_by_limits.setdefault(limits, []).append(name)
        rows += _rows(name, resolved)
    if refused and not rows:
        raise refused[0]
    caption = (
        *(f"queues of {', '.join(schemes)}: {text}" for text, schemes in schemes_by_limits.items()),
        *(f"left out: {error}" for error in refused),
    )
    return Listing("schemes", COLUMNS, tuple(rows), title=title, caption=caption)


def _rows(name: str, resolved_scheme: Resolved | None) -> Iterator[Row]:
    config = parse_scheme(name)
    for field, key in _keys(type(config)):
        yield _row(name, key, _shown(key, getattr(resolved_scheme, field, getattr(config, field))))
    common = _common(config, resolved_scheme)
    for _, key in _keys(Common):
        yield _row(name, key, common[key.name])
    for field, key in _keys(Hf2tSpec):
        off = key.name == HF2T and config.hf2t is None
        yield _row(name, key, _OFF if off else _shown(key, getattr(config.hf2t or Hf2tSpec(), field)))


def _keys(struct: type) -> Iterator[tuple[str, Key]]:
    for field, key in fields_of(struct).items():
        if isinstance(key, Key):
            yield field, key


def _common(config: SchemeConfig, resolved_scheme: Resolved | None) -> dict[str, str]:
    """The defaults of the keys that all schemes have."""
    settings = config if resolved_scheme is None else resolved_scheme
    keys = {key.name: key for _, key in _keys(Common)}
    shown = dict.fromkeys(_MARKING, _OFF if resolved_scheme or not config.marks_queues else BY_TOPOLOGY)
    if (red := settings.red) is not None:
        sizes = (format_bytes(red.kmin_bytes), format_bytes(red.kmax_bytes))
        shown = dict(zip(_MARKING, (*sizes, f"{red.pmax_permille / 1000:g}"), strict=True))
    values = (settings.queue_limit_bytes, settings.hash_seed, settings.source_guard, settings.control_share)
    names = ("queue", "seed", "guard", "control")
    return shown | {name: _shown(keys[name], value) for name, value in zip(names, values, strict=True)}


_MARKING = ("kmin", "kmax", "pmax")
"""The keys of RED's ECN marks at queues."""


def _shown(key: Key, value: object) -> str:
    if value is None:
        return key.absent or BY_TOPOLOGY
    if isinstance(value, bool):
        return "on" if value else _OFF
    return key.show(value)


def _row(name: str, key: Key, default: str) -> Row:
    cells = (name, key.name, key.values, default, key.help, key.section)
    return dict(zip((column.name for column in COLUMNS), cells, strict=True))
