# SPDX-License-Identifier: Apache-2.0
"""Filters of finished runs by their specs. Each filter is KEY=SPEC:

scheme=flowcut                     with any options
scheme=flowcut:variant=nic         with this option and any other options
topology=fat-tree:k=8
fault=link-slow:factor=0.1         one of the run's faults; fault=none: runs without faults
seed=1..3
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from tailrace.experiments.plan.experiment import KEYS, NO_FAULT
from tailrace.spec import SpecError, parse
from tailrace.spec.suggest import expected
from tailrace.study.store.record import Record

KEYS_OF = {"faults": "fault", "mtu_bytes": "mtu", "sample_ns": "sample"}
"""Keys of experiment files by the field of a record, for fields with another name."""

_FIELDS = {key: field for field, key in KEYS_OF.items()}
_RANGE = re.compile(r"([0-9]{1,19})\.\.([0-9]{1,19})")

Test = Callable[[Record], bool]


def tests(filters: Iterable[str]) -> list[Test]:
    """The predicates of some filters.

    Args:
        filters: each KEY=SPEC; KEY is a key of experiment files.

    Raises:
        SpecError: a key does not exist, or a spec is invalid.
    """
    return [_test(text) for text in filters]


def _test(text: str) -> Test:
    key, equals, value = text.partition("=")
    if not equals or not value:
        raise SpecError(
            f"results {text!r}: expected KEY=SPEC, such as scheme=flowcut or topology=fat-tree:k=8"
        )
    if key not in KEYS:
        raise SpecError(f"results {text!r}: unknown key; {expected(key, KEYS)}")
    if key == "seed":
        return _seeds(text, value)
    if key == "fault" and value == NO_FAULT:
        return lambda record: not record.specs.get("faults")
    wanted = parse(value, key)

    def passes(record: Record) -> bool:
        value = record.specs.get(_FIELDS.get(key, key))
        specs = value if isinstance(value, list) else [] if value is None else [value]
        return any(_fits(str(spec), wanted.name, wanted.options) for spec in specs)

    return passes


def _seeds(text: str, value: str) -> Test:
    match = _RANGE.fullmatch(value) or _RANGE.fullmatch(f"{value}..{value}")
    if match is None:
        raise SpecError(f"results {text!r}: expected a number, or FIRST..LAST")
    first, last = int(match[1]), int(match[2])
    return lambda record: first <= record.summary.seed <= last


def _fits(text: str, name: str, options: Mapping[str, str]) -> bool:
    """Whether the spec `text` has this name and at least these options."""
    try:
        spec = parse(text)
    except SpecError:
        return False
    return spec.name == name and options.items() <= spec.options.items()
