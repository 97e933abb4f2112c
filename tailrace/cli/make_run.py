# SPDX-License-Identifier: Apache-2.0
"""`make run`: environment variables become a preset and options of `tailrace compare` or `run --cli`.

    TARGET     auto, bmv2, native or virtual
    SCHEME     schemes, separated by commas; default: ecmp, letflow and flowcut. A baseline is added: ecmp;
               for spritz minimal routing and UGAL-L; for rlb the selector that it extends, in a network with
               PFC; for a scheme with HF2T (NICs that stretch gaps between packets so that switches begin
               flowlets) the same scheme without it
    VARIANT    of flowcut, letflow, spritz or rlb; hf2t is a variant of letflow
    TOPO       topology; default: a small leaf-spine, for spritz a small Dragonfly, for HF2T a fat tree
    WORKLOAD   default: a permutation between the leaves; for rlb a congested host beside other flows
    FLOWS      number of flows, for workloads that have it as an option
    FAULT      fault of the second run of each scheme; none: only one run each; default: one link at a tenth
               of its rate, for spritz a link that fails for a while, for rlb and HF2T none
    SEED       seed of all random choices; several, such as 1..10, give means
    OUT        folder for the results
    CLI        1: bring the fabric up and show Mininet's prompt; only the first scheme of SCHEME then runs

An empty variable counts as not set. `command` is pure; `main` runs the command line that it returns.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence

from tailrace.experiments.plan.experiment_file import PRESETS, schemes_of
from tailrace.experiments.plan.spec_list import split_schemes
from tailrace.hosts.options.hf2t_spec import HF2T, stretches
from tailrace.hosts.options.hf2t_spec import KEYS as HF2T_KEYS
from tailrace.schemes.letflow import LETFLOW_VARIANTS
from tailrace.spec import SpecError, parse

BASIC, STEERED, LOSSLESS, STRETCHED = "basic", "spritz", "rlb", "hf2t"
"""Presets: BASIC is the default; the others belong to the scheme, or the addition HF2T, of that name."""

FLOWLETS = "letflow"
WITH_VARIANTS = ("flowcut", STEERED, LOSSLESS)
"""Schemes with variants, besides FLOWLETS, which has others."""

TAGGED, TAGGED_TRANSPORT = "hermes", "dcqcn:clamp=no"
"""Hermes needs ECN marks, and so DCQCN; other schemes use the default transport, go-back-N."""


def command(environment: Mapping[str, str]) -> list[str]:
    """The arguments of `tailrace`.

    Raises:
        SpecError: a variable has an invalid value.
    """
    given = {name: value.strip() for name, value in environment.items() if value.strip()}
    prompt = given.get("CLI", "0") not in ("0", "no", "false")
    schemes = _schemes(given, prompt=prompt)
    preset = _preset(schemes)
    options = {"target": given.get("TARGET", "auto")}
    if "TOPO" in given:
        options["topology"] = given["TOPO"]
    if preset == LOSSLESS:
        options |= _pfc_options(schemes)
    names = ("WORKLOAD", "FLOWS", "SEED", "FAULT", "OUT")
    options |= {name.lower(): given[name] for name in names if name in given}
    if prompt:
        options["fault"] = "none"
    arguments = ["run", preset, "--cli", "--scheme", schemes[0]] if prompt else ["compare", preset]
    if not prompt and given.keys() & {"SCHEME", "VARIANT"}:
        arguments += ["--scheme", ",".join(schemes)]
    for name, value in options.items():
        arguments += [f"--{name}", value]
    return arguments


def _preset(schemes: Sequence[str]) -> str:
    """The preset for these schemes."""
    names = [_name(spec) for spec in schemes]
    if LOSSLESS in names:
        return LOSSLESS
    if any(_stretches(spec) for spec in schemes):
        return STRETCHED
    return STEERED if STEERED in names else BASIC


def _pfc_options(schemes: Sequence[str]) -> dict[str, str]:
    """Options that follow from RLB's spec: its PFC threshold also becomes that of the switches."""
    values = {}
    pauses = [parse(spec).options.get("pfc") for spec in schemes if _name(spec) == LOSSLESS]
    if pauses[0] is not None:
        values["pfc"] = f"xoff={pauses[0]}"
    if any(TAGGED in (_name(spec), _variant(spec)) for spec in schemes):
        values["transport"] = TAGGED_TRANSPORT
    return values


def _options_in(preset: str) -> dict[str, dict[str, str]]:
    """The options of a preset's schemes, by scheme name; of equal names the last scheme counts."""
    return {parse(spec).name: parse(spec).options for spec in schemes_of(PRESETS / f"{preset}.toml").values()}


def _with_preset(spec: str, preset: str) -> str:
    """A scheme's spec, with the preset's values of options that it does not set, for comparisons with PFC or
    comparisons in which NICs stretch gaps (HF2T).
    """
    options = parse(spec).options
    keys: list[str] = []
    if preset == LOSSLESS:
        keys = ["queue", "variant", "margin"] if _name(spec) == LOSSLESS else ["queue"]
    elif preset == STRETCHED:
        keys = ["gap"] if _name(spec) == FLOWLETS else []
        keys += ["train"] if _stretches(spec) and "t" not in options else []
    usual = _options_in(preset)[LOSSLESS if preset == LOSSLESS else FLOWLETS]
    for key in keys:
        if key not in options:
            spec = str(parse(spec).setting(key, usual[key]))
    return spec


def _stretches(spec: str) -> bool:
    """Whether a scheme's spec has HF2T, with which NICs stretch gaps."""
    return stretches(parse(spec).options)


def _unstretched(spec: str) -> str:
    """The same scheme without HF2T."""
    parsed = parse(spec)
    for key in HF2T_KEYS:
        parsed.options.pop(key, None)
    if parsed.options.get("variant") == HF2T:
        del parsed.options["variant"]
    return str(parsed)


def _name(spec: str) -> str:
    """The name of a scheme."""
    return spec.partition(":")[0]


def _variant(spec: str) -> str:
    """The selector that RLB extends."""
    return parse(spec).options.get("variant") or _options_in(LOSSLESS)[LOSSLESS]["variant"]


def _schemes(given: Mapping[str, str], *, prompt: bool) -> list[str]:
    """The schemes to run; without a prompt a baseline comes first, since ratios are to the first scheme.

    Raises:
        SpecError: none of them has the variant that was asked for.
    """
    variant = given.get("VARIANT")
    names = given.get("SCHEME", FLOWLETS if variant == HF2T else None)
    if names is not None:
        schemes = _with_variant(split_schemes(names), variant)
        baselines = _baselines(schemes)
        unstretched = [spec for spec in schemes if not _stretches(spec)]
        listed = {name for spec in unstretched for name in (spec, _name(spec))}
        if not prompt and not set(baselines) & listed:
            schemes = [*baselines, *schemes]
    else:
        usual = tuple(schemes_of(PRESETS / f"{BASIC}.toml").values())
        schemes = _with_variant([WITH_VARIANTS[0]] if prompt else usual, variant)
    preset = _preset(schemes)
    return [_with_preset(spec, preset) for spec in schemes] if preset in (LOSSLESS, STRETCHED) else schemes


def _with_variant(schemes: Sequence[str], variant: str | None) -> list[str]:
    """The schemes, with the variant set in those that can have it."""
    if variant is None:
        return list(schemes)
    with_variant = [FLOWLETS] if variant in LETFLOW_VARIANTS else WITH_VARIANTS
    if not any(_name(spec) in with_variant for spec in schemes):
        raise SpecError(f"VARIANT={variant}: none of the schemes {', '.join(schemes)} has it")
    return [
        str(parse(spec).setting("variant", variant)) if _name(spec) in with_variant else spec
        for spec in schemes
    ]


def _baselines(schemes: Sequence[str]) -> tuple[str, ...]:
    """The baselines that schemes are compared with."""
    selectors = [_variant(spec) for spec in schemes if _name(spec) == LOSSLESS]
    if selectors:
        return tuple(dict.fromkeys(selectors))
    if any(_stretches(spec) for spec in schemes):
        return tuple(dict.fromkeys(_unstretched(spec) for spec in schemes if _stretches(spec)))
    baselines = tuple(schemes_of(PRESETS / f"{_preset(schemes)}.toml").values())
    return baselines[:-1] if _preset(schemes) == STEERED else baselines[:1]


def main() -> int:
    """Runs `tailrace` with arguments from the environment. Returns its exit status."""
    from tailrace.cli.main import main as tailrace

    try:
        arguments = command(os.environ)
    except SpecError as error:
        sys.stderr.write(f"make run: {error}\n")
        return 2
    sys.stderr.write(f"tailrace {shlex.join(arguments)}\n")
    return tailrace(arguments)


if __name__ == "__main__":
    sys.exit(main())
