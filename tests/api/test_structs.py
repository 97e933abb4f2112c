# SPDX-License-Identifier: Apache-2.0
"""Registered structs instead of words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli

import tailrace
from tailrace.experiments.faults.kinds import LinkChoice as Broken
from tailrace.experiments.faults.kinds import SlowLinks, Times
from tailrace.experiments.faults.parse import FAULTS
from tailrace.experiments.workloads.patterns import Permutation
from tailrace.experiments.workloads.registry import Peers, Sizes
from tailrace.experiments.workloads.sizes import SizeCdf
from tailrace.experiments.workloads.workload import WORKLOADS
from tailrace.schemes.ecmp import EcmpConfig
from tailrace.schemes.letflow import LetflowConfig
from tailrace.schemes.registry import SCHEMES, parse_scheme
from tailrace.spec.registry import Registry
from tailrace.topology.families.leaf_spine import LeafSpine
from tailrace.topology.families.options import LinkOptions
from tailrace.topology.parse import FAMILIES
from tests.api.conftest import TINY

ROOT = Path(__file__).resolve().parents[2]
REGISTRIES: dict[str, Registry[Any]] = {
    "scheme": SCHEMES,
    "topology": FAMILIES,
    "workload": WORKLOADS,
    "fault": FAULTS,
}


def words_in(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """The words in a TOML file, and what each specifies."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from words_in(each, "scheme" if key == "schemes" else name)
    elif isinstance(value, list):
        for each in value:
            yield from words_in(each, key)
    elif isinstance(value, str) and key in REGISTRIES:
        yield key, value


@pytest.mark.parametrize("kind", REGISTRIES)
def test_words_and_structs_mean_the_same(kind: str) -> None:
    """All words in all our files: to structs, back to words, and to the same structs."""
    files = [
        *ROOT.glob("tailrace/experiments/presets/*.toml"),
        *ROOT.glob("tailrace/papers/files/*.toml"),
    ]
    registry = REGISTRIES[kind]
    seen = set()
    for path in files:
        for key, text in words_in(tomli.loads(path.read_text("utf-8"))):
            if key != kind or text in ("none", "default") or "{" in text or text.startswith("FOLDER/"):
                continue
            _, struct = registry.parse(text)
            words = registry.spec_of(struct)
            assert registry.parse(words)[1] == struct, text
            seen.add(words)
    assert len(seen) > 5


def test_a_run_of_structs() -> None:
    """The same as one of words, and its summary says the words."""
    structs = tailrace.run(
        scheme=LetflowConfig(gap_ns=50_000),
        topology=LeafSpine(LinkOptions(), leaves=2, spines=2, hosts=1),
        workload=Permutation(Sizes(16384), Peers()),
        fault=[SlowLinks(Broken(link="leaf1-spine1"), Times(), factor=0.5)],
        target="virtual",
        seed=3,
    )
    words = tailrace.run(
        scheme="letflow:gap=50us",
        topology="leaf-spine:leaves=2,spines=2,hosts=1",
        workload="permutation:size=16KiB",
        fault="link-slow:link=leaf1-spine1,factor=0.5",
        target="virtual",
        seed=3,
    )
    assert structs.rows == words.rows
    assert structs.summary.trace_sha256 == words.summary.trace_sha256
    assert structs.summary.scheme == "letflow:gap=50us"
    done = tailrace.compare(TINY, [EcmpConfig(), "spray"])
    assert done.axes["scheme"] == ("ecmp", "spray")


def test_what_no_words_mean() -> None:
    """A key that words have elsewhere, a distribution that no file has, a value that is out of range."""
    with pytest.raises(tailrace.SpecError, match=r"scheme ecmp: .* cannot be written as a spec"):
        tailrace.experiment(scheme=parse_scheme("ecmp:queue=1MiB"))
    with pytest.raises(tailrace.SpecError, match="cdf 'a custom distribution' is not known"):
        tailrace.experiment(scheme="ecmp", workload=Permutation(Sizes(cdf=SizeCdf.always(5)), Peers()))
    with pytest.raises(tailrace.SpecError, match="topology leaf-spine: leaves must be at least"):
        tailrace.experiment(scheme="ecmp", topology=LeafSpine(LinkOptions(), leaves=-1, spines=2, hosts=1))
