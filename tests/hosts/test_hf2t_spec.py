# SPDX-License-Identifier: Apache-2.0
"""HF2T in words: an option of every scheme, its defaults, what cannot be, and what NICs are told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from tailrace.cli.explain.scheme_text import listing
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.nic import REAL_TIME_MARGIN_NS, hf2t_config
from tailrace.experiments.plan.pfc import REACTION_NS
from tailrace.experiments.plan.plan import plan
from tailrace.hosts.options.hf2t import Hf2tConfig, train_gaps
from tailrace.hosts.options.hf2t_spec import KEYS, Hf2tSpec
from tailrace.p4rt.target import Target, target
from tailrace.schemes.base import SchemeConfig, resolve
from tailrace.schemes.letflow import LetflowConfig
from tailrace.schemes.registry import parse_scheme
from tailrace.spec import SpecError
from tailrace.spec.scale import scaled
from tailrace.topology import parse_topology
from tailrace.topology.timing import FULL_FRAME_BYTES, base_rtt_ns

SCHEMES = (
    *(
        "ecmp",
        "spray",
        "letflow",
        "flowcut",
        "presto",
        "drill",
        "hermes",
        "rlb",
        "minimal",
        "valiant",
        "ugal-l",
    ),
    *("mp-rdma", "spritz", "ops", "flicr"),
)
TOPOLOGY = parse_topology("leaf-spine:leaves=2,spines=2,hosts=2,rate=100Gbps,delay=1us")
DRAGONFLY = parse_topology("dragonfly:p=2,a=2,h=1,rate=100Gbps,delay=1us")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_has_it(scheme: str) -> None:
    """Off unless asked for; `on` is what the paper uses (HF2T §5.1)."""
    assert parse_scheme(scheme).hf2t is None is parse_scheme(f"{scheme}:hf2t=off").hf2t
    paper = Hf2tSpec(percentile=99.0, min_thr=20, max_thr=80, dynamic=True)
    assert paper == parse_scheme(f"{scheme}:hf2t=on").hf2t == parse_scheme(f"{scheme}:hf2t=99").hf2t
    asked = parse_scheme(f"{scheme}:hf2t=on")
    plain = {"variant": "plain"} if isinstance(asked, LetflowConfig) else {}
    assert structs.replace(asked, hf2t=None, **plain) == parse_scheme(scheme)
    rows = listing([scheme], TOPOLOGY if scheme == "rlb" else None).rows
    defaults = {row["key"]: str(row["default"]) for row in rows}
    expected = [
        "off",
        "20",
        "80",
        "on",
        "flowlet gap, or base RTT",
        "depends on hf2t",
        "learnt",
        "0B",
        "on",
        "on",
    ]
    assert expected == [defaults[key] for key in KEYS]


def test_all_words() -> None:
    """Each key has its field."""
    scheme = parse_scheme(
        "rlb:hf2t=97.5,min_thr=5,max_thr=6,dynamic=off,stretch=9us,train=300,spare=10KB,retrain=no"
    )
    assert scheme.hf2t == Hf2tSpec(
        percentile=97.5,
        min_thr=5,
        max_thr=6,
        dynamic=False,
        stretch_ns=9_000,
        train=300,
        spare_bytes=10_000,
        retrain=False,
    )
    assert Hf2tSpec(t_ns=2_000) == parse_scheme("ecmp:hf2t=on,t=2us").hf2t
    assert Hf2tSpec(delay=False) == parse_scheme("letflow:hf2t=on,delay=off").hf2t


def test_letflow_s_variant() -> None:
    """`variant=hf2t` is `hf2t=on` (DESIGN §9), and goes with all that hf2t takes."""
    assert parse_scheme("letflow:variant=hf2t") == parse_scheme("letflow:hf2t=on")
    assert parse_scheme("letflow:variant=plain") == parse_scheme("letflow")
    tuned = parse_scheme("letflow:variant=hf2t,hf2t=98,max_thr=100")
    assert Hf2tSpec(percentile=98.0, max_thr=100) == tuned.hf2t
    assert parse_scheme("letflow:variant=hf2t,t=1us").hf2t == Hf2tSpec(t_ns=1_000)
    assert isinstance(tuned, LetflowConfig)
    assert ("hf2t", "plain") == (tuned.variant, LetflowConfig().variant)
    assert resolve(tuned, TOPOLOGY).program == "letflow"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ecmp:hf2t=100", "hf2t must be on, off or a percentile from 50 to below 100, found '100'"),
        ("ecmp:hf2t=49.99", "hf2t must be on, off or a percentile from 50 to below 100, found '49.99'"),
        ("ecmp:hf2t=99.999", "hf2t must be on, off or a percentile from 50 to below 100"),
        ("ecmp:hf2t=much", "hf2t must be on, off or a percentile from 50 to below 100, found 'much'"),
        ("ecmp:hf2t=nan", "hf2t must be on, off or a percentile from 50 to below 100, found 'nan'"),
        ("ecmp:hf2t=on,min_thr=0", "min_thr must be at least 1, found '0'"),
        ("ecmp:hf2t=on,max_thr=0", "max_thr must be at least 1, found '0'"),
        ("ecmp:hf2t=on,min_thr=81", "min_thr must be at most max_thr, which is 80, found '81'"),
        ("ecmp:hf2t=on,max_thr=19", "min_thr must be at most max_thr, which is 19"),
        ("ecmp:hf2t=on,stretch=0us", "stretch must be more than 0, found '0us'"),
        ("ecmp:hf2t=on,stretch=long", "stretch must be a time such as 10us, found 'long'"),
        ("ecmp:hf2t=on,train=99", "train must be at least 100, found '99'"),
        ("ecmp:hf2t=on,t=0us", "t must be more than 0, found '0us'"),
        ("ecmp:hf2t=on,dynamic=maybe", "dynamic must be yes or no, found 'maybe'"),
        ("ecmp:hf2t=on,spare=much", "spare must be a size such as 64KiB, found 'much'"),
        ("ecmp:hf2t=99,t=2us", "hf2t must be on if t is given, since a fixed T is not learnt, found '99'"),
        ("ecmp:hf2t=on,t=2us,train=100", "train may only be given without t, since a fixed T is not learnt"),
        ("ecmp:hf2t=on,t=2us,retrain=on", "retrain may only be given without t"),
        ("ecmp:delay=off", "delay may only be given together with hf2t=on"),
        ("flowcut:hf2t=on,delay=off", "delay may only be given with a scheme whose paths follow"),
        ("letflow:variant=half", "variant=half: expected plain, hf2t"),
        ("letflow:variant=plain,hf2t=98", "variant must be hf2t where hf2t=98, found 'plain'"),
        ("letflow:variant=hf2t,hf2t=off", "variant must be plain with hf2t=off, found 'hf2t'"),
        ("letflow:variant=plain,train=100", "train may only be given together with hf2t=on"),
    ],
)
def test_words_that_cannot_be(words: str, message: str) -> None:
    """One line that names the scheme, the key and what was expected."""
    with pytest.raises(SpecError) as refused:
        parse_scheme(words)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("key", KEYS[1:])
def test_all_keys_need_the_first(key: str) -> None:
    """Nothing is taken in silence."""
    for words in (f"flowcut:{key}=1", f"flowcut:hf2t=off,{key}=1"):
        with pytest.raises(SpecError, match=f"{key} may only be given together with hf2t=on or hf2t=PERC"):
            parse_scheme(words)


@pytest.mark.parametrize(
    ("words", "topology", "gap_ns"),
    [
        ("letflow:gap=12us", TOPOLOGY, 12_000),
        ("letflow", TOPOLOGY, base_rtt_ns(TOPOLOGY, FULL_FRAME_BYTES)),
        ("letflow:gap=12us,path=ugal-l", DRAGONFLY, 12_000),
        ("rlb:variant=letflow,gap=7us", TOPOLOGY, 7_000),
        ("rlb:variant=drill", TOPOLOGY, base_rtt_ns(TOPOLOGY, FULL_FRAME_BYTES)),
        ("ugal-l:per=flowlet,gap=9us", DRAGONFLY, 9_000),
        ("ugal-l:per=packet", DRAGONFLY, base_rtt_ns(DRAGONFLY, FULL_FRAME_BYTES)),
        ("flowcut", TOPOLOGY, base_rtt_ns(TOPOLOGY, FULL_FRAME_BYTES)),
        ("ecmp", TOPOLOGY, base_rtt_ns(TOPOLOGY, FULL_FRAME_BYTES)),
    ],
)
def test_gaps_are_stretched_to_the_scheme_s_own(words: str, topology, gap_ns: int) -> None:
    """That of its flowlets, else a base RTT; or to what the words say."""
    joint = "," if ":" in words else ":"
    for more, expected in (("", gap_ns), (",stretch=3us", 3_000)):
        hf2t = hf2t_config(
            topology, resolve(parse_scheme(f"{words}{joint}hf2t=on{more}"), topology), target("virtual")
        )
        assert hf2t is not None
        assert expected == hf2t.threshold_ns


def hf2t_of(words: str, switches: Target, scale: float = 1) -> Hf2tConfig | None:
    scheme: SchemeConfig = scaled(parse_scheme(words), scale)
    topology = scaled(TOPOLOGY, scale)
    return hf2t_config(topology, resolve(scheme, topology), switches)


def test_nics_are_told_everything() -> None:
    """In permyriads, and at the time scale of the run."""
    words = "letflow:hf2t=97.5,min_thr=5,max_thr=6,dynamic=off,gap=9us,train=300,spare=10KB,retrain=off"
    expected = Hf2tConfig(
        threshold_ns=9_000,
        percentile=9_750,
        min_thr=5,
        max_thr=6,
        train_gaps=300,
        dynamic=False,
        spare_bytes=10_000,
        retrain=False,
    )
    assert expected == hf2t_of(words, target("virtual"))
    assert replace(expected, threshold_ns=900_000) == hf2t_of(words, target("virtual"), 100)
    given = hf2t_of("letflow:hf2t=on,t=2us,gap=9us", target("virtual"), 10)
    assert given is not None
    assert (20_000, 90_000, train_gaps(9_900)) == (given.t_ns, given.threshold_ns, given.train_gaps)
    assert hf2t_of("letflow", target("virtual")) is None


@pytest.mark.parametrize(("gap", "ticks"), [("9us", 9), ("9001ns", 10), ("1ns", 1)])
def test_the_threshold_is_that_of_a_switch_with_slow_ticks(gap: str, ticks: int) -> None:
    """As it stands in the switch: whole ticks."""
    for name in ("bmv2", "native"):
        hf2t = hf2t_of(f"letflow:hf2t=on,gap={gap}", target(name))
        assert hf2t is not None
        assert (ticks * 1_000, 1_000) == (hf2t.threshold_ns, hf2t.tick_ns)
        assert REAL_TIME_MARGIN_NS == hf2t.margin_ns


@pytest.mark.parametrize(
    ("gap", "margin_ns"), [("100ms", 5_000_000), ("600ms", 30_000_000), ("3s", REACTION_NS)]
)
def test_the_margin_of_real_time_grows_with_the_threshold(gap: str, margin_ns: int) -> None:
    """A twentieth of it, and no less than a little, and no more than a process waits."""
    hf2t = hf2t_of(f"letflow:hf2t=on,gap={gap}", target("native"))
    assert hf2t is not None
    assert margin_ns == hf2t.margin_ns


@pytest.mark.parametrize(
    ("words", "topology"),
    [
        ("letflow:hf2t=97.5", "leaf-spine:leaves=2,spines=2,hosts=2"),
        ("hermes:hf2t=97.5", "leaf-spine:leaves=2,spines=2,hosts=2"),
        ("flowcut:variant=nic,hf2t=97.5", "leaf-spine:leaves=2,spines=2,hosts=2"),
        ("spritz:hf2t=97.5", "dragonfly:p=2,a=2,h=1"),
        ("valiant:hf2t=97.5,draw=hop", "slim-fly:p=1,q=5"),
    ],
)
@pytest.mark.parametrize("name", ["virtual", "native"])
def test_runs_of_all_kinds_of_nics_have_it(words: str, topology: str, name: str) -> None:
    """Also where switches steer; and the switches are not told."""
    values = {"topology": topology, "workload": "permutation:size=64KiB", "time_scale": 100}
    planned = plan(make({"scheme": words, **values}), name)
    hf2t = planned.job.nic.hf2t
    assert hf2t is not None
    assert (9_750, target(name).tick_ns) == (hf2t.percentile, hf2t.tick_ns)
    without = plan(make({"scheme": words.replace("hf2t=97.5", "hf2t=off"), **values}), name)
    assert without.job.nic == replace(planned.job.nic, hf2t=None)
