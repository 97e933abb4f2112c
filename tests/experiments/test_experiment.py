# SPDX-License-Identifier: Apache-2.0
"""Experiments from files and options: what they may say, and how errors are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.experiment import Experiment, make
from experiments.toml_file import read_experiment
from spec import SpecError

FULL = """
scheme = "flowcut"
variant = "ingress"
topology = "fat-tree:k=4,rate=10Gbps"
workload = "permutation:size=256KiB"
target = "virtual"
fault = ["link-slow:fraction=0.1,factor=0.1", "ack-loss:rate=0.01"]
seed = 7
time_scale = 2.5
transport = "sr"
window = "64KiB"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "it.toml"
    path.write_text(text)
    return path


def test_file(tmp_path: Path) -> None:
    """Every key arrives where it belongs."""
    assert read_experiment(write(tmp_path, FULL)) == Experiment(
        scheme="flowcut:variant=ingress",
        topology="fat-tree:k=4,rate=10Gbps",
        workload="permutation:size=256KiB",
        target="virtual",
        faults=("link-slow:fraction=0.1,factor=0.1", "ack-loss:rate=0.01"),
        seed=7,
        time_scale=2.5,
        transport="sr",
        window_bytes=65536,
    )


def test_options_override_a_file(tmp_path: Path) -> None:
    """What an option says counts; the rest stays as in the file."""
    base = read_experiment(write(tmp_path, FULL))
    changed = make({"seed": 9, "fault": "drop:rate=0.5"}, base)
    assert (changed.seed, changed.faults) == (9, ("drop:rate=0.5",))
    assert changed.topology == base.topology


def test_only_a_scheme_is_needed(tmp_path: Path) -> None:
    """Everything else has a default."""
    assert read_experiment(write(tmp_path, 'scheme = "ecmp"')) == make({"scheme": "ecmp"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "key 'scheme': missing; expected a text such as"),
        ("scheme = ", "not TOML: "),
        ('scheme = "ecmp"\ncolour = 1', "key 'colour': unknown key; expected scheme, variant, topology"),
        ('scheme = "magic"', "key 'scheme': scheme 'magic' is not known; expected ecmp"),
        ("scheme = 5", "key 'scheme': expected a text such as 'flowcut:variant=full', found 5"),
        ('scheme = "ecmp"\nseed = "x"', "key 'seed': expected a whole number, found 'x'"),
        ('scheme = "ecmp"\nseed = true', "key 'seed': expected a whole number, found True"),
        ('scheme = "ecmp"\nseed = -1', "key 'seed': expected 0 or more, found -1"),
        ('scheme = "ecmp"\ntime_scale = 0.5', "key 'time_scale': expected 1 (full speed) or more, found 0.5"),
        ('scheme = "ecmp"\ntime_scale = inf', "key 'time_scale': expected 1 (full speed) or more, found inf"),
        (
            'scheme = "ecmp"\ntarget = "asic"',
            "key 'target': expected auto, bmv2, native, virtual, found 'asic'",
        ),
        (
            'scheme = "ecmp"\ntopology = "leaf-spine:rate=0"',
            "key 'topology': topology leaf-spine: rate must be",
        ),
        ('scheme = "ecmp"\nworkload = "storm"', "key 'workload': workload 'storm' is not known"),
        ('scheme = "ecmp"\nfault = [1]', "key 'fault': expected texts, found 1"),
        ('scheme = "ecmp"\nfault = "fire"', "key 'fault': fault 'fire' is not known"),
        ('scheme = "ecmp"\nwindow = "0"', "key 'window': expected more than 0 bytes"),
        ('scheme = "ecmp"\nwindow = "wide"', "key 'window': 'wide' is no number with a unit"),
        ('scheme = "ecmp"\nvariant = "nic"', "key 'variant': scheme ecmp: unknown key 'variant'"),
        (
            'scheme = "flowcut:variant=full"\nvariant = "nic"',
            "key 'variant': scheme flowcut: variant=full and",
        ),
        (
            'scheme = "flowcut"\nvariant = "half"',
            "key 'variant': scheme flowcut: variant must be one of full",
        ),
    ],
)
def test_bad_file(tmp_path: Path, text: str, message: str) -> None:
    """One line: the file, the key, what is wrong and what was expected."""
    path = write(tmp_path, text)
    with pytest.raises(SpecError) as caught:
        read_experiment(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder and bytes that are no text are named."""
    with pytest.raises(SpecError, match=r"none\.toml: No such file"):
        read_experiment(tmp_path / "none.toml")
    with pytest.raises(SpecError, match="Is a directory"):
        read_experiment(tmp_path)
    (tmp_path / "it.toml").write_bytes(b"\xff")
    with pytest.raises(SpecError, match=r"it\.toml: not UTF-8 text"):
        read_experiment(tmp_path / "it.toml")


def test_options_name_themselves_once() -> None:
    """Without a file the message begins with the option, and does not stutter."""
    with pytest.raises(SpecError) as caught:
        make({"scheme": "ecmp", "topology": "leaf-spine:leafs=2"})
    assert str(caught.value).startswith("topology leaf-spine: unknown key 'leafs'")
    with pytest.raises(SpecError) as caught:
        make({"scheme": "ecmp", "seed": -3})
    assert str(caught.value) == "seed: expected 0 or more, found -3"
