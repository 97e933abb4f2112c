# SPDX-License-Identifier: Apache-2.0
"""Finished runs by the words that they were made from.

scheme=flowcut                     whatever its options
scheme=flowcut:variant=nic         with this option, whatever the others
topology=fat-tree:k=8
fault=link-slow:factor=0.1         among its faults; fault=none: without
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
"""Keys of experiment files, where lines have other names."""

_FIELDS = {key: field for field, key in KEYS_OF.items()}
_RANGE = re.compile(r"([0-9]{1,19})\.\.([0-9]{1,19})")

Test = Callable[[Record], bool]


def tests(filters: Iterable[str]) -> list[Test]:
    """What runs must pass.

    Args:
        filters: each KEY=WORDS, with keys of experiment files.

    Raises:
        SpecError: no such key, or words that are none.
    """
    return [_test(text) for text in filters]


def _test(text: str) -> Test:
    key, equals, value = text.partition("=")
    if not equals or not value:
        raise SpecError(
            f"results {text!r}: expected KEY=WORDS, such as scheme=flowcut or topology=fat-tree:k=8"
        )
    if key not in KEYS:
        raise SpecError(f"results {text!r}: unknown key; {expected(key, KEYS)}")
    if key == "seed":
        return _seeds(text, value)
    if key == "fault" and value == NO_FAULT:
        return lambda record: not record.words.get("faults")
    wanted = parse(value, key)

    def passes(record: Record) -> bool:
        found = record.words.get(_FIELDS.get(key, key))
        each = found if isinstance(found, list) else [] if found is None else [found]
        return any(_says(str(one), wanted.name, wanted.options) for one in each)

    return passes


def _seeds(text: str, value: str) -> Test:
    match = _RANGE.fullmatch(value) or _RANGE.fullmatch(f"{value}..{value}")
    if match is None:
        raise SpecError(f"results {text!r}: expected a number, or FIRST..LAST")
    first, last = int(match[1]), int(match[2])
    return lambda record: first <= record.summary.seed <= last


def _says(text: str, name: str, options: Mapping[str, str]) -> bool:
    """Whether words have a name and at least these options."""
    try:
        found = parse(text)
    except SpecError:
        return False
    return found.name == name and options.items() <= found.options.items()
