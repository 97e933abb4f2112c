# SPDX-License-Identifier: Apache-2.0
"""Experiments from files and options: what they may say, and how errors are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.cli.experiment_options import KEYS as OPTIONS
from tailrace.experiments.plan.experiment import KEYS, make
from tailrace.experiments.plan.experiment_file import read_experiment
from tailrace.experiments.plan.nic import parse_window, window_bytes
from tailrace.schemes.registry import parse_scheme
from tailrace.spec import SpecError
from tailrace.topology import parse_topology

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
    experiment = read_experiment(write(tmp_path, FULL))
    assert experiment.written == make({"scheme": "ecmp"}).written | {
        "scheme": "flowcut:variant=ingress",
        "topology": "fat-tree:k=4,rate=10Gbps",
        "workload": "permutation:size=256KiB",
        "target": "virtual",
        "faults": ("link-slow:fraction=0.1,factor=0.1", "ack-loss:rate=0.01"),
        "seeds": (7,),
        "time_scale": 2.5,
        "transport": "sr",
        "window": "64KiB",
    }
    parsed = experiment.parsed
    assert (parsed.scheme, parsed.topology) == (
        parse_scheme(experiment.scheme),
        parse_topology(experiment.topology),
    )
    assert parsed.workload is not None
    assert parsed.transport is not None
    assert (parsed.workload.spec, parsed.transport.name) == (experiment.workload, "sr")
    assert [fault.spec for fault in parsed.faults] == list(experiment.faults)
    assert parsed.window == parse_window("64KiB")


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
        ("", "key 'scheme': missing; expected a string such as"),
        ('scheme = "ecmp"\ncolour = 1', "key 'colour': unknown key; expected scheme, variant, topology"),
        ("scheme = 5", "key 'scheme': expected a string such as 'flowcut:variant=full', found 5"),
        ('scheme = "ecmp"\ntime_scale = 0.5', "key 'time_scale': expected from 1 (full speed) to 1e+09"),
        ('scheme = "ecmp"\nfollow = [1, 0]', "key 'follow[1]': expected the id of a flow, 1 or more"),
        ('scheme = "ecmp"\nvariant = "nic"', "key 'variant': scheme ecmp: unknown key 'variant'"),
        ('scheme = "flowcut:variant=full"\nvariant = "nic"', "key 'variant': scheme flowcut: variant=full"),
        ('scheme = "flowcut"\nvariant = "half"', "key 'variant': scheme flowcut: variant=half:"),
    ],
)
def test_bad_file(tmp_path: Path, text: str, message: str) -> None:
    """One line: the file, the key, what is wrong and what was expected. Many more: tests/bad_input/files.py."""
    path = write(tmp_path, text)
    with pytest.raises(SpecError) as caught:
        read_experiment(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_options_name_themselves_once() -> None:
    """Without a file the message begins with the option, and does not stutter."""
    with pytest.raises(SpecError) as caught:
        make({"scheme": "ecmp", "topology": "leaf-spine:leafs=2"})
    assert str(caught.value).startswith("topology leaf-spine: unknown key 'leafs'")
    with pytest.raises(SpecError) as caught:
        make({"scheme": "ecmp", "seed": -3})
    assert (
        str(caught.value)
        == "seed: expected a whole number from 0 to 2**63 - 1, or at most 1000 of them such as '1..10' or '1,3,5', found -3"
    )


SCALED = """
scheme = "ecmp"
topology = "fat-tree:k=4"
seed = 3
[scale.small]
workload = "permutation:size=1KiB"
[scale.paper]
topology = "fat-tree:k=8"
window = "1.5BDP"
"""


def test_scales(tmp_path: Path) -> None:
    """A scale changes what it names, and nothing else."""
    path = write(tmp_path, SCALED)
    small, paper = (read_experiment(path, scale) for scale in ("small", "paper"))
    assert (small.topology, small.workload, small.seed) == ("fat-tree:k=4", "permutation:size=1KiB", 3)
    assert (paper.topology, paper.workload, paper.window) == ("fat-tree:k=8", None, "1.5BDP")
    assert read_experiment(path) == make({"scheme": "ecmp", "topology": "fat-tree:k=4", "seed": 3})


@pytest.mark.parametrize(
    ("words", "bytes_or_bdps"),
    [("64KiB", (65536, None)), ("1.5BDP", (None, 1.5)), ("2 bdp", (None, 2.0)), ("5", (5, None))],
)
def test_windows(words: str, bytes_or_bdps: tuple[int | None, float | None]) -> None:
    """In bytes, or in bandwidth-delay products of the topology."""
    window = parse_window(words)
    assert (window.size_bytes, window.bdps) == bytes_or_bdps


def test_a_window_in_bdps_follows_the_topology() -> None:
    """Twice the products, twice the window; the default is two of them."""
    topology = parse_topology("leaf-spine:leaves=2,spines=2,hosts=1")
    single, double = (
        window_bytes(topology, "virtual", parse_window(words), mtu=1024) for words in ("1BDP", "2BDP")
    )
    assert abs(double - 2 * single) <= 1
    assert window_bytes(topology, "virtual", mtu=1024) == double


def test_a_window_in_bdps_follows_the_packets() -> None:
    """A round trip takes longer with larger packets, by their own sending time on every link."""
    topology = parse_topology("leaf-spine:leaves=2,spines=2,hosts=1,rate=10Gbps,delay=1us")
    small, large = (window_bytes(topology, "virtual", parse_window("1BDP"), mtu=mtu) for mtu in (1024, 9000))
    # a nanosecond more or less on each of four links
    assert abs(large - small - 4 * (9000 - 1024)) <= 4 * 10 / 8


def test_every_key_is_an_option() -> None:
    """What a file can say, the command line can."""
    assert {*OPTIONS, "scheme", "variant"} == set(KEYS)
