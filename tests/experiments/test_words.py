# SPDX-License-Identifier: Apache-2.0
"""Lists of schemes, names of folders, and what `make run` makes of its variables."""

from __future__ import annotations

import pytest

from tailrace.cli.make_run import command
from tailrace.experiments.plan import defaults
from tailrace.experiments.plan.words import case_name, labels, split_schemes
from tailrace.words import SpecError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ecmp", ("ecmp",)),
        ("ecmp,letflow,flowcut", ("ecmp", "letflow", "flowcut")),
        ("letflow:gap=50us,flowcut:variant=ingress,buckets=64,ecmp", ("letflow:gap=50us", "flowcut:variant=ingress,buckets=64", "ecmp")),
        (" ecmp , flowcut : variant = nic ", ("ecmp", "flowcut : variant = nic")),
        ("flowcut,variant=nic", ("flowcut:variant=nic",)),
    ],
)  # fmt: skip
def test_split_schemes(text: str, expected: tuple[str, ...]) -> None:
    """A comma ends a scheme or an option; key=value belongs to the scheme before it."""
    assert split_schemes(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gap=1us,letflow", "expected a name before 'gap=1us'"),
        ("ecmp,,letflow", "expected names separated by commas"),
        ("", "expected names separated by commas"),
        ("ecmp,ecmp", "'ecmp' is given twice"),
    ],
)
def test_bad_scheme_lists(text: str, message: str) -> None:
    """One line that says what is wrong."""
    with pytest.raises(SpecError, match=message):
        split_schemes(text)


def test_labels_are_short_and_unique() -> None:
    """The bare name where that is unique, else all of the words; always fit for a folder."""
    assert labels(["ecmp", "flowcut:variant=nic"]) == ("ecmp", "flowcut")
    assert labels(["flowcut:variant=nic", "flowcut:variant=full,rtt=3.5"]) == (
        "flowcut-variant-nic",
        "flowcut-variant-full-rtt-3.5",
    )


def test_case_names() -> None:
    """Clean without faults, else the names of the faults, each once."""
    assert case_name(()) == "clean"
    assert case_name(("link-slow:fraction=1,factor=0.1",)) == "link-slow"
    assert case_name(("drop:rate=0.1", "drop:rate=0.2", "ack-loss:rate=0.1")) == "drop+ack-loss"


def options(**environment: str) -> dict[str, str]:
    """The options of the command by name; the subcommand under ''."""
    arguments = [argument for argument in command(environment) if argument != "--cli"]
    return {"": arguments[0]} | dict(zip(arguments[1::2], arguments[2::2], strict=True))


def test_make_run_without_variables() -> None:
    """Three schemes, the small fabric, one slow link; OUT is left to the command line."""
    assert options() == options(SCHEME="", OUT=" ") == {
        "": "compare",
        "--schemes": "ecmp,letflow,flowcut",
        "--topology": defaults.TOPOLOGY,
        "--target": "auto",
        "--seed": str(defaults.SEED),
        "--fault": defaults.SLOW_LINK,
    }  # fmt: skip


def test_make_run_variables() -> None:
    """Each variable is the option that its name says."""
    found = options(
        TARGET="virtual", TOPO="fat-tree:k=4", WORKLOAD="random", FLOWS="30", SEED="7", OUT="here"
    )
    assert found["--target"] == "virtual"
    assert found["--topology"] == "fat-tree:k=4"
    assert found["--workload"] == "random"
    assert found["--flows"] == "30"
    assert found["--seed"] == "7"
    assert found["--out"] == "here"
    assert found["--fault"].startswith("link-slow:fraction=")
    assert options(FAULT="drop:rate=0.1")["--fault"] == "drop:rate=0.1"
    assert "--fault" not in options(FAULT="none")


def test_make_run_scheme_and_variant() -> None:
    """One scheme runs beside ecmp; the variant is flowcut's, wherever it is."""
    assert options(SCHEME="flowcut", VARIANT="ingress")["--schemes"] == "ecmp,flowcut:variant=ingress"
    assert options(SCHEME="ecmp")["--schemes"] == "ecmp"
    assert options(SCHEME="spray,letflow:gap=1us")["--schemes"] == "ecmp,spray,letflow:gap=1us"
    assert options(VARIANT="nic")["--schemes"] == "ecmp,letflow,flowcut:variant=nic"
    for scheme, variant in (("letflow", "nic"), ("flowcut", "hf2t")):
        with pytest.raises(SpecError, match=f"VARIANT={variant}: none of the schemes {scheme} has it"):
            options(SCHEME=scheme, VARIANT=variant)


def test_make_run_hf2t() -> None:
    """LetFlow beside LetFlow whose NICs stretch gaps, in a fat tree; whatever else has HF2T beside itself without."""
    found = options(SCHEME="letflow", VARIANT="hf2t")
    assert found == options(VARIANT="hf2t") == {
        "": "compare",
        "--schemes": "letflow:gap=100us,letflow:variant=hf2t,gap=100us,train=300",
        "--topology": defaults.HF2T_TOPOLOGY,
        "--workload": defaults.HF2T_WORKLOAD,
        "--target": "auto",
        "--seed": str(defaults.HF2T_SEED),
        "--transport": defaults.HF2T_TRANSPORT,
        "--pfc": defaults.HF2T_PFC,
    }  # fmt: skip
    words = "letflow:gap=9us,hf2t=on,t=3us"
    assert options(SCHEME=words)["--schemes"] == f"letflow:gap=9us,{words}"
    several = options(SCHEME="flowcut:hf2t=on,train=100,letflow", TOPO="fat-tree:k=8", FAULT="link-down")
    assert several["--schemes"] == "flowcut,flowcut:hf2t=on,train=100,letflow:gap=100us"
    assert (several["--topology"], several["--fault"]) == ("fat-tree:k=8", "link-down")
    assert options(SCHEME="letflow", VARIANT="plain")["--schemes"] == "ecmp,letflow:variant=plain"
    assert command({"CLI": "1", "VARIANT": "hf2t"})[3].startswith("letflow:variant=hf2t,")


@pytest.mark.parametrize("variant", ["scout", "spray"])
def test_make_run_spritz(variant: str) -> None:
    """Beside routing by switches, on a small Dragonfly, a link of which fails in the second round."""
    schemes = f"minimal:draw=hop,ugal-l:draw=hop,spritz:variant={variant}"
    assert options(SCHEME="spritz", VARIANT=variant) == {
        "": "compare",
        "--schemes": schemes,
        "--topology": defaults.STEERED_TOPOLOGY,
        "--target": "auto",
        "--seed": str(defaults.SEED),
        "--fault": defaults.DEAD_LINK,
    }
    assert options(SCHEME="ugal-l:draw=hop,spritz")["--schemes"] == "ugal-l:draw=hop,spritz"
    elsewhere = options(SCHEME="spritz", TOPO="slim-fly:q=3,p=1")
    assert elsewhere["--topology"] == "slim-fly:q=3,p=1"
    assert elsewhere["--fault"].startswith("link-down:fraction=")


@pytest.mark.parametrize("variant", ["drill", "letflow", "presto", "hermes"])
def test_make_run_rlb(variant: str) -> None:
    """Beside the selector alone, in a network with PFC in which one path is congested; one round."""
    assert options(SCHEME="rlb", VARIANT=variant) == {
        "": "compare",
        "--schemes": f"{variant}:queue=0,rlb:variant={variant},queue=0,margin=20us",
        "--topology": defaults.LOSSLESS_TOPOLOGY,
        "--workload": defaults.LOSSLESS_WORKLOAD,
        "--target": "auto",
        "--seed": str(defaults.LOSSLESS_SEED),
        "--pfc": "xoff=64KiB",
        "--window": "64KiB",
    } | ({"--transport": "dcqcn:clamp=no"} if variant == "hermes" else {})


def test_make_run_rlb_with_words() -> None:
    """What is said stays; a threshold is that of the switches, too; without VARIANT it is drill."""
    found = options(SCHEME="rlb:pfc=100KB,margin=5us,queue=1MB", TOPO="fat-tree:k=4", FAULT="none")
    assert found["--schemes"] == "drill:queue=0,rlb:pfc=100KB,margin=5us,queue=1MB,variant=drill"
    assert found["--pfc"] == "xoff=100KB"
    assert found["--workload"].startswith("incast:")
    assert "--fault" not in found
    assert options(SCHEME="presto,rlb", VARIANT="presto")["--schemes"].startswith("presto:queue=0,rlb:")
    assert options(SCHEME="rlb", FAULT="drop:rate=0.1")["--fault"] == "drop:rate=0.1"
    assert command({"CLI": "1", "SCHEME": "rlb"})[3] == "rlb:queue=0,variant=drill,margin=20us"


def test_make_run_with_prompt() -> None:
    """CLI=1 opens the prompt on the scheme asked for, or flowcut; no fault, since nothing is sent."""
    assert command({"CLI": "1"})[:4] == ["run", "--cli", "--scheme", "flowcut"]
    assert command({"CLI": "1", "SCHEME": "letflow"})[:4] == ["run", "--cli", "--scheme", "letflow"]
    assert "--fault" not in command({"CLI": "1"})
    assert command({"CLI": "0"})[0] == "compare"
