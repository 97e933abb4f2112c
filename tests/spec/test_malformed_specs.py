# SPDX-License-Identifier: Apache-2.0
"""Random words into every parser of the command line: each takes them or says why not, and soon."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.cli.make_run import command
from tailrace.experiments.faults.parse import parse_fault
from tailrace.experiments.plan.axes import parse_axis
from tailrace.experiments.plan.experiment import KEYS, make
from tailrace.experiments.plan.nic import parse_window
from tailrace.experiments.plan.pfc import parse_pfc
from tailrace.experiments.plan.plan import plan
from tailrace.experiments.plan.spec_list import split_schemes
from tailrace.experiments.workloads.workload import parse_workload
from tailrace.hosts.options.transports import parse_transport
from tailrace.schemes.registry import parse_scheme
from tailrace.spec import SpecError, parse
from tailrace.spec.limits import FACTOR
from tailrace.spec.units import parse_bytes, parse_rate_bps, parse_time_ns
from tailrace.topology import parse_topology
from tests.long import times

SOON_S = 20.0
"""Generous, for a busy machine: what is not reckoned first takes hours."""

NAMES = (
    *(
        "leaf-spine",
        "fat-tree",
        "dragonfly",
        "slim-fly",
        "ecmp",
        "spray",
        "letflow",
        "flowcut",
        "spritz",
        "rlb",
    ),
    *("permutation", "alltoall", "incast", "random", "poisson", "paused", "allreduce", "congested-groups"),
    *("adversarial", "link-slow", "link-down", "drop", "gbn", "sr", "dctcp", "dcqcn", "default", "none"),
    *("/dev/zero.json", "nowhere.csv", "x.toml", "hermes", "ugal-l", "minimal", "drill", "ops", "flicr"),
)
KEY_NAMES = (
    *("leaves", "spines", "hosts", "k", "taper", "p", "a", "h", "q", "groups", "rate", "delay", "latency"),
    *(
        "restricted",
        "size",
        "flows",
        "messages",
        "load",
        "duration",
        "window",
        "degree",
        "total",
        "bystanders",
    ),
    *("jitter", "seed", "cdf", "most", "bursts", "every", "burst", "bytes", "pairs", "servers", "at", "long"),
    *(
        "from",
        "to",
        "free",
        "background",
        "algo",
        "peers",
        "cross",
        "variant",
        "gap",
        "rtt",
        "buckets",
        "age",
    ),
    *("fraction", "factor", "until", "link", "xoff", "xon", "alpha", "buffer", "headroom", "clamp", "queue"),
)
VALUES = (
    *("0", "1", "2", "3", "4", "7", "-1", "0.5", "1e999", "-1e999", "nan", "inf", "-inf", "snan", "NaN123"),
    *("1e-400", "9" * 30, "9" * 5000, "1000000000000", "2147483648", "9223372036854775807", "1e18", "1_000"),
    *("1bps", "999999999Tbps", "1e30bps", "10Gbps", "1ns", "999999999s", "1e9s", "1us", "1B", "999999GB"),
    *(
        "1KiB",
        "websearch",
        "nowhere.toml",
        "/dev/zero.toml",
        "yes",
        "no",
        "ring",
        "butterfly",
        "h1/0",
        "h1/9",
    ),
    *("٣", "½", "1/8", "1/0", "0x10", "", " ", "=", ",", ":", "\0", "\ud800", "\x1b[31m", "x" * 70000),
)
piece = st.one_of(st.sampled_from(VALUES), st.text(max_size=12))
option = st.builds("{}={}".format, st.one_of(st.sampled_from(KEY_NAMES), st.text(max_size=5)), piece)
words = st.one_of(
    st.builds(
        lambda name, options: f"{name}:{','.join(options)}" if options else name,
        st.sampled_from(NAMES),
        st.lists(option, max_size=5),
    ),
    st.text(max_size=60),
    piece,
)
PARSERS: dict[str, Callable[[str], object]] = {
    "words": parse,
    "topology": parse_topology,
    "workload": parse_workload,
    "scheme": parse_scheme,
    "fault": parse_fault,
    "transport": parse_transport,
    "window": parse_window,
    "pfc": parse_pfc,
    "schemes": split_schemes,
    "axis": parse_axis,
    "rate": parse_rate_bps,
    "time": parse_time_ns,
    "size": parse_bytes,
}
often = settings(max_examples=times(300, 3), suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(autouse=True)
def usual_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have raised them."""
    monkeypatch.delenv(FACTOR, raising=False)


def soon(act: Callable[[], object]) -> None:
    """It ends in time, and refuses what it does not like in a line of bounded length at least."""
    began_s = time.monotonic()
    try:
        act()
    except SpecError as error:
        assert str(error)
    assert time.monotonic() - began_s < SOON_S


@pytest.mark.parametrize("parser", PARSERS)
@often
@given(text=words)
def test_parsers(parser: str, text: str) -> None:
    """Nothing but SpecError."""
    soon(lambda: PARSERS[parser](text))


scalar = st.one_of(words, st.integers(), st.floats(), st.booleans(), st.none(), st.lists(words, max_size=2))


@often
@given(st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=8)), scalar, max_size=6))
def test_experiments(values: dict[str, object]) -> None:
    """The keys of an experiment file hold anything that TOML can."""
    soon(lambda: make({"scheme": "ecmp", **values}))


@often
@given(
    topology=st.builds(
        lambda name, options: f"{name}:{','.join(options)}" if options else name,
        st.sampled_from(("leaf-spine", "fat-tree", "dragonfly", "slim-fly")),
        st.lists(option, max_size=3),
    ),
    workload=st.builds(
        lambda name, options: f"{name}:{','.join(options)}" if options else name,
        st.sampled_from(NAMES[10:19]),
        st.lists(option, max_size=4),
    ),
)
def test_plans_come_to_something_small(topology: str, workload: str) -> None:
    """What the parsers take is planned within the limits, or refused."""

    def planned() -> None:
        parsed = parse_topology(topology)
        if len(parsed.hosts) <= 512:
            parse_workload(workload).traffic(parsed, random.Random(1))

    soon(planned)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("topology", "fat-tree:k=300", "112,500 switches, and the limit is 8,192"),
        ("topology", "leaf-spine:leaves=2,hosts=40000", "80,000 hosts, and the limit is 65,536"),
        ("topology", "dragonfly:p=1,a=100,h=1,groups=80", "links, and the limit is 262,144"),
        ("topology", "fat-tree:k=48", "3,317,760 routes, and the limit is 2,000,000"),
        ("workload", "poisson:load=0.5,size=64KiB,duration=8000000s", "1.22e+13 flows"),
        ("workload", "random:messages=1000000000", "flows, and the limit is 2,000,000"),
        ("workload", "permutation:flows=1000000000", "1,000,000,000 flows"),
        ("workload", "poisson:load=1,size=1GB,duration=1s,bursts=1,every=1ns", "flows, and the limit"),
    ],
)
def test_sizes_are_reckoned(key: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would not end is refused at once: what it comes to, the limit, and how to raise that."""
    values = {"scheme": "ecmp", "topology": "leaf-spine:leaves=2,spines=2,hosts=4", key: value}
    began_s = time.monotonic()
    with pytest.raises(SpecError) as caught:
        plan(make(values), "virtual")
    assert says in str(caught.value)
    assert f"{FACTOR}=N" in str(caught.value)
    assert time.monotonic() - began_s < SOON_S


def test_limits_can_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is no factor is refused, where a limit is met."""
    large = "leaf-spine:leaves=400,spines=2,hosts=200"
    with pytest.raises(SpecError, match="80,000 hosts"):
        parse_topology(large)
    monkeypatch.setenv(FACTOR, "2")
    assert len(parse_topology(large).hosts) == 80_000
    for text in ("0", "-1", "1.5", "nan", "9" * 99, "٣"):
        monkeypatch.setenv(FACTOR, text)
        with pytest.raises(SpecError, match=FACTOR):
            parse_topology(large)


@often
@given(
    st.dictionaries(
        st.sampled_from(
            ("TARGET", "SCHEME", "VARIANT", "TOPO", "WORKLOAD", "FLOWS", "FAULT", "SEED", "OUT", "CLI")
        ),
        words.filter(lambda text: "\0" not in text),
    )
)
def test_variables_of_make_run(environment: dict[str, str]) -> None:
    """Nonsense in a variable becomes an argument that the command refuses, or a line."""
    soon(lambda: command(environment))
