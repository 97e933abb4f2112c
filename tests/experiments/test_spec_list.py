# SPDX-License-Identifier: Apache-2.0
"""Lists of schemes, names of folders, and what `make run` makes of its variables."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.cli.make_run import command
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.experiment_file import PRESETS, check_label, read_experiment, schemes_of
from tailrace.experiments.plan.plan import plan
from tailrace.experiments.plan.spec_list import case_name, folder_name, labels, split_schemes
from tailrace.report.figures.names import written
from tailrace.spec import SpecError


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
    """The name and the variant, and the options in which schemes of a name differ."""
    assert labels(["ecmp", "flowcut:variant=nic"]) == ("ecmp", "flowcut:variant=nic")
    assert labels(["flowcut:rtt=3.5", "letflow:gap=1us,hf2t=on"]) == ("flowcut", "letflow")
    assert labels(["flowcut:variant=nic", "flowcut:variant=full,rtt=3.5"]) == (
        "flowcut:variant=nic",
        "flowcut:variant=full,rtt=3.5",
    )
    assert labels(["letflow:gap=100us", "letflow:variant=hf2t,gap=100us,train=300"]) == (
        "letflow",
        "letflow:variant=hf2t",
    )
    assert labels(["flowcut", "flowcut:hf2t=99,stretch=1us,variant=nic", "flowcut:hf2t=off"]) == (
        "flowcut",
        "flowcut:hf2t=99,variant=nic",
        "flowcut:hf2t=off",
    )
    assert labels(["rlb:queue=0,variant=drill", "rlb:queue=0,variant=presto"]) == (
        "rlb:variant=drill",
        "rlb:variant=presto",
    )
    # schemes that differ in no shown option have their whole spec
    assert labels(["letflow:hf2t=on,train=300", "letflow:hf2t=on,train=400"]) == (
        "letflow:hf2t=on,train=300",
        "letflow:hf2t=on,train=400",
    )


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["letflow", "flowcut"]),
            st.dictionaries(
                st.sampled_from(["variant", "hf2t", "train", "gap"]),
                st.sampled_from(["on", "hf2t", "1us", "off"]),
            ),
        ).map(lambda pair: pair[0] + ":" * bool(pair[1]) + ",".join(f"{k}={v}" for k, v in pair[1].items())),
        unique=True,
        max_size=6,
    )
)
def test_labels_differ(schemes: list[str]) -> None:
    """Whatever is compared: no two runs share a folder."""
    texts = labels(schemes)
    assert len(set(texts)) == len(schemes)
    folders = set(map(folder_name, texts))
    assert len(folders) == len(schemes)
    for folder in folders:
        check_label(folder)


def test_labels_of_programs_are_names_of_their_files() -> None:
    """Spelled as the files are, also in figures; whole paths where the names are the same."""
    specs = ["program:json=a/long/path/ecmp_v2.json", "program:json=build/ecmp.json,depth=4"]
    assert labels(specs) == ("program:ecmp_v2", "program:ecmp,depth=4")
    assert labels(specs[:1]) == ("program:ecmp_v2",)
    assert [written(label) for label in labels(specs)] == ["ecmp_v2", "ecmp,depth=4"]
    alike = ["program:json=a/ecmp.json", "program:json=b/ecmp.json"]
    assert labels(alike) == tuple(alike)
    assert [written(label) for label in alike] == ["a/ecmp.json", "b/ecmp.json"]


def test_case_names() -> None:
    """Clean without faults, else the names of the faults, each once."""
    assert case_name(()) == "clean"
    assert case_name(("link-slow:fraction=1,factor=0.1",)) == "link-slow"
    assert case_name(("drop:rate=0.1", "drop:rate=0.2", "ack-loss:rate=0.1")) == "drop+ack-loss"


def options(**environment: str) -> dict[str, str]:
    """The options of the command by name; the subcommand and the preset under ''."""
    arguments = [argument for argument in command(environment) if argument != "--cli"]
    return {"": " ".join(arguments[:2])} | dict(zip(arguments[2::2], arguments[3::2], strict=True))


def test_make_run_without_variables() -> None:
    """The preset, and nothing else; OUT is left to the command line."""
    assert options() == options(SCHEME="", OUT=" ") == {"": "compare basic", "--target": "auto"}


@pytest.mark.parametrize(
    ("variable", "value", "option"),
    [
        ("TARGET", "virtual", "--target"),
        ("TOPO", "fat-tree:k=4", "--topology"),
        ("WORKLOAD", "random", "--workload"),
        ("FLOWS", "30", "--flows"),
        ("SEED", "7", "--seed"),
        ("OUT", "here", "--out"),
        ("FAULT", "drop:rate=0.1", "--fault"),
        ("FAULT", "none", "--fault"),
    ],
)
def test_make_run_variables(variable: str, value: str, option: str) -> None:
    """Each variable is the option that its name says."""
    assert options(**{variable: value}) == options() | {option: value}


def test_make_run_scheme_and_variant() -> None:
    """One scheme runs beside ecmp; the variant is flowcut's, wherever it is."""
    assert options(SCHEME="flowcut", VARIANT="ingress")["--scheme"] == "ecmp,flowcut:variant=ingress"
    assert options(SCHEME="ecmp")["--scheme"] == "ecmp"
    assert options(SCHEME="spray,letflow:gap=1us")["--scheme"] == "ecmp,spray,letflow:gap=1us"
    assert options(VARIANT="nic")["--scheme"] == "ecmp,letflow,flowcut:variant=nic"
    for scheme, variant in (("letflow", "nic"), ("flowcut", "hf2t")):
        with pytest.raises(SpecError, match=f"VARIANT={variant}: none of the schemes {scheme} has it"):
            options(SCHEME=scheme, VARIANT=variant)


def test_make_run_hf2t() -> None:
    """LetFlow beside LetFlow whose NICs stretch gaps, in a fat tree; whatever else has HF2T beside itself without."""
    by_option = options(SCHEME="letflow", VARIANT="hf2t")
    assert by_option == options(VARIANT="hf2t") == {
        "": "compare hf2t",
        "--scheme": "letflow:gap=100us,letflow:variant=hf2t,gap=100us,train=300",
        "--target": "auto",
    }  # fmt: skip
    words = "letflow:gap=9us,hf2t=on,t=3us"
    assert options(SCHEME=words)["--scheme"] == f"letflow:gap=9us,{words}"
    several = options(SCHEME="flowcut:hf2t=on,train=100,letflow", TOPO="fat-tree:k=8", FAULT="link-down")
    assert several["--scheme"] == "flowcut,flowcut:hf2t=on,train=100,letflow:gap=100us"
    assert (several["--topology"], several["--fault"]) == ("fat-tree:k=8", "link-down")
    assert options(SCHEME="letflow", VARIANT="plain")["--scheme"] == "ecmp,letflow:variant=plain"
    assert command({"CLI": "1", "VARIANT": "hf2t"})[4].startswith("letflow:variant=hf2t,")


@pytest.mark.parametrize("variant", ["scout", "spray"])
def test_make_run_spritz(variant: str) -> None:
    """Beside routing by switches, on a small Dragonfly, a link of which fails in the second round."""
    schemes = f"minimal:draw=hop,ugal-l:draw=hop,spritz:variant={variant}"
    assert options(SCHEME="spritz", VARIANT=variant) == {
        "": "compare spritz",
        "--scheme": schemes,
        "--target": "auto",
    }
    assert options(SCHEME="ugal-l:draw=hop,spritz")["--scheme"] == "ugal-l:draw=hop,spritz"
    elsewhere = options(SCHEME="spritz", TOPO="slim-fly:q=3,p=1")
    assert elsewhere["--topology"] == "slim-fly:q=3,p=1"


@pytest.mark.parametrize("variant", ["drill", "letflow", "presto", "hermes"])
def test_make_run_rlb(variant: str) -> None:
    """Beside the selector alone, in a network with PFC in which one path is congested; one round."""
    assert options(SCHEME="rlb", VARIANT=variant) == {
        "": "compare rlb",
        "--scheme": f"{variant}:queue=0,rlb:variant={variant},queue=0,margin=20us",
        "--target": "auto",
    } | ({"--transport": "dcqcn:clamp=no"} if variant == "hermes" else {})


def test_make_run_rlb_with_words() -> None:
    """What is said stays; a threshold is that of the switches, too; without VARIANT it is drill."""
    by_option = options(SCHEME="rlb:pfc=100KB,margin=5us,queue=1MB", TOPO="fat-tree:k=4", FAULT="none")
    assert by_option["--scheme"] == "drill:queue=0,rlb:pfc=100KB,margin=5us,queue=1MB,variant=drill"
    assert by_option["--pfc"] == "xoff=100KB"
    assert by_option["--fault"] == "none"
    assert options(SCHEME="presto,rlb", VARIANT="presto")["--scheme"].startswith("presto:queue=0,rlb:")
    assert options(SCHEME="rlb", FAULT="drop:rate=0.1")["--fault"] == "drop:rate=0.1"
    assert command({"CLI": "1", "SCHEME": "rlb"})[4] == "rlb:queue=0,variant=drill,margin=20us"


def test_make_run_with_prompt() -> None:
    """CLI=1 opens the prompt on the scheme asked for, or flowcut; no fault, since nothing is sent."""
    assert command({"CLI": "1"})[:5] == ["run", "basic", "--cli", "--scheme", "flowcut"]
    assert command({"CLI": "1", "SCHEME": "letflow"})[:5] == ["run", "basic", "--cli", "--scheme", "letflow"]
    assert command({"CLI": "1"})[-2:] == ["--fault", "none"]
    assert command({"CLI": "0"})[0] == "compare"


@pytest.mark.parametrize("preset", ["basic", "rlb", "spritz"])
def test_elsewhere_links_and_hosts_have_other_names(preset: str) -> None:
    """With another topology a file's [elsewhere] holds, and options still come before it."""
    path = Path(preset)
    original = read_experiment(path)
    other = read_experiment(path, options={"topology": "fat-tree:k=4"})
    assert (other.workload, other.faults) != (original.workload, original.faults)
    mine = read_experiment(
        path, options={"topology": "fat-tree:k=4", "workload": "random", "fault": ["drop:rate=0.1"]}
    )
    assert (mine.workload, mine.faults) == ("random", ("drop:rate=0.1",))


@pytest.mark.parametrize("preset", sorted(file.stem for file in PRESETS.glob("*.toml")))
def test_presets_go_by_name(preset: str) -> None:
    """`tailrace compare NAME`: each can be read, and can be planned; of the common one `compare` gives some schemes
    transports of their own first: test_common.py.
    """
    path = Path(preset)
    base = read_experiment(path, "small" if preset == "common" else None)
    schemes = schemes_of(path)
    assert len(schemes) >= 2
    for words in schemes.values():
        chosen = make({"scheme": words}, base)
        if preset != "common":
            assert plan(chosen, "virtual").job.flows


def test_a_preset_that_is_none() -> None:
    """The names that there are."""
    with pytest.raises(SpecError, match="nonsense: no such file or preset; expected basic, common, hf2t"):
        read_experiment(Path("nonsense"))


def test_no_fault_takes_a_preset_s_away() -> None:
    """Which no other option can."""
    base = read_experiment(Path("basic"))
    assert base.faults
    assert make({"fault": "none"}, base).faults == ()
