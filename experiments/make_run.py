# SPDX-License-Identifier: Apache-2.0
"""`make run`: variables of the environment become options of `tailrace compare`, or of `tailrace run --cli`.

    TARGET     auto, bmv2, native or virtual
    SCHEME     compared with ecmp alone; several separated by commas; ecmp, letflow and flowcut without it
    VARIANT    of flowcut
    TOPO       topology; the small leaf-spine without it
    WORKLOAD   a permutation between the leaves without it
    FLOWS      number of flows, for workloads that have it as an option
    FAULT      the second round's fault; `none` for one round only; without it one link at a tenth of its rate
    SEED       of everything random
    OUT        folder for the results
    CLI        1: bring the fabric up and show Mininet's prompt; SCHEME is then the one that runs

An empty variable is as good as none. `command` is pure; `main` calls the command line with what it returns.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from experiments.defaults import BASELINE, SCHEMES, SEED, SLOW_LINK, TOPOLOGY
from experiments.words import replace_option, split_schemes
from spec import SpecError

WITH_VARIANTS = "flowcut"
SLOW_LINK_ANYWHERE = "link-slow:fraction=0.01,factor=0.1"
"""For other topologies, whose links have other names."""


def command(environment: Mapping[str, str]) -> list[str]:
    """The arguments of `tailrace`.

    Raises:
        SpecError: a variable that cannot be used.
    """
    given = {name: value.strip() for name, value in environment.items() if value.strip()}
    prompt = given.get("CLI", "0") not in ("0", "no", "false")
    schemes = _schemes(given, prompt=prompt)
    topology = given.get("TOPO", TOPOLOGY)
    arguments = (
        ["run", "--cli", "--scheme", schemes[0]] if prompt else ["compare", "--schemes", ",".join(schemes)]
    )
    arguments += ["--topology", topology]
    arguments += ["--target", given.get("TARGET", "auto"), "--seed", given.get("SEED", str(SEED))]
    fault = given.get("FAULT", SLOW_LINK if topology == TOPOLOGY else SLOW_LINK_ANYWHERE)
    if fault != "none" and not prompt:
        arguments += ["--fault", fault]
    for name in ("WORKLOAD", "FLOWS", "OUT"):
        if name in given:
            arguments += [f"--{name.lower()}", given[name]]
    return arguments


def _schemes(given: Mapping[str, str], *, prompt: bool) -> list[str]:
    """The schemes to run; without a prompt ecmp comes first, since ratios are against it."""
    if "SCHEME" in given:
        schemes = list(split_schemes(given["SCHEME"]))
        if BASELINE not in schemes and not prompt:
            schemes.insert(0, BASELINE)
    else:
        schemes = [WITH_VARIANTS] if prompt else list(SCHEMES)
    variant = given.get("VARIANT")
    if variant is None:
        return schemes
    if not any(words.partition(":")[0] == WITH_VARIANTS for words in schemes):
        raise SpecError(f"VARIANT={variant}: none of the schemes {', '.join(schemes)} has variants")
    return [
        replace_option(words, "variant", variant) if words.partition(":")[0] == WITH_VARIANTS else words
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
