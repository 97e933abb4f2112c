# SPDX-License-Identifier: Apache-2.0
"""Names of schemes in figures: as their authors write them, or as the user does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tailrace.experiments.plan.axes import SCHEME
from tailrace.experiments.plan.spec_list import JSON
from tailrace.hosts.options.hf2t_spec import HF2T
from tailrace.results.results import Results
from tailrace.schemes.program import ProgramConfig
from tailrace.schemes.registry import SCHEMES
from tailrace.spec import SpecError
from tailrace.spec.suggest import expected

Labels = Mapping[str, str]
"""Names of schemes in figures, by their labels in tables."""

_WORD = re.compile(r"[A-Za-z0-9-]+")
_MOST_LETTERS = 60


def written(label: str) -> str:
    """A label of a table as one writes it: `flowcut:variant=nic` is Flowcut nic."""
    program = f"{ProgramConfig.name}:"
    if label.startswith(program):  # a name of a file
        return label.removeprefix(program).removeprefix(f"{JSON}=")
    titles = {entry.name: entry.struct.title or entry.name.upper() for entry in SCHEMES} | {HF2T: "HF²T"}
    text = label.replace(":variant=", " ").replace(":", " ", 1)
    return _WORD.sub(lambda word: titles.get(word[0], word[0]), text)


def named(results: Results, labels: Labels) -> Results:
    """The results with names of schemes for figures instead of labels, from `labels`, or as one writes them.

    A label that begins with a key of `labels` and a blank, as in sweeps, gets the name for this beginning.

    Raises:
        SpecError: a key is no label of the results, or two schemes would have the same name.
    """
    schemes = map(str, results.axes.get(SCHEME, ()))
    # in a sweep there are labels of other settings, too
    known = list(dict.fromkeys([*schemes, *(result.label for result in results.results)]))
    for key, text in labels.items():
        if key not in known:
            raise SpecError(f"labels: {key[:_MOST_LETTERS]!r} is not known; {expected(key, known)}")
        if not text.isprintable() or not 0 < len(text) <= _MOST_LETTERS:
            raise SpecError(f"labels: {key}: expected at most {_MOST_LETTERS} printable characters")
    names = {label: _name(label, labels) for label in known}
    shared = [name for name in names.values() if list(names.values()).count(name) > 1]
    if shared and labels:
        raise SpecError(f"labels: two schemes would have the name {shared[0]!r}")
    if shared:
        names = {label: label for label in names}
    scheme = {value: names.get(str(value), value) for value in results.axes.get(SCHEME, ())}
    runs = tuple(
        replace(
            run,
            settings={
                key: scheme.get(value, value) if key == SCHEME else value
                for key, value in run.settings.items()
            },
            result=None if run.result is None else replace(run.result, label=names[run.result.label]),
        )
        for run in results.runs
    )
    axes = {key: tuple(scheme.values()) if key == SCHEME else axis for key, axis in results.axes.items()}
    return replace(results, axes=axes, runs=runs, first=str(scheme.get(results.first, results.first)))


def _name(label: str, labels: Labels) -> str:
    beginnings = [key for key in labels if label == key or label.startswith(f"{key} ")]
    if not beginnings:
        return written(label)
    key = max(beginnings, key=len)
    return labels[key] + written(label.removeprefix(key))
