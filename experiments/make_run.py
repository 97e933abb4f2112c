# SPDX-License-Identifier: Apache-2.0
"""`make run`: variables of the environment become options of `tailrace compare`, or of `tailrace run --cli`.

    TARGET     auto, bmv2, native or virtual
    SCHEME     compared with ecmp alone, spritz with minimal routing and UGAL-L; several separated by commas;
               ecmp, letflow and flowcut without it
    VARIANT    of flowcut or spritz
    TOPO       topology; without it the small leaf-spine, or for spritz a small Dragonfly
    WORKLOAD   a permutation between the leaves without it
    FLOWS      number of flows, for workloads that have it as an option
    FAULT      the second round's fault; `none` for one round only; without it one link at a tenth of its
               rate, or for spritz one that fails for a while
    SEED       of everything random
    OUT        folder for the results
    CLI        1: bring the fabric up and show Mininet's prompt; SCHEME is then the one that runs

An empty variable is as good as none. `command` is pure; `main` calls the command line with what it returns.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from experiments.defaults import (
    BASELINE,
    DEAD_LINK,
    SCHEMES,
    SEED,
    SLOW_LINK,
    STEERED,
    STEERED_BASELINES,
    STEERED_TOPOLOGY,
    TOPOLOGY,
)
from experiments.words import replace_option, split_schemes
from spec import SpecError

WITH_VARIANTS = ("flowcut", STEERED)
SLOW_LINK_ANYWHERE = "link-slow:fraction=0.01,factor=0.1"
DEAD_LINK_ANYWHERE = "link-down:fraction=0.01,at=200us,until=3ms"
"""For other topologies, whose links have other names."""


def command(environment: Mapping[str, str]) -> list[str]:
    """The arguments of `tailrace`.

    Raises:
        SpecError: a variable that cannot be used.
    """
    given = {name: value.strip() for name, value in environment.items() if value.strip()}
    prompt = given.get("CLI", "0") not in ("0", "no", "false")
    schemes = _schemes(given, prompt=prompt)
    steered = any(_name(words) == STEERED for words in schemes)
    topology = given.get("TOPO", STEERED_TOPOLOGY if steered else TOPOLOGY)
    arguments = (
        ["run", "--cli", "--scheme", schemes[0]] if prompt else ["compare", "--schemes", ",".join(schemes)]
    )
    arguments += ["--topology", topology]
    arguments += ["--target", given.get("TARGET", "auto"), "--seed", given.get("SEED", str(SEED))]
    fault = given.get("FAULT", _fault(topology, steered=steered))
    if fault != "none" and not prompt:
        arguments += ["--fault", fault]
    for name in ("WORKLOAD", "FLOWS", "OUT"):
        if name in given:
            arguments += [f"--{name.lower()}", given[name]]
    return arguments


def _name(words: str) -> str:
    """The name of a scheme."""
    return words.partition(":")[0]


def _fault(topology: str, *, steered: bool) -> str:
    """What goes wrong in the second round where nobody says."""
    if steered:
        return DEAD_LINK if topology == STEERED_TOPOLOGY else DEAD_LINK_ANYWHERE
    return SLOW_LINK if topology == TOPOLOGY else SLOW_LINK_ANYWHERE


def _schemes(given: Mapping[str, str], *, prompt: bool) -> list[str]:
    """The schemes to run; without a prompt a baseline comes first, since ratios are against it."""
    if "SCHEME" in given:
        schemes = list(split_schemes(given["SCHEME"]))
        steered = any(_name(words) == STEERED for words in schemes)
        before = STEERED_BASELINES if steered else (BASELINE,)
        if not prompt and not set(before) & set(schemes):
            schemes = [*before, *schemes]
    else:
        schemes = [WITH_VARIANTS[0]] if prompt else list(SCHEMES)
    variant = given.get("VARIANT")
    if variant is None:
        return schemes
    if not any(_name(words) in WITH_VARIANTS for words in schemes):
        raise SpecError(f"VARIANT={variant}: none of the schemes {', '.join(schemes)} has variants")
    return [
        replace_option(words, "variant", variant) if _name(words) in WITH_VARIANTS else words
        for words in schemes
    ]


def main() -> int:
    """Run `tailrace` as the environment says. Returns its exit status."""
    from cli.main import main as tailrace

    try:
        arguments = command(os.environ)
    except SpecError as error:
        sys.stderr.write(f"make run: {error}\n")
        return 2
    sys.stderr.write(f"tailrace {' '.join(arguments)}\n")
    return tailrace(arguments)


if __name__ == "__main__":
    sys.exit(main())
