# SPDX-License-Identifier: Apache-2.0
"""`make run`: variables of the environment become a preset and options of `tailrace compare` or `run --cli`.

    TARGET     auto, bmv2, native or virtual
    SCHEME     compared with ecmp alone, spritz with minimal routing and UGAL-L, rlb with the selector that it
               builds on, in a network with PFC, what has HF2T with the same scheme without; several separated
               by commas; ecmp, letflow and flowcut without it
    VARIANT    of flowcut, letflow, spritz or rlb; hf2t is letflow's
    TOPO       topology; without it the small leaf-spine, for spritz a small Dragonfly, for HF2T a fat tree
    WORKLOAD   a permutation between the leaves without it; for rlb a congested host beside other flows
    FLOWS      number of flows, for workloads that have it as an option
    FAULT      the second round's fault; `none` for one round only; without it one link at a tenth of its
               rate, for spritz one that fails for a while, and for rlb and HF2T none
    SEED       of everything random; of several, such as 1..10, there are means
    OUT        folder for the results
    CLI        1: bring the fabric up and show Mininet's prompt; SCHEME is then the one that runs

An empty variable is as good as none. `command` is pure; `main` calls the command line with what it returns.
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
"""Presets; where no SCHEME is named, and SCHEMEs that have one."""

FLOWLETS = "letflow"
WITH_VARIANTS = ("flowcut", STEERED, LOSSLESS)
"""And FLOWLETS, the only scheme with such variants."""

TAGGED, TAGGED_TRANSPORT = "hermes", "dcqcn:clamp=no"
"""Hermes looks at marks, as only DCQCN's packets have them; the others go with the default, go-back-N."""


def command(environment: Mapping[str, str]) -> list[str]:
    """The arguments of `tailrace`.

    Raises:
        SpecError: a variable that cannot be used.
    """
    given = {name: value.strip() for name, value in environment.items() if value.strip()}
    prompt = given.get("CLI", "0") not in ("0", "no", "false")
    schemes = _schemes(given, prompt=prompt)
    preset = _preset(schemes)
    options = {"target": given.get("TARGET", "auto")}
    if "TOPO" in given:
        options["topology"] = given["TOPO"]
    if preset == LOSSLESS:
        options |= _lossless(schemes)
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
    """The preset that suits some schemes."""
    names = [_name(spec) for spec in schemes]
    if LOSSLESS in names:
        return LOSSLESS
    if any(_stretches(spec) for spec in schemes):
        return STRETCHED
    return STEERED if STEERED in names else BASIC


def _lossless(schemes: Sequence[str]) -> dict[str, str]:
    """Options that follow from RLB's spec: its threshold is that of the switches, too."""
    values = {}
    pauses = [parse(spec).options.get("pfc") for spec in schemes if _name(spec) == LOSSLESS]
    if pauses[0] is not None:
        values["pfc"] = f"xoff={pauses[0]}"
    if any(TAGGED in (_name(spec), _variant(spec)) for spec in schemes):
        values["transport"] = TAGGED_TRANSPORT
    return values


def _of(preset: str) -> dict[str, dict[str, str]]:
    """The options of a preset's schemes, by the scheme's name; of two with one name those of the last."""
    return {parse(spec).name: parse(spec).options for spec in schemes_of(PRESETS / f"{preset}.toml").values()}


def _with_flowlets(spec: str) -> str:
    """A scheme as it is compared where NICs stretch gaps, with defaults of the preset."""
    usual = _of(STRETCHED)[FLOWLETS]
    keys = ["gap"] if _name(spec) == FLOWLETS else []
    if _stretches(spec) and "t" not in parse(spec).options:
        keys.append("train")
    return _with_defaults(spec, {key: usual[key] for key in keys})


def _with_defaults(spec: str, usual: Mapping[str, str]) -> str:
    """A scheme with options that it does not have yet."""
    for key, value in usual.items():
        if key not in parse(spec).options:
            spec = str(parse(spec).setting(key, value))
    return spec


def _stretches(spec: str) -> bool:
    """Whether NICs stretch gaps under a scheme."""
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
    """The selector that RLB builds on."""
    return parse(spec).options.get("variant") or _of(LOSSLESS)[LOSSLESS]["variant"]


def _completed(spec: str) -> str:
    """A scheme in a network with PFC, with defaults of the preset."""
    usual = _of(LOSSLESS)[LOSSLESS]
    keys = ("queue", "variant", "margin") if _name(spec) == LOSSLESS else ("queue",)
    return _with_defaults(spec, {key: usual[key] for key in keys})


def _schemes(given: Mapping[str, str], *, prompt: bool) -> list[str]:
    """The schemes to run; without a prompt a baseline comes first, since ratios are against it.

    Raises:
        SpecError: none of them has the variant.
    """
    variant = given.get("VARIANT")
    names = given.get("SCHEME", FLOWLETS if variant == HF2T else None)
    if names is not None:
        schemes = _with_variant(split_schemes(names), variant)
        before = _baselines(schemes)
        unstretched = [spec for spec in schemes if not _stretches(spec)]
        if not prompt and not set(before) & {name for spec in unstretched for name in (spec, _name(spec))}:
            schemes = [*before, *schemes]
    else:
        usual = tuple(schemes_of(PRESETS / f"{BASIC}.toml").values())
        schemes = _with_variant([WITH_VARIANTS[0]] if prompt else usual, variant)
    if any(_name(spec) == LOSSLESS for spec in schemes):
        return [_completed(spec) for spec in schemes]
    if any(_stretches(spec) for spec in schemes):
        return [_with_flowlets(spec) for spec in schemes]
    return schemes


def _with_variant(schemes: Sequence[str], variant: str | None) -> list[str]:
    """The schemes, those that have it in the variant."""
    if variant is None:
        return list(schemes)
    having = [FLOWLETS] if variant in LETFLOW_VARIANTS else WITH_VARIANTS
    if not any(_name(spec) in having for spec in schemes):
        raise SpecError(f"VARIANT={variant}: none of the schemes {', '.join(schemes)} has it")
    return [
        str(parse(spec).setting("variant", variant)) if _name(spec) in having else spec for spec in schemes
    ]


def _baselines(schemes: Sequence[str]) -> tuple[str, ...]:
    """What schemes are compared with."""
    selectors = [_variant(spec) for spec in schemes if _name(spec) == LOSSLESS]
    if selectors:
        return tuple(dict.fromkeys(selectors))
    if any(_stretches(spec) for spec in schemes):
        return tuple(dict.fromkeys(_unstretched(spec) for spec in schemes if _stretches(spec)))
    beside = tuple(schemes_of(PRESETS / f"{_preset(schemes)}.toml").values())
    return beside[:-1] if _preset(schemes) == STEERED else beside[:1]


def main() -> int:
    """Run `tailrace` as the environment says. Returns its exit status."""
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
