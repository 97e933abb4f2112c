# SPDX-License-Identifier: Apache-2.0
"""Lists of schemes on the command line, labels of schemes, and names of folders of runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from tailrace.hosts.options.hf2t_spec import HF2T, stretches
from tailrace.hosts.options.hf2t_spec import KEYS as HF2T_KEYS
from tailrace.schemes.program import ProgramConfig
from tailrace.spec import SpecError, parse

JSON = "json"
"""The key of a user's program."""

CLEAN = "clean"
"""Name of a comparison's case without faults; the other case is named by its faults."""


def split_schemes(text: str) -> tuple[str, ...]:
    """The spec of each scheme of ``ecmp,letflow:gap=50us,flowcut:variant=ingress,buckets=64``.

    Raises:
        SpecError: an option without a scheme, no scheme at all, or a scheme given twice.
    """
    return split_specs(text, "schemes")


def split_specs(text: str, what: str) -> tuple[str, ...]:
    """Splits a list of specs at commas, which also separate the options of a spec.

    A piece ``key=value`` is an option of the spec before it.

    Raises:
        SpecError: an option without a spec, no spec at all, or a spec given twice.
    """
    specs: list[str] = []
    for piece in (piece.strip() for piece in text.split(",")):
        head = piece.partition("=")[0]
        if "=" not in piece or ":" in head:
            specs.append(piece)
        elif not specs:
            raise SpecError(f"{what}: expected a name before {piece!r}")
        else:
            specs[-1] += ("," if ":" in specs[-1] else ":") + piece
    if not all(specs):
        raise SpecError(f"{what}: expected names separated by commas, found {text!r}")
    for spec in specs:
        if specs.count(spec) > 1:
            raise SpecError(f"{what}: {spec!r} is given twice")
    return tuple(specs)


def slug(text: str) -> str:
    """The string as a folder name: other characters than letters, digits, `.` and `=` become `-`."""
    return re.sub(r"[^A-Za-z0-9.=]+", "-", text).strip("-") or "-"


def labels(schemes: Sequence[str]) -> tuple[str, ...]:
    """A short unique label of each scheme: its name, its variant, and the options in which schemes of that
    name differ; of a user's program the name of its file. Of the options of HF2T (NICs stretch gaps between
    packets) it shows only hf2t=.
    """
    alike: dict[str, list[str]] = {}
    for spec in schemes:
        alike.setdefault(spec.partition(":")[0], []).append(spec)
    short = [_short(spec, alike[spec.partition(":")[0]]) for spec in schemes]
    return tuple(
        label if short.count(label) == 1 else spec for label, spec in zip(short, schemes, strict=True)
    )


def _short(spec: str, alike: Sequence[str]) -> str:
    parsed, options_of = parse(spec), [parse(scheme).options for scheme in alike]
    is_program = parsed.name == ProgramConfig.name
    hf2t = stretches(parsed.options)
    shown = [
        PurePath(value).stem if is_program and key == JSON else f"{key}={value}"
        for key, value in parsed.options.items()
        if key == "variant"
        or (is_program and key == JSON)
        or (
            not all(options.get(key) == value for options in options_of)
            and not (hf2t and key in HF2T_KEYS and key != HF2T)
        )
    ]
    return f"{parsed.name}:{','.join(shown)}" if shown else parsed.name


def folder_name(label: str) -> str:
    """The name of the folder of a scheme's runs."""
    return re.sub(r"[^A-Za-z0-9 +._]+", "-", label)


def case_name(faults: Sequence[str]) -> str:
    """The name of a case, fit for a folder: `clean`, or its faults' names joined."""
    return "+".join(dict.fromkeys(spec.partition(":")[0] for spec in faults)) or CLEAN
